"""Which members of a band are compared: all that are not connected, sooner or later, and none twice."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
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
    bands, compared = band(points, known), list[tuple[int, int, float]]()
    for turn in range(200):
        results = Results(
            np.array([0, len(compared)]),
            np.array([member for member, _, _ in compared], np.int64),
            np.array([center for _, center, _ in compared], np.int64),
            np.array([distance for _, _, distance in compared], np.float64),
            np.array([distance <= 1 - THRESHOLD for _, _, distance in compared], bool),
        )
        members, centers, left = choose(bands, results, pairs=pairs, reach=reach, star=turn == 0)
        if not len(members):
            return [(member, center) for member, center, _ in compared], not left.any()
        compared += [
            (member, center, abs(points[member] - points[center]))
            for member, center in zip(members.tolist(), centers.tolist(), strict=True)
        ]
    return [(member, center) for member, center, _ in compared], False


@given(
    members=st.lists(st.tuples(st.floats(0, 3), st.integers(-1, 2)), min_size=2, max_size=12),
    pairs=st.sampled_from([1, 3, 1000]),
    metric=st.booleans(),
)
def test_what_is_not_connected_was_compared(members: list[tuple[float, int]], pairs: int, metric: bool) -> None:
    points, known = [left for left, _ in members], [label for _, label in members]
    compared, settled = settle(points, known, pairs, 1 - THRESHOLD if metric else float("inf"))
    assert settled
    assert [left for left, _ in compared if known[left] >= 0] == [], "only new members start comparisons"
    done = {frozenset(left) for left in compared}
    assert len(done) == len(compared), "nothing is compared twice"
    parent = list(range(len(points)))

    def root(at: int) -> int:
        return at if parent[at] == at else root(parent[at])

    for left, right in itertools.combinations(range(len(points)), 2):
        near = abs(points[left] - points[right]) <= 1 - THRESHOLD
        if (near and frozenset((left, right)) in done) or (known[left] == known[right] >= 0):
            parent[root(left)] = root(right)
    for left, right in itertools.combinations(range(len(points)), 2):
        fresh = known[left] < 0 or known[right] < 0
        if fresh and abs(points[left] - points[right]) <= 1 - THRESHOLD:
            assert root(left) == root(right)


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
