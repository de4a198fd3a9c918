"""Sign documents with banded MinHash, and compare their shingle sets exactly, in compiled loops.

Permutation i of a 32-bit shingle x is p(x) = ((x ^ c) * a ^ ((x ^ c) * a >> 16)) * b modulo 2**32 with odd a and b:
a bijection, so the minimum is a true MinHash, and no intermediate can overflow its definition.
a, b and c come from splitmix64 (`hashing.stream`), so a seed pins the family; the tests freeze vectors.
The probability that two documents of Jaccard similarity s share a band is 1 - (1 - s**rows)**bands
(Broder 1997; Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, 3.4).
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled_as
from pipeline_tasks.text.base.hashing import absorb, mix, splitmix64
from pipeline_tasks.text.near.ngrams import ngram_hashes
from pipeline_tasks.text.near.shingle_sets import pack, unpack
from pipeline_tasks.text.near.shingles import READ_BYTES, READ_HASHES, READ_OFFSETS, fold_table, longest, scan, spell


@dataclass(frozen=True, slots=True)
class Family:
    """How documents are signed: n-grams of words or characters, `bands` keys of `rows` permutations, from `seed`."""

    ngram: int = 5
    bands: int = 14
    rows: int = 8
    seed: int = 1
    shingle: Literal["word", "char"] = "word"


def curve(jaccard: float, bands: int, rows: int) -> float:
    """Return the probability that two documents of this Jaccard similarity share at least one band."""
    return float(1.0 - (1.0 - jaccard**rows) ** bands)


def midpoint(bands: int, rows: int) -> float:
    """Return (1/bands)**(1/rows), the similarity about which the curve is steepest (0.719 for 14 x 8)."""
    return float((1.0 / bands) ** (1.0 / rows))


@cache
def permutations(count: int, seed: int) -> npt.NDArray[np.uint32]:
    """Return the (3, count) constants c, a, b of the permutations; a and b are odd."""
    numbers = np.array(splitmix64(seed, 3 * count), dtype=np.uint64).reshape(3, count)
    constants = (numbers >> np.uint64(32)).astype(np.uint32)
    constants[1:] |= np.uint32(1)
    return constants


@compiled_as(numba.int64(numba.uint64[::1], numba.int64, numba.uint64[::1], numba.int64[::1]))
def sort_distinct(values, count, out, tally):
    """Write the distinct `values[:count]` to `out` in ascending order; return how many.

    The values are hashes, so one scatter by leading bits leaves an almost sorted array for insertion.
    `tally` must hold the next power of two above `count`, plus one.
    """
    # Scatter: count the values of each leading bits, then place them one after the other.
    bits = 1
    while (1 << bits) < count:
        bits += 1
    shift = np.uint64(64 - bits)
    size = 1 << bits
    tally[: size + 1] = 0
    for at in range(count):
        tally[np.int64(values[at] >> shift) + 1] += 1
    for at in range(size):
        tally[at + 1] += tally[at]
    for at in range(count):
        slot = np.int64(values[at] >> shift)
        out[tally[slot]] = values[at]
        tally[slot] += 1
    # Insertion sort: every value is near its place.
    for at in range(1, count):
        value = out[at]
        back = at - 1
        while back >= 0 and out[back] > value:
            out[back + 1] = out[back]
            back -= 1
        out[back + 1] = value
    # Drop repetitions, which are neighbors now.
    kept = min(count, 1)
    for at in range(1, count):
        if out[at] != out[kept - 1]:
            out[kept] = out[at]
            kept += 1
    return kept


@compiled_as(numba.uint32(numba.uint64, numba.uint32, numba.uint32, numba.uint32))
def _permuted(shingle, xor, first, second):
    low = np.uint32(shingle & np.uint64(0xFFFFFFFF))
    product = np.uint32((low ^ xor) * first)
    return np.uint32(np.uint32(product ^ (product >> np.uint32(16))) * second)


@compiled_as(
    numba.void(
        numba.uint64[::1], numba.int64, numba.uint32[::1], numba.uint32[::1], numba.uint32[::1], numba.uint32[::1]
    )
)
def minima(shingles, count, xors, firsts, seconds, out):
    """Write the minimum of every permutation over `shingles[:count]` to `out`, four shingles a pass."""
    out[:] = np.uint32(0xFFFFFFFF)
    whole = count - count % 4
    for at in range(0, whole, 4):
        shingle0, shingle1, shingle2, shingle3 = shingles[at], shingles[at + 1], shingles[at + 2], shingles[at + 3]
        for permutation in range(out.size):
            xor, first, second = xors[permutation], firsts[permutation], seconds[permutation]
            left = min(_permuted(shingle0, xor, first, second), _permuted(shingle1, xor, first, second))
            right = min(_permuted(shingle2, xor, first, second), _permuted(shingle3, xor, first, second))
            out[permutation] = min(out[permutation], left, right)
    for at in range(whole, count):
        for permutation in range(out.size):
            value = _permuted(shingles[at], xors[permutation], firsts[permutation], seconds[permutation])
            out[permutation] = min(out[permutation], value)


@compiled_as(
    numba.int64(
        READ_BYTES,
        READ_OFFSETS,
        numba.uint32[::1],
        numba.boolean,
        numba.int64,
        numba.int64,
        numba.uint32[::1],
        numba.uint32[::1],
        numba.uint32[::1],
        numba.uint64[::1],
        numba.int64[::1],
        numba.uint64[:, ::1],
        numba.int64,
    )
)
def _sign(data, offsets, table, by_word, ngram, rows, xors, firsts, seconds, shingles, ends, keys, room):
    units = np.empty(room, np.uint64)
    starts = np.empty(room if by_word else 0, np.int64)
    stops = np.empty(room if by_word else 0, np.int64)
    hashes = np.empty(room, np.uint64)
    tally = np.empty(2 * room + 3, np.int64)
    least = np.empty(xors.size, np.uint32)
    filled = 0
    ends[0] = 0
    for doc in range(offsets.size - 1):
        # Cut the text into words or characters, and those into shingles.
        if by_word:
            count = scan(data, offsets[doc], offsets[doc + 1], table, units, starts, stops)
        else:
            count = spell(data, offsets[doc], offsets[doc + 1], table, units)
        ngrams = ngram_hashes(units, count, ngram, hashes)
        kept = sort_distinct(hashes, ngrams, shingles[filled:], tally) if ngrams else 0
        # Sign the set: the minima of the rows of a band make its key.
        if kept:
            minima(shingles[filled:], kept, xors, firsts, seconds, least)
            for band in range(keys.shape[1]):
                state = np.uint64(band + 1)
                for row in range(rows):
                    state = absorb(state, np.uint64(least[band * rows + row]))
                keys[doc, band] = mix(state)
        filled += kept
        ends[doc + 1] = filled
    return filled


def sign(texts: pa.Array, family: Family) -> tuple[pa.ListArray, pa.LargeBinaryArray]:
    """Return per text its band keys (list of int64, `bands` long) and its set of shingles (`shingle_sets.pack`).

    Both are empty where a text has fewer than `ngram` words (characters, if shingles are of characters): such texts
    have no near duplicates, only exact ones.
    """
    offsets, data = views(texts)
    constants = permutations(family.bands * family.rows, family.seed)
    by_word = family.shingle == "word"
    bytes_ = int(offsets[-1] - offsets[0])
    shingles = np.empty((bytes_ + len(texts)) // 2 + 1 if by_word else bytes_, np.uint64)
    ends = np.zeros(len(texts) + 1, np.int64)
    keys = np.zeros((len(texts), family.bands), np.uint64)
    room = longest(offsets) if by_word else int(np.diff(offsets).max(initial=0))
    filled = _sign(
        data, offsets, fold_table(), by_word, family.ngram, family.rows, *constants, shingles, ends, keys, room
    )
    signed = np.diff(ends) > 0
    bounds = np.concatenate([[0], np.cumsum(signed) * family.bands]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(bounds), pa.array(keys[signed].reshape(-1).view(np.int64)))
    return lists, pack(shingles[:filled], ends)


@compiled_as(
    numba.void(
        READ_HASHES,
        READ_OFFSETS,
        READ_OFFSETS,
        READ_HASHES,
        READ_OFFSETS,
        READ_OFFSETS,
        numba.float64[::1],
    )
)
def _jaccard(left, left_ends, left_rows, right, right_ends, right_rows, out):
    for pair in range(out.size):
        at, end = left_ends[left_rows[pair]], left_ends[left_rows[pair] + 1]
        other, other_end = right_ends[right_rows[pair]], right_ends[right_rows[pair] + 1]
        total = end - at + other_end - other
        both = 0
        while at < end and other < other_end:  # merge the two sorted sets
            hash_, other_hash = left[at], right[other]
            both += hash_ == other_hash
            at += hash_ <= other_hash
            other += other_hash <= hash_
        out[pair] = both / (total - both) if total else 0.0


def jaccard(
    left: pa.Array, left_rows: npt.NDArray[np.int64], right: pa.Array, right_rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the Jaccard similarity of packed sets `left[left_rows[i]]` and `right[right_rows[i]]` for every i."""
    out = np.zeros(len(left_rows), np.float64)
    first, second = unpack(left), unpack(right)
    _jaccard(*first, np.asarray(left_rows, np.int64), *second, np.asarray(right_rows, np.int64), out)
    return out
