"""Estimates: a fact with the interval that its rows leave open, so that few rows are judged as honestly as many."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from typing import Any

from pipeline_tasks.gate import limits
from pipeline_tasks.profiles.bins import octave_end
from pipeline_tasks.profiles.merging import quantile, quantile_bin


@dataclass(frozen=True, slots=True)
class Precision:
    """How an interval is computed: `tail` is what each side may miss; from `large` rows on the value is judged."""

    tail: float
    large: int

    def narrowed(self, parts: float) -> "Precision":
        """Return the precision at which each of `parts` intervals is right for all to be (Bonferroni)."""
        return Precision(self.tail / parts, self.large)


ALONE = Precision(0.01, 1_000)
"""A fact of one manifest: each side of the interval is right with a probability of 99 %.

From 1,000 rows on a share is known to 4 points, which is less than lies between a bound that warns and one that
refuses; the value itself is compared, as a person would do.
"""

COMPARED = Precision(0.005, 10_000)
"""Either side of a comparison: both are right with 99 %. Changes are of a few percent, so more rows are needed."""

_WHOLE = 100  # hundredths, which ratios are counted by
HALF_BIN = 0.005
"""Half the width of a bin of fractions: a mean of their middles is off by at most so much."""

Facts = dict[str, "Estimate | None"]
"""Name -> estimate; None where there is nothing to compute from or to compare with."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A fact's `value`, and the interval from `low` to `high` that its `rows` leave open; infinite if they say nothing.

    A fact that counts all there is, such as lost rows, is exact: low = high = value, and `rows` is 0. A value that is
    read from a histogram lies anywhere in a bin, from `bin[0]` to `bin[1]`. `examples` name what was found, such as
    fields; never a value of a record.
    """

    value: float
    low: float
    high: float
    rows: int = 0
    bin: tuple[float, float] | None = None
    examples: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the value itself is judged."""
        return self.low == self.high

    @property
    def least(self) -> float:
        """The least that the value may be."""
        return self.bin[0] if self.bin else self.value

    @property
    def most(self) -> float:
        """The most that the value may be."""
        return self.bin[1] if self.bin else self.value


def exact(value: float | None) -> Estimate | None:
    """Return a fact that counts all there is."""
    return None if value is None else Estimate(value, value, value)


def _judged(value: float, interval: tuple[float, float], rows: int) -> Estimate:
    """Return an estimate whose interval contains its value, whatever the rounding."""
    return Estimate(value, min(interval[0], value), max(interval[1], value), rows)


def share(part: int, whole: int, precision: Precision = ALONE) -> Estimate | None:
    """Return the share of rows of a kind; None of no rows."""
    if not whole:
        return None
    value = part / whole
    if whole >= precision.large or not 0 <= part <= whole:  # a count that is no part is a fact of conservation
        return Estimate(value, value, value, whole)
    return _judged(value, limits.share_limits(part, whole, precision.tail), whole)


def largest_share(parts: Iterable[int], whole: int, precision: Precision = ALONE) -> Estimate | None:
    """Return the share of the largest part: there may be whole / part others that could have been the largest."""
    part = max(parts, default=0)
    return share(part, whole, precision.narrowed(ceil(whole / part)) if part else precision)


def smallest(estimates: Iterable[Estimate | None]) -> Estimate | None:
    """Return the smallest of several facts; None of none.

    It is at most the lowest `high`, which is that of the fact with the most rows and not always of the smallest value.
    """
    known = [estimate for estimate in estimates if estimate]
    if not known:
        return None
    surest = min(known, key=lambda estimate: estimate.high)
    value, low = (min(getattr(estimate, end) for estimate in known) for end in ("value", "low"))
    return Estimate(value, low, surest.high, surest.rows)


def surest_largest(estimates: Iterable[Estimate | None]) -> Estimate | None:
    """Return of several facts the one that is surely the largest: that with the highest `low`; None of none.

    One of one row has the largest share and says nothing; forty of fifty say much.
    """
    return max(
        (estimate for estimate in estimates if estimate), key=lambda known: (known.low, known.rows), default=None
    )


def count(value: int, precision: Precision = COMPARED) -> Estimate:
    """Return a count as a sample of what could have come, to compare it with another one."""
    if value >= precision.large:
        return Estimate(value, value, value, value)
    return _judged(value, limits.count_limits(value, precision.tail), value)


def quantile_of(column: Mapping[str, Any], at: float, precision: Precision = ALONE) -> Estimate | None:
    """Return a quantile of a profiled column; None if it has no values."""
    rows = column["count"]
    if not rows:
        return None
    value, bounds = quantile(column, at), quantile_bin(column, at)
    if rows >= precision.large:
        return Estimate(value, value, value, rows, bounds)
    low, high = limits.rank_limits(rows, at, precision.tail)
    interval = (
        quantile_bin(column, (low - 0.5) / rows)[0] if low else -inf,
        quantile_bin(column, (high - 0.5) / rows)[1] if high <= rows else inf,
    )
    return replace(_judged(value, interval, rows), bin=bounds)


