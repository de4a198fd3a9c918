"""Find word n-grams of a small reference in many texts, in one compiled pass over their buffers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled_as, inlined
from pipeline_tasks.text.near.ngrams import ngram_hashes
from pipeline_tasks.text.near.shingles import READ_BYTES, READ_HASHES, READ_OFFSETS, fold_table, longest, scan

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

FREE = np.uint64(0)
"""The hash that marks a free slot; it is left out of every table (1 in 2**64)."""


@dataclass(frozen=True, slots=True)
class Table:
    """The n-grams of a reference: an open-addressing table of distinct hashes, and the lengths that occur."""

    slots: Hashes
    lengths: Positions


@dataclass(frozen=True, slots=True)
class Hits:
    """Where n-grams of the reference are: document, word, hash, first and past-last byte within the document."""

    docs: Positions
    hashes: Hashes
    words: Positions
    starts: Positions
    ends: Positions


@dataclass(frozen=True, slots=True)
class Grams:
    """The n-grams of some texts: those of text i are hashes[ends[i]:ends[i + 1]].

    `words` counts the words of each text, `wholes` hashes all of them in order (0 for none).
    """

    hashes: Hashes
    ends: Positions
    words: Positions
    wholes: Hashes


def table_of(hashes: Hashes, lengths: Sequence[int]) -> Table:
    """Return a table of `hashes` at most half full, less the hash `FREE`."""
    size = 1 << max(4, len(hashes).bit_length() + 1)
    slots = np.zeros(size, np.uint64)
    _fill(hashes[hashes != FREE], slots)
    return Table(slots, np.array(sorted(set(lengths)), np.int64))


@inlined
def _slot_of(slots, hash_):
    """Return the slot of a table that has a hash, or the free one where it would be."""
    mask = np.uint64(slots.size - 1)
    slot = hash_ & mask
    while slots[slot] != FREE and slots[slot] != hash_:
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled_as(numba.void(numba.uint64[::1], numba.uint64[::1]))
def _fill(hashes, slots):
    for hash_ in hashes:
        slots[_slot_of(slots, hash_)] = hash_


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
        numba.int64[::1],
    )
)
def _probe(data, offsets, table, slots, lengths, room, docs, hashes, places, starts, ends):
    """Write the hits that fit, and return how many there are in all."""
    words = np.empty(room, np.uint64)
    firsts = np.empty(room, np.int64)
    stops = np.empty(room, np.int64)
    ngrams = np.empty(room, np.uint64)
    hits = 0
    for doc in range(offsets.size - 1):
        count = scan(data, offsets[doc], offsets[doc + 1], table, words, firsts, stops)
        for length in lengths:
            for word in range(ngram_hashes(words, count, length, ngrams)):
                if slots[_slot_of(slots, ngrams[word])] == FREE:
                    continue
                if hits < docs.size:
                    docs[hits] = doc
                    hashes[hits] = ngrams[word]
                    places[hits] = word
                    starts[hits] = firsts[word] - offsets[doc]
                    ends[hits] = stops[word + length - 1] - offsets[doc]
                hits += 1
    return hits


def probe(texts: pa.Array, table: Table) -> Hits:
    """Return every occurrence of a reference n-gram in `texts`, by document, then length, then place."""
    offsets, data = views(texts)
    room = 1024
    while True:
        docs, places, starts, ends = (np.zeros(room, np.int64) for _ in range(4))
        hashes = np.zeros(room, np.uint64)
        count = _probe(
            data,
            offsets,
            fold_table(),
            table.slots,
            table.lengths,
            longest(offsets),
            docs,
            hashes,
            places,
            starts,
            ends,
        )
        if count <= room:
            return Hits(docs[:count], hashes[:count], places[:count], starts[:count], ends[:count])
        room = count


@compiled_as(
    numba.void(
        READ_BYTES,
        READ_OFFSETS,
        numba.uint32[::1],
        numba.int64,
        numba.int64,
        numba.int64,
        numba.uint64[::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.uint64[::1],
    )
)
def _cut(data, offsets, table, least, most, room, hashes, ends, counts, wholes):
    words = np.empty(room, np.uint64)
    starts = np.empty(room, np.int64)
    stops = np.empty(room, np.int64)
    ngrams = np.empty(room, np.uint64)
    filled = 0
    for text in range(offsets.size - 1):
        count = scan(data, offsets[text], offsets[text + 1], table, words, starts, stops)
        counts[text] = count
        if ngram_hashes(words, count, count, ngrams):  # all words as one n-gram
            wholes[text] = ngrams[0]
        if count >= least:
            kept = ngram_hashes(words, count, min(count, most), ngrams)
            hashes[filled : filled + kept] = ngrams[:kept]
            filled += kept
        ends[text + 1] = filled


def grams_of(texts: pa.Array, least: int, most: int) -> Grams:
    """Return the n-grams of texts: of `most` words, of all its words for a shorter text, none for one below `least`."""
    offsets, data = views(texts)
    room = longest(offsets)
    hashes = np.zeros(int(offsets[-1] - offsets[0]) // 2 + len(offsets), np.uint64)
    ends, counts = np.zeros(len(offsets), np.int64), np.zeros(len(offsets) - 1, np.int64)
    wholes = np.zeros(len(offsets) - 1, np.uint64)
    _cut(data, offsets, fold_table(), least, most, room, hashes, ends, counts, wholes)
    return Grams(hashes[: ends[-1]], ends, counts, wholes)
