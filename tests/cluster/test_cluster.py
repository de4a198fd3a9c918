"""The topology of `docker-compose.yaml` refines what one process refines, byte for byte, whatever of it is killed.

`make cluster-test` runs it, and prints what was killed when and how the run ended. It needs minutes, and 8 GB.
"""

import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from pipeline_tasks.embedded.airflow_home import PROJECT
from tests.archives import http, response, zipped
from tests.cluster.airflow_api import Airflow
from tests.cluster.containers import wait_until
from tests.cluster.topology import Topology, ray_nodes, restarting, topology, wait_for_workers, wait_until_healthy

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(3600)]

DAYS = ("2026-11-19", "2026-11-20")
FILES = ("a.warc.gz", "b.warc.gz")
PAGES = 60
WORDS = [f"word{number}" for number in range(400)]
BUCKET = "refinery"

RECIPE = """
name: web
stages:
  ingest: {{}}
  extract: {{min_chars: 20}}
  dedup_exact: {{buckets: 2}}
  tokenize: {{tokenizer: {tokenizer}}}
  shuffle: {{buckets: 2}}
  pack: {{length: 64}}
run: {{partitions: 2}}
"""

SECONDS = 1800.0
"""Within which a run must end; a bound against hanging, and not a promise."""

KINDS = ("manifest.json", "verdict.json", "lineage.parquet")


@dataclass(slots=True)
class Stack:
    """The running topology, a person at its Airflow, and what the embedded runs left, after each day."""

    here: Topology
    airflow: Airflow
    expected: Mapping[str, Mapping[str, str]]
    table: list[tuple[str, str, str, str]] = field(default_factory=list)

    def run(self, name: str, day: str, engines: Mapping[str, str], root: str = "", landing: str = "landing") -> str:
        """Start the refinement of a day; return the id of the run."""
        self.airflow.trigger(
            name,
            {
                "input": f"s3://{BUCKET}/{landing}/{day}",
                "root": f"s3://{BUCKET}/{root or name}",
                "snapshot": day,
                "engines": dict(engines),
                "patience": 1,
            },
        )
        return name

    def end(self, name: str, day: str, killed: str = "nothing", when: str = "", root: str = "") -> None:
        """Wait for a run's end; its bytes must be those of the embedded run. Adds a line to the table."""
        begin = time.monotonic()
        *_, state = self.airflow.states(name, SECONDS)
        again = [task for task in self.airflow.tasks(name) if task["try_number"] > 1]
        tries = ", ".join(sorted({f"{task['task_id']} (try {task['try_number']})" for task in again})) or "no task"
        found = self.digests(root or name)
        same = found == self.expected[day]
        ended = f"{state} after {time.monotonic() - begin:.0f} s more; {'same' if same else 'OTHER'} bytes"
        self.table.append((killed, when, tries, f"{ended} in {len(found)} objects"))
        print(*self.table[-1], sep=" | ", flush=True)
        assert state == "success", self.failures(name)
        assert found == self.expected[day]

    def failures(self, name: str) -> list[str]:
        """The tasks of a run that did not succeed."""
        return [
            f"{task['task_id']}: {task['state']}" for task in self.airflow.tasks(name) if task["state"] != "success"
        ]

    def digests(self, root: str) -> dict[str, str]:
        """SHA-256 of every manifest, verdict, lineage and file of tokens under a root."""
        client = store(self.here.s3)
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{root}/")
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        bodies = {key: client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys if _is_compared(key)}
        return {key.removeprefix(f"{root}/"): hashlib.sha256(body).hexdigest() for key, body in bodies.items()}

    def keys(self, prefix: str) -> list[str]:
        """The names of the objects below a prefix."""
        listed = store(self.here.s3).list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for entry in listed.get("Contents", ())]


def _is_compared(key: str) -> bool:
    name = key.rpartition("/")[2]
    return name in KINDS or name.startswith("tokens.")


