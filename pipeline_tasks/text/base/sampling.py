"""Draw a uniform number per document that depends only on the seed and the id, for samples that can be repeated."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

DRAW_SPAN = 1 << 62
"""Draws are whole numbers in [0, DRAW_SPAN): 62 bits, so that DRAW_SPAN itself fits in a signed 64-bit column."""


def uniform_draws(ids: pa.Array, seed: int) -> npt.NDArray[np.int64]:
    """Return one draw in [0, DRAW_SPAN) per id: the upper 62 bits of XXH3-64 of the id's UTF-8 bytes under `seed`.

    A null id draws as the empty text. Any two seeds give unrelated draws (XXH3 is seeded, not salted).
    """
    low = seed & 0xFFFFFFFFFFFFFFFF
    numbers = (xxhash.xxh3_64_intdigest((document or "").encode(), low) >> 2 for document in ids.to_pylist())
    return np.fromiter(numbers, dtype=np.int64, count=len(ids))
