"""Waits, without holding a worker, until a landed snapshot is complete, and says what it waits for."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.bases.xcom import BaseXCom
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from pipeline_tasks.flow.attempt import Run
from pipeline_tasks.landing.arrival import COMPLETE, INCOMPLETE, Arrival, arrival_of
from refinery_airflow.runs.credentials import adopt_credentials, give_credentials_in_triggerer
from refinery_airflow.runs.run import announce, recipe_of_dag, run_of

log = logging.getLogger("refinery")

LOOK = 60.0
"""Seconds between two checks of the input."""

REPEAT = 3600.0
"""Seconds after which the log says again what is waited for, if nothing has changed."""

ARRIVAL = "arrival"
"""Key of the XCom that says, while the task waits and after it, how far the snapshot has landed."""

SETTLING = "settling"
"""Field of that XCom: the minutes for which a snapshot without a list of its files must not change."""

TRIAL = "trial"
"""Field of that XCom which only a trial has: other runs do not wait for it."""


class SnapshotTrigger(BaseTrigger):  # type: ignore[misc]  # loaded lazily: Any
    """Fires `facts` of the snapshot at `uri` once it is complete, or at `deadline` (Unix time).

    A snapshot without a list of its files, or with the share `accept` of them, is complete when it has not changed for
    `settling` seconds.
    """

    def __init__(
        self,
        uri: str,
        facts: Mapping[str, str],
        deadline: float,
        settling: float = LOOK,
        look: float = LOOK,
        accept: float = 1.0,
        recipe: str = "",
    ) -> None:
        super().__init__()
        self.uri, self.facts, self.deadline, self.settling, self.look = uri, dict(facts), deadline, settling, look
        self.accept, self.recipe = accept, recipe

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that the triggerer builds this trigger from."""
        names = ("uri", "facts", "deadline", "settling", "look", "accept", "recipe")
        return "refinery_airflow.tasks.sensor.SnapshotTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check the input, say what is missing, sleep, and check again until the deadline."""
        await give_credentials_in_triggerer(self.uri, recipe=self.recipe)
        said, repeat, seen, since = "", 0.0, "", 0.0
        while True:
            arrival = await asyncio.to_thread(arrival_of, self.uri, self.accept)
            facts = facts_of(arrival, self.facts)
            left = self.deadline - time.time()
            if arrival.settling != seen:
                seen, since = arrival.settling, time.monotonic()
            is_settled = time.monotonic() - since >= self.settling
            if is_whole(arrival, self.settling) or (arrival.state == COMPLETE and is_settled):
                break
            if left <= 0 and arrival.state != COMPLETE:
                break
            if arrival.detail != said or time.monotonic() > repeat:
                said, repeat = arrival.detail, time.monotonic() + REPEAT
                await self._say(facts)
            await asyncio.sleep(min(self.look, left) if left > 0 else self.look)
        yield TriggerEvent(facts)

    async def _say(self, facts: Mapping[str, str]) -> None:
        """Write to the task's log and to its XCom what is waited for."""
        log.info("%s", sentence(facts))
        if task := self.task_instance:
            await BaseXCom.aset(ARRIVAL, facts, dag_id=task.dag_id, task_id=task.task_id, run_id=task.run_id)


class SnapshotSensor(BaseSensorOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Succeeds when the run's snapshot has landed whole.

    At the deadline it skips the run if nothing has landed, and fails if a part of what was promised has.
    """

    def execute(self, context: Context) -> None:
        """Return at once if the snapshot is complete (or `patience` is 0), else wait in the triggerer."""
        run = run_of(context)
        recipe = recipe_of_dag(context["ti"].dag_id)
        adopt_credentials(run.input, recipe=recipe)
        arrival = (
            arrival_of(run.input, run.accept) if run.patience else Arrival(COMPLETE, f"{run.input}, without a look")
        )
        deadline = deadline_of(context, run)
        until = datetime.fromtimestamp(deadline, UTC).strftime("%Y-%m-%d %H:%M UTC")
        facts = {"snapshot": run.snapshot, "root": run.root, "until": until, **({TRIAL: "yes"} if run.is_trial else {})}
        facts[SETTLING] = f"{run.settling:g}"
        settling = run.settling * 60
        if is_whole(arrival, settling) or (arrival.state != COMPLETE and deadline <= time.time()):
            self.end(context, facts_of(arrival, facts))
            return
        context["ti"].xcom_push(key=ARRIVAL, value=facts_of(arrival, facts))
        trigger = SnapshotTrigger(run.input, facts, deadline, settling, accept=run.accept, recipe=recipe)
        self.defer(trigger=trigger, method_name="end")

    def end(self, context: Context, event: dict[str, str]) -> None:
        """Continue with the trigger's event; skip the run if nothing has landed, fail if a part has."""
        context["ti"].xcom_push(key=ARRIVAL, value=event)
        state = event["state"]
        message = (
            f"snapshot {event['snapshot']} is {state}, and its deadline was {event['until']}: {event['detail']}; "
            "when it has landed, clear this run"
        )
        if state == INCOMPLETE:
            raise AirflowFailException(message)
        if state != COMPLETE:
            raise AirflowSkipException(message)
        run = run_of(context)
        announce(context, run, {"input": run.input})
        self.log.info("snapshot %s is complete: %s", event["snapshot"], event["detail"])


def deadline_of(context: Context, run: Run) -> float:
    """Return until when a run waits: `patience` hours from its date, or from now if its snapshot has no date.

    A backfill of past dates so waits for nothing.
    """
    date = context["dag_run"].logical_date
    is_dated = date is not None and run.snapshot == date.date().isoformat()
    return (date.timestamp() if is_dated else time.time()) + run.patience * 3600


def is_whole(arrival: Arrival, settling: float) -> bool:
    """Return whether a snapshot is complete, by its list or as its files have not changed for `settling` seconds."""
    is_settled = not arrival.settling or time.time() - arrival.changed >= settling
    return arrival.state == COMPLETE and is_settled


def facts_of(arrival: Arrival, facts: Mapping[str, str]) -> dict[str, str]:
    """Return what people see: `facts` of the run, and how far its snapshot has landed."""
    return {**facts, "state": arrival.state, "detail": arrival.detail}


def sentence(facts: Mapping[str, str]) -> str:
    """Return what a waiting task waits for."""
    snapshot, detail = facts["snapshot"], facts["detail"]
    if facts["state"] == COMPLETE:
        minutes = facts.get(SETTLING, "1")
        return f"snapshot {snapshot} has landed, and is refined when nothing changes for {minutes} min: {detail}"
    return (
        f"snapshot {snapshot} is {facts['state']}, waits until {facts['until']}, then goes to {facts['root']}: {detail}"
    )
