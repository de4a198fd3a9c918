"""Sketch texts by every m-th word n-gram, and sieve texts by their sketches alone.

A run of n + m - 1 words has a sampled n-gram wherever it is, so a text that shares such a run with a reference is
never missed; a run of n + k m - 1 words has k of them, m words apart. All n-grams of the reference
are looked up, so only the texts are sampled, and their sketches also serve references of later runs.
"""

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import NEWLINE, SPACE
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled_as, inlined
from pipeline_tasks.text.near.ngrams import ngram_hashes
from pipeline_tasks.text.near.shingles import READ_BYTES, READ_OFFSETS, fold_table, scan

Prints = npt.NDArray[np.uint32]
READ_PRINTS = numba.types.Array(numba.uint32, 1, "C", readonly=True)
READ_ENDS = numba.types.Array(numba.int64, 1, "C", readonly=True)

PIECE = 1 << 20
"""Bytes of a text that are cut into words at a time, so that memory does not grow with the longest text."""

FREE, MEMBER, ALONE = 0, 1, 2
"""Kinds of a slot: free, a print that is evidence near another print, a print that is evidence by itself."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """The prints of a reference: a bit set, an open-addressing table, and the kind of each slot.

    Two members are evidence together if they are at most `near` samples apart.
    """

    bits: npt.NDArray[np.uint64]
    slots: Prints
    kinds: npt.NDArray[np.uint8]
    near: int


def prints_of(hashes: npt.NDArray[np.uint64]) -> Prints:
    """Return the leading 32 bits of n-gram hashes: what sketches hold."""
    return (hashes >> np.uint64(32)).astype(np.uint32)


@compiled_as(numba.int64(READ_BYTES, numba.int64, numba.int64))
def _piece(data, at, end):
    """Return where the piece of data[at:end] ends that begins at `at`: at white space, so that no word is cut."""
    stop = min(at + PIECE, end)
    while stop < end and data[stop] != SPACE and data[stop] != NEWLINE:
        stop += 1
    return stop


@compiled_as(numba.int64(READ_BYTES, READ_OFFSETS))
def _longest(data, offsets):
    """Return the bytes of the longest piece of any text."""
    most = 0
    for doc in range(offsets.size - 1):
        at, end = offsets[doc], offsets[doc + 1]
        while at < end:
            stop = _piece(data, at, end)
            most, at = max(most, stop - at), stop
    return most


@compiled_as(
    numba.int64(
        READ_BYTES,
        READ_OFFSETS,
        numba.uint32[::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.uint32[::1],
        numba.int64[::1],
    )
)
def _sample(data, offsets, table, gram, every, room, prints, ends):
    """Walk each text piece by piece; the last words of a piece begin the n-grams of the next."""
    words = np.empty(room + gram, np.uint64)
    starts = np.empty(room + gram, np.int64)
    stops = np.empty(room + gram, np.int64)
    ngrams = np.empty(room + gram, np.uint64)
    filled = 0
    ends[0] = 0
    for doc in range(offsets.size - 1):
        at, end = offsets[doc], offsets[doc + 1]
        carried, first = 0, 0  # words of the piece before, and the number in the text of the first of them
        while at < end:
            stop = _piece(data, at, end)
            count = carried + scan(data, at, stop, table, words[carried:], starts[carried:], stops[carried:])
            for place in range(-first % every, ngram_hashes(words, count, gram, ngrams), every):
                prints[filled] = np.uint32(ngrams[place] >> np.uint64(32))
                filled += 1
            left = min(count, gram - 1)
            words[:left] = words[count - left : count].copy()
            carried, first, at = left, first + count - left, stop
        ends[doc + 1] = filled
    return filled


def sample(texts: pa.Array, gram: int, every: int) -> pa.ListArray:
    """Return per text the prints of its n-grams at words 0, `every`, 2 `every`, ... (list of uint32, in that order).

    A null, and a text of fewer than `gram` words, has none.
    """
    offsets, data = views(texts)
    most = int(offsets[-1] - offsets[0]) // 2 // every + 2 * len(offsets)  # a word and its gap take two bytes or more
    prints, ends = np.empty(most, np.uint32), np.zeros(len(offsets), np.int64)
    room = _longest(data, offsets) // 2 + 2
    filled = _sample(data, offsets, fold_table(), gram, every, room, prints, ends)
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(prints[:filled]))


@inlined
def _bit_of(bits, print_):
    """Return the word of a bit array and the bit in it of a print."""
    place = np.uint64(print_) & np.uint64(bits.size * 64 - 1)
    return place >> np.uint64(6), np.uint64(1) << (place & np.uint64(63))


@inlined
def _slot_of(slots, kinds, print_):
    """Return the slot of a table that has a print, or the free one where it would be."""
    mask = np.uint64(slots.size - 1)
    slot = np.uint64(print_) & mask
    while kinds[slot] != FREE and slots[slot] != print_:
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled_as(numba.void(numba.uint32[::1], numba.uint8[::1], numba.uint64[::1], numba.uint32[::1], numba.uint8[::1]))
def _fill(prints, marks, bits, slots, kinds):
    for at in range(prints.size):
        word, bit = _bit_of(bits, prints[at])
        bits[word] |= bit
        slot = _slot_of(slots, kinds, prints[at])
        slots[slot] = prints[at]
        kinds[slot] |= marks[at]


def sieve_of(members: Prints, lone: Prints, near: int) -> Sieve:
    """Return the sieve of a reference: `members` are evidence two at a time, `lone` ones by themselves."""
    prints = np.concatenate([members, lone])
    marks = np.full(len(prints), ALONE, np.uint8)
    marks[: len(members)] = MEMBER
    size = 1 << max(6, len(prints).bit_length() + 1)
    bits = np.zeros(size // 8, np.uint64)  # eight bits per slot: one in nine bits that are set is of another print
    slots, kinds = np.zeros(size, np.uint32), np.zeros(size, np.uint8)
    _fill(prints, marks, bits, slots, kinds)
    return Sieve(bits, slots, kinds, near)


@compiled_as(
    numba.void(
        READ_PRINTS,
        READ_ENDS,
        numba.uint64[::1],
        numba.uint32[::1],
        numba.uint8[::1],
        numba.int64,
        numba.boolean[::1],
    )
)
def _sift(prints, ends, bits, slots, kinds, near, out):
    for doc in range(out.size):
        last = ends[doc] - near - 1  # place of the last member that was seen
        for at in range(ends[doc], ends[doc + 1]):
            word, bit = _bit_of(bits, prints[at])
            if bits[word] & bit == np.uint64(0):
                continue
            kind = kinds[_slot_of(slots, kinds, prints[at])]
            if kind == FREE:  # the bit was another print's
                continue
            if kind & ALONE or at - last <= near:
                out[doc] = True
                break
            last = at


def sift(sketches: pa.ListArray, sieve: Sieve) -> npt.NDArray[np.bool_]:
    """Return which texts have, by their sketches, two members near each other or one lone print of the reference."""
    ends = sketches.offsets.to_numpy().astype(np.int64)
    prints = sketches.values.to_numpy()
    out = np.zeros(len(sketches), np.bool_)
    _sift(prints, ends, sieve.bits, sieve.slots, sieve.kinds, sieve.near, out)
    return out
