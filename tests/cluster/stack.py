"""Airflow refines days somewhere, and what it leaves is compared with what one process leaves."""

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import boto3

from tests.cluster.airflow_api import Airflow
from tests.cluster.containers import wait_until
from tests.embedded import PROJECT

BUCKET = "refinery"

SECONDS = 1800.0
"""Within which a run must end; a bound against hanging, and not a promise."""

KINDS = ("manifest.json", "verdict.json", "dataset.json", "build.json", "tokenizer.json")


@dataclass(slots=True)
class Stack:
    """A person at a running Airflow, its object store, and what the embedded runs left, after each day."""

    s3: Mapping[str, str]
    airflow: Airflow
    expected: dict[str, Mapping[str, str]]
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
                "settling": 0,
            },
        )
        return name

    def end(self, name: str, day: str, killed: str = "nothing", when: str = "", root: str = "") -> None:
        """Wait for a run's end; its bytes must be those of the embedded run. Adds a line to the table."""
        begin = time.monotonic()
        *_, state = self.airflow.states(name, SECONDS)
        again = [task for task in self.airflow.tasks(name) if task["try_number"] > 1]
        tries = ", ".join(sorted({f"{task['task_id']} (try {task['try_number']})" for task in again})) or "no task"
        digests = self.digests(root or name)
        other = sorted(key for key, _ in digests.items() ^ self.expected[day].items())
        ended = f"{state} after {time.monotonic() - begin:.0f} s more; {'OTHER' if other else 'same'} bytes"
        self.table.append((killed, when, tries, f"{ended} in {len(digests)} objects"))
        print(*self.table[-1], sep=" | ", flush=True)
        assert state == "success", self.failures(name)
        assert other == []

    def failures(self, name: str) -> list[str]:
        """The tasks of a run that did not succeed."""
        return [
            f"{task['task_id']}: {task['state']}" for task in self.airflow.tasks(name) if task["state"] != "success"
        ]

    def digests(self, root: str) -> dict[str, str]:
        """SHA-256 of every manifest, verdict, and file of a training dataset under a root."""
        client = store(self.s3)
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{root}/")
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        bodies = {key: client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys if _is_compared(key)}
        return {key.removeprefix(f"{root}/"): hashlib.sha256(body).hexdigest() for key, body in bodies.items()}

    def keys(self, prefix: str) -> list[str]:
        """The names of the objects below a prefix."""
        listed = store(self.s3).list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for entry in listed.get("Contents", ())]


def _is_compared(key: str) -> bool:
    return key.rpartition("/")[2] in KINDS or "/publish/shards/" in key


def store(env: Mapping[str, str]) -> Any:
    """A client of the object store."""
    return boto3.client(
        "s3",
        endpoint_url=env["AWS_ENDPOINT_URL"],
        region_name=env["AWS_REGION"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )


def land(s3: Mapping[str, str], folder: Path, names: Iterable[str], prefix: str) -> None:
    """Put files of a day into the bucket."""
    for name in names:
        store(s3).put_object(Bucket=BUCKET, Key=f"{prefix}/{name}", Body=(folder / name).read_bytes())


def embedded_run(s3: Mapping[str, str], recipe: str, day: str, cwd: Path = PROJECT, *, root: str = "embedded") -> None:
    """Refine a day in one process, as `refinery run` does it."""
    places = ["--input", f"s3://{BUCKET}/landing/{day}", "--output", f"s3://{BUCKET}/{root}"]
    embedded(s3, "run", *places, "--recipe", recipe, "--no-build", cwd=cwd)


def embedded(s3: Mapping[str, str], *words: str, cwd: Path = PROJECT) -> None:
    """Run a command of `refinery` on the engine `local`."""
    command(s3, *words, "--engine", "local", cwd=cwd)


@cache
def ledger_of(endpoint: str) -> str:
    """Return a ledger for the roots of an object store: a person's own remembers those of the last run's store."""
    return f"{tempfile.mkdtemp(prefix='ledger-')}/ledger.sqlite"


def command(s3: Mapping[str, str], *words: str, cwd: Path = PROJECT) -> None:
    """Run a command of `refinery` in a process of its own."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_", "AWS_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pipeline_tasks.cli", *words],
        env=keep
        | {"PYTHONPATH": str(PROJECT), "REFINERY_LEDGER": ledger_of(s3.get("AWS_ENDPOINT_URL", ""))}
        | dict(s3),
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def wait_for_task(stack: Stack, name: str, task: str, *states: str) -> None:
    """Wait until a task of a run, or one of its mapped ones, is in one of some states."""
    for _ in wait_until(f"{task} of {name} is {' or '.join(states)}", SECONDS, each=0.2):
        with contextlib.suppress(OSError):  # the web server is being started again
            if any(known["task_id"] == task and known["state"] in states for known in stack.airflow.tasks(name)):
                return


def written(table: Sequence[Sequence[str]]) -> str:
    """Return the table of what was killed, when, and how it ended."""
    rows = [("killed", "when", "tried again", "the run"), *table]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)
