"""Runs of the DAG `refine` under Airflow's own scheduler and triggerer: they go in the order of their snapshots."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.embedded.airflow_home import PROJECT
from pipeline_tasks.inspect.staleness import stale_now
from pipeline_tasks.publish import version_log
from tests.archives import http, response, zipped
from tests.s3_server import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
run: {partitions: 1}
"""
DAG = "refine_small"
PATIENCE = 900.0
"""Seconds after which a test gives up; a minute or two is enough on an idle machine."""


class Airflow:
    """Airflow's web API, with a token."""

    def __init__(self, url: str, password: str) -> None:
        self.url, self.token = url, ""
        self.token = self.call("POST", "/auth/token", {"username": "admin", "password": password})["access_token"]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def trigger(self, snapshot: str) -> None:
        body = {"logical_date": None, "dag_run_id": f"of_{snapshot}", "conf": {"snapshot": snapshot}}
        self.call("POST", f"/api/v2/dags/{DAG}/dagRuns", body)

    def state(self, snapshot: str, task: str = "") -> str:
        place = f"/taskInstances/{task}" if task else ""
        return str(self.call("GET", f"/api/v2/dags/{DAG}/dagRuns/of_{snapshot}{place}")["state"])

    def waits_until(self, snapshot: str, state: str, task: str = "") -> None:
        deadline = time.monotonic() + PATIENCE
        while (now := self.state(snapshot, task)) != state:
            assert now not in ("failed", "upstream_failed"), (snapshot, task, now)
            assert time.monotonic() < deadline, (snapshot, task, now)
            time.sleep(2)


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[Airflow]:
    (tmp_path / "small.yaml").write_text(RECIPE)
    port, home = free_port(), tmp_path / "home"
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_"))}
    ours = {"REFINERY_HOME": home, "REFINERY_RECIPE": tmp_path / "small.yaml", "PYTHONPATH": PROJECT}
    ours |= {"REFINERY_LANDING": tmp_path / "landing", "REFINERY_ROOT": tmp_path / "root", "TMPDIR": tmp_path}
    command = [sys.executable, "-u", "-m", "pipeline_tasks.cli", "up", "--port", str(port)]
    env = keep | {name: str(value) for name, value in ours.items()}
    with subprocess.Popen(command, env=env, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            assert any("Airflow is ready" in line for line in lines), (home / "airflow/standalone.log").read_text()
            passwords = json.loads((home / "airflow/simple_auth_manager_passwords.json.generated").read_text())
            api = Airflow(f"http://127.0.0.1:{port}", passwords["admin"])
            api.call("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": False})
            yield api
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def land(tmp_path: Path, day: str, first: int) -> None:
    folder = tmp_path / "landing" / day
    folder.mkdir(parents=True)
    line = "leaves the harbor every morning before the fog has lifted from the water."
    pages = [f"<p>The ferry number {number} {line}</p>" * 4 for number in range(first, first + 9)]
    bodies = [http(f"<html><body><article>{page}</article></body></html>".encode()) for page in pages]
    archive = b"".join(
        zipped([response(f"https://x.example.org/{first + at}", body) for at, body in enumerate(bodies)])
    )
    (folder / "a.warc.gz").write_bytes(archive)


def test_days_are_published_in_order_while_one_waits_for_its_files(airflow: Airflow, tmp_path: Path) -> None:
    """They were published as they came, two days that waited blocked all others, and what followed was stale."""
    for number, day in enumerate(("2026-11-03", "2026-11-02", "2026-11-01")):
        land(tmp_path, day, number * 20)
    for day in ("2026-10-30", "2026-10-31"):  # earlier than all, and they never land
        airflow.trigger(day)
        airflow.waits_until(day, "deferred", "sense")
    for day in ("2026-11-03", "2026-11-02", "2026-11-01"):
        airflow.trigger(day)
    for day in ("2026-11-01", "2026-11-02", "2026-11-03"):
        airflow.waits_until(day, "success")
    root = str(tmp_path / "root")
    versions = version_log.versions(root, "small")
    assert [version.snapshot for version in versions] == ["2026-11-01", "2026-11-02", "2026-11-03"]
    assert stale_now(root, "small") == []
    assert [airflow.state(day, "sense") for day in ("2026-10-30", "2026-10-31")] == ["deferred"] * 2
    waits = airflow.call("GET", f"/api/v2/dags/{DAG}/dagRuns/of_2026-10-31/taskInstances/sense/xcomEntries/arrival")
    assert waits["value"]["state"] == "missing"
