"""Keeps the runs of a DAG in the order of their snapshots: a run waits for runs of earlier ones that are under way.

Under way is a run that Airflow runs, whose snapshot has landed, and whose task `publish` has not ended. A run that
waits for its files is not waited for, nor is one that is queued: it may be queued because this one holds its place.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.triggers.base import BaseTrigger, TriggerEvent

from pipeline_tasks.flow.plan import SENSE
from pipeline_tasks.landing.arrival import COMPLETE
from pipeline_tasks.recipe import PUBLISH
from refinery_airflow.runs.run import is_here, run_of
from refinery_airflow.tasks.sensor import ARRIVAL, TRIAL

log = logging.getLogger("refinery")

LOOK = 15.0
"""Seconds between two looks at the other runs."""

AHEAD = "ahead"
"""Key of the XCom that names the runs that a task waits for."""

ENDED = ("success", "failed", "upstream_failed", "skipped", "removed")
"""States in which `publish` will publish no more."""

AWAITING = "awaiting_input"
"""State of a gate that refuses, and waits for a person's approval."""

NOT_LANDED = ("up_for_retry", "failed", "upstream_failed", "skipped", "removed")
"""States of `sense` in which the snapshot has not landed; while it is deferred, its XCom says whether it has."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a run among those of its DAG: its snapshot, the root that it goes to, and the DAG's gates."""

    dag_id: str
    run_id: str
    snapshot: str
    root: str
    gates: Sequence[str] = ()


class TurnTrigger(BaseTrigger):  # type: ignore[misc]  # loaded lazily: Any
    """Fires when no run of an earlier snapshot is under way."""

    def __init__(self, place: Mapping[str, Any], look: float = LOOK) -> None:
        super().__init__()
        self.place, self.look = dict(place), look

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that the triggerer builds this trigger from."""
        return "refinery_airflow.tasks.turn.TurnTrigger", {"place": self.place, "look": self.look}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look at the other runs, say which are waited for, sleep, and look again."""
        said: dict[str, str] = {}
        place = Place(**self.place)
        while ahead := await asyncio.to_thread(still_ahead, place, list(said)):
            if ahead != said:
                said = ahead
                log.info("%s", sentence(self.place["snapshot"], ahead))
                if task := self.task_instance:
                    await BaseXCom.aset(AHEAD, ahead, dag_id=task.dag_id, task_id=task.task_id, run_id=task.run_id)
            await asyncio.sleep(self.look)
        yield TriggerEvent({})


class Turn(BaseOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Waits in the triggerer until no run of an earlier snapshot is under way.

    `refinery run` has no other runs, and a trial publishes nothing that others read.
    """

    def execute(self, context: Context) -> None:
        """Return at once if no earlier run is under way, else wait."""
        run = run_of(context)
        if is_here() or run.is_trial:
            return
        dag_run, gates = context["dag_run"], [task for task in context["dag"].task_ids if task.endswith("gate")]
        place = Place(dag_run.dag_id, dag_run.run_id, run.snapshot, run.root, gates)
        if ahead := runs_ahead(place):
            context["ti"].xcom_push(key=AHEAD, value=ahead)
            log.info("%s", sentence(run.snapshot, ahead))
            self.defer(trigger=TurnTrigger(asdict(place)), method_name="resume")
        self.resume(context)

    def resume(self, context: Context, **_: object) -> None:
        """Go on."""
        context["ti"].xcom_push(key=AHEAD, value={})
        log.info("no run of an earlier snapshot is under way")


def still_ahead(place: Place, before: Sequence[str]) -> dict[str, str]:
    """Return as `runs_ahead`: of the runs that were waited for, and of all runs of the DAG once none of these is left.

    A DAG has hundreds of runs, and each waiting run looks four times a minute.
    """
    return (runs_ahead(place, before) if before else {}) or runs_ahead(place)


def runs_ahead(place: Place, among: Sequence[str] | None = None) -> dict[str, str]:
    """Return the snapshots of the runs that are waited for, by the ids of these runs, with what a person has to do.

    Only runs that are `among` some are looked at; all of the DAG by default.
    """
    states = RuntimeTaskInstance.get_task_states(place.dag_id, task_ids=[SENSE, PUBLISH], run_ids=among and list(among))
    ahead = {}
    for run_id in candidates(states, place.run_id):
        if RuntimeTaskInstance.get_dagrun_state(place.dag_id, run_id) == "running":
            arrival = BaseXCom.get_one(key=ARRIVAL, dag_id=place.dag_id, task_id=SENSE, run_id=run_id)
            if arrival is None or (has_landed(arrival, states[run_id]) and is_before(arrival, run_id, place)):
                ahead[run_id] = arrival["snapshot"] if arrival else "?"
    if not ahead:
        return {}
    gates = RuntimeTaskInstance.get_task_states(place.dag_id, task_ids=list(place.gates), run_ids=list(ahead))
    return {run_id: snapshot + approvals(gates.get(run_id, {})) for run_id, snapshot in ahead.items()}


def approvals(gates: Mapping[str, Any]) -> str:
    """Return what a person has to do for a run to go on, given the states of its gates; "" if nothing."""
    waiting = sorted(gate for gate, state in gates.items() if state == AWAITING)
    return f", which awaits approval in {', '.join(waiting)}" if waiting else ""


def candidates(states: Mapping[str, Mapping[str, Any]], own: str) -> list[str]:
    """Return the ids of other runs whose snapshot has landed, or may have, and which may still publish it."""
    return sorted(
        run_id
        for run_id, tasks in states.items()
        if run_id != own and tasks.get(PUBLISH) not in ENDED and tasks.get(SENSE) not in NOT_LANDED
    )


def has_landed(arrival: Mapping[str, str], tasks: Mapping[str, Any]) -> bool:
    """Return whether a run has its files, also while its sensor looks once more whether they change."""
    return tasks.get(SENSE) != "deferred" or arrival["state"] == COMPLETE


def is_before(arrival: Mapping[str, str], run_id: str, place: Place) -> bool:
    """Return whether a run publishes into the same dataset before this one: by snapshot, then by id."""
    same_dataset = arrival["root"] == place.root and TRIAL not in arrival
    return same_dataset and (arrival["snapshot"], run_id) < (place.snapshot, place.run_id)


def sentence(snapshot: str, ahead: Mapping[str, str]) -> str:
    """Return what a run waits for, and how a person lets it go on."""
    runs = ", ".join(f"{earlier} (run {run_id})" for run_id, earlier in ahead.items())
    return (
        f"snapshot {snapshot} waits its turn: under way before it is {runs}. It goes on when these have published or "
        "failed. To let it go first, mark this task as success: it is stale when they have published"
    )
