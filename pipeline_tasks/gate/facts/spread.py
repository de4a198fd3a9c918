"""Computes facts of a shuffled order: how far shards, and parts of them, are from the distribution of all rows.

An honest shuffle is a random one: how many rows of a group a shard has is a hypergeometric number. Its tail is bounded
by exp(-n KL(q, p)), for n rows of which a share of q is of a group that has a share of p in all (Hoeffding, 1963,
theorem 1 and section 6). The bound holds for any n and p, so that neither a tiny shard nor a rare group is an alarm,
and it is divided by the number of comparisons (Bonferroni).
"""

from collections.abc import Mapping
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline_tasks.gate.estimates import Facts, exact
from pipeline_tasks.gate.facts.subject import Family, Subject

CHANCE = 1e-6
"""Probability that an honest shuffle has a drift above 0: once in a million gates, for each fact."""

STEPS = 50
"""Halvings of an interval of shares."""

_Floats = npt.NDArray[np.float64]


def measure_spread(subject: Subject) -> Facts:
    """Return gap and drift of each column that the stage spreads, among shards and within them."""
    facts: Facts = {}
    for name in subject.card.spread:
        counts = subject.manifest.metrics.get("spread", {}).get(name)
        for where, gap_and_drift in (("shard", _among_shards), ("position", _within_shards)):
            gap, drift = gap_and_drift(counts) if counts else (None, None)
            facts |= {f"{name}_{where}_gap": exact(gap), f"{name}_{where}_drift": exact(drift)}
    return facts


def _among_shards(counts: Mapping[str, Any]) -> tuple[float, float]:
    return _distances(_table(counts["shards"]))


def _within_shards(counts: Mapping[str, Any]) -> tuple[float, float]:
    """Return gap and drift of tenths, over all shards; and the drift, if it is larger, of half a shard."""
    gap, drift = _distances(_table(counts["tenths"]))
    return gap, max(drift, _distances(_table(counts["first_halves"]), _table(counts["shards"]))[1])


def _table(rows: object) -> _Floats:
    return np.asarray(rows, np.float64)


def _distances(samples: _Floats, wholes: _Floats | None = None) -> tuple[float, float]:
    """Return the largest difference of a group's share in a sample and in its whole; and that beyond chance.

    Without `wholes`, all samples together are the whole of each.
    """
    if wholes is None:
        wholes = np.broadcast_to(samples.sum(axis=0), samples.shape)
    present = samples.sum(axis=1) > 0
    samples, wholes = samples[present], wholes[present]
    if not samples.size:
        return 0.0, 0.0
    rows = samples.sum(axis=1, keepdims=True)
    seen, expected = samples / rows, wholes / wholes.sum(axis=1, keepdims=True)
    gaps = np.abs(seen - expected)
    least = log(2 * samples.size / CHANCE) / np.broadcast_to(rows, seen.shape)
    beyond = divergence(seen, expected) > least
    if not beyond.any():
        return float(gaps.max()), 0.0
    allowed = _allowed(seen[beyond], expected[beyond], least[beyond])
    return float(gaps.max()), float((gaps[beyond] - allowed).max())


def divergence(seen: _Floats, expected: _Floats) -> _Floats:
    """Return the divergence of Kullback and Leibler of two shares of one kind of rows and all others, in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(seen > 0, seen * np.log(seen / expected), 0.0)
        other = np.where(seen < 1, (1 - seen) * np.log((1 - seen) / (1 - expected)), 0.0)
    total: _Floats = own + other
    return total


def _allowed(seen: _Floats, expected: _Floats, least: _Floats) -> _Floats:
    """Return how far, on the side of `seen`, chance may take shares: to where the divergence is `least`."""
    near, far = expected.copy(), seen.copy()
    for _ in range(STEPS):
        middle = (near + far) / 2
        is_within = divergence(middle, expected) <= least
        near, far = np.where(is_within, middle, near), np.where(is_within, far, middle)
    distances: _Floats = np.abs(near - expected)
    return distances


SPREAD = Family(
    measure_spread,
    {
        "<column>_shard_gap": "largest difference between the share of a group of rows in a shard and in all rows",
        "<column>_shard_drift": "the same beyond what chance gives once in a million shuffles; 0 for an honest one",
        "<column>_position_gap": "largest difference between the share of a group in a tenth of the shards and in all",
        "<column>_position_drift": (
            "the same beyond what chance gives once in a million shuffles, or that of the first half of one shard"
        ),
    },
)
