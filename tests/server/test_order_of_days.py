"""Runs of the DAG `refine` under Airflow's own scheduler and triggerer: they go in the order of their snapshots.

The fixture `ordered` starts them; two weeks of days go in order in `tests/dags/test_fortnight.py`.
"""

import pytest

from pipeline_tasks.inspect.versions.staleness import stale_now
from pipeline_tasks.publish.logs import version_log
from tests.airflow_server import Airflow, Server
from tests.server.conftest import ABSENT, EARLIER, LATER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

DATASET = "ordered"
FIRST, SECOND, TRIAL = f"of_{EARLIER}", f"of_{LATER}", f"trial_{LATER}"


def ended(airflow: Airflow, run: str, task: str) -> str:
    return str(airflow.of_run(run, f"/taskInstances/{task}")["end_date"])


def test_days_are_published_in_order_while_one_waits_for_its_files(server: Server, ordered: Airflow) -> None:
    """They were published as they came, two days that waited blocked all others, and what followed was stale."""
    for run in (TRIAL, FIRST, SECOND):
        ordered.waits_until(run, "success")
    assert ended(ordered, TRIAL, "turn") < ended(ordered, FIRST, "publish"), "a trial waits for nobody"
    events = ordered.call("GET", "/api/v2/assets/events?limit=100")["asset_events"]
    announced = {event["source_run_id"] for event in events if event["source_dag_id"] == ordered.dag}
    assert announced >= {FIRST, SECOND}
    assert TRIAL not in announced  # and nobody waits for it
    root = server.root(DATASET)
    versions = version_log.versions(root, DATASET)
    assert [version.snapshot for version in versions] == [EARLIER, LATER]
    assert stale_now(root, DATASET) == []
    assert [ordered.state(f"of_{day}", "sense") for day in ABSENT] == ["deferred"] * len(ABSENT)
    waits = ordered.of_run(f"of_{ABSENT[-1]}", "/taskInstances/sense/xcomEntries/arrival")
    assert waits["value"]["state"] == "missing"
