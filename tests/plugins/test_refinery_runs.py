"""What a snapshot's newest run does is read from Airflow's database, and shown beside what the root says."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.known_dags import known_dags

ROOT = "/somewhere/root"
DAY = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def session() -> Iterator[Any]:
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    with create_session() as session:
        yield session
    with create_session() as session:
        session.execute(delete(TaskInstance))
        session.execute(delete(DagRun))


def add_run(session: Any, state: str, tasks: dict[str, str | None], **facts: Any) -> None:
    """Write a run and its tasks as Airflow's scheduler leaves them."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import insert

    run_id = f"manual__{uuid.uuid4()}"
    row = {"dag_id": "refine", "run_id": run_id, "run_type": "manual", "state": state, "run_after": DAY, "conf": {}}
    row |= {"log_template_id": 1, "clear_number": 0, "span_status": "not_started"}
    session.execute(insert(DagRun.__table__).values(**(row | facts)))
    for task, of_task in tasks.items():
        row = {"id": uuid.uuid4(), "task_id": task, "dag_id": "refine", "run_id": run_id, "state": of_task}
        row |= {"map_index": -1, "try_number": 1, "max_tries": 0, "pool": "default_pool", "pool_slots": 1}
        row |= {"queue": "default", "priority_weight": 1, "operator": "x", "span_status": "not_started"}
        session.execute(insert(TaskInstance.__table__).values(**row))
    session.commit()


@pytest.mark.parametrize(
    ("state", "tasks", "happening"),
    [
        ("queued", {"sense": None}, "queued"),
        ("running", {"sense": "deferred", "land": None}, "waiting"),
        ("running", {"sense": "up_for_reschedule"}, "waiting"),
        ("running", {"sense": "success", "extract.partition": "running"}, "running"),
        ("running", {"sense": "success"}, "running"),
        ("running", {"extract.gate": "awaiting_input", "publish": None}, "awaiting"),
        ("failed", {"extract.gate": "failed", "publish": "upstream_failed"}, "refused"),
        ("failed", {"publish_gate": "failed"}, "refused"),
        ("failed", {"extract.partition": "failed"}, "failed"),
        ("success", {"publish": "success"}, "done"),
    ],
)
def test_what_happens_in_a_run_follows_from_its_tasks(
    session: Any, state: str, tasks: dict[str, str | None], happening: str
) -> None:
    from refinery_airflow.runs.newest import newest_runs

    add_run(session, state, tasks, logical_date=DAY)
    assert newest_runs("web", ROOT)["2026-11-20"].happening == happening
    assert newest_runs("other", ROOT) == {}


def test_the_newest_run_of_a_snapshot_counts_and_those_of_other_roots_do_not(session: Any) -> None:
    from refinery_airflow.runs.newest import newest_runs

    add_run(session, "failed", {"land": "failed"}, conf={"snapshot": "a"}, run_after=DAY)
    add_run(session, "success", {}, conf={"snapshot": "a"}, run_after=DAY + timedelta(hours=1))
    add_run(
        session,
        "failed",
        {"land": "failed"},
        conf={"snapshot": "a", "root": "/other"},
        run_after=DAY + timedelta(days=1),
    )
    add_run(session, "running", {}, partition_key="b")
    add_run(session, "running", {})
    runs = newest_runs("web", ROOT)
    assert {name: run.happening for name, run in runs.items()} == {"a": "done", "b": "running"}
    assert runs["a"].path.startswith("/dags/refine/runs/manual__")


def test_a_trial_is_no_run_of_the_dataset(session: Any) -> None:
    from refinery_airflow.runs.newest import newest_runs

    add_run(session, "success", {}, conf={"snapshot": "a", "sample": 1})
    add_run(session, "running", {}, conf={"snapshot": "a", "sample": 0.01}, run_after=DAY + timedelta(hours=1))
    happening = {name: newest_runs(name, ROOT)["a"].happening for name in ("web", "web.trial")}
    assert happening == {"web": "done", "web.trial": "running"}


def test_a_page_joins_what_runs_and_root_say(session: Any) -> None:
    from refinery_airflow.pages.overview import recipe_page
    from refinery_airflow.runs.newest import newest_runs

    from pipeline_tasks.inspect.versions.overview import Overview, SnapshotState

    add_run(session, "running", {"sense": "deferred"}, conf={"snapshot": "2026-11-22"})
    add_run(session, "failed", {"extract.gate": "failed"}, conf={"snapshot": "2026-11-21"})
    add_run(session, "failed", {"land": "failed"}, conf={"snapshot": "2026-11-20"})
    add_run(session, "success", {}, conf={"snapshot": "2026-11-23"})
    known = (SnapshotState("2026-11-19", "published"), SnapshotState("2026-11-20", "published"))
    page = recipe_page(Overview("web", known), newest_runs("web", ROOT))
    states = {line.snapshot: line.state for line in page.lines}
    assert states == {
        "2026-11-19": "published",
        "2026-11-20": "published",
        "2026-11-21": "refused",
        "2026-11-22": "waiting",
    }
    steps = {line.snapshot: line.next_step for line in page.lines}
    assert steps["2026-11-19"] == ""
    assert "failed in land" in steps["2026-11-20"]
    assert "extract.gate refused" in steps["2026-11-21"]
    assert "waits until the snapshot has landed" in steps["2026-11-22"]
    assert [task.first.snapshot for task in page.to_do] == ["2026-11-20", "2026-11-21", "2026-11-22"]


