"""Walks the tasks of a DAG in this process, one after the other, without Airflow's database or scheduler.

This is how `refinery run` and `refinery build` run what the scheduler runs where they need Airflow's connections
(`embedded.runner.asks_airflow`): the same wiring, operators, templates, retries and callbacks. What tasks pass to
each other is kept in this process, in the form in which Airflow stores it.
Tasks that would wait in the triggerer do their work here, as `tasks.launch` says.
"""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from graphlib import TopologicalSorter
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from airflow.sdk import DAG, BaseOperator, Context, XComArg
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.definitions.param import process_params
from airflow.sdk.exceptions import ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse, GetXCom, SetXCom, XComResult
from airflow.sdk.execution_time.supervisor import set_supervisor_comms

from refinery_airflow.tasks.retry import POLICY, is_last_try

RETURNED = BaseXCom.XCOM_RETURN_KEY
"""Key of what a task returns."""

Callback = Callable[[Context], object]


@dataclass(frozen=True, slots=True)
class WalkedRun:
    """What tasks ask of their run, as they do of Airflow's `DagRun`."""

    dag_id: str
    run_id: str
    logical_date: datetime
    conf: Mapping[str, Any]
    run_type: str = "manual"
    partition_key: str | None = None


@dataclass(frozen=True, slots=True)
class WalkedTask:
    """What a task asks of its try, as it does of Airflow's task instance."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    max_tries: int
    start_date: datetime
    id: str

    def xcom_push(self, key: str, value: object) -> None:
        """Keep a value for the tasks behind this one."""
        BaseXCom.set(key, value, **self._place(self.task_id, self.map_index))

    def xcom_pull(self, task_ids: str, key: str = RETURNED) -> object:
        """Return what a task kept; of this task what its own part kept."""
        map_index = self.map_index if task_ids == self.task_id else -1
        return BaseXCom.get_one(key=key, **self._place(task_ids, map_index))

    def _place(self, task_id: str, map_index: int) -> dict[str, Any]:
        return {"dag_id": self.dag_id, "run_id": self.run_id, "task_id": task_id, "map_index": map_index}


@dataclass(frozen=True, slots=True)
class Values:
    """Answers the requests that tasks send to Airflow's supervisor: the XComs of one run; anything else is unknown."""

    kept: MutableMapping[tuple[str, str, int], Any] = field(default_factory=dict)

    def send(self, request: object) -> XComResult | ErrorResponse | None:
        """Keep a value, or return one."""
        if isinstance(request, SetXCom):
            self.kept[request.task_id, request.key, _index(request)] = request.value
            return None
        if isinstance(request, GetXCom):
            return XComResult(key=request.key, value=self.kept.get((request.task_id, request.key, _index(request))))
        return ErrorResponse(error=ErrorType.GENERIC_ERROR, detail={"message": "there is no Airflow behind this run"})


def _index(request: GetXCom | SetXCom) -> int:
    return -1 if request.map_index is None else request.map_index


def walk(dag: DAG, conf: Mapping[str, Any]) -> None:
    """Run every task of a DAG whose params are `conf`; raise the error of the first that fails for good."""
    now = datetime.now(UTC)
    run = WalkedRun(dag.dag_id, f"manual__{now.isoformat()}", now, dict(conf))
    upstream = {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks}
    mapped: dict[str, int] = {}
    with set_supervisor_comms(Values()):
        for task_id in TopologicalSorter(upstream).static_order():
            task = dag.get_task(task_id)
            if task.is_mapped:
                [(name, parts)] = task.expand_input.value.items()
                parts = _resolved(parts, run, mapped)
                mapped[task_id] = len(parts)
                for at, part in enumerate(parts):
                    _run(task.unmap({name: part}), dag, run, mapped, at)
            else:
                _run(copy.copy(task), dag, run, mapped, -1)


def _run(task: BaseOperator, dag: DAG, run: WalkedRun, mapped: Mapping[str, int], at: int) -> None:
    """Run a task, or one part of a mapped task, and try it again as its retry policy says."""
    for name in task.template_fields:
        setattr(task, name, _resolved(getattr(task, name), run, mapped))
    for number in range(1, task.retries + 2):
        context = _context(task, dag, run, at, number)
        pause = _try(task, context)
        if pause is None:
            return
        time.sleep(pause.total_seconds())


def _try(task: BaseOperator, context: Context) -> timedelta | None:
    """Run one try of a task; return the pause before the next, None if it succeeded. Its last error is raised."""
    _call(task.on_execute_callback, context)
    try:
        returned = _execute(task, context)
    except Exception as error:
        context["exception"] = error
        if is_last_try(context, error):
            _call(task.on_failure_callback, context)
            raise
        _call(task.on_retry_callback, context)
        return _pause(task, context["ti"], error)
    if returned is not None:
        context["ti"].xcom_push(RETURNED, returned)
    _call(task.on_success_callback, context)
    return None


def _execute(task: BaseOperator, context: Context) -> object:
    """Execute a task as Airflow's own runner does, which says so to a guard against calls from anywhere else."""
    token = ExecutorSafeguard.tracker.set(task)
    try:
        return task.execute(context)
    finally:
        ExecutorSafeguard.tracker.reset(token)


def _pause(task: BaseOperator, tried: WalkedTask, error: Exception) -> timedelta:
    """Return how long to wait before the next try: what the policy says, else the task's delay, doubled each time."""
    decided: timedelta | None = POLICY.evaluate(error, tried.try_number, tried.max_tries).retry_delay
    growth = float(task.retry_exponential_backoff) ** (tried.try_number - 1)
    return decided or min(task.retry_delay * growth, task.max_retry_delay)


def _call(callbacks: Callback | Sequence[Callback] | None, context: Context) -> None:
    for callback in [callbacks] if callable(callbacks) else callbacks or ():
        callback(context)


def _context(task: BaseOperator, dag: DAG, run: WalkedRun, at: int, number: int) -> Context:
    tried = WalkedTask(
        dag_id=run.dag_id,
        run_id=run.run_id,
        task_id=task.task_id,
        map_index=at,
        try_number=number,
        max_tries=task.retries,
        start_date=datetime.now(UTC),
        id=str(uuid4()),
    )
    events = {outlet: SimpleNamespace(extra={}, add_partitions=lambda _: None) for outlet in task.outlets}
    return {
        "dag": dag,
        "dag_run": run,
        "run_id": run.run_id,
        "task": task,
        "ti": tried,
        "params": process_params(dag, task, dict(run.conf), suppress_exception=False),
        "outlet_events": events,
    }


def _resolved(value: object, run: WalkedRun, mapped: Mapping[str, int]) -> Any:  # noqa: ANN401 -- of any type
    """Return a value with all outputs of tasks in place of their references; of a mapped task those of its parts."""
    if isinstance(value, XComArg):
        return _output(value, run, mapped)
    if isinstance(value, Mapping):
        return {key: _resolved(each, run, mapped) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_resolved(each, run, mapped) for each in value)
    return value


def _output(reference: XComArg, run: WalkedRun, mapped: Mapping[str, int]) -> object:
    of = reference.operator.task_id
    place = {"key": reference.key, "dag_id": run.dag_id, "run_id": run.run_id, "task_id": of}
    return list(_parts(place, mapped[of])) if of in mapped else BaseXCom.get_one(**place)


def _parts(place: Mapping[str, Any], count: int) -> Iterator[object]:
    for at in range(count):
        yield BaseXCom.get_one(**place, map_index=at)
