"""What a DAG run is about, and what the sensor makes of its snapshot."""

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_tasks.errors import RecipeError

PARAMS = {
    "input": "s3://crawl/{snapshot}",
    "root": "s3://refined",
    "snapshot": "",
    "partitions": 0,
    "engines": {},
    "override": {},
    "patience": 20,
}


def dag_run(**facts: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"run_id": "r", "partition_key": None, "logical_date": None} | facts)


@pytest.mark.parametrize(
    ("params", "run", "expected"),
    [
        ({"snapshot": "CC-MAIN-2026-45"}, dag_run(partition_key="2026-11-01"), "CC-MAIN-2026-45"),
        ({}, dag_run(partition_key="2026-11-01", logical_date=datetime(2026, 11, 2, tzinfo=UTC)), "2026-11-01"),
        ({}, dag_run(logical_date=datetime(2026, 11, 2, 0, tzinfo=UTC)), "2026-11-02"),
    ],
)
def test_a_run_is_about_the_named_snapshot_else_its_key_else_its_date(
    params: dict[str, Any], run: SimpleNamespace, expected: str
) -> None:
    from refinery_run import run_of

    settings = run_of({"params": PARAMS | params, "dag_run": run})  # type: ignore[typeddict-item]
    assert (settings.snapshot, settings.input) == (expected, f"s3://crawl/{expected}")


def test_a_run_without_a_date_must_name_its_snapshot() -> None:
    from refinery_run import run_of

    with pytest.raises(RecipeError, match="set the param `snapshot`"):
        run_of({"params": PARAMS, "dag_run": dag_run()})  # type: ignore[typeddict-item]


async def first_event(trigger: Any) -> Any:
    async for event in trigger.run():
        return event.payload
    return None


def test_the_trigger_fires_once_the_last_promised_file_has_landed(tmp_path: Path) -> None:
    from refinery_sensor import SnapshotTrigger

    body = b"{}\n"
    promise = {"snapshot": "s", "files": [{"path": "a.jsonl", "bytes": len(body), "sha256": "0" * 64}]}
    (tmp_path / "snapshot.json").write_text(json.dumps(promise))
    trigger = SnapshotTrigger(str(tmp_path), deadline=time.time() + 60, look=0.01)

    async def landing() -> Any:
        waiting = asyncio.create_task(first_event(trigger))
        await asyncio.sleep(0)
        assert not waiting.done()
        (tmp_path / "a.jsonl").write_bytes(body)
        return await waiting

    assert asyncio.run(landing()) == {"complete": True}


def test_the_trigger_gives_up_at_its_deadline_and_can_be_made_again(tmp_path: Path) -> None:
    from airflow.sdk.module_loading import import_string
    from refinery_sensor import SnapshotTrigger

    where, facts = SnapshotTrigger(str(tmp_path / "nothing"), deadline=0.0).serialize()
    assert asyncio.run(first_event(import_string(where)(**facts))) == {"complete": False}


def test_a_snapshot_that_did_not_come_skips_the_run() -> None:
    from airflow.sdk.exceptions import AirflowSkipException
    from refinery_sensor import SnapshotSensor

    context = {"params": PARAMS, "dag_run": dag_run(partition_key="2026-11-01")}
    with pytest.raises(AirflowSkipException, match=r"2026-11-01 did not land at s3://crawl/2026-11-01 within 20 hours"):
        SnapshotSensor(task_id="sense").resume(context, {"complete": False})
    SnapshotSensor(task_id="sense").resume(context, {"complete": True})
