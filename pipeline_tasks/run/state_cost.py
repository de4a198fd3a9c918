"""What kernels with a state, such as models, took and what computed their rows: a record for operators, no identity."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipeline_tasks.constraints import Count

Hardware = Mapping[str, Mapping[str, Count]]
"""Rows by class of hardware (`cpu`, or the name of a GPU), by what is computed, such as a classifier's name."""


@dataclass(frozen=True, slots=True)
class StateCost:
    """What the verbs of a stage whose kernels have a state took."""

    hardware: Hardware = field(default_factory=dict)

    def __add__(self, other: "StateCost") -> "StateCost":
        return StateCost(_added([self.hardware, other.hardware]))


NO_STATES = StateCost()


def _added(parts: Iterable[Hardware]) -> dict[str, dict[str, int]]:
    """Return the rows of all parts together."""
    rows: dict[str, Counter[str]] = {}
    for part in parts:
        for computed, by in part.items():
            rows.setdefault(computed, Counter()).update(by)
    return {computed: dict(sorted(by.items())) for computed, by in sorted(rows.items())}
