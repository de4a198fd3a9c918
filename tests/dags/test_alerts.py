"""Alerts of DAGs that run: one message per moment, from a refused gate, a warning one, and partitions that fail."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import GateRefused
from tests.airflow_server import land
from tests.channels import Hooks, serving
from tests.commands import Done, Refinery
from tests.embedded import PLUGINS, PROJECT, embed

pytestmark = pytest.mark.slow

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
run: {partitions: 1}
alerts: {budget: 0.0000000001}
gates:
  extract: {retention: {max_value: 0.5}, needs: {}}
"""

FAILING = """
import os

from airflow.sdk import DAG, Param, task
from refinery_airflow.alerts.alerts import FailureAlert

from pipeline_tasks.errors import ContractError

@task
def sense():
    return [1, 2, 3]

@task(retries=1, retry_delay=0)
def partition(number):
    if number > 1:
        raise ContractError(f"file {number} is damaged; land it again")

with DAG("failing", schedule=None, params={"snapshot": Param("2026-11-20"), "root": Param(os.environ["REFINERY_ROOT"])},
         default_args={"on_failure_callback": FailureAlert()}) as dag:
    partition.expand(number=sense())

if __name__ == "__main__":
    print("state", dag.test().state)
"""
"""A DAG of which two of three partitions fail, each with all its tries."""


LOOKING = """
import sys
from datetime import UTC, datetime

sys.path.insert(0, sys.argv[1])
import arrivals

for hour in (12, 13):
    print("state", arrivals.arrivals.test(logical_date=datetime(2026, 11, 20, hour, tzinfo=UTC)).state)
"""
"""Two runs of the DAG `arrivals`."""


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with serving(Hooks()) as hooks:
        yield hooks


def connected(url: str) -> dict[str, str]:
    return {"AIRFLOW_CONN_REFINERY_ALERTS_WEBHOOK": json.dumps({"conn_type": "http", "host": url})}


def connect(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Give this process the channel of alerts."""
    for name, value in connected(url).items():
        monkeypatch.setenv(name, value)


def run(refinery: Refinery, tmp_path: Path, *options: str) -> Done:
    """Refine a small day by `refinery run`, which runs the DAG `refine_small`."""
    if not (tmp_path / "landing").exists():
        land(tmp_path / "landing", "2026-11-20", 0)
        (tmp_path / "small.yaml").write_text(RECIPE)
    places = ["--input", f"{tmp_path}/landing/2026-11-20", "--output", f"{tmp_path}/root"]
    return refinery("run", *places, "--recipe", f"{tmp_path}/small.yaml", "--engine", "local", *options)


def kinds(hooks: Hooks) -> list[list[str]]:
    return [[alert["kind"] for alert in body["alerts"]] for body in hooks.bodies()]


def test_a_refused_gate_sends_one_message_and_one_that_passes_in_spite_of_it_another(
    tmp_path: Path, hooks: Hooks, refinery: Refinery, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, hooks.url)
    refused = run(refinery, tmp_path)
    assert refused.returncode == GateRefused.exit_code, refused.stderr
    assert kinds(hooks) == [["budget"], ["gate_refused"]]
    body: dict[str, Any] = hooks.bodies()[1]
    assert (body["severity"], body["dag"], body["task"]) == ("critical", "refine_small", "extract.gate")
    (alert,) = body["alerts"]
    assert alert["headline"] == "The gate of extract refuses snapshot 2026-11-20 of recipe small"
    assert alert["numbers"][0] == "critical: retention is 1, and must be at least 0.25 and at most 0.5"
    assert "extract under Gates to accept" in alert["remedy"]
    assert hooks.bodies()[0]["alerts"][0]["headline"].endswith(" and is over its budget of $1e-10")
    assert "alert  refinery_alerts_webhook  sent" in refused.stdout

    hooks.received.clear()
    passed = run(refinery, tmp_path, "--override", "extract=a crawl of one site")
    assert passed.returncode == 0, passed.stderr
    assert ["gate_warned"] in kinds(hooks)


def test_a_channel_that_is_down_leaves_the_run_green(
    tmp_path: Path, refinery: Refinery, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, f"http://127.0.0.1:{closed_port}")
    passed = run(refinery, tmp_path, "--override", "extract=a crawl of one site")
    assert passed.returncode == 0, passed.stderr
    assert "alert  refinery_alerts_webhook  failed: ConnectionError; look at this connection" in passed.stdout


def script(tmp_path: Path, text: str, *arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run a script in an Airflow home of its own."""
    (tmp_path / "script.py").write_text(text)
    env = {**embed(tmp_path / "home"), **settings, "PYTHONPATH": os.pathsep.join([str(PROJECT), str(PLUGINS)])}
    command = [sys.executable, str(tmp_path / "script.py"), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=PROJECT)


def test_a_backlog_is_told_once_a_day_by_the_runs_that_look_for_arrivals(tmp_path: Path, hooks: Hooks) -> None:
    """The folder promises a file that never came, and nobody noticed."""
    folder = tmp_path / "landing" / "2026-11-01"
    folder.mkdir(parents=True)
    files = [{"path": "late.warc.gz", "bytes": 9, "sha256": "0" * 64}]
    (folder / "snapshot.json").write_text(json.dumps({"snapshot": folder.name, "files": files}))
    settings = connected(hooks.url) | {"AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False", "REFINERY_RECIPE": "web"}
    settings |= {"REFINERY_LANDING": str(folder.parent), "REFINERY_ROOT": str(tmp_path / "root")}
    done = script(tmp_path, LOOKING, str(PROJECT / "dags"), **settings)
    assert done.stdout.count("state success") == 2, done.stderr
    ((alert,),) = [body["alerts"] for body in hooks.bodies()]
    assert (alert["kind"], alert["severity"]) == ("backlog", "critical")
    assert alert["headline"] == "Snapshot 2026-11-01 of recipe web is not published"
    assert alert["numbers"][1] == "not published are 1 that landed and 0 that are expected"


@pytest.mark.nightly
def test_partitions_that_fail_send_one_message_after_their_last_try(tmp_path: Path, hooks: Hooks) -> None:
    settings = connected(hooks.url) | {"REFINERY_ROOT": str(tmp_path / "root")}
    done = script(tmp_path, FAILING, AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path), **settings)
    assert "state failed" in done.stdout, done.stderr
    ((alert,),) = [body["alerts"] for body in hooks.bodies()]
    assert alert["headline"] == "The task partition of snapshot 2026-11-20 in failing failed"
    (line,) = alert["numbers"]
    assert re.fullmatch(r"ContractError: file [23] is damaged; land it again", line), "the first of both to fail"
    assert re.search(r"/dags/failing/runs/.*/tasks/partition/mapped/[12]$", hooks.bodies()[0]["link"])
