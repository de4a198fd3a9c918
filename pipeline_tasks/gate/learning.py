"""Learns bounds from published snapshots: the median of the trailing ones plus and minus a band, or the previous one.

A bound is learned if its expectation says from what: `trailing`, or `previous`. The band around the median is the
largest of four distances:

- `SPREAD` median absolute deviations of the trailing snapshots, beyond which a value is an outlier (Iglewicz and
  Hoaglin, How to Detect and Handle Outliers, 1993: a modified z-score of 3.5);
- `floor`, a share of the median: alike days have a deviation near 0, and a change too small to matter is no outlier;
- `least`, in the fact's own unit, for shares that may be near 0;
- what chance explains with as many rows, so that a small day is no outlier.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Any

from pipeline_tasks.gate.estimates import Facts, exact
from pipeline_tasks.gate.facts.amounts import ANY, Amount, Amounts, amount_of
from pipeline_tasks.gate.suites import ENOUGH, PREVIOUS, SNAPSHOTS, TRAILING, Expectation

SPREAD = 3.5 / 0.6745
"""Median absolute deviations within which a value is no outlier."""

MEDIAN = "median"
"""Key of a learned expectation's `learned`: the median that its limits are around."""

USED = "snapshots"
"""Key of a learned expectation's `learned`: how many snapshots have a value."""


@dataclass(frozen=True, slots=True)
class LearnedBound:
    """A learned bound as a verdict stores it: a fact's value and limits, and the median of so many snapshots."""

    fact: str
    value: float
    min_value: float | None
    max_value: float
    median: float
    snapshots: int
    severity: str
    why: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """What was learned: expectations with limits, the values that they bound, and why others have no limits."""

    expectations: tuple[Expectation, ...]
    facts: Facts
    skipped: tuple[str, ...]


def learn(expectations: Iterable[Expectation], now: Amounts, before: Sequence[Amounts]) -> Lesson:
    """Return the expectations that can be learned from the trailing snapshots' amounts, each with limits.

    One of a fact `<name>.*` becomes one for each name that this snapshot or another one has.
    """
    wanted = [expectation for expectation in expectations if expectation["learned"]]
    learned: list[Expectation] = []
    skipped = []
    for expectation in wanted:
        column, earlier = expectation["kwargs"]["column"], _snapshots(expectation, before)
        names = _names(column, now, earlier)
        limited = [bound for name in names for bound in _limited(expectation, name, now, earlier)]
        learned += limited
        if not limited:
            skipped.append(f"{expectation['learned']['from']} {column}: {_absence(expectation, len(earlier))}")
    values = {name: amount_of(name, now) for name in (expectation["kwargs"]["column"] for expectation in learned)}
    facts = {name: exact(amount.value if amount else None) for name, amount in values.items()}
    return Lesson(tuple(learned), facts, tuple(skipped))


def _snapshots(expectation: Expectation, before: Sequence[Amounts]) -> Sequence[Amounts]:
    return before[-1:] if expectation["learned"]["from"] == PREVIOUS else before[-SNAPSHOTS:]


def _least(expectation: Expectation) -> int:
    """Return how many snapshots an expectation is learned from at least."""
    return ENOUGH if expectation["learned"]["from"] == TRAILING else 1


def _absence(expectation: Expectation, snapshots: int) -> str:
    """Return why an expectation has no limits."""
    if snapshots >= _least(expectation):
        return "nothing to compute it from"
    if expectation["learned"]["from"] == PREVIOUS:
        return "no previous snapshot to compare with"
    return f"not enough history, {snapshots} of {ENOUGH} snapshots"


def _names(column: str, now: Amounts, before: Sequence[Amounts]) -> list[str]:
    """Return the facts that an expectation is about."""
    if not column.endswith(f".{ANY}"):
        return [column]
    prefix, names = column.removesuffix(ANY), {name for amounts in (now, *before) for name in amounts}
    return sorted(name for name in names - {column} if name.startswith(prefix))


def _limited(expectation: Expectation, name: str, now: Amounts, before: Sequence[Amounts]) -> Iterator[Expectation]:
    """Yield the expectation with limits for one fact; none if the fact has no value now, or too few before."""
    value = amount_of(name, now)
    known = [amount for amounts in before if (amount := amount_of(name, amounts))]
    if value is None or len(known) < _least(expectation):
        return
    middle, band = _band(value, known, expectation["learned"])
    if max(value.value, middle) < expectation["learned"].get("least", 0) or band == inf:
        return
    low, high = middle - band, middle + band
    limits = {"column": name, "min_value": round(low, 6) if low > 0 else None, "max_value": round(high, 6)}
    facts = {**expectation["learned"], MEDIAN: round(middle, 6), USED: len(known)}
    yield {**expectation, "kwargs": limits, "learned": facts}


def _band(value: Amount, known: Sequence[Amount], rule: Mapping[str, Any]) -> tuple[float, float]:
    """Return the median of earlier values, and how far this one may be from it."""
    middle = median(amount.value for amount in known)
    deviation = median(abs(amount.value - middle) for amount in known)
    chance = value.chance + median(amount.chance for amount in known)
    return middle, max(SPREAD * deviation, rule.get("floor", 0) * abs(middle), rule.get("least", 0), chance)


def learned_bounds(lesson: Lesson) -> tuple[LearnedBound, ...]:
    """Return what was learned as a verdict stores it."""
    return tuple(
        LearnedBound(
            fact=expectation["kwargs"]["column"],
            value=_value(lesson, expectation["kwargs"]["column"]),
            min_value=expectation["kwargs"]["min_value"],
            max_value=expectation["kwargs"]["max_value"],
            median=expectation["learned"][MEDIAN],
            snapshots=expectation["learned"][USED],
            severity=expectation["severity"],
            why=expectation["notes"],
        )
        for expectation in lesson.expectations
    )


def _value(lesson: Lesson, name: str) -> float:
    estimate = lesson.facts[name]
    assert estimate is not None, "what is learned has a value"
    return round(estimate.value, 6)
