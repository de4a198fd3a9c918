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


def splitmix64(seed: int, count: int) -> list[int]:
    """Return `count` 64-bit numbers of the splitmix64 generator started at `seed`."""
    numbers = []
    for step in range(1, count + 1):
        value = (seed + step * GOLDEN) & MASK
        value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
        numbers.append(value ^ (value >> 31))
    return numbers
