"""Hashes whole texts."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.eight_bytes import hash_bytes


def hash_texts(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each text (no nulls); equal ones have the same on every machine and release."""
    hashes = np.empty(len(texts), np.uint64)
    _hash(*views(texts), hashes)
    return hashes


@compiled
def _hash(offsets, data, hashes):
    for row in range(len(hashes)):
        hashes[row] = hash_bytes(data, offsets[row], offsets[row + 1])
