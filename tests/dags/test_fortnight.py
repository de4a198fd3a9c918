"""A fortnight with a missing, an incomplete, a drifted and a corrupt day, backfilled through Airflow's scheduler."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import pytest

from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.inspect.versions.staleness import stale_now
from pipeline_tasks.publish.logs import version_log
from tests.airflow_server import PATIENCE, Airflow, Server, airflow_server, archive_of, until
from tests.archives import http, response, zipped
from tests.embedded import PROJECT

pytestmark = [pytest.mark.fortnight, pytest.mark.nightly, pytest.mark.timeout(5400)]

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
  dedup_exact: {buckets: 1}
run: {partitions: 1}
"""
DATASET, DAG = "small", "refine_small"
DAYS = [(date(2026, 10, 1) + timedelta(days=number)).isoformat() for number in range(14)]
MISSING, INCOMPLETE, DRIFTED, CORRUPT = DAYS[3], DAYS[5], DAYS[8], DAYS[10]
REASON = "the site was a forum for one day"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with airflow_server(tmp_path, {DATASET: RECIPE}) as server:
        yield server


@pytest.fixture
def airflow(server: Server) -> Iterator[Airflow]:
    with server.airflow(DATASET) as airflow:
        yield airflow


def whole(day: str) -> bytes:
    """A day's archive, two thirds of whose pages are those of the day before; the drifted day's are mostly short."""
    first = 3 * DAYS.index(day)
    short = [response(f"https://forum.example.org/{day}/{post}", http(b"<p>me too</p>")) for post in range(36)]
    return archive_of(first) + (b"".join(zipped(short)) if day == DRIFTED else b"")


