"""Measures what a scorer tells apart: areas under curves, ranks, sources, spread, and a calibration by steps.

Intervals follow from formulas, and from no resampling: the same sample has the same interval.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.scorers.calibration import DIGITS, Steps
from pipeline_tasks.scorers.scorer import Column

SIGMAS = 2.326
"""Standard deviations of each side of an interval: right with 99 %, as gates have it (`gate.estimates.ALONE`)."""

LEAST_OF_SOURCE = 8
"""Documents of a source whose spread is measured, and that can predict others of it."""

LEAST_SOURCES = 5
"""Sources of a group in which the source alone is judged."""

LEAST_RANKED = 10
"""Labelled documents of a group in which ranks are compared."""

LEAST_CALIBRATED = 50
"""Labelled documents of a group that is calibrated by itself."""

FLAT = 1 / 1024
"""A standard deviation below which a source has no spread: the step of scores."""


class Measure(NamedTuple):
    """A number with its interval, and how many documents, pairs or sources it is from."""

    value: float
    low: float
    high: float
    size: int


class Area(NamedTuple):
    """The share of pairs in which the first of two columns is higher, its variance, and the sizes of both columns."""

    value: float
    variance: float
    higher: int
    lower: int


# --- Pairs ----------------------------------------------------------------------------------------------------


def area(higher: Column, lower: Column) -> Area | None:
    """Return the area under the ROC curve with its variance (DeLong et al., Biometrics 44, 1988); None of no pair.

    A tie counts half. The variance is that of the structural components, of placements in the other column.
    """
    if not len(higher) or not len(lower):
        return None
    placed, against = _placements(higher, lower), 1 - _placements(lower, higher)
    variance = sum(_variance(column) / len(column) for column in (placed, against))
    return Area(float(placed.mean()), variance, len(higher), len(lower))


def _placements(column: Column, other: Column) -> Column:
    """Return for each value the share of the other column that is below it, ties by half."""
    ordered = np.sort(other)
    below, upto = (np.searchsorted(ordered, column, side) for side in ("left", "right"))
    placed: Column = (below + upto) / (2 * len(other))
    return placed


def _variance(column: Column) -> float:
    return float(column.var(ddof=1)) if len(column) > 1 else 0.25


def joined(areas: Iterable[Area | None]) -> Measure | None:
    """Return the mean of areas of several groups by their documents, with its interval; None of none.

    The interval is Wilson's (JASA 22, 1927) for as many independent pairs as have the variance of the mean, at most
    the documents of the smaller side: an area of 1 has an interval, too.
    """
    known = [group for group in areas if group]
    if not known:
        return None
    weights = np.array([group.higher for group in known], np.float64)
    weights /= weights.sum()
    value = float((weights * [group.value for group in known]).sum())
    variance = float((weights**2 * [group.variance for group in known]).sum())
    most = sum(min(group.higher, group.lower) for group in known)
    pairs = min(most, value * (1 - value) / variance) if variance > 0 else most
    low, high = _wilson(value, max(pairs, 1.0))
    return Measure(value, min(low, value), max(high, value), sum(group.higher * group.lower for group in known))


def share(part: int, whole: int) -> Measure | None:
    """Return a share with Wilson's interval; None of nothing."""
    if not whole:
        return None
    low, high = _wilson(part / whole, whole)
    return Measure(part / whole, min(low, part / whole), max(high, part / whole), whole)


def _wilson(value: float, count: float) -> tuple[float, float]:
    square = SIGMAS * SIGMAS / count
    middle = (value + square / 2) / (1 + square)
    margin = SIGMAS / (1 + square) * math.sqrt(value * (1 - value) / count + square / (4 * count))
    return max(middle - margin, 0.0), min(middle + margin, 1.0)


# --- Ranks ----------------------------------------------------------------------------------------------------