def mean_of(column: Mapping[str, Any], precision: Precision = ALONE) -> Estimate | None:
    """Return the mean of a profiled column: exact for whole numbers, from the middle of its bins for ratios."""
    rows = column["count"]
    if not rows:
        return None
    value = column["sum"] / rows if "sum" in column else _middle(column) / rows
    bounds = None if "sum" in column else (value - HALF_BIN, value + HALF_BIN)
    if rows >= precision.large:
        return Estimate(value, value, value, rows, bounds)
    margin = _margin(column, value, precision.tail)
    return replace(_judged(value, (value - margin if margin < inf else -inf, value + margin), rows), bin=bounds)


def fraction_mean(mean: float, rows: int, precision: Precision = ALONE) -> Estimate:
    """Return the mean of `rows` values between 0 and 1."""
    if rows >= precision.large:
        return Estimate(mean, mean, mean, rows)
    margin = limits.bounded_margin(rows, precision.tail)
    return _judged(mean, (mean - margin, mean + margin), rows)


def _middle(column: Mapping[str, Any]) -> float:
    middle: float = sum((int(key) + 0.5) * rows for key, rows in column["bins"].items()) / 100
    return middle


def _margin(column: Mapping[str, Any], mean: float, tail: float) -> float:
    """Return how far the mean may be off: ratios between 0 and 1 are bounded, other numbers only vary."""
    rows, bins = column["count"], {int(key): rows for key, rows in sorted(column["bins"].items())}
    if column["kind"] == "ratio" and min(bins) >= 0 and max(bins) <= _WHOLE:
        return limits.bounded_margin(rows, tail) + HALF_BIN
    squares = sum(rows * _farthest(low, mean, column["kind"]) ** 2 for low, rows in bins.items())
    return limits.mean_margin(squares / max(rows - 1, 1), rows, tail)


def _farthest(low: int, mean: float, kind: str) -> float:
    """Return the largest distance of a bin's values from the mean; bins of whole numbers are 1/8 of an octave wide."""
    if kind == "ratio":
        return max(abs(low / 100 - mean), abs((low + 1) / 100 - mean))
    return max(abs(low - mean), abs(octave_end(low) - mean))


def total(column: Mapping[str, Any], precision: Precision = COMPARED) -> Estimate | None:
    """Return the sum of a profiled column of whole numbers as a sample: a count of rows, times their mean."""
    if "sum" not in column:
        return None
    value, half = column["sum"], precision.narrowed(2)
    if column["count"] >= precision.large:
        return Estimate(value, value, value, column["count"])
    rows, mean = count(column["count"], half), mean_of(column, half)
    if mean is None:
        return exact(value)
    return _judged(value, (max(rows.low * mean.low, 0.0), rows.high * mean.high), column["count"])


def change(now: Estimate | None, before: Estimate | None) -> Estimate | None:
    """Return the relative change between two amounts of two samples; None where there is nothing to compare."""
    if now is None or before is None or not before.value:
        return None
    low = max(now.low, 0.0) / before.high - 1
    high = now.high / before.low - 1 if before.low > 0 else inf
    return _judged(now.value / before.value - 1, (low, high), min(now.rows, before.rows))


def difference(value: float, rows: tuple[int, int], precision: Precision = COMPARED) -> Estimate:
    """Return a largest difference of two distributions less, and plus, what samples of these sizes leave open."""
    if min(rows) >= precision.large:
        return Estimate(value, value, value, min(rows))
    margin = sum(limits.distribution_margin(count, precision.tail) for count in rows)
    return _judged(value, (max(value - margin, 0.0), min(value + margin, 1.0)), min(rows))


def distance(value: float, bins: int, rows: tuple[int, int], precision: Precision = COMPARED) -> Estimate:
    """Return a population stability index less what two samples of one population have on average, and its interval.

    Two such samples differ by about a chi-square of `bins - 1` degrees of freedom times (1 / n + 1 / m) (Yurdakul,
    Statistical Properties of Population Stability Index, 2018): 200 names in twice 3,000 rows have .13 by chance. The
    root of an index is a distance, so that chance moves it by at most the root of the floor.
    """
    by_chance = (bins - 1) * sum(1 / count for count in rows)
    beyond = max(value - by_chance, 0.0)
    if min(rows) >= precision.large:
        return Estimate(beyond, beyond, beyond, min(rows))
    floor = limits.distance_floor(bins, *rows, precision.tail)
    low = max(sqrt(value) - sqrt(floor), 0.0) ** 2
    return _judged(beyond, (low, (sqrt(value) + sqrt(floor)) ** 2), min(rows))
