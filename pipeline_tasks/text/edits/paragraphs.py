"""Cuts texts into paragraphs or lines, hashes them, keeps a table of those seen, and removes some of them."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import NEWLINE, starts_character
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.hashing import absorb, mix

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts that tile texts, in order: `doc` is the text; [begin, next) with its line ends, [begin, end) without.

    Places are bytes of the batch's buffer in `bytes` and code points of the text in `points`, each of shape
    (parts, 3): begin, end, next. `hash` and `check` are two 64-bit hashes of the bytes of [begin, end); 0 and 0 for
    parts that are too short to count.
    """

    doc: Ints
    bytes: Ints
    points: Ints
    hash: Ints
    check: Ints


@compiled
def _word(data, at, end):
    """Return up to eight bytes of data[at:end] as one number, the first lowest."""
    word = np.uint64(0)
    for place in range(min(end - at, 8)):
        word |= np.uint64(data[at + place]) << np.uint64(8 * place)
    return word


@compiled
def _hashes(data, begin, end):
    """Return two hashes of data[begin:end], the first never 0."""
    key, check = np.uint64(end - begin), ~np.uint64(end - begin)
    for at in range(begin, end, 8):
        word = _word(data, at, end)
        key = absorb(key, word)
        check = mix(check ^ word)
    key = mix(key)
    return (key if key != np.uint64(0) else np.uint64(1)), mix(check)


@compiled
def _cut(offsets, data, breaks, least, doc, places, points, hashes):
    """Fill the arrays of `Parts`, hashing parts of at least `least` code points; return how many parts there are."""
    count = 0
    for row in range(len(offsets) - 1):
        begin, at, end = offsets[row], offsets[row], offsets[row + 1]
        first, point = 0, 0
        while True:
            stop, stop_point = at, point
            while at < end and data[at] == NEWLINE:
                at += 1
                point += 1
            if at < end and at - stop < breaks:  # too few line ends to end a part, or none: one more code point
                at += 1
                while at < end and not starts_character(data[at]):
                    at += 1
                point += 1
                continue
            doc[count] = row
            places[count, 0], places[count, 1], places[count, 2] = begin, stop, at
            points[count, 0], points[count, 1], points[count, 2] = first, stop_point, point
            hashes[0, count], hashes[1, count] = np.uint64(0), np.uint64(0)
            if stop_point - first >= least:
                hashes[0, count], hashes[1, count] = _hashes(data, begin, stop)
            count += 1
            begin, first = at, point
            if at == end:
                break
    return count


def cut_parts(texts: pa.Array, breaks: int, least: int) -> Parts:
    """Cut texts at `breaks` or more newlines in a row (2: paragraphs, 1: lines); hash parts of `least` code points."""
    offsets, data = views(texts)
    room = int(np.count_nonzero(data[offsets[0] : offsets[-1]] == NEWLINE)) + len(texts)
    doc, places, points = np.empty(room, np.int64), np.empty((room, 3), np.int64), np.empty((room, 3), np.int64)
    hashes = np.empty((2, room), np.uint64)
    count = _cut(offsets, data, breaks, max(least, 1), doc, places, points, hashes)
    signed = hashes[:, :count].view(np.int64)
    return Parts(doc[:count], places[:count], points[:count], signed[0], signed[1])


# --- Parts seen -------------------------------------------------------------------------------------------------


@compiled
def _slot(table, mask, key, check):
    """Return where the part with these hashes is or would go in a table of (hash, check, value); hash 0 is free."""
    slot = np.int64(np.uint64(key) & np.uint64(mask))
    while table[slot, 0] != 0 and (table[slot, 0] != key or table[slot, 1] != check):
        slot = (slot + 1) & mask
    return slot


@compiled
def _grown(table):
    """Return a table of twice the size with the same content."""
    larger = np.zeros((2 * len(table), 3), np.int64)
    for at in range(len(table)):
        if table[at, 0] != 0:
            larger[_slot(larger, len(larger) - 1, table[at, 0], table[at, 1])] = table[at]
    return larger


@compiled
def _look_up(table, used, hashes, checks, values, adds, out):
    """Look up every part in turn; write its value to `out`, or -1; add missing parts. Returns (table, used)."""
    for at in range(len(hashes)):
        out[at] = -1
        if hashes[at] == 0:
            continue
        slot = _slot(table, len(table) - 1, hashes[at], checks[at])
        if table[slot, 0] != 0:
            out[at] = table[slot, 2]
        elif adds:
            table[slot, 0], table[slot, 1], table[slot, 2] = hashes[at], checks[at], values[at]
            used += 1
            if 2 * used > len(table):
                table = _grown(table)
    return table, used


@dataclass(slots=True)
class Seen:
    """Table of the parts seen, each with a number; 24 bytes per slot, at most half of them used."""

    table: Ints = field(default_factory=lambda: np.zeros((1024, 3), np.int64))
    used: int = 0

    def add(self, hashes: Ints, checks: Ints, values: Ints) -> Ints:
        """Return for every part the number of the first that equals it, or -1 where it is itself the first."""
        out = np.empty(len(hashes), np.int64)
        self.table, self.used = _look_up(self.table, self.used, hashes, checks, values, True, out)  # noqa: FBT003 -- loops take arguments by place
        return out

    def find(self, hashes: Ints, checks: Ints) -> Ints:
        """Return the number that each part was added with, or -1."""
        out = np.empty(len(hashes), np.int64)
        _look_up(self.table, self.used, hashes, checks, hashes, False, out)  # noqa: FBT003 -- as above
        return out


# --- Removing parts --------------------------------------------------------------------------------------------


@compiled
def _remove(offsets, data, doc, places, points, removed, spans, kept, kept_offsets):
    """Write texts without `removed` parts to `kept`; fill spans[part] with the first and the past-last code point."""
    part, place = 0, 0
    for row in range(len(offsets) - 1):
        stop, last = part, -1
        while stop < len(doc) and doc[stop] == row:
            last = last if removed[stop] else stop
            stop += 1
        for at in range(part, stop):
            if removed[at]:
                spans[at, 0], spans[at, 1] = points[at, 0], points[at, 2]
                if (
                    at == last + 1 and last >= part
                ):  # no part behind it is kept: the line ends before it are removed, too
                    spans[at, 0] = points[last, 1]
                continue
            end = places[at, 1] if at == last and stop > last + 1 else places[at, 2]
            for byte in range(places[at, 0], end):
                kept[place] = data[byte]
                place += 1
        kept_offsets[row + 1] = place
        part = stop


def remove_parts(texts: pa.Array, parts: Parts, removed: Flags) -> tuple[pa.Array, Ints]:
    """Return the texts without the parts that are `removed`, and the span of code points removed for each part.

    A part is removed with the line ends behind it, or those before it where no kept part follows. Spans, of shape
    (parts, 2), are set for removed parts only; they are in order and never overlap.
    """
    offsets, data = views(texts)
    kept = np.empty(int(offsets[-1] - offsets[0]) + 1, np.uint8)
    kept_offsets, spans = np.zeros(len(texts) + 1, np.int64), np.zeros((len(parts.doc), 2), np.int64)
    _remove(offsets, data, parts.doc, parts.bytes, parts.points, removed, spans, kept, kept_offsets)
    buffer = pa.py_buffer(kept[: kept_offsets[-1]].copy())
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(kept_offsets), buffer), spans
