"""Lineage events reach a server on loopback, by a variable or a connection; one that is down holds up nothing."""

import json
import logging
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_tasks.errors import ContractError
from tests.channels import Hooks, serving

STARTED = datetime(2026, 11, 20, 1, 2, 3, tzinfo=UTC)


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with serving(Hooks()) as hooks:
        yield hooks


def context(task_id: str = "extract.refine", map_index: int = -1, *, tries: int = 1, most: int = 3, **more: Any) -> Any:
    """Return what a callback gets of a task with three retries, in one of its tries."""
    names = {"dag_id": "refine", "run_id": "of 1", "task_id": task_id, "map_index": map_index}
    ti = SimpleNamespace(**names, start_date=STARTED, max_tries=most, try_number=tries)
    return {"ti": ti, "task": SimpleNamespace(retries=3), **more}


def kinds(hooks: Hooks) -> list[tuple[str, str]]:
    return [(event["job"]["name"], event["eventType"]) for event in hooks.bodies()]


def test_nothing_is_sent_without_a_server(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.alerts.openlineage import lineage_started

    lineage_started(context())
    monkeypatch.setenv("OPENLINEAGE_URL", hooks.url)
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    lineage_started(context())
    assert hooks.received == []


def test_a_stage_is_told_when_it_is_sealed_and_of_each_partition_that_fails(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.alerts.openlineage import lineage_completed, lineage_failed, lineage_started

    monkeypatch.setenv("OPENLINEAGE_URL", f"{hooks.url}/")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "team")
    for number in range(3):
        lineage_started(context("extract.partition", number))
        lineage_completed(context("extract.partition", number))
    lineage_started(context("sense"))
    assert kinds(hooks) == []
    lineage_failed(context("extract.partition", 2, exception=ContractError("file 2 is damaged; land it again")))
    lineage_started(context("extract.seal"))
    assert kinds(hooks) == [("refine.extract", "START"), ("refine.extract", "FAIL"), ("refine.extract", "START")]
    start, failure, seal = hooks.bodies()
    assert start["eventTime"] == "2026-11-20T01:02:03+00:00"
    assert start["job"]["namespace"] == "team"
    assert start["run"]["runId"] == failure["run"]["runId"] != seal["run"]["runId"]
    assert failure["run"]["facets"]["errorMessage"]["message"] == "ContractError: file 2 is damaged; land it again"


def test_a_task_starts_once_and_again_when_it_is_cleared(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.alerts.openlineage import lineage_started

    monkeypatch.setenv("OPENLINEAGE_URL", hooks.url)
    for tries in (1, 2, 3):
        lineage_started(context(tries=tries))
    for tries in (4, 5):
        lineage_started(context(tries=tries, most=6))
    assert len({event["run"]["runId"] for event in hooks.bodies()}) == len(hooks.received) == 2


def test_the_text_of_another_error_is_not_sent(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.alerts.openlineage import lineage_failed

    monkeypatch.setenv("OPENLINEAGE_URL", hooks.url)
    lineage_failed(context(exception=RuntimeError("postgresql://ada:secret@db")))
    assert "secret" not in json.dumps(hooks.bodies())


def test_a_connection_names_the_server(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.alerts.openlineage import lineage_started

    fields = {"conn_type": "http", "host": hooks.url, "login": "ada", "password": "secret"}
    monkeypatch.setenv("AIRFLOW_CONN_REFINERY_OPENLINEAGE", json.dumps(fields))
    lineage_started(context())
    [(path, headers, _)] = hooks.received
    assert path == "/api/v1/lineage"
    assert headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize("status", [301, 401, 503])
def test_a_server_that_takes_nothing_is_said_without_its_address(
    status: int, hooks: Hooks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from refinery_airflow.alerts.openlineage import lineage_started

    hooks.status = status
    monkeypatch.setenv("OPENLINEAGE_URL", hooks.url)
    with caplog.at_level(logging.INFO, logger="refinery"):
        lineage_started(context())
    assert f"lineage  START was not sent: status {status}" in caplog.text
    assert "127.0.0.1" not in caplog.text


def test_a_server_that_never_answers_does_not_hold_up_a_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from refinery_airflow.alerts.openlineage import lineage_started

    with socket.create_server(("127.0.0.1", 0)) as silent, caplog.at_level(logging.INFO, logger="refinery"):
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        lineage_started(context())
    assert "lineage  START was not sent: ReadTimeout" in caplog.text


def test_what_cannot_be_said_is_no_error(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback that Airflow calls where it parses DAG files has no more than this."""
    from refinery_airflow.alerts.openlineage import lineage_completed

    monkeypatch.setenv("OPENLINEAGE_URL", hooks.url)
    lineage_completed(context())
    assert hooks.received == []


def of_run(root: Path, task_id: str, reply: object, **task: Any) -> Any:
    """Return what a callback gets of a task of a run that succeeded, and what it replied."""
    given = context(task_id, params={"root": str(root), "input": "s3://crawl/day", "partitions": 0})
    given["dag_run"] = SimpleNamespace(run_type="", partition_key="2026-11-20")
    given["ti"].xcom_pull = lambda **_: reply
    given["task"] = SimpleNamespace(retries=3, dataset=lambda _: "web", **task)
    return given


def test_a_task_that_commits_nothing_has_read_no_landing(
    hooks: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.alerts.openlineage import lineage_completed

    monkeypatch.setenv("OPENLINEAGE_URL", hooks.url)
    lineage_completed(of_run(tmp_path, "index", {"indexed": 3}, manifest=""))
    lineage_completed(of_run(tmp_path, "land", [{"verdict": ""}], manifest="land/a/manifest.json"))
    index, land = hooks.bodies()
    assert index["inputs"] == index["outputs"] == []
    assert [dataset["name"] for dataset in (*land["inputs"], *land["outputs"])] == ["day", f"{tmp_path}/web/land"]


def test_a_manifest_that_cannot_be_read_costs_the_facets_and_not_the_event(
    hooks: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from refinery_airflow.alerts.openlineage import lineage_completed

    monkeypatch.setenv("OPENLINEAGE_URL", hooks.url)
    reply = {"manifest": "extract/a/manifest.json", "rows_in": 5, "rows": 3, "bytes": 99}
    part = {"manifest": "ingest/b/manifest.json"}
    given = of_run(tmp_path, "extract.seal", reply, refined=part, manifest="")
    with caplog.at_level(logging.INFO, logger="refinery"):
        lineage_completed(given)
    [event] = hooks.bodies()
    assert event["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 5
    assert event["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert event["outputs"][0]["facets"].keys() == {"version"}
    assert "lineage  the event has no facets of columns and rows (RecipeError)" in caplog.text