def land(landing: Path, day: str, *, file: bytes | None, promised: bytes | None = None) -> None:
    """Land a day with the list of its files; `file` is what is there of the one that is promised."""
    (landing / day).mkdir(parents=True, exist_ok=True)
    body = promised or whole(day)
    entry = {"path": "a.warc.gz", "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    (landing / day / "snapshot.json").write_text(json.dumps({"snapshot": day, "files": [entry]}))
    if file is not None:
        (landing / day / "a.warc.gz").write_bytes(file)


def land_the_fortnight(landing: Path) -> None:
    for day in DAYS:
        body = whole(day)
        damaged = bytes([*body[:-9], body[-9] ^ 1, *body[-8:]])
        if day != MISSING:
            land(landing, day, file={INCOMPLETE: None, CORRUPT: damaged}.get(day, body))


def backfilled(airflow: Airflow) -> dict[str, str]:
    """The ids of the backfill's runs, by their dates."""
    return {run["logical_date"][:10]: run["dag_run_id"] for run in airflow.runs() if run["run_type"] == "backfill"}


def backfill(airflow: Airflow) -> None:
    """Backfill the days, the last one first."""
    body = {"dag_id": DAG, "from_date": DAYS[0], "to_date": DAYS[-1], "run_backwards": True, "max_active_runs": 16}
    airflow.call("POST", "/api/v2/backfills", {**body, "reprocess_behavior": "none", "dag_run_conf": {}})


def wait_for_all(airflow: Airflow, least: int) -> None:
    """Wait until at least so many runs are there and none is under way; that of today waits for its files."""

    def states() -> list[str]:
        return [run["state"] for run in airflow.runs() if run["run_type"] != "scheduled"]

    def ended() -> bool:
        now = states()
        return len(now) >= least and not {"queued", "running"} & {*now}

    until(ended, lambda: f"of {least} runs: {states()}", 3 * PATIENCE)


def outcome(airflow: Airflow, run: str) -> dict[str, str]:
    """The states of a run's tasks that did not succeed."""
    return {task: state for task, state in airflow.states(run).items() if state not in ("success", "upstream_failed")}


def log_of(airflow: Airflow, run: str, task: str, map_index: int = -1) -> str:
    return json.dumps(airflow.of_run(run, f"/taskInstances/{task}/logs/1?full_content=true&map_index={map_index}"))


def clear(airflow: Airflow, run: str) -> None:
    """Clear a run, as an operator does who mended its files."""
    airflow.of_run(run, "/clear", "POST", {"dry_run": False, "only_failed": False})


def approve(airflow: Airflow, run: str) -> None:
    """Approve the drifted day once more: its history changed, so the gate has another manifest before it."""
    gate = "extract.gate"
    until(lambda: run in [known["dag_run_id"] for known in airflow.runs()], lambda: f"{run} did not start")
    airflow.waits_until(run, "awaiting_input", gate)
    answer = partial(airflow.answer, run, gate, "Approve", reason=REASON)
    airflow.decide(run, gate, answer, lambda: airflow.state(run, gate) == "success")


def refine_again_what_is_stale(airflow: Airflow, root: str) -> None:
    """Start stale snapshots by the DAG `arrivals` until none is left."""
    airflow.call("PATCH", "/api/v2/dags/arrivals", {"is_paused": False})
    for turn in range(3):
        if not stale_now(root, DATASET):
            return
        known = airflow.call("GET", f"/api/v2/dags/{DAG}/dagRuns?limit=1")["total_entries"] - 1
        body = {"logical_date": None, "dag_run_id": f"stale_{turn}", "conf": {"stale": True}}
        airflow.call("POST", "/api/v2/dags/arrivals/dagRuns", body)
        approve(airflow, f"stale__{DRIFTED}__stale_{turn}")
        wait_for_all(airflow, known + 1)
    assert stale_now(root, DATASET) == []


def run_clean(server: Server, root: str) -> None:
    """Refine all days in order by `refinery run`, into another root."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_"))}
    for day in DAYS:
        places = ["--input", str(server.landing(DATASET) / day), "--output", root, "--recipe", server.recipe(DATASET)]
        command = [sys.executable, "-m", "pipeline_tasks.cli", "run", *places, "--engine", "local", "--no-build"]
        command += ["--override", f"extract={REASON}"] if day == DRIFTED else []
        done = subprocess.run(
            command, env=keep | {"PYTHONPATH": str(PROJECT)}, capture_output=True, text=True, check=False, cwd=PROJECT
        )
        assert done.returncode == 0, done.stderr


def published(root: str) -> dict[str, Mapping[str, str]]:
    """The manifests of the dataset by snapshot, each with the digest of its bytes."""
    return {version.snapshot: version.manifests for version in version_log.latest_by_snapshot(root, DATASET)}


def test_a_backfill_with_bad_days_ends_in_the_state_of_a_clean_run(
    server: Server, airflow: Airflow, tmp_path: Path
) -> None:
    landing, root, clean = server.landing(DATASET), server.root(DATASET), str(tmp_path / "clean")
    land_the_fortnight(landing)
    backfill(airflow)
    wait_for_all(airflow, len(DAYS))
    ids = backfilled(airflow)
    bad = {MISSING, INCOMPLETE, DRIFTED, CORRUPT}
    assert sorted(published(root)) == sorted(set(DAYS) - bad)
    assert outcome(airflow, ids[MISSING])["sense"] == "skipped"
    assert f"snapshot {MISSING} is missing" in log_of(airflow, ids[MISSING], "sense")
    assert outcome(airflow, ids[INCOMPLETE]) == {"sense": "failed"}
    assert "a.warc.gz" in log_of(airflow, ids[INCOMPLETE], "sense")
    assert outcome(airflow, ids[DRIFTED]) == {"extract.gate": "failed"}
    assert "retention" in log_of(airflow, ids[DRIFTED], "extract.gate")
    assert outcome(airflow, ids[CORRUPT]) == {"ingest.partition": "failed"}
    assert "a.warc.gz" in log_of(airflow, ids[CORRUPT], "ingest.partition", 0)
    for day in (MISSING, INCOMPLETE, CORRUPT):
        land(landing, day, file=whole(day))
        clear(airflow, ids[day])
    airflow.trigger(DRIFTED, {"override": {"extract": REASON}})
    wait_for_all(airflow, len(DAYS) + 1)
    assert sorted(published(root)) == DAYS
    refine_again_what_is_stale(airflow, root)
    run_clean(server, clean)
    assert published(root) == published(clean)
    assert verify(root, Scope(recipe=DATASET)).findings.problems == []
