"""Waits, without holding a worker, until a landed snapshot is complete."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowSkipException
from airflow.triggers.base import BaseTrigger, TriggerEvent
from refinery_credentials import adopt_credentials, adopt_credentials_in_triggerer
from refinery_run import run_of

from pipeline_tasks.landing import listing

LOOK = 60.0
"""Seconds between two checks of the input."""


class SnapshotTrigger(BaseTrigger):  # type: ignore[misc]  # loaded lazily: Any
    """Fires `{"complete": true}` once the snapshot at `uri` is complete, or false at `deadline` (Unix time)."""

    def __init__(self, uri: str, deadline: float, look: float = LOOK) -> None:
        super().__init__()
        self.uri, self.deadline, self.look = uri, deadline, look

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that the triggerer builds this trigger from."""
        return "refinery_sensor.SnapshotTrigger", {"uri": self.uri, "deadline": self.deadline, "look": self.look}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check the input, sleep, and check again until the deadline."""
        await adopt_credentials_in_triggerer(self.uri)
        while not (complete := await asyncio.to_thread(listing.is_complete, self.uri)):
            left = self.deadline - time.time()
            if left <= 0:
                break
            await asyncio.sleep(min(self.look, left))
        yield TriggerEvent({"complete": complete})


class SnapshotSensor(BaseSensorOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Succeeds when the run's snapshot has landed as promised; skips the run when it does not land in time."""

    def execute(self, context: Context) -> None:
        """Return at once if the snapshot is complete (or `patience` is 0), else wait in the triggerer."""
        run = run_of(context)
        adopt_credentials(run.input)
        if not run.patience or listing.is_complete(run.input):
            return
        deadline = time.time() + run.patience * 3600
        self.defer(trigger=SnapshotTrigger(run.input, deadline), method_name="resume")

    def resume(self, context: Context, event: Mapping[str, Any]) -> None:
        """Continue with the trigger's event; skip the run if the snapshot is not complete."""
        if not event["complete"]:
            run = run_of(context)
            message = f"snapshot {run.snapshot} did not land at {run.input} within {run.patience:g} hours"
            raise AirflowSkipException(message)
