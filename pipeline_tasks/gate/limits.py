"""Computes exact confidence limits of shares, counts and ranks, and conservative ones of means and distances.

Every function has a `tail`: the probability with which the truth lies beyond the limit of one side.
"""

from collections.abc import Callable
from functools import lru_cache
from math import cos, inf, log, pi, sin, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

NEARLY_NORMAL = 1_000
"""Degrees of freedom from which on Student's t is taken for normal."""

CACHED_LIMITS = 1024
"""Limits of each kind that a process caches: facts of a stage and its bounds request each three times on average."""

STEPS = 60
"""Halvings of an interval: more than a float has bits to tell apart."""


@lru_cache(maxsize=CACHED_LIMITS)
def share_limits(part: int, whole: int, tail: float) -> tuple[float, float]:
    """Return the limits of Clopper and Pearson (1934) of a share of which `part` of `whole` rows were seen.

    The lower one is the share of which so many rows or more are seen with probability `tail`; the upper one that of
    which so many or fewer are. They are exact: no approximation by a normal distribution is involved.
    """
    low = 0.0 if part == 0 else _crossing(lambda share: 1 - binomial_cdf(part - 1, whole, share), tail)
    high = 1.0 if part == whole else _crossing(lambda share: -binomial_cdf(part, whole, share), -tail)
    return low, high


def binomial_cdf(part: int, whole: int, share: float) -> float:
    """Return the probability that at most `part` of `whole` rows are of a kind that has `share`."""
    if part >= whole or share <= 0:
        return 1.0
    if part < 0 or share >= 1:
        return 0.0
    return min(1.0, float(_chances(whole, share)[: part + 1].sum()))


def _chances(whole: int, share: float) -> "np.ndarray[Any, Any]":
    """Return the probability of each count from 0 to `whole`."""
    counts = np.arange(whole + 1)
    chances: np.ndarray[Any, Any] = np.exp(_log_choose(whole) + counts * log(share) + counts[::-1] * np.log1p(-share))
    return chances


@lru_cache(maxsize=64)
def _log_choose(whole: int) -> "np.ndarray[Any, Any]":
    factorials = _log_factorials(whole)
    logs: np.ndarray[Any, Any] = factorials[whole] - factorials - factorials[::-1]
    return logs


@lru_cache(maxsize=64)
def _log_factorials(most: int) -> "np.ndarray[Any, Any]":
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


def _crossing(rising: Callable[[float], float], level: float, low: float = 0.0, high: float = 1.0) -> float:
    """Return where a rising function reaches `level`, between `low` and `high`."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < level else (low, middle)
    return (low + high) / 2


@lru_cache(maxsize=CACHED_LIMITS)
def count_limits(count: int, tail: float) -> tuple[float, float]:
    """Return the exact limits of the mean of a Poisson distribution of which `count` was seen (Garwood, 1936)."""
    most = count + 20 * sqrt(count + 1) + 20  # over ten standard deviations away
    low = 0.0 if count == 0 else _crossing(lambda mean: 1 - _poisson_cdf(count - 1, mean), tail, 0.0, most)
    return low, _crossing(lambda mean: -_poisson_cdf(count, mean), -tail, 0.0, most)


def _poisson_cdf(count: int, mean: float) -> float:
    counts = np.arange(count + 1)
    logs = counts * log(mean) - mean - _log_factorials(count)
    return min(1.0, float(np.exp(logs).sum()))


def score_margin(part: int, whole: int, tail: float) -> float:
    """Return how far a share of any number of rows may be from the truth: the farther end of Wilson's interval (1927).

    It is an approximation that is right for few rows, too, and takes no time for many.
    """
    share, square = part / whole, normal_quantile(tail) ** 2
    half = sqrt(square * (share * (1 - share) / whole + square / (4 * whole * whole)))
    return (abs(0.5 - share) * square / whole + half) / (1 + square / whole)


@lru_cache(maxsize=16)
def normal_quantile(tail: float) -> float:
    """Return the value that a standard normal variable exceeds with probability `tail`."""
    return NormalDist().inv_cdf(1 - tail)


@lru_cache(maxsize=CACHED_LIMITS)
def rank_limits(rows: int, share: float, tail: float) -> tuple[int, int]:
    """Return the ranks (from 1) of the sorted values between which the quantile of `share` lies; 0, rows + 1: open.

    A value of a rank is below the quantile as often as a binomial count says, whatever the distribution (David and
    Nagaraja, Order Statistics, 2003, section 7.1).
    """
    cdf = np.cumsum(_chances(rows, share))[:-1]
    return int(np.searchsorted(cdf, tail, side="right")), int(np.searchsorted(cdf, 1 - tail)) + 1


def mean_margin(variance: float, rows: int, tail: float) -> float:
    """Return how far a mean of rows may be from the truth by Student's t; open (infinite) for fewer than two rows.

    It is exact for values of a normal distribution only. No limit holds for every distribution without a bound on its
    values (Bahadur and Savage, 1956); suites therefore only warn of means of such columns. From `NEARLY_NORMAL` rows on
    the quantile no longer changes in its third digit, and is not computed again.
    """
    return t_quantile(min(rows - 1, NEARLY_NORMAL), tail) * sqrt(variance / rows) if rows > 1 else inf


@lru_cache(maxsize=256)
def t_quantile(degrees: int, tail: float) -> float:
    """Return the value that Student's t exceeds with probability `tail`."""
    return sqrt(degrees) * _tangent(_crossing(lambda angle: _t_within(angle, degrees), 1 - 2 * tail, 0.0, pi / 2))


def _tangent(angle: float) -> float:
    return sin(angle) / cos(angle)


def _t_within(angle: float, degrees: int) -> float:
    """Return the probability of |t| < sqrt(degrees) tan(angle): Abramowitz and Stegun (1964), 26.7.3 and 26.7.4."""
    square, term, total = cos(angle) ** 2, 1.0, 0.0
    odd = degrees % 2
    for factor in range(1 + odd, degrees - 1 + odd, 2):
        total += term
        term *= square * factor / (factor + 1)
    if not odd:
        return sin(angle) * (total + term if degrees > 1 else 0.0)
    return (angle + sin(angle) * cos(angle) * total) * 2 / pi


def bounded_margin(rows: int, tail: float) -> float:
    """Return how far a mean of values between 0 and 1 may be from the truth (Hoeffding, 1963, theorem 1)."""
    return sqrt(log(1 / tail) / (2 * rows))


def distribution_margin(rows: int, tail: float) -> float:
    """Return how far a distribution of rows is from the truth at most, anywhere.

    The inequality of Dvoretzky, Kiefer and Wolfowitz with the constant of Massart (Ann. Probab. 18, 1990).
    """
    return sqrt(log(2 / tail) / (2 * rows))


def distance_floor(bins: int, rows: int, others: int, tail: float) -> float:
    """Return the population stability index that two samples of one population stay below.

    Times the harmonic size of the samples it is a chi-squared variable with a degree of freedom less than there are
    bins (Yurdakul, 2018), whose tail Laurent and Massart (2000, lemma 1) bound from above.
    """
    degrees, x = bins - 1, log(1 / tail)
    return (1 / rows + 1 / others) * (degrees + 2 * sqrt(degrees * x) + 2 * x) if degrees else 0.0
