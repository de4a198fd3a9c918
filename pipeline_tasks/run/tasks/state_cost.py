"""What kernels with a state, such as models, took and what computed their rows: a record for operators, no identity."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields

from pipeline_tasks.constraints import Count, Weight
from pipeline_tasks.counted import counted

Hardware = Mapping[str, Mapping[str, Count]]
"""Rows by class of hardware (`cpu`, or the name of a GPU), by what is computed, such as a classifier's name."""

STARVED, SATURATED, COMPUTING = 0.25, 0.5, 0.5
"""Shares from which on actors lack tasks and tasks lack actors, and below which models do little of what is done.

They only choose what an operator is advised to try.
"""

LONG = 60.0
"""Seconds of tasks from which on there is advice: shorter ones load a model most of the time."""


@dataclass(frozen=True, slots=True)
class StateCost:
    """What the verbs of a stage whose kernels have a state took, in seconds.

    `held` are those of all actors, from their start or the verb's to its end; in `idle` of them an actor had no task.
    `open` are those of the verbs on actors; in `waited` of them a task waited for an actor. `tasks` are those of tasks,
    on every engine; in `model` of them a kernel computed, and did not wait for a model to load, rows to be read, or
    rows to be stored. `actors` is how many there were at most.
    """

    hardware: Hardware = field(default_factory=dict)
    actors: Count = 0
    held: Weight = 0.0
    idle: Weight = 0.0
    open: Weight = 0.0
    waited: Weight = 0.0
    tasks: Weight = 0.0
    model: Weight = 0.0

    def __add__(self, other: "StateCost") -> "StateCost":
        seconds = {name: getattr(self, name) + getattr(other, name) for name in SECONDS}
        return StateCost(_added([self.hardware, other.hardware]), max(self.actors, other.actors), **seconds)

    @property
    def line(self) -> str:
        """Who waited for whom, as shares of the time, and what an operator may change; "" without a task."""
        if not self.tasks:
            return ""
        model = self.model / self.tasks
        said = f"models computed {model:.0%} of the time of tasks"
        if not self.actors:
            return said
        idle, waited = self.idle / (self.held or 1.0), self.waited / (self.open or 1.0)
        said = (
            f"{counted(self.actors, 'actor')} without a task {idle:.0%} of the time, tasks waited for one "
            f"{waited:.0%} of it, {said}"
        )
        advice = "; ".join(_advice(idle, waited, model)) if self.tasks >= LONG else ""
        return f"{said}: {advice}" if advice else said


SECONDS = tuple(declared.name for declared in fields(StateCost))[2:]
"""Fields that are seconds."""

NO_STATES = StateCost()


def _advice(idle: float, waited: float, model: float) -> Iterator[str]:
    if idle >= STARVED:
        yield "actors lack tasks, give the stage fewer actors or smaller shards"
    elif waited >= SATURATED:
        yield "more actors would finish sooner"
    if model < COMPUTING:
        yield "tasks load, read and write most of the time, let more actors share a GPU or shards be larger"


def _added(parts: Iterable[Hardware]) -> dict[str, dict[str, int]]:
    """Return the rows of all parts together."""
    rows: dict[str, Counter[str]] = {}
    for part in parts:
        for computed, by in part.items():
            rows.setdefault(computed, Counter()).update(by)
    return {computed: dict(sorted(by.items())) for computed, by in sorted(rows.items())}
