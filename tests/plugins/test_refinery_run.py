"""What a DAG run is about, and what the sensor makes of its snapshot."""

import asyncio
import json
import logging
import os
import re
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.arrival import arrival_of
from tests.chain import PROJECT

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
    from refinery_airflow.runs.run import run_of

    settings = run_of({"params": PARAMS | params, "dag_run": run})  # type: ignore[typeddict-item]
    assert (settings.snapshot, settings.input) == (expected, f"s3://crawl/{expected}")


@pytest.mark.parametrize(("written", "name"), [({}, ""), ({"text_field": None}, ""), ({"text_field": "body"}, "body")])
def test_a_run_may_name_the_field_of_the_text(written: dict[str, Any], name: str) -> None:
    from refinery_airflow.runs.run import run_of

    settings = run_of({"params": PARAMS | {"snapshot": "s"} | written, "dag_run": dag_run()})  # type: ignore[typeddict-item]
    assert settings.text_field == name


def test_a_run_without_a_date_must_name_its_snapshot() -> None:
    from refinery_airflow.runs.run import run_of

    with pytest.raises(RecipeError, match=r"run r .*`snapshot`"):
        run_of({"params": PARAMS, "dag_run": dag_run()})  # type: ignore[typeddict-item]


# --- Arrival -----------------------------------------------------------------------------------------------------------

FACTS = {"snapshot": "s", "root": "s3://refined", "until": "2026-11-01 20:00 UTC"}
BODY = b"{}\n"


async def first_event(trigger: Any) -> Any:
    async for event in trigger.run():
        return event.payload
    return None


def listened_to(logger: str) -> asyncio.Event:
    """Return what is set when the logger writes its next line."""
    spoken, listener = asyncio.Event(), logging.getLogger(logger)

    def listen(_: logging.LogRecord) -> bool:
        spoken.set()
        listener.removeFilter(listen)
        return True

    listener.addFilter(listen)
    return spoken


def promise(folder: Path, *names: str) -> None:
    files = [{"path": name, "bytes": len(BODY), "sha256": "0" * 64} for name in names]
    (folder / "snapshot.json").write_text(json.dumps({"snapshot": "s", "files": files}))


def waiting_task(**facts: Any) -> Any:
    """What a task of the sensor runs in: its run, and the XComs that it pushed."""
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(run_id="r", dag_id="refine", xcom_push=lambda key, value: pushed.update({key: value}))
    events: dict[str, Any] = defaultdict(Event)
    task = SimpleNamespace(outlets=["web_arrivals"])
    named = dag_run(**({"partition_key": "s"} | facts))
    return {"params": PARAMS, "dag_run": named, "ti": ti, "pushed": pushed, "task": task, "outlet_events": events}


@dataclass
class Event:
    """What a task says about an event of an asset."""

    extra: dict[str, Any] = field(default_factory=dict)
    partitions: list[str] = field(default_factory=list)

    def add_partitions(self, names: list[str]) -> None:
        self.partitions += names


def test_the_trigger_fires_once_the_last_promised_file_has_landed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from refinery_airflow.tasks.sensor import SnapshotTrigger

    promise(tmp_path, "a.jsonl", "b.jsonl")
    (tmp_path / "b.jsonl").write_bytes(BODY[:1])
    trigger = SnapshotTrigger(str(tmp_path), FACTS, time.time() + 60, look=0.01)

    async def landing() -> Any:
        spoken = listened_to("refinery")
        waiting = asyncio.create_task(first_event(trigger))
        await spoken.wait()
        assert not waiting.done()
        for name in ("a.jsonl", "b.jsonl"):
            (tmp_path / name).write_bytes(BODY)
        return await waiting

    with caplog.at_level(logging.INFO, logger="refinery"):
        event = asyncio.run(asyncio.wait_for(landing(), 60))
    assert event["state"] == "complete"
    assert caplog.messages[0] == (
        f"snapshot s is incomplete, waits until 2026-11-01 20:00 UTC, then goes to s3://refined: {tmp_path}: 2 of 2 "
        "promised files have not landed whole, 1 missing: a.jsonl and 1 of another size: b.jsonl has 1 of 3 bytes; "
        "wait until the snapshot has landed, or land those files again"
    )


