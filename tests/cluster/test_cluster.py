"""The topology of `docker-compose.yaml` refines what one process refines, byte for byte, whatever of it is killed.

`make cluster-test` runs it, and prints what was killed when and how the run ended. It needs minutes, and 8 GB.
"""

import hashlib
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.archives import http, response, zipped
from tests.cluster.airflow_api import Airflow
from tests.cluster.containers import wait_until
from tests.cluster.stack import BUCKET, SECONDS, Stack, embedded, embedded_run, land, wait_for_task, written
from tests.cluster.topology import (
    Topology,
    ray_nodes,
    restarting,
    spark_jobs,
    topology,
    wait_for_workers,
    wait_until_healthy,
)

pytestmark = [pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(3600)]

DAYS = ("2026-11-19", "2026-11-20")
FILES = ("a.warc.gz", "b.warc.gz")
PAGES = 60

WIDE_DAY = "2026-11-21"
WIDE_FILES = tuple(f"{number:02}.warc.gz" for number in range(20))
"""Files of a day that is refined in as many partitions."""

WORDS = [f"word{number}" for number in range(400)]

RECIPE = """
name: web
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
  dedup_exact: {buckets: 2}
run: {partitions: 20, resources: {extract: {cores: 1, memory: 0.5}}}
"""

# --- What is refined --------------------------------------------------------------------------------------------------