def test_a_run_that_awaits_approval_links_to_its_forms(session: Any) -> None:
    from refinery_airflow.pages.overview import recipe_page
    from refinery_airflow.runs.newest import newest_runs

    from pipeline_tasks.inspect.versions.overview import Overview, SnapshotState

    add_run(session, "running", {"extract.gate": "awaiting_input"}, conf={"snapshot": "2026-11-21"})
    page = recipe_page(Overview("web", (SnapshotState("2026-11-21", "refused"),)), newest_runs("web", ROOT))
    [task] = page.to_do
    assert task.first.state == "awaiting"
    assert task.first.next_step.startswith("extract.gate refuses, and awaits approval")
    assert task.first.run.endswith("/required_actions")


def test_snapshots_with_the_same_next_step_are_one_task() -> None:
    from refinery_airflow.pages.overview import recipe_page

    from pipeline_tasks.inspect.versions.overview import Overview, SnapshotState

    known = tuple(SnapshotState(f"2026-11-{day}", "stale", "run it again") for day in range(10, 20))
    [task] = recipe_page(Overview("web", known), {}).to_do
    assert (task.first.snapshot, task.last.snapshot, task.snapshots) == ("2026-11-10", "2026-11-19", 10)


def test_what_has_landed_and_nobody_has_refined_is_to_be_done(session: Any) -> None:
    from refinery_airflow.pages.overview import recipe_page
    from refinery_airflow.runs.newest import newest_runs

    from pipeline_tasks.inspect.versions.overview import Overview, SnapshotState

    add_run(session, "running", {"sense": "deferred"}, conf={"snapshot": "2026-11-22"})
    known = (SnapshotState("2026-11-19", "published"), SnapshotState("2026-11-20", "retracted", "restore it"))
    landed = ["2026-11-19", "2026-11-20", "2026-11-22", "2026-11-23", "2026-11-24"]
    with known_dags("refine_books"):
        page = recipe_page(Overview("books", known), newest_runs("web", ROOT), landed)
    states = {line.snapshot: line.state for line in page.lines}
    assert list(states) == landed
    assert list(states.values()) == ["published", "retracted", "waiting", "landed", "landed"]
    task = page.to_do[-1]
    assert (task.first.snapshot, task.last.snapshot, task.first.run) == (
        "2026-11-23",
        "2026-11-24",
        f"{task.first.run.removesuffix('/dags/refine_books')}/dags/refine_books",
    )
    assert "trigger `refine_books` with its name as `snapshot`" in task.first.next_step


def test_what_has_landed_for_a_recipe_without_a_dag_is_refined_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page named a DAG that was not there, and linked it."""
    from refinery_airflow.pages.overview import recipe_page

    from pipeline_tasks.inspect.versions.overview import Overview, SnapshotState

    monkeypatch.setenv("REFINERY_LANDING", "/landed")
    monkeypatch.setenv("REFINERY_ROOT", ROOT)
    page = recipe_page(Overview("mine", (SnapshotState("2026-11-19", "published"),)), {}, ["2026-11-20", "2026-11-21"])
    [task] = page.to_do
    assert (task.snapshots, task.first.run) == (2, "")
    assert f"`refinery run --input /landed/SNAPSHOT {ROOT} --recipe mine.yaml`" in task.first.next_step
    assert "REFINERY_RECIPES" in task.first.next_step
    assert "unpause" not in task.first.next_step
    assert page.calendar


def test_a_folder_of_another_name_leaves_the_calendar_of_days_alone() -> None:
    from refinery_airflow.pages.overview import recipe_page

    from pipeline_tasks.inspect.versions.overview import Overview, SnapshotState

    days = ["2026-11-19", "2026-11-20"]
    for known, shown in ((days[0], days), ("crawl-6", [days[1], "crawl-6", "crawl-7"])):
        overview = Overview("web", (SnapshotState(known, "published"),))
        page = recipe_page(overview, {}, [days[1], "crawl-7"])
        assert page.calendar
        assert sorted(row[0] for row in page.calendar.rows) == shown
        assert {line.snapshot for line in page.lines} == {known, days[1], "crawl-7"}


def test_prose_is_escaped_and_its_commands_are_code() -> None:
    from refinery_airflow.pages.rendering import prose

    assert prose("run `a <b>` & wait") == "run <code>a &lt;b&gt;</code> &amp; wait"


def test_the_times_of_partitions_come_from_the_mapped_tasks(session: Any) -> None:
    from airflow.models.taskinstance import TaskInstance
    from refinery_airflow.runs.newest import newest_runs, partition_seconds
    from sqlalchemy import update

    add_run(session, "success", {"extract.partition": "success", "extract.seal": "success"}, logical_date=DAY)
    mapped = TaskInstance.task_id == "extract.partition"
    session.execute(update(TaskInstance).values(duration=3.5))
    session.execute(update(TaskInstance).where(mapped).values(map_index=4))
    session.commit()
    assert partition_seconds(newest_runs("web", ROOT)["2026-11-20"]) == [("extract", 4, 3.5)]