def test_a_waiting_run_says_what_the_operator_is_told(tmp_path: Path) -> None:
    """The message that the operator's page shows, of a snapshot of two promised files of which one is there."""
    from refinery_airflow.tasks.sensor import facts_of, sentence

    page = (PROJECT / "docs/how-to/operate/operate-day-by-day.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    landing = tmp_path / "2026-11-19"
    landing.mkdir()
    promise(landing, "part-0.jsonl", "part-1.jsonl")
    (landing / "part-0.jsonl").write_bytes(BODY)
    facts = FACTS | {"snapshot": "2026-11-19", "root": "s3://refinery/root", "until": "2026-11-20 20:00 UTC"}
    said = sentence(facts_of(arrival_of(str(landing)), facts))
    assert " ".join(shown.split()) == said.replace(str(landing), "s3://refinery/landing/2026-11-19")


def test_the_trigger_waits_until_a_snapshot_without_a_list_grows_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first file of a snapshot was taken for all of it, and the rest was never refined."""
    from refinery_airflow.tasks.sensor import SnapshotTrigger

    (tmp_path / "a.jsonl").write_bytes(BODY)
    trigger = SnapshotTrigger(str(tmp_path), FACTS | {"settling": "1"}, deadline=0.0, settling=1.0, look=0.25)

    async def landing() -> Any:
        spoken = listened_to("refinery")
        waiting = asyncio.create_task(first_event(trigger))
        await spoken.wait()
        (tmp_path / "b.jsonl").write_bytes(BODY)
        return await waiting

    with caplog.at_level(logging.INFO, logger="refinery"):
        event = asyncio.run(asyncio.wait_for(landing(), 60))
    assert "2 files, 6 bytes" in event["detail"]
    assert [("1 file, 3" in line, "2 files, 6" in line) for line in caplog.messages] == [(True, False), (False, True)]


def test_a_snapshot_without_a_list_waits_for_its_settling_time_and_one_with_a_list_does_not(tmp_path: Path) -> None:
    """It was refined 60 s after its last file; the upload of a file of 1 GB pauses for longer."""
    from airflow.sdk.exceptions import TaskDeferred
    from refinery_airflow.tasks.sensor import SnapshotSensor

    (tmp_path / "a.jsonl").write_bytes(BODY)
    os.utime(tmp_path / "a.jsonl", (0, 0))  # as a copy that keeps the times of its files
    context = waiting_task()
    context["params"] = PARAMS | {"input": str(tmp_path), "settling": 30}
    with pytest.raises(TaskDeferred) as deferred:
        SnapshotSensor(task_id="sense").execute(context)
    assert deferred.value.trigger.settling == 1800
    assert context["pushed"]["arrival"]["settling"] == "30"
    context["params"] |= {"settling": 0}
    SnapshotSensor(task_id="sense").execute(context)
    assert context["pushed"]["arrival"]["state"] == "complete"
    promise(tmp_path, "a.jsonl")
    context["params"] |= {"settling": 30}
    SnapshotSensor(task_id="sense").execute(context)
    assert "as snapshot.json promises" in context["pushed"]["arrival"]["detail"]


def test_the_trigger_gives_up_at_its_deadline_and_can_be_made_again(tmp_path: Path) -> None:
    from airflow.sdk.module_loading import import_string
    from refinery_airflow.tasks.sensor import SnapshotTrigger

    where, facts = SnapshotTrigger(str(tmp_path / "nothing"), FACTS, deadline=0.0).serialize()
    assert asyncio.run(first_event(import_string(where)(**facts)))["state"] == "missing"


def test_a_day_without_a_snapshot_skips_its_run_and_half_a_snapshot_fails_it(tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
    from refinery_airflow.tasks.sensor import SnapshotSensor

    sensor, context = SnapshotSensor(task_id="sense"), waiting_task()
    with pytest.raises(AirflowSkipException, match=r"snapshot s .*2026-11-01 20:00 UTC: x does not exist"):
        sensor.end(context, {**FACTS, "state": "missing", "detail": "x does not exist"})
    assert context["pushed"]["arrival"]["state"] == "missing"
    with pytest.raises(AirflowFailException, match=r"snapshot s .*2026-11-01 20:00 UTC: 1 missing: a\b"):
        sensor.end(context, {**FACTS, "state": "incomplete", "detail": "1 missing: a"})
    assert not context["outlet_events"]
    sensor.end(context, {**FACTS, "state": "complete", "detail": "1 file"})
    assert context["outlet_events"] == {"web_arrivals": Event({"input": "s3://crawl/s"}, ["s"])}
    assert context["pushed"]["arrival"] == {**FACTS, "state": "complete", "detail": "1 file"}


def test_a_run_waits_from_its_date_on_so_that_a_backfill_of_past_days_waits_for_nothing(tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
    from refinery_airflow.tasks.sensor import SnapshotSensor

    promise(tmp_path, "a.jsonl")
    context = waiting_task(logical_date=datetime(2026, 11, 1, tzinfo=UTC), partition_key=None)
    context["params"] = PARAMS | {"input": str(tmp_path)}
    with pytest.raises(AirflowFailException, match=r"snapshot 2026-11-01 .*2026-11-01 20:00 UTC: .*a\.jsonl"):
        SnapshotSensor(task_id="sense").execute(context)
    context["params"] |= {"snapshot": "CC-MAIN-2026-45"}
    with pytest.raises(TaskDeferred) as deferred:
        SnapshotSensor(task_id="sense").execute(context)
    assert deferred.value.trigger.deadline > time.time()
    assert "1 missing: a.jsonl" in context["pushed"]["arrival"]["detail"]


def test_requests_of_a_build_have_its_name_for_a_snapshot() -> None:
    """The ledger joins the cost of a stage and its version by this name."""
    from refinery_airflow.runs.run import run_of
    from refinery_airflow.tasks.operators import RequestOperator

    operator = RequestOperator(task_id="select", recipe="corpus")
    named = {name: PARAMS[name] for name in ("root", "partitions", "engines", "override")}
    for params, snapshot in ((named, "build"), (PARAMS | {"snapshot": "2026-11-20"}, "2026-11-20")):
        context: Any = {"params": params, "dag_run": dag_run(), "ti": SimpleNamespace(run_id="r")}
        about = operator.about(context, run_of(context))
        assert about == {"root": "s3://refined", "recipe": "corpus", "snapshot": snapshot, "run_id": "r"}