def write_crawl(folder: Path) -> None:
    """Write two days of archives that promise their files; the second day repeats pages of the first.

    Their lengths differ as those of pages do: documents of one length would leave a tenth of each sequence empty.
    """
    draws = random.Random(7)
    texts = [" ".join(draws.choices(WORDS, k=draws.randint(20, 380))) for _ in range(PAGES * 3)]
    for number, day in enumerate(DAYS):
        first = number * PAGES
        write_day(folder / day, {name: texts[first + at * PAGES // 2 :][:PAGES] for at, name in enumerate(FILES)})


def write_wide_day(folder: Path) -> None:
    """Write a day of many small archives."""
    draws = random.Random(8)
    write_day(folder, {name: [" ".join(draws.choices(WORDS, k=100)) for _ in range(3)] for name in WIDE_FILES})


def write_day(folder: Path, files: Mapping[str, Sequence[str]]) -> None:
    """Write archives of pages with these texts, and the list that promises them."""
    folder.mkdir(parents=True)
    promised = []
    for name, texts in files.items():
        pages = [http(f"<html><body><article><p>{text}.</p></article></body></html>".encode()) for text in texts]
        site = name.partition(".")[0]
        urls = [f"https://{site}.example.org/{folder.name}/{at}" for at in range(len(pages))]
        body = b"".join(zipped([response(url, page) for url, page in zip(urls, pages, strict=True)]))
        (folder / name).write_bytes(body)
        promised.append({"path": name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()})
    (folder / "snapshot.json").write_text(json.dumps({"snapshot": folder.name, "files": promised}))


def write_recipe(folder: Path) -> Path:
    """Write the recipe; it has the name of the one that `corpus` builds from."""
    path = folder / "web.yaml"
    path.write_text(RECIPE)
    return path


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
def here(folder: Path, crawl: Path) -> Iterator[Topology]:
    with topology(folder, write_recipe(crawl)) as running:
        yield running
    assert running.containers.processes() == []


@pytest.fixture(scope="module")
def stack(here: Topology, crawl: Path) -> Iterator[Stack]:
    airflow = Airflow.login(here.api, here.secrets["ADMIN_PASSWORD"])
    airflow.unpause()
    running = Stack(here.s3, airflow, {})
    for day in DAYS:
        land(here.s3, crawl / day, [*FILES, "snapshot.json"], f"landing/{day}")
        embedded_run(here.s3, str(here.recipe), day)
        running.expected[day] = running.digests("embedded")
    yield running
    print("\n" + written(running.table))


# --- Undisturbed ------------------------------------------------------------------------------------------------------


def test_two_days_on_spark_and_ray_are_what_one_process_refines(stack: Stack) -> None:
    for day, engine in zip(DAYS, ("spark", "ray"), strict=True):
        name = stack.run(f"calm-{engine}", day, {"*": engine}, root="calm")
        stack.end(name, day, when=f"all stages on {engine}", root="calm")
    keys = [key.removeprefix("calm/requests/") for key in stack.keys("calm/requests/")]
    sessions = sorted(key.rpartition("-")[0] for key in keys if key.endswith("/drivers/1/claim.json"))
    assert sessions == sorted(2 * ["ingest", "extract", "dedup_exact"])
    assert not [key for key in keys if "/drivers/2/" in key]


def test_a_dataset_of_both_is_built_on_ray_and_spark_as_in_one_process(stack: Stack) -> None:
    """Each stage runs where its card says: `tokenize` on Ray, the others on Spark."""
    embedded(stack.s3, "build", "--output", f"s3://{BUCKET}/embedded")
    building = replace(stack, airflow=replace(stack.airflow, dag="build_corpus"))
    building.expected["build"] = stack.digests("embedded")
    building.airflow.unpause()
    building.airflow.trigger("calm-build", {"root": f"s3://{BUCKET}/calm"})
    building.end("calm-build", "build", when="a build", root="calm")
    assert any(key.endswith(".bin") for key in building.expected["build"])


def test_more_than_sixteen_partitions_are_in_flight_at_once(here: Topology, stack: Stack, crawl: Path) -> None:
    """A driver handed 16 on at a time, however many cores waited. Without workers all of them stay in flight here."""
    write_wide_day(crawl / WIDE_DAY)
    land(here.s3, crawl / WIDE_DAY, [*WIDE_FILES, "snapshot.json"], f"landing/{WIDE_DAY}")
    embedded_run(here.s3, str(here.recipe), WIDE_DAY, root="embedded-wide")
    stack.expected[WIDE_DAY] = stack.digests("embedded-wide")
    workers = ("spark-worker-1", "spark-worker-2")
    for worker in workers:
        here.containers.kill(worker)
    name = stack.run("wide", WIDE_DAY, {"*": "local", "extract": "spark"})
    for _ in wait_until(f"{len(WIDE_FILES)} partitions of extract are in flight", SECONDS, each=1):
        if spark_jobs(here) == len(WIDE_FILES):
            break
    for worker in workers:
        here.containers.restart(worker)
    wait_for_workers(here, 2, 2)
    stack.end(name, WIDE_DAY, "both Spark workers", f"until {len(WIDE_FILES)} partitions of extract were in flight")


# --- Killed -----------------------------------------------------------------------------------------------------------


def runs(words: str) -> Callable[[psutil.Process], bool]:
    """Return whether a process's command line has some words."""

    def has(process: psutil.Process) -> bool:
        try:
            return words in " ".join(process.cmdline())
        except psutil.Error:
            return False

    return has


def wait_for_process(here: Topology, container: str, words: str) -> None:
    """Wait until a container runs what has these words in its command line."""
    for _ in wait_until(f"{container} runs {words}", SECONDS, each=0.1):
        if any(map(runs(words), here.containers.processes(container))):
            return


def test_a_spark_worker_dies_in_the_middle_of_a_task(here: Topology, stack: Stack) -> None:
    name = stack.run("spark-worker", DAYS[0], {"*": "local", "extract": "spark"})
    wait_for_process(here, "spark-worker-2", "pyspark.daemon")
    count = here.containers.kill("spark-worker-2")
    assert count > 0
    stack.end(name, DAYS[0], f"Spark worker, its executor ({count} processes)", "its executor ran a task of extract")
    here.containers.restart("spark-worker-2")
    wait_for_workers(here, 2, 2)


def test_a_ray_node_dies_in_the_middle_of_a_task(here: Topology, stack: Stack) -> None:
    name = stack.run("ray-node", DAYS[0], {"*": "local", "extract": "ray"})
    wait_for_process(here, "ray-worker", "ray::_run")
    count = here.containers.kill("ray-worker")
    assert count > 0
    stack.end(name, DAYS[0], f"Ray node ({count} processes)", "it ran a task of extract")
    for _ in wait_until("Ray misses its node", 120, each=1):
        if ray_nodes(here) == 1:
            break
    here.containers.restart("ray-worker")
    wait_for_workers(here, 2, 2)


def test_the_scheduler_dies_with_its_tasks(here: Topology, stack: Stack) -> None:
    name = stack.run("scheduler", DAYS[0], {"*": "local", "extract": "ray"})
    for _ in wait_until("the driver of extract lives", SECONDS, each=0.5):
        if any("/beat-" in key for key in stack.keys("scheduler/requests/extract-")):
            break
    count = here.containers.kill("airflow-scheduler")
    assert count > 0
    here.containers.restart("airflow-scheduler")
    stack.end(name, DAYS[0], f"scheduler and its tasks ({count} processes)", "extract ran as a Ray job")


def test_the_triggerer_dies_while_a_snapshot_is_awaited(here: Topology, stack: Stack, crawl: Path) -> None:
    land(here.s3, crawl / DAYS[0], ["snapshot.json", FILES[0]], f"late/{DAYS[0]}")
    name = stack.run("triggerer", DAYS[0], {"*": "local"}, landing="late")
    wait_for_task(stack, name, "sense", "deferred")
    count = here.containers.kill("airflow-triggerer")
    assert count > 0
    land(here.s3, crawl / DAYS[0], FILES[1:], f"late/{DAYS[0]}")
    here.containers.restart("airflow-triggerer")
    stack.end(name, DAYS[0], f"triggerer ({count} processes)", "the snapshot had not landed completely")


def test_postgres_loses_its_connections(here: Topology, stack: Stack) -> None:
    """One backend is killed, at which Postgres ends all others, and recovers."""
    name = stack.run("postgres", DAYS[0], {"*": "local"})
    with restarting(here):
        for task in ("ingest.partition", "extract.partition", "dedup_exact.refine"):
            wait_for_task(stack, name, task, "running", "success")  # a task of a second may end between two looks
            backends = [each for each in here.containers.processes("postgres") if runs("postgres: airflow")(each)]
            backends[0].kill()
            wait_until_healthy(here)
        stack.end(name, DAYS[0], "Postgres, 3 times: every connection", "ingest, extract, dedup_exact had started")
