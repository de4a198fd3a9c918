"""Stops a stage whose model has had the hours that its recipe gives it, on any number of machines.

Each task notes in the root what it has spent, in the name of an empty object: one listing is what all have spent, over
partitions, tries and days. What was computed until then is kept, and a later run with more hours goes on from there.
"""

import secrets
import time
from dataclasses import dataclass

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.run.tasks.row_cache import CACHE
from pipeline_tasks.store import storage

HOUR = 3600.0

LOOK = 5.0
"""Seconds between two looks of a task, if the budget is of hours: a look is three requests."""

LOOKS = 50
"""Looks of a task that has a budget alone, at least: a small one is looked at more often."""


@dataclass(frozen=True, slots=True)
class Hours:
    """The most hours that the model of a stage may have: `scope` says for which work, over all of its tasks."""

    stage: str = ""
    most: float = 0.0
    scope: str = ""


NO_HOURS = Hours()
"""No bound."""


class ModelBudget:
    """What a task spends of the hours of a stage's model; RecipeError if all have spent them before it begins.

    A budget of 0 hours counts and bounds nothing.
    """

    def __init__(self, root: str, hours: Hours) -> None:
        self._root, self._hours = root, hours
        self._folder = f"{CACHE}/{hours.stage}/spent-{hours.scope}"
        self._own, self._noted = secrets.token_hex(8), ""
        self._began = self._looked = time.monotonic()
        if hours.most:
            self._require(self._spent())

    def spend(self) -> None:
        """Note what the task has spent, and look at all, if that is due; RecipeError if there is nothing left."""
        if self._hours.most and time.monotonic() - self._looked >= min(LOOK, self._hours.most * HOUR / LOOKS):
            self._looked = time.monotonic()
            self.note()
            self._require(self._spent())

    def note(self) -> None:
        """Note what the task has spent until now, if somebody counts."""
        if not self._hours.most:
            return
        milliseconds = round((time.monotonic() - self._began) * 1000)
        store, path = storage.connect(self._root), f"{self._folder}/{self._own}-{milliseconds}"
        store.create(path, b"")
        if self._noted and self._noted != path:
            store.delete(self._noted)
        self._noted = path

    def _spent(self) -> float:
        """Return the hours that all tasks have spent; of one that is noted twice, the last ones."""
        spent: dict[str, int] = {}
        for entry in storage.connect(self._root).list(self._folder):
            own, _, milliseconds = entry.path.rpartition("/")[2].partition("-")
            spent[own] = max(spent.get(own, 0), int(milliseconds))
        return sum(spent.values()) / 1000 / HOUR

    def _require(self, spent: float) -> None:
        if spent >= self._hours.most:
            message = (
                f"{self._hours.stage}: its model has had {spent:.4g} of the {self._hours.most:g} hours that "
                "`run: model_hours` gives it for this input; what it computed is kept: write more there and run again, "
                "which goes on from here"
            )
            raise RecipeError(message)
