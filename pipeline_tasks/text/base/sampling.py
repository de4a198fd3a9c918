"""Gives each document a fair, repeatable draw: the same number for the same seed and id, anywhere, at any time."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

DRAW_SPAN = 1 << 62
"""Draws are whole numbers in [0, SPAN): 62 bits, so that SPAN itself still fits in a signed 64-bit column."""


def uniform_draws(ids: pa.Array, seed: int) -> npt.NDArray[np.int64]:
    """Return one draw in [0, SPAN) per id: the upper 62 bits of XXH3-64 of the id's UTF-8 bytes under `seed`.

    A null id draws as the empty text. Any two seeds give unrelated draws (XXH3 is seeded, not salted).
    """
    low = seed & 0xFFFFFFFFFFFFFFFF
    numbers = (xxhash.xxh3_64_intdigest((one or "").encode(), low) >> 2 for one in ids.to_pylist())
    return np.fromiter(numbers, dtype=np.int64, count=len(ids))