def ranks(column: Column) -> Column:
    """Return the rank of each value, equal ones their mean rank."""
    _, places, counts = np.unique(column, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: Column = ends - (counts - 1) / 2
    return middle[places]


def rank_correlation(scores: Column, labels: Column) -> float | None:
    """Return Spearman's rank correlation; None of fewer than LEAST_RANKED, or if either has one value."""
    if len(scores) < LEAST_RANKED or len(np.unique(scores)) == 1 or len(np.unique(labels)) == 1:
        return None
    one, other = (rank - rank.mean() for rank in (ranks(scores), ranks(labels)))
    return float((one * other).sum() / math.sqrt((one * one).sum() * (other * other).sum()))


def joined_correlation(groups: Iterable[tuple[float, int]]) -> Measure | None:
    """Return the mean of correlations, each with its documents, by Fisher's transformation; None of none.

    The standard error of a rank correlation's transform is sqrt(1.06 / (n - 3)) (Fieller et al., Biometrika 44, 1957).
    """
    known = list(groups)
    if not known:
        return None
    weight = sum(count - 3 for _, count in known)
    bounded = [(min(max(value, -0.999999), 0.999999), count) for value, count in known]
    mean = sum(math.atanh(value) * (count - 3) for value, count in bounded) / weight
    margin = SIGMAS * math.sqrt(1.06 / weight)
    low, value, high = (math.tanh(mean + step) for step in (-margin, 0.0, margin))
    return Measure(value, low, high, sum(count for _, count in known))


# --- Sources --------------------------------------------------------------------------------------------------


class Source(NamedTuple):
    """The documents of one source in a group: how many, and mean, spread and distinct values of their scores."""

    group: str
    name: str
    documents: int
    mean: float
    deviation: float
    distinct: int


def by_source(scores: Column, groups: Sequence[str], sources: Sequence[str]) -> list[Source]:
    """Return the sources that have LEAST_OF_SOURCE documents of a group, by name."""
    rows = _rows_of(list(zip(groups, sources, strict=True)))
    return [
        Source(*name, len(own), float(own.mean()), float(own.std(ddof=1)), len(np.unique(own)))
        for name, at in sorted(rows.items())
        if len(own := scores[at]) >= LEAST_OF_SOURCE
    ]


def source_area(
    scores: Column, groups: Sequence[str], sources: Sequence[str], halves: npt.NDArray[np.bool_]
) -> Measure | None:
    """Return how well the source alone tells documents above the median of their group from those below; .5: not.

    A document is predicted by the mean of the *other half* of its source, so that no document predicts itself, and the
    documents of a source in a half all have the same prediction. Where half of all have one score, it is the median's
    side that has none else. Groups need LEAST_SOURCES of LEAST_OF_SOURCE
    documents. None without such a group.
    """
    rows = _rows_of(list(zip(groups, sources, strict=True)))
    known = {name: np.array(at) for name, at in sorted(rows.items()) if len(at) >= LEAST_OF_SOURCE}
    areas: list[Area | None] = []
    for group in sorted({name for name, _ in known}):
        named = [at for (own, _), at in known.items() if own == group and 0 < halves[at].sum() < len(at)]
        if len(named) >= LEAST_SOURCES:
            areas += _half_areas(scores, named, halves)
    return joined(areas)


def _half_areas(
    scores: Column, sources: Sequence[npt.NDArray[np.intp]], halves: npt.NDArray[np.bool_]
) -> list[Area | None]:
    middle = float(np.median(scores[np.concatenate(sources)]))
    areas = []
    for half in (True, False):
        predicted, observed = [], []
        for rows in sources:
            own, other = rows[halves[rows] == half], rows[halves[rows] != half]
            predicted.append(np.full(len(own), scores[other].mean()))
            observed.append(scores[own])
        prediction, score = np.concatenate(predicted), np.concatenate(observed)
        above = score > middle if (score > middle).any() else score >= middle
        below = score < middle if (score < middle).any() else (score <= middle) & ~above
        areas.append(area(prediction[above], prediction[below]))
    return areas


def variance_between(scores: Column, groups: Sequence[str], sources: Sequence[str]) -> float | None:
    """Return the share of the variance that the source explains, beyond chance (epsilon squared); None of one source.

    Groups are taken together by their sums of squares.
    """
    within = total = 0.0
    freedom_within = freedom_total = 0
    known = {(source.group, source.name) for source in by_source(scores, groups, sources)}
    rows = {name: at for name, at in _rows_of(list(zip(groups, sources, strict=True))).items() if name in known}
    for group in sorted({name for name, _ in rows}):
        own = [scores[at] for (name, _), at in sorted(rows.items()) if name == group]
        whole = np.concatenate(own)
        total += float(((whole - whole.mean()) ** 2).sum())
        within += sum(float(((part - part.mean()) ** 2).sum()) for part in own)
        freedom_total += len(whole) - 1
        freedom_within += len(whole) - len(own)
    if not total or freedom_within == freedom_total or not freedom_within:
        return None
    return max(0.0, 1 - (within / freedom_within) / (total / freedom_total))


def _rows_of(names: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], list[int]]:
    rows: dict[tuple[str, str], list[int]] = {}
    for at, name in enumerate(names):
        if name[1]:
            rows.setdefault(name, []).append(at)
    return rows


# --- Calibration ----------------------------------------------------------------------------------------------


def calibrated(scores: Column, labels: Column) -> Steps | None:
    """Return the ascending steps nearest to the labels by least squares; None of fewer than LEAST_CALIBRATED.

    Neighbors that do not ascend are pooled (Ayer et al., Ann. Math. Stat. 26, 1955).
    """
    if len(scores) < LEAST_CALIBRATED:
        return None
    distinct, places = np.unique(scores, return_inverse=True)
    counts = np.bincount(places).astype(np.float64)
    means = np.bincount(places, weights=labels) / counts
    pools: list[tuple[float, float, float]] = []
    for start, mean, count in zip(distinct.tolist(), means.tolist(), counts.tolist(), strict=True):
        pools.append((start, mean, count))
        while len(pools) > 1 and pools[-2][1] >= pools[-1][1]:
            (_, upper, above), (first, lower, below) = pools.pop(), pools.pop()
            pools.append((first, (lower * below + upper * above) / (below + above), below + above))
    starts, values = (np.round([pool[at] for pool in pools], DIGITS).tolist() for at in (0, 1))
    return Steps(tuple(starts), tuple(values), len(scores))
