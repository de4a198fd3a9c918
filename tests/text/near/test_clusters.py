"""Clusters: the connected components of pairs, each with its lowest member."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.near.clusters import lowest_of_cluster


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=30))
def test_clusters_are_the_connected_components(pairs: list[tuple[int, int]]) -> None:
    lefts, rights = np.array([left for left, _ in pairs], np.int64), np.array([right for _, right in pairs], np.int64)
    lowest = list(range(16))
    for _ in range(16):
        for left, right in pairs:
            lowest[left] = lowest[right] = min(lowest[left], lowest[right])
    assert lowest_of_cluster(lefts, rights, 16).tolist() == lowest


@pytest.mark.parametrize("step", [1, -1])
def test_a_long_chain_is_one_cluster(step: int) -> None:
    members = np.arange(10_000)[::step]
    assert lowest_of_cluster(members[:-1], members[1:], len(members)).tolist() == [0] * 10_000
