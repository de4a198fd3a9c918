"""Samples mixtures as whole sequences of each group, none above what its group may give.

A mixture is a row of numbers of sequences with a fixed sum. Shares are drawn from Dirichlet distributions: of the first
round around points between the prior and equal shares, some narrow and some wide, and of later rounds around the best.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from refinery_ablate.mixture.search_plan import Counts

Shares = npt.NDArray[np.float64]

WIDE = (0.5, 4.0)
"""Concentration of the first round, by group: below 1 most sequences are of few groups, above 1 all have some."""

NARROW = (8.0, 32.0)
"""Concentration of later rounds, by group."""

EXPLORED = 0.1
"""Share of the prior in the center of later rounds: a group of which the best has nothing is tried again."""

TINY = 1e-12


def around_prior(prior: Shares, most: Counts, total: int, count: int, seed: int) -> Iterator[Counts]:
    """Yield mixtures of `total` sequences for a first round."""
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        toward = rng.uniform()
        center = (1 - toward) * prior + toward / len(prior)
        yield _drawn(rng, center, WIDE, most, total)


def around_best(best: Shares, prior: Shares, most: Counts, total: int, count: int, seed: int) -> Iterator[Counts]:
    """Yield mixtures of `total` sequences for a later round: the best one first."""
    if count:
        yield apportioned(best, total, most)
    center = (1 - EXPLORED) * best + EXPLORED * prior
    for number in range(count - 1):
        yield _drawn(np.random.default_rng([seed, number]), center, NARROW, most, total)


def _drawn(rng: np.random.Generator, center: Shares, bounds: tuple[float, float], most: Counts, total: int) -> Counts:
    low, high = np.log(bounds)
    concentration = len(center) * np.exp(rng.uniform(low, high))
    return apportioned(rng.dirichlet(np.maximum(center * concentration, TINY)), total, most)


def without(prior: Shares, most: Counts, total: int, group: int) -> Counts | None:
    """Return the prior without a group; None if the others cannot fill its place."""
    others = np.where(np.arange(len(prior)) == group, 0, most)
    return None if others.sum() < total or prior[group] >= 1 else apportioned(prior, total, others)


# --- Limits -------------------------------------------------------------------------------------------------------


def within(shares: Shares, most: Shares) -> Shares:
    """Return shares with the sum 1, none above its most: what is above goes to the others in their proportion.

    Where the others have no share, it goes to those with room, by that. `most` has a sum of at least 1.
    """
    limited = np.minimum(most, 1.0)
    is_full = np.zeros(len(shares), np.bool_)
    while True:
        rest = 1.0 - limited[is_full].sum()
        parts = np.where(is_full, 0.0, shares)
        if parts.sum() <= TINY:
            parts = np.where(is_full, 0.0, limited)
        scaled = parts * (rest / parts.sum()) if parts.sum() > 0 else parts
        over = ~is_full & (scaled > limited)
        if not over.any():
            return np.where(is_full, limited, scaled)
        is_full |= over


def apportioned(shares: Shares, total: int, most: Counts) -> Counts:
    """Return whole numbers with the sum `total` in the proportion of shares, none above its most.

    Largest remainders come first. ValueError if `most` has not so many.
    """
    if most.sum() < total:
        message = f"groups give {most.sum()} sequences at most, and a mixture has {total}"
        raise ValueError(message)
    ideal = within(shares, most / total) * total
    counts = np.minimum(np.floor(ideal + TINY).astype(np.int64), most)
    while (missing := total - int(counts.sum())) > 0:
        room = np.flatnonzero(counts < most)
        chosen = room[np.argsort(counts[room] - ideal[room], kind="stable")][:missing]
        counts[chosen] += 1
    return counts
