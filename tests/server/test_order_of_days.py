"""Runs of the DAG `refine` under Airflow's own scheduler and triggerer: they go in the order of their snapshots."""

from collections.abc import Iterator

import pytest

from pipeline_tasks.inspect.staleness import stale_now
from pipeline_tasks.publish import version_log
from tests.airflow_server import Airflow, Server, land

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

DATASET, DAG = "ordered", "refine_ordered"


@pytest.fixture
def airflow(server: Server) -> Iterator[Airflow]:
    with server.airflow(DATASET) as airflow:
        yield airflow


def test_days_are_published_in_order_while_one_waits_for_its_files(server: Server, airflow: Airflow) -> None:
    """They were published as they came, two days that waited blocked all others, and what followed was stale."""
    for number, day in enumerate(("2026-11-03", "2026-11-02", "2026-11-01")):
        land(server.landing(DATASET), day, number * 20)
    for day in ("2026-10-30", "2026-10-31"):  # earlier than all, and they never land
        airflow.waits_until(airflow.trigger(day), "deferred", "sense")
    trial = airflow.trigger("2026-11-03", {"sample": 0.5}, kind="trial")
    airflow.waits_until(trial, "success", "turn")  # it waits for nobody
    runs = [airflow.trigger(day) for day in ("2026-11-03", "2026-11-02", "2026-11-01")]
    for run in reversed(runs):
        airflow.waits_until(run, "success")
    airflow.waits_until(trial, "success")
    events = airflow.call("GET", "/api/v2/assets/events?limit=100")["asset_events"]
    announced = {event["source_run_id"] for event in events if event["source_dag_id"] == DAG}
    assert announced >= set(runs)
    assert trial not in announced  # and nobody waits for it
    root = server.root(DATASET)
    versions = version_log.versions(root, DATASET)
    assert [version.snapshot for version in versions] == ["2026-11-01", "2026-11-02", "2026-11-03"]
    assert stale_now(root, DATASET) == []
    assert [airflow.state(f"of_{day}", "sense") for day in ("2026-10-30", "2026-10-31")] == ["deferred"] * 2
    waits = airflow.of_run("of_2026-10-31", "/taskInstances/sense/xcomEntries/arrival")
    assert waits["value"]["state"] == "missing"
