"""Runs of the DAG `refine` under Airflow's own scheduler and triggerer: they go in the order of their snapshots."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_tasks.inspect.staleness import stale_now
from pipeline_tasks.publish import version_log
from tests.airflow_server import Airflow, airflow_server, land

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
run: {partitions: 1}
"""
DAG = "refine_small"


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[Airflow]:
    with airflow_server(tmp_path, RECIPE, DAG) as api:
        yield api


def test_days_are_published_in_order_while_one_waits_for_its_files(airflow: Airflow, tmp_path: Path) -> None:
    """They were published as they came, two days that waited blocked all others, and what followed was stale."""
    for number, day in enumerate(("2026-11-03", "2026-11-02", "2026-11-01")):
        land(tmp_path / "landing", day, number * 20)
    for day in ("2026-10-30", "2026-10-31"):  # earlier than all, and they never land
        airflow.waits_until(airflow.trigger(day), "deferred", "sense")
    trial = airflow.trigger("2026-11-03", {"sample": 0.5}, kind="trial")
    airflow.waits_until(trial, "success", "turn")  # it waits for nobody
    runs = [airflow.trigger(day) for day in ("2026-11-03", "2026-11-02", "2026-11-01")]
    for run in reversed(runs):
        airflow.waits_until(run, "success")
    airflow.waits_until(trial, "success")
    events = airflow.call("GET", "/api/v2/assets/events?limit=100")["asset_events"]
    assert {event["source_run_id"] for event in events} >= set(runs)
    assert trial not in {event["source_run_id"] for event in events}  # and nobody waits for it
    root = str(tmp_path / "root")
    versions = version_log.versions(root, "small")
    assert [version.snapshot for version in versions] == ["2026-11-01", "2026-11-02", "2026-11-03"]
    assert stale_now(root, "small") == []
    assert [airflow.state(f"of_{day}", "sense") for day in ("2026-10-30", "2026-10-31")] == ["deferred"] * 2
    waits = airflow.of_run("of_2026-10-31", "/taskInstances/sense/xcomEntries/arrival")
    assert waits["value"]["state"] == "missing"
