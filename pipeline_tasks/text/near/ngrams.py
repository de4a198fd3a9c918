"""Hash runs of words, for the signatures and indexes that histories of dedup and decontamination keep."""

import numba
import numpy as np

from pipeline_tasks.text.base.compiled import compiled_as
from pipeline_tasks.text.base.hashing import GOLDEN, mix

_GOLDEN = np.uint64(GOLDEN)
_BASE = np.uint64(0xD1342543DE82EF95)  # odd multiplier of good spectral quality (Steele, Vigna 2021)


@compiled_as(numba.int64(numba.uint64[::1], numba.int64, numba.int64, numba.uint64[::1]))
def ngram_hashes(words, count, n, out):
    """Write the hash of every run of `n` words to `out` in order; return how many there are (0 if `count < n`).

    A polynomial over the word hashes, rolled, so that any `n` costs the same; `n` is mixed in, so
    that runs of different length have unrelated hashes.
    """
    if n < 1 or count < n:
        return 0
    power = np.uint64(1)
    for _ in range(n - 1):
        power *= _BASE
    rolled = np.uint64(0)
    for at in range(n):
        rolled = rolled * _BASE + words[at]
    salt = np.uint64(n) * _GOLDEN
    out[0] = mix(rolled ^ salt)
    for at in range(n, count):
        rolled = (rolled - words[at - n] * power) * _BASE + words[at]
        out[at - n + 1] = mix(rolled ^ salt)
    return count - n + 1
