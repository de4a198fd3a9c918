"""Reads from Airflow's database what the newest run of each snapshot does, such as run, fail or await approval."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import Row, select

from pipeline_tasks.deployment import deployment
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.plan import DEFAULT, SENSE, dag_of
from pipeline_tasks.recipe import is_trial, trial_of, untried
from refinery_airflow.runs.run import snapshot_of

RUNS = 1000
"""Runs of a DAG that are looked at, the newest."""

PARTITION = ".partition"
"""What the task of a stage's partitions is called, behind the stage."""

AWAITING = "awaiting_input"
"""State of a gate that refuses, and waits for a person's approval."""

Happening = Literal["queued", "waiting", "running", "awaiting", "refused", "failed", "done"]


@dataclass(frozen=True, slots=True)
class SnapshotRun:
    """The newest run of a snapshot: what happens in it, and in which tasks."""

    snapshot: str
    dag: str
    run_id: str
    happening: Happening
    tasks: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path of its page in Airflow, below the address of Airflow's own pages."""
        return f"/dags/{quote(self.dag)}/runs/{quote(self.run_id, safe='')}"

    @property
    def next_page(self) -> str:
        """The path of the page where a person goes on: the forms of a run that awaits approval, else its page."""
        return f"{self.path}/required_actions" if self.happening == "awaiting" else self.path


def recipes_with_runs(root: str) -> list[str]:
    """Return the recipes whose DAG has a run, and their trials, sorted: those that the deployment sends to a root."""
    with create_session() as session:
        every = session.scalars(select(DagRun.dag_id).distinct())
        named = {dag for dag in every if dag == dag_of(DEFAULT) or dag.startswith(f"{dag_of(DEFAULT)}_")}
    recipes = [DEFAULT if dag == dag_of(DEFAULT) else dag.removeprefix(f"{dag_of(DEFAULT)}_") for dag in named]
    known = deployment()
    own = [name for name in recipes if not known.path or known.is_at(name, root)]
    return sorted([*own, *map(trial_of, own)])


def dag_page(dag: str) -> str:
    """Return the path of a DAG's page in Airflow; "" where there is no such DAG, as of a recipe run by its path."""
    known = select(DagModel.dag_id).where(DagModel.dag_id == dag, DagModel.is_stale.is_(False))
    with create_session() as session:
        return f"/dags/{quote(dag)}" if session.scalar(known) else ""


def newest_runs(recipe: str, root: str) -> dict[str, SnapshotRun]:
    """Return the newest run of each snapshot into `root`, by snapshot; none where the DAG is unknown.

    A recipe's trials are runs of its DAG, and count only under the name of its trials.
    """
    dag = dag_of(untried(recipe))
    with create_session() as session:
        facts = (DagRun.dag_id, DagRun.run_id, DagRun.state, DagRun.conf, DagRun.partition_key, DagRun.logical_date)
        newest = select(*facts).where(DagRun.dag_id == dag).order_by(DagRun.run_after.desc()).limit(RUNS)
        runs = _by_snapshot(session.execute(newest), root, trials=is_trial(recipe))
        open_runs = [run.run_id for run in runs.values() if run.state != "success"]
        columns = (TaskInstance.run_id, TaskInstance.task_id, TaskInstance.state)
        chosen = select(*columns).where(TaskInstance.dag_id == dag, TaskInstance.run_id.in_(open_runs)).distinct()
        tasks = [tuple(row) for row in session.execute(chosen)] if open_runs else []
        return {snapshot: _run(snapshot, run, tasks) for snapshot, run in runs.items()}


@dataclass(frozen=True, slots=True)
class NewestRun:
    """The newest run of a DAG: its state, the moment (UTC) after which it ran, and the path of its page in Airflow."""

    state: str
    at: str
    path: str


def newest_run(dag: str) -> NewestRun | None:
    """Return the newest run of a DAG; None where it has none, or is unknown."""
    facts = (DagRun.run_id, DagRun.state, DagRun.run_after)
    newest = select(*facts).where(DagRun.dag_id == dag).order_by(DagRun.run_after.desc()).limit(1)
    with create_session() as session:
        found = session.execute(newest).first()
    if found is None:
        return None
    path = f"/dags/{quote(dag)}/runs/{quote(found.run_id, safe='')}"
    return NewestRun(str(found.state), found.run_after.strftime("%Y-%m-%d %H:%M"), path)


def partition_seconds(run: SnapshotRun) -> list[tuple[str, int, float]]:
    """Return stage, number and seconds of each mapped partition of a run that has ended, the first to begin first."""
    columns = (TaskInstance.task_id, TaskInstance.map_index, TaskInstance.duration)
    own = (TaskInstance.dag_id == run.dag, TaskInstance.run_id == run.run_id)
    ended = (TaskInstance.task_id.endswith(PARTITION), TaskInstance.map_index >= 0, TaskInstance.duration.is_not(None))
    with create_session() as session:
        rows = session.execute(select(*columns).where(*own, *ended).order_by(TaskInstance.start_date))
        return [(task.removesuffix(PARTITION), at, float(seconds)) for task, at, seconds in rows]


def _by_snapshot(runs: Iterable[Row[Any]], root: str, *, trials: bool) -> dict[str, Row[Any]]:
    """Return the first of `runs` of each snapshot, of the trials or the others whose root is `root` or the default."""
    first: dict[str, Row[Any]] = {}
    for run in runs:
        params: Mapping[str, Any] = run.conf or {}
        is_chosen = params.get("root", root) == root and (params.get("sample", 1) != 1) == trials
        if is_chosen and (snapshot := _snapshot_of(run, params)):
            first.setdefault(snapshot, run)
    return first


def _snapshot_of(run: Row[Any], params: Mapping[str, Any]) -> str:
    try:
        return snapshot_of(run, params)
    except RecipeError:  # a run without a date that names no snapshot: its own task says so
        return ""


def _run(snapshot: str, run: Row[Any], tasks: Sequence[tuple[str, str, str | None]]) -> SnapshotRun:
    own = [(task, state) for run_id, task, state in tasks if run_id == run.run_id]
    happening, named = _happening(str(run.state), own)
    return SnapshotRun(snapshot, run.dag_id, run.run_id, happening, tuple(sorted(named)))


def _happening(state: str, tasks: Sequence[tuple[str, str | None]]) -> tuple[Happening, list[str]]:
    """Return what happens in a run, and the tasks that it happens in."""
    if state == "success":
        return "done", []
    if state == "queued":
        return "queued", []
    if state == "failed":
        failed = [task for task, of_task in tasks if of_task == "failed"]
        refused = [task for task in failed if task.endswith("gate")]
        return ("refused", refused) if refused else ("failed", failed)
    awaiting = [task for task, of_task in tasks if of_task == AWAITING]
    if awaiting:
        return "awaiting", awaiting
    busy = [task for task, of_task in tasks if of_task in ("running", "deferred", "up_for_reschedule", "up_for_retry")]
    return ("waiting", busy) if busy == [SENSE] else ("running", busy)
