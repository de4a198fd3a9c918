"""Ranks addresses of pages: the shorter first, those of equal length in an order that follows from them alone."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.eight_bytes import hash_bytes

HASH_BITS, LONGEST = 48, 0xFFFE
"""A rank is the length of an address in 16 bits, at most LONGEST, then bits of its hash."""


def address_ranks(addresses: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a rank for each address (no nulls); equal ones have the same."""
    ranks = np.empty(len(addresses), np.uint64)
    _rank(*views(addresses), ranks)
    return ranks


@compiled
def _rank(offsets, data, ranks):
    for row in range(len(ranks)):
        length = np.uint64(min(offsets[row + 1] - offsets[row], LONGEST))
        shortened = hash_bytes(data, offsets[row], offsets[row + 1]) >> np.uint64(64 - HASH_BITS)
        ranks[row] = (length << np.uint64(HASH_BITS)) | shortened
