"""Hash 64-bit words the same way on every machine and release, as the histories of dedup and decontamination need.

All arithmetic is modulo 2**64 by definition, so nothing can overflow. The constants are pinned;
`tests/text/near/test_minhash.py` freezes vectors, because saved signatures outlive any release.
"""

import numba
import numpy as np

from pipeline_tasks.text.base.compiled import compiled_as

MASK = 0xFFFFFFFFFFFFFFFF
GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, rounded to odd: the increment of splitmix64

_GOLDEN = np.uint64(GOLDEN)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)  # the multipliers of splitmix64 (Steele, Lea, Flood, OOPSLA 2014; variant 13)
_SECOND = np.uint64(0x94D049BB133111EB)
_BASE = np.uint64(0xD1342543DE82EF95)  # odd multiplier of good spectral quality (Steele, Vigna 2021)


@compiled_as(numba.uint64(numba.uint64))
def mix(value):
    """Return the splitmix64 finalizer of `value`: a bijection whose every output bit depends on every input bit."""
    value = (value ^ (value >> np.uint64(30))) * _FIRST
    value = (value ^ (value >> np.uint64(27))) * _SECOND
    return value ^ (value >> np.uint64(31))


@compiled_as(numba.uint64(numba.uint64, numba.uint64))
def absorb(state, value):
    """Return `state` with one code point or one hash taken in; finish with `mix`."""
    state = (state ^ value) * _GOLDEN
    return state ^ (state >> np.uint64(32))


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


def splitmix64(seed: int, count: int) -> list[int]:
    """Return `count` 64-bit numbers of the splitmix64 generator started at `seed`."""
    numbers = []
    for step in range(1, count + 1):
        value = (seed + step * GOLDEN) & MASK
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
        numbers.append(value ^ (value >> 31))
    return numbers
