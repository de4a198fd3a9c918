"""Packs sets of shingles into half of their bytes: each hash by its leading 40 bits, in ascending order.

A set is `n`, the lower 32 bits of its n values, and a row of bits: for each value a 1, and before it as many 0 as its
upper 8 bits have grown since the last one (Elias 1974; Fano 1971). That is 4 bytes and 1 bit per value, and 36 bytes
per set. Two different n-grams share 40 bits with probability 2**-40, so the overlap of two texts of 1,000 words is one
n-gram too large in one pair of a million.
"""

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.compiled import compiled_as
from pipeline_tasks.text.near.shingles import READ_HASHES, READ_OFFSETS

Hashes = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]

KEPT_BITS = 40
WORD = 4
"""Bytes of a stored number."""

_DROPPED = np.uint64(64 - KEPT_BITS)
_LOW = np.uint64(32)
_HIGHEST = (1 << (KEPT_BITS - 32)) - 1
_READ_WORDS = numba.types.Array(numba.uint32, 1, "C", readonly=True)


def pack(hashes: Hashes, ends: Offsets) -> pa.LargeBinaryArray:
    """Return the sets `hashes[ends[i]:ends[i + 1]]`, of distinct ascending 64-bit hashes; empty ones have no bytes."""
    words = np.empty(len(hashes) + len(hashes) // 32 + (_HIGHEST // 32 + 4) * len(ends), np.uint32)
    bounds = np.zeros(len(ends), np.int64)
    filled = _pack(hashes, ends, words, bounds)
    buffers = [None, pa.py_buffer(bounds * WORD), pa.py_buffer(words[:filled])]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends) - 1, buffers)


def unpack(sets: pa.LargeBinaryArray) -> tuple[Hashes, Offsets]:
    """Return the values of packed sets, ascending 40-bit numbers: those of set i are values[ends[i]:ends[i + 1]]."""
    words, bounds = _words(sets)
    ends = np.concatenate([[0], np.cumsum(_sizes(words, bounds))])
    values = np.empty(ends[-1], np.uint64)
    _unpack(words, bounds, ends, values)
    return values, ends


def sizes(sets: pa.LargeBinaryArray) -> Offsets:
    """Return how many values each packed set has."""
    return _sizes(*_words(sets))


def _sizes(words: npt.NDArray[np.uint32], bounds: Offsets) -> Offsets:
    out = np.zeros(len(bounds) - 1, np.int64)
    filled = bounds[1:] > bounds[:-1]
    out[filled] = words[bounds[:-1][filled]]
    return out


def _words(sets: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.uint32], Offsets]:
    """Return the numbers of packed sets, and where each set begins and ends among them."""
    _, offsets, data = sets.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(sets) + 1, sets.offset * 8)
    low, high = int(bounds[0]), int(bounds[-1])
    words = np.frombuffer(data, np.uint32, (high - low) // WORD, low) if high > low else np.zeros(0, np.uint32)
    return np.require(words, requirements=["ALIGNED"]), (bounds - low) // WORD


@compiled_as(numba.int64(READ_HASHES, READ_OFFSETS, numba.uint32[::1], numba.int64[::1]))
def _pack(hashes, ends, words, bounds):
    filled = 0
    for row in range(ends.size - 1):
        bounds[row] = filled
        at, end = ends[row], ends[row + 1]
        if at == end:
            continue
        first = filled + 1
        count = 0
        last = np.uint64(0)
        for place in range(at, end):
            value = hashes[place] >> _DROPPED
            if count == 0 or value != last:
                words[first + count] = np.uint32(value)
                count += 1
                last = value
        words[filled] = np.uint32(count)
        bits = first + count
        filled = bits + (count - 1 + int(last >> _LOW)) // 32 + 1
        words[bits:filled] = np.uint32(0)
        count = 0
        for place in range(at, end):
            value = hashes[place] >> _DROPPED
            if count == 0 or value != last:
                bit = count + np.int64(value >> _LOW)
                words[bits + (bit >> 5)] |= np.uint32(1) << np.uint32(bit & 31)
                count += 1
                last = value
    bounds[ends.size - 1] = filled
    return filled


@compiled_as(numba.void(_READ_WORDS, READ_OFFSETS, READ_OFFSETS, numba.uint64[::1]))
def _unpack(words, bounds, ends, values):
    for row in range(ends.size - 1):
        at, end = ends[row], ends[row + 1]
        first = bounds[row] + 1
        bits = first + end - at
        bit = 0
        high = np.uint64(0)
        for nth in range(end - at):
            while not (words[bits + (bit >> 5)] >> np.uint32(bit & 31)) & np.uint32(1):
                bit += 1
                high += np.uint64(1)
            values[at + nth] = high << _LOW | np.uint64(words[first + nth])
            bit += 1
