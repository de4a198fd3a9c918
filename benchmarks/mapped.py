"""Runs a stage of a thousand partitions without work through Airflow's scheduler, and says whether it keeps up.

    PYTHONPATH=. python benchmarks/mapped.py [--partitions 1000] [--json]

The partitions of a snapshot of as many small files are refined first, and the run finds each of them done. Airflow is
that of `refinery up`: SQLite, and four tasks at once. `run_s` is the time of the run, `tasks_s` its partitions per
second, `task_s` the median seconds of a partition's process, `wait_s` the median seconds that it is queued until it
starts. `heartbeat_s` is the oldest heartbeat of the scheduler that its health page showed, and `late` how many of the
looks, one per second, saw one older than Airflow allows (30 s).
"""

import argparse
import hashlib
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.stages import LandRequest, SpansRequest
from tests.airflow_server import Airflow, airflow_server

DATASET, DAY, STAGE = "mapped", "2026-11-01", "ingest.partition"
ACCEPTED = {"override": dict.fromkeys(("ingest", "publish"), "documents of a benchmark")}
"""The param of a run whose gates may refuse what has one word per file."""

THRESHOLD = 30.0
"""Seconds after which Airflow calls a scheduler unhealthy (`scheduler_health_check_threshold`)."""

PATIENCE = 4 * 3600.0


def main() -> None:
    """Measure, and print a line per figure or one line of JSON."""
    parser = argparse.ArgumentParser(description="Measure mapped partitions without work")
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="refinery-mapped-") as folder:
        figures = measured(Path(folder), options.partitions)
    lines = [f"{name:<12} {value:,.6g}" for name, value in figures.items()]
    sys.stdout.write((json.dumps(figures) if options.json else "\n".join(lines)) + "\n")


def measured(folder: Path, partitions: int) -> dict[str, float]:
    """Return the figures of a run of a snapshot of so many files, whose partitions are done."""
    recipe = f"name: {DATASET}\nstages: {{ingest: {{}}}}\nrun: {{partitions: {partitions}}}\n"
    with airflow_server(folder, {DATASET: recipe}) as server, server.airflow(DATASET) as airflow:
        land(server.landing(DATASET) / DAY, partitions)
        refine_partitions(folder / DATASET, partitions)
        beats = Beats(airflow)
        beats.start()
        run = airflow.trigger(DAY, ACCEPTED)
        airflow.waits_until(run, "success", patience=PATIENCE)
        beats.stop()
        return {"partitions": partitions, **figures_of(airflow, run), **beats.figures()}


def land(landing: Path, files: int) -> None:
    """Write so many files of one document each, and their list."""
    landing.mkdir(parents=True)
    entries = []
    for number in range(files):
        body = json.dumps({"text": f"Document {number}.", "url": f"https://example.org/{number}"}).encode() + b"\n"
        (landing / f"{number:04}.jsonl").write_bytes(body)
        digest = hashlib.sha256(body).hexdigest()
        entries.append({"path": f"{number:04}.jsonl", "bytes": len(body), "sha256": digest})
    (landing / "snapshot.json").write_text(json.dumps({"snapshot": DAY, "files": entries}))


def refine_partitions(folder: Path, partitions: int) -> None:
    """Refine each partition by the request that its task makes."""
    about: dict[str, Any] = {"root": str(folder / "root"), "recipe": "mapped", "snapshot": DAY}
    landed = handle(LandRequest(input=str(folder / "landing" / DAY), **about))
    parent, stage = landed["manifest"], "ingest"
    for span in handle(SpansRequest(parent=parent, stage=stage, partitions=partitions, **about))["spans"]:
        cut = (span[0], span[1])
        handle(RefineRequest(stage=stage, params={}, parent=parent, landing=landed["landing"], span=cut, **about))


def figures_of(airflow: Airflow, run: str) -> dict[str, float]:
    """Return what Airflow says of the time of a run and of its partitions."""
    whole = airflow.of_run(run)
    seconds = (moment(whole["end_date"]) - moment(whole["start_date"])).total_seconds()
    tasks = list(partitions_of(airflow, run))
    waits = [(moment(task["start_date"]) - moment(task["queued_when"])).total_seconds() for task in tasks]
    return {
        "run_s": seconds,
        "tasks_s": len(tasks) / seconds,
        "task_s": statistics.median(task["duration"] for task in tasks),
        "wait_s": statistics.median(waits),
    }


def partitions_of(airflow: Airflow, run: str) -> list[Mapping[str, Any]]:
    """Return every mapped task of a run, page by page."""
    tasks: list[Mapping[str, Any]] = []
    while True:
        page = airflow.of_run(run, f"/taskInstances?task_id={STAGE}&limit=100&offset={len(tasks)}")
        tasks += page["task_instances"]
        if len(tasks) >= page["total_entries"]:
            return tasks


def moment(text: str) -> datetime:
    """Return a time of the API."""
    return datetime.fromisoformat(text)


class Beats(threading.Thread):
    """Looks at the scheduler's heartbeat every second until it is stopped."""

    def __init__(self, airflow: Airflow) -> None:
        super().__init__(daemon=True)
        self._airflow, self._ended = airflow, threading.Event()
        self._ages: list[float] = []

    def run(self) -> None:
        """Look, and sleep."""
        while not self._ended.wait(1):
            beat = self._airflow.call("GET", "/api/v2/monitor/health")["scheduler"]["latest_scheduler_heartbeat"]
            self._ages.append((datetime.now(UTC) - moment(beat)).total_seconds())

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self.join()

    def figures(self) -> dict[str, float]:
        """Return the oldest heartbeat that was seen, and how often one was too old."""
        return {"heartbeat_s": max(self._ages), "late": sum(age > THRESHOLD for age in self._ages)}


if __name__ == "__main__":
    began = time.monotonic()
    main()
    sys.stderr.write(f"{time.monotonic() - began:.0f} s\n")
