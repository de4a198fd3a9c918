"""Join pairs into connected clusters in memory, by a compiled union-find."""

import numba
import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled_as, inlined

Codes = npt.NDArray[np.int64]


@inlined
def _root(lowest, member):
    """Return the lowest member known of a cluster, and shorten the way to it."""
    while lowest[member] != member:
        lowest[member] = lowest[lowest[member]]
        member = lowest[member]
    return member


@compiled_as(numba.void(numba.int64[::1], numba.int64[::1], numba.int64[::1]))
def _unite(lefts, rights, lowest):
    # Hang the higher root of each pair below the lower one.
    for pair in range(lefts.size):
        left, right = _root(lowest, lefts[pair]), _root(lowest, rights[pair])
        if left < right:
            lowest[right] = left
        else:
            lowest[left] = right
    # A member's parent is lower than the member, so one pass in order reaches every root.
    for member in range(lowest.size):
        lowest[member] = lowest[lowest[member]]


def lowest_of_cluster(lefts: Codes, rights: Codes, count: int) -> Codes:
    """Return for each of `count` members the lowest member that pairs (lefts[i], rights[i]) connect it with."""
    lowest = np.arange(count, dtype=np.int64)
    _unite(np.ascontiguousarray(lefts, np.int64), np.ascontiguousarray(rights, np.int64), lowest)
    return lowest
