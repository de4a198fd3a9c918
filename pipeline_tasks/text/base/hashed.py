"""Hashes whole texts."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
from xxhash import xxh3_128_hexdigest

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.eight_bytes import hash_bytes

pc: Any = pyarrow.compute


def text_keys(texts: pa.Array) -> pa.Array:
    """Return 32 hex digits for each text, null for a null: XXH3-128, seed 0, of its bytes as they are."""
    offsets, data = views(texts)
    whole = memoryview(data.data)
    keys = pa.array([xxh3_128_hexdigest(whole[start:end]) for start, end in itertools.pairwise(offsets.tolist())])
    return pc.if_else(pc.is_valid(texts), keys, pa.scalar(None, pa.string())) if len(texts) else keys.cast(pa.string())


def hash_texts(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each text (no nulls); equal ones have the same on every machine and release."""
    hashes = np.empty(len(texts), np.uint64)
    _hash(*views(texts), hashes)
    return hashes


@compiled
def _hash(offsets, data, hashes):
    for row in range(len(hashes)):
        hashes[row] = hash_bytes(data, offsets[row], offsets[row + 1])
