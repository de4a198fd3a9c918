"""Finds word n-grams of a small reference in many texts, in one compiled pass over their buffers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.buffers import views
from pipeline_tasks.text.compiled import compiled_as
from pipeline_tasks.text.hashing import grams
from pipeline_tasks.text.shingles import READ_BYTES, READ_HASHES, READ_OFFSETS, fold_table, longest, scan

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Table:
    """The n-grams of a reference: an open-addressing table of distinct hashes, and the lengths that occur."""

    slots: Hashes
    lengths: Positions


@dataclass(frozen=True, slots=True)
class Hits:
    """Where n-grams of the reference stand: document number, hash, first and past-last byte within the document."""

    docs: Positions
    hashes: Hashes
    starts: Positions
    ends: Positions


def table_of(hashes: Hashes, lengths: Sequence[int]) -> Table:
    """Return a table of `hashes` at most half full; the hash 0 marks an empty slot and is left out (1 in 2**64)."""
    distinct = np.unique(hashes[hashes != 0])
    size = 1 << max(4, len(distinct).bit_length() + 1)
    slots = np.zeros(size, np.uint64)
    _fill(distinct, slots)
    return Table(slots, np.array(sorted(set(lengths)), np.int64))


@compiled_as(numba.void(numba.uint64[::1], numba.uint64[::1]))
def _fill(hashes, slots):  # type: ignore[no-untyped-def]
    mask = np.uint64(slots.size - 1)
    for at in range(hashes.size):
        slot = hashes[at] & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = hashes[at]


@compiled_as(
    numba.int64(
        READ_BYTES,
        READ_OFFSETS,
        numba.uint32[::1],
        READ_HASHES,
        READ_OFFSETS,
        numba.int64,
        numba.int64[::1],
        numba.uint64[::1],
        numba.int64[::1],
        numba.int64[::1],
    )
)
def _probe(data, offsets, table, slots, lengths, room, docs, hashes, starts, ends):  # type: ignore[no-untyped-def]
    """Write the hits that fit, and return how many there are in all."""
    words = np.empty(room, np.uint64)
    firsts = np.empty(room, np.int64)
    stops = np.empty(room, np.int64)
    made = np.empty(room, np.uint64)
    mask = np.uint64(slots.size - 1)
    found = 0
    for doc in range(offsets.size - 1):
        count = scan(data, offsets[doc], offsets[doc + 1], table, words, firsts, stops)
        for length in lengths:
            for at in range(grams(words, count, length, made)):
                slot = made[at] & mask
                while slots[slot] != 0 and slots[slot] != made[at]:
                    slot = (slot + np.uint64(1)) & mask
                if slots[slot] == 0 or made[at] == 0:
                    continue
                if found < docs.size:
                    docs[found] = doc
                    hashes[found] = made[at]
                    starts[found] = firsts[at] - offsets[doc]
                    ends[found] = stops[at + length - 1] - offsets[doc]
                found += 1
    return found


def probe(texts: pa.Array, table: Table) -> Hits:
    """Return every occurrence of a reference n-gram in `texts`, by document, then length, then place."""
    offsets, data = views(texts)
    room = 1024
    while True:
        docs, starts, ends = (np.zeros(room, np.int64) for _ in range(3))
        hashes = np.zeros(room, np.uint64)
        found = _probe(
            data,
            offsets,
            fold_table(),
            table.slots,
            table.lengths,
            longest(offsets),
            docs,
            hashes,
            starts,
            ends,
        )
        if found <= room:
            return Hits(docs[:found], hashes[:found], starts[:found], ends[:found])
        room = found


def text_grams(text: str, n: int) -> tuple[Hashes, int]:
    """Return the n-gram hashes of one text and its number of words; a shorter text has none."""
    data = np.frombuffer(text.encode(), np.uint8)
    room = len(data) // 2 + 2
    words, made = np.zeros(room, np.uint64), np.zeros(room, np.uint64)
    starts, ends = np.zeros(room, np.int64), np.zeros(room, np.int64)
    count = scan(data, 0, len(data), fold_table(), words, starts, ends)
    return made[: grams(words, count, n, made)], count