def store(env: Mapping[str, str]) -> Any:
    """A client of the object store."""
    return boto3.client(
        "s3",
        endpoint_url=env["AWS_ENDPOINT_URL"],
        region_name=env["AWS_REGION"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )


# --- What is refined --------------------------------------------------------------------------------------------------


def write_crawl(folder: Path) -> None:
    """Write two days of archives that promise their files; the second day repeats pages of the first."""
    draws = random.Random(7)
    texts = [" ".join(draws.choices(WORDS, k=200)) for _ in range(PAGES * 3)]
    for number, day in enumerate(DAYS):
        (folder / day).mkdir(parents=True)
        promised = []
        for rank, name in enumerate(FILES):
            chosen = texts[number * PAGES + rank * PAGES // 2 :][:PAGES]
            pages = [http(f"<html><body><article><p>{text}.</p></article></body></html>".encode()) for text in chosen]
            urls = [f"https://{name[0]}.example.org/{number}/{at}" for at in range(len(pages))]
            body = b"".join(zipped([response(url, page) for url, page in zip(urls, pages, strict=True)]))
            (folder / day / name).write_bytes(body)
            promised.append({"path": name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()})
        (folder / day / "snapshot.json").write_text(json.dumps({"snapshot": day, "files": promised}))


def write_recipe(folder: Path) -> Path:
    """Write the recipe, and the tokenizer that it names."""
    vocabulary = {word: rank for rank, word in enumerate(["</s>", "?", ".", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    path = folder / "web.yaml"
    path.write_text(RECIPE.format(tokenizer=folder / "tokenizer.json"))
    return path


def land(here: Topology, crawl: Path, day: str, names: Sequence[str], landing: str = "landing") -> None:
    """Put files of a day into the bucket."""
    for name in names:
        body = (crawl / day / name).read_bytes()
        store(here.s3).put_object(Bucket=BUCKET, Key=f"{landing}/{day}/{name}", Body=body)


def embedded_run(here: Topology, day: str) -> None:
    """Refine a day in one process, as `refinery run` does it."""
    places = ["--input", f"s3://{BUCKET}/landing/{day}", "--output", f"s3://{BUCKET}/embedded"]
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_", "AWS_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pipeline_tasks.cli", "run", *places, "--recipe", str(here.recipe), "--engine", "local"],
        env=keep | {"PYTHONPATH": str(PROJECT)} | here.s3,
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    write_crawl(folder)
    return folder


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that others may enter: Postgres runs as a user of its own, and pytest closes its folders to others."""
    with tempfile.TemporaryDirectory(prefix="refinery-cluster-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def stack(folder: Path, crawl: Path) -> Iterator[Stack]:
    with topology(folder, write_recipe(crawl)) as here:
        expected = {}
        airflow = Airflow.login(here.api, here.secrets["ADMIN_PASSWORD"])
        airflow.unpause()
        running = Stack(here, airflow, expected)
        for day in DAYS:
            land(here, crawl, day, [*FILES, "snapshot.json"])
            embedded_run(here, day)
            expected[day] = running.digests("embedded")
        yield running
        print("\n" + written(running.table))
    assert here.containers.processes() == []


def written(table: Sequence[Sequence[str]]) -> str:
    """Return the table of what was killed, when, and how it ended."""
    rows = [("killed", "when", "tried again", "the run"), *table]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


# --- Undisturbed ------------------------------------------------------------------------------------------------------


def test_two_days_on_spark_and_ray_are_what_one_process_refines(stack: Stack) -> None:
    for day, engine in zip(DAYS, ("spark", "ray"), strict=True):
        name = stack.run(f"calm-{engine}", day, {"*": engine}, root="calm")
        stack.end(name, day, when=f"all stages on {engine}", root="calm")
    jobs = {key.split("/")[-1].split("-")[1] for key in stack.keys("calm/requests/")}
    assert {"ingest", "extract", "dedup_exact", "tokenize", "shuffle", "pack"} <= jobs


# --- Killed -----------------------------------------------------------------------------------------------------------


def runs(words: str) -> Callable[[psutil.Process], bool]:
    """Return whether a process's command line has some words."""

    def has(process: psutil.Process) -> bool:
        try:
            return words in " ".join(process.cmdline())
        except psutil.Error:
            return False

    return has


def wait_for_process(stack: Stack, container: str, words: str) -> None:
    """Wait until a container runs what has these words in its command line."""
    for _ in wait_until(f"{container} runs {words}", SECONDS, each=0.1):
        if any(map(runs(words), stack.here.containers.processes(container))):
            return


def wait_for_task(stack: Stack, name: str, task: str, state: str) -> None:
    """Wait until a task of a run, or one of its mapped ones, is in a state."""
    for _ in wait_until(f"{task} of {name} is {state}", SECONDS, each=1):
        with contextlib.suppress(OSError):  # the web server is being started again
            if any(known["task_id"] == task and known["state"] == state for known in stack.airflow.tasks(name)):
                return


def test_a_spark_worker_dies_in_the_middle_of_a_task(stack: Stack) -> None:
    name = stack.run("spark-worker", DAYS[0], {"*": "local", "extract": "spark"})
    wait_for_process(stack, "spark-worker-2", "pyspark.daemon")
    count = stack.here.containers.kill("spark-worker-2")
    stack.end(name, DAYS[0], f"Spark worker, its executor ({count} processes)", "its executor ran a task of extract")
    stack.here.containers.restart("spark-worker-2")
    wait_for_workers(stack.here, 2, 2)


def test_a_ray_node_dies_in_the_middle_of_a_task(stack: Stack) -> None:
    name = stack.run("ray-node", DAYS[0], {"*": "local", "extract": "ray"})
    wait_for_process(stack, "ray-worker", "ray::guarded")
    count = stack.here.containers.kill("ray-worker")
    stack.end(name, DAYS[0], f"Ray node ({count} processes)", "it ran a task of extract")
    for _ in wait_until("Ray misses its node", 120, each=1):
        if ray_nodes(stack.here) == 1:
            break
    stack.here.containers.restart("ray-worker")
    wait_for_workers(stack.here, 2, 2)


def test_the_scheduler_dies_with_its_tasks(stack: Stack) -> None:
    name = stack.run("scheduler", DAYS[0], {"*": "local", "extract": "ray"})
    for _ in wait_until("extract is submitted", SECONDS, each=0.5):
        if stack.keys("scheduler/requests/refinery-extract"):
            break
    count = stack.here.containers.kill("airflow-scheduler")
    stack.here.containers.restart("airflow-scheduler")
    stack.end(name, DAYS[0], f"scheduler and its tasks ({count} processes)", "extract ran as a Ray job")


def test_the_triggerer_dies_while_a_snapshot_is_awaited(stack: Stack, crawl: Path) -> None:
    land(stack.here, crawl, DAYS[0], ["snapshot.json", FILES[0]], "late")
    name = stack.run("triggerer", DAYS[0], {"*": "local"}, landing="late")
    wait_for_task(stack, name, "sense", "deferred")
    count = stack.here.containers.kill("airflow-triggerer")
    land(stack.here, crawl, DAYS[0], FILES[1:], "late")
    stack.here.containers.restart("airflow-triggerer")
    stack.end(name, DAYS[0], f"triggerer ({count} processes)", "the snapshot had not landed completely")


def test_postgres_loses_its_connections(stack: Stack) -> None:
    """One backend is killed, at which Postgres ends all others, and recovers."""
    name = stack.run("postgres", DAYS[0], {"*": "local"})
    with restarting(stack.here):
        for task in ("ingest.partition", "extract.partition", "tokenize.refine"):
            wait_for_task(stack, name, task, "running")
            backends = [each for each in stack.here.containers.processes("postgres") if runs("postgres: airflow")(each)]
            backends[0].kill()
            wait_until_healthy(stack.here)
        stack.end(name, DAYS[0], "Postgres, 3 times: every connection", "ingest, extract, tokenize ran")
