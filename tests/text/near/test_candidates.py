"""Which members of a band are compared: all that are not connected, sooner or later, and none twice."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_tasks.text.near.candidates import Bands, Results, choose

THRESHOLD = 0.6


def band(points: list[float], known: list[int]) -> Bands:
    """One band of members on a line; `known` is the cluster of those that are old, -1 for new ones."""
    first = {label: at for at, label in reversed(list(enumerate(known))) if label >= 0}
    classes = [first.get(label, at) for at, label in enumerate(known)]
    return Bands(np.array([0, len(points)]), np.array(classes), np.array([label >= 0 for label in known]))


def settle(points: list[float], known: list[int], pairs: int, reach: float) -> tuple[list[tuple[int, int]], bool]:
    """Compare what is chosen, by distance on the line, until nothing is; return the comparisons, and whether all."""
    bands, told = band(points, known), list[tuple[int, int, float]]()
    for turn in range(200):
        results = Results(
            np.array([0, len(told)]),
            np.array([one for one, _, _ in told], np.int64),
            np.array([other for _, other, _ in told], np.int64),
            np.array([away for _, _, away in told], np.float64),
            np.array([away <= 1 - THRESHOLD for _, _, away in told], bool),
        )
        members, centers, left = choose(bands, results, pairs=pairs, reach=reach, star=turn == 0)
        if not len(members):
            return [(one, other) for one, other, _ in told], not left.any()
        told += [
            (one, other, abs(points[one] - points[other]))
            for one, other in zip(members.tolist(), centers.tolist(), strict=True)
        ]
    return [(one, other) for one, other, _ in told], False


@settings(max_examples=200, deadline=None)
@given(
    members=st.lists(st.tuples(st.floats(0, 3), st.integers(-1, 2)), min_size=2, max_size=12),
    pairs=st.sampled_from([1, 3, 1000]),
    metric=st.booleans(),
)
def test_what_is_not_connected_was_compared(members: list[tuple[float, int]], pairs: int, metric: bool) -> None:
    points, known = [one for one, _ in members], [label for _, label in members]
    compared, settled = settle(points, known, pairs, 1 - THRESHOLD if metric else float("inf"))
    assert settled
    assert all(known[one] < 0 for one, _ in compared), "only new members ask"
    done = {frozenset(one) for one in compared}
    assert len(done) == len(compared), "nothing is compared twice"
    parent = list(range(len(points)))

    def root(at: int) -> int:
        return at if parent[at] == at else root(parent[at])

    for one, other in itertools.combinations(range(len(points)), 2):
        near = abs(points[one] - points[other]) <= 1 - THRESHOLD
        if (near and frozenset((one, other)) in done) or (known[one] == known[other] >= 0):
            parent[root(one)] = root(other)
    for one, other in itertools.combinations(range(len(points)), 2):
        fresh = known[one] < 0 or known[other] < 0
        if fresh and abs(points[one] - points[other]) <= 1 - THRESHOLD:
            assert root(one) == root(other)


@pytest.mark.parametrize("old", [0, 900])
def test_a_template_takes_one_comparison_per_new_member(old: int) -> None:
    compared, settled = settle([0.0] * 1000, [0] * old + [-1] * (1000 - old), 20_000, 1 - THRESHOLD)
    assert settled
    assert len(compared) == 1000 - max(old, 1)


def test_members_far_from_the_center_are_not_compared_with_those_near_to_it() -> None:
    draws = random.Random(1)
    near, far = [draws.uniform(0, 0.1) for _ in range(500)], [3.0 + draws.uniform(0, 0.1) for _ in range(500)]
    compared, settled = settle([*near, *far], [-1] * 1000, 20_000, 1 - THRESHOLD)
    assert settled
    assert len(compared) < 3 * 1000
