"""Joins pairs into connected clusters in memory, by a compiled union-find."""

import numba
import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled_as

Codes = npt.NDArray[np.int64]


@compiled_as(numba.void(numba.int64[::1], numba.int64[::1], numba.int64[::1]))
def _unite(lefts, rights, lowest):
    for pair in range(lefts.size):
        a, b = lefts[pair], rights[pair]
        while lowest[a] != a:
            lowest[a] = lowest[lowest[a]]
            a = lowest[a]
        while lowest[b] != b:
            lowest[b] = lowest[lowest[b]]
            b = lowest[b]
        if a < b:
            lowest[b] = a
        else:
            lowest[a] = b
    for at in range(lowest.size):
        lowest[at] = lowest[lowest[at]]


def lowest_of_cluster(lefts: Codes, rights: Codes, count: int) -> Codes:
    """Return for each of `count` members the lowest member that pairs (lefts[i], rights[i]) connect it with."""
    lowest = np.arange(count, dtype=np.int64)
    _unite(np.ascontiguousarray(lefts, np.int64), np.ascontiguousarray(rights, np.int64), lowest)
    return lowest
