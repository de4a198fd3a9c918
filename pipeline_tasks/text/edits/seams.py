"""Mends what a removal leaves of the lines around it, and counts the seams that a text still shows."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.schema import SEAM_SPAN, SEAMS
from pipeline_tasks.stage import replace_column
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.edits.line_kinds import (
    BARE,
    INDENTED,
    ITEM,
    LEAD_IN,
    MARK,
    PROSE,
    RANK,
    ROW,
    SENTENCE,
    SHORT,
    WORDY,
    kind_of,
)
from pipeline_tasks.text.edits.paragraphs import Parts, cut_parts, remove_parts

pc: Any = pyarrow.compute

KINDS = ("lead_in", "heading", "doubled", "scrap")
LEAD, HEADING, DOUBLED, SCRAP = range(1, len(KINDS) + 1)

BEFORE, BEHIND = range(2)
"""The edges of a line at which something may have been taken out."""

LAID_OUT = ITEM | ROW | INDENTED
"""Lines that a lead-in can lead to beside one that is removed: a list, a table or code goes on."""

UNCHANGED, CHANGED = -1, -2
"""What `_gaps` writes of a line before which nothing was removed, and of one that the text before does not have."""

LEAST_LINES = 3
"""Lines of a text of which the last can be a scrap or a lead-in to nothing."""


class Mended(NamedTuple):
    """Texts without the lines around a removal that lead to nothing, and which of their lines these were.

    `seams` is how many seams each text still shows where something was taken out of it.
    """

    texts: pa.LargeStringArray
    rows: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]
    spans: npt.NDArray[np.int64]
    seams: npt.NDArray[np.int64]


@inlined
def _is_same(left, a, right, b):
    return left[0, a] == right[0, b] and left[1, a] == right[1, b]


@compiled
def _gaps(first, stop, hashes, begin, end, hashes_before, gaps):
    """Write to gaps[line] the first line of before that was removed right before a line, UNCHANGED where none was.

    A line that is not among those that follow in the text before is CHANGED: it is that at its place.
    """
    at = begin
    for line in range(first, stop):
        found = at
        while found < end and not _is_same(hashes, line, hashes_before, found):
            found += 1
        gaps[line] = CHANGED if found == end else at if at < found else UNCHANGED
        at = found + 1 if found < end else min(at + 1, end)
    gaps[stop] = at if at < end else UNCHANGED


@inlined
def _open_edges(first, stop, gaps, edges):
    """Write to edges[line] whether something was taken out right before a line and right behind it, or of the line."""
    for line in range(first, stop + 1):
        if gaps[line] == UNCHANGED:
            continue
        if line > first:
            edges[line - 1, BEHIND] = True
        if line < stop:
            edges[line, BEFORE] = True
        if gaps[line] == CHANGED:
            edges[line, BEHIND] = True
            if line + 1 < stop:
                edges[line + 1, BEFORE] = True


@inlined
def _is_heading(kind):
    """Return whether a line may head what follows it: short, no end of a sentence, and no part of a list or table."""
    other = SENTENCE | LEAD_IN | LAID_OUT | MARK
    return kind & (SHORT | WORDY) == SHORT | WORDY and not kind & other


@compiled
def _mend_gap(line, kinds, gone, is_last, marks, first):
    """Mark the lines before a gap that lead to what is gone; return the line before them."""
    after = 0 if is_last else kinds[line]
    at = line - 1
    while at > first:
        kind = kinds[at]
        rank, next_rank = kind >> RANK, after >> RANK
        is_empty = is_last or 0 < next_rank <= rank
        if kind & LEAD_IN and kind & SHORT and not kind & (ROW | INDENTED) and not after & LAID_OUT:
            marks[at] = LEAD
        elif is_empty and gone & (PROSE | LAID_OUT) and _is_heading(kind):
            marks[at] = HEADING
        else:
            break
        at -= 1
    return at


@inlined
def _is_led_to_nothing(kind, before):
    return kind & LEAD_IN and kind & SHORT and not kind & LAID_OUT and not before & (ROW | LEAD_IN)


@inlined
def _is_plain(kind):
    return kind & WORDY and not kind & LAID_OUT


@compiled
def _mend_ends(first, stop, kinds, hashes, marks):
    """Mark a headline that is there twice, and what is left behind the last sentence."""
    last = stop - 1
    while last > first and marks[last]:
        last -= 1
    if last - first >= LEAST_LINES - 1:
        if kinds[last] & BARE and kinds[last - 1] & SENTENCE and not kinds[last] & LAID_OUT and not marks[last - 1]:
            marks[last] = SCRAP
        elif _is_led_to_nothing(kinds[last], kinds[last - 1]):
            marks[last] = LEAD
    if stop - first < LEAST_LINES or marks[first + 1] or not _is_heading(kinds[first]):
        return
    if _is_same(hashes, first, hashes, first + 1) and not _is_same(hashes, first, hashes, first + 2):
        marks[first] = DOUBLED


@compiled
def _kinds(data, places, index, flags):
    kinds = np.empty(len(places), np.int64)
    for line in range(len(places)):
        kinds[line] = kind_of(data, places[line, 0], places[line, 1], index, flags)
    return kinds


@compiled
def _mark(doc, hashes, kinds, before, table, has_before, gaps, edges, marks):
    """Write the mark and the edges of every line; `before` has data, doc, places and hashes of the texts before."""
    index, flags = table
    data_before, doc_before, places_before, hashes_before = before
    first, begin = 0, 0
    while first < len(doc):
        stop, end = first, begin
        while stop < len(doc) and doc[stop] == doc[first]:
            stop += 1
        while end < len(doc_before) and doc_before[end] == doc[first]:
            end += 1
        if has_before:
            _gaps(first, stop, hashes, begin, end, hashes_before, gaps)
            _open_edges(first, stop, gaps, edges)
            for line in range(first + 1, stop + 1):
                lost = gaps[line]
                if lost < 0:
                    continue
                gone = kind_of(data_before, places_before[lost, 0], places_before[lost, 1], index, flags)
                at = _mend_gap(line, kinds, gone, line == stop, marks, first)
                if line < stop and at > first and _is_same(hashes, at, hashes, line) and _is_heading(kinds[line]):
                    marks[at] = DOUBLED
        _mend_ends(first, stop, kinds, hashes, marks)
        first, begin = stop, end


def mend(before: pa.Array | None, after: pa.Array) -> Mended:
    """Return texts after a removal without the lines that lead to nothing; their bounds are code points of `after`.

    Without the texts `before` only the sides are looked at: a headline that is there twice, and behind the last
    sentence a lead-in or a few bare words. What a removal took away says more: the lead-in right before it goes where
    no list, table or code follows, the heading before it where the text ends or a heading of its rank or a higher one
    follows, and of two equal headings that it brought together one. The first line always stays.
    """
    after = after.cast(pa.large_string())
    parts = cut_parts(after, 1, 1)
    before_cut = after if before is None else before.cast(pa.large_string())
    old = parts if before is None else cut_parts(before_cut, 1, 1)
    lines, hashes = len(parts.doc), _hashes(parts)
    gaps, edges, marks = np.empty(lines + 1, np.int64), np.zeros((lines, 2), np.bool_), np.zeros(lines, np.uint8)
    kinds = _kinds(views(after)[1], parts.bytes, *classes())
    of_old = (views(before_cut)[1], old.doc, old.bytes, _hashes(old))
    _mark(parts.doc, hashes, kinds, of_old, classes(), before is not None, gaps, edges, marks)
    texts, spans = remove_parts(after, parts, marks > 0)
    seams = np.zeros(len(after), np.int64)
    _count(parts.doc, parts.bytes, hashes, kinds, marks, edges, seams)
    out = np.flatnonzero(marks)
    return Mended(texts, parts.doc[out], marks[out], spans[out], seams)


def _hashes(parts: Parts) -> npt.NDArray[np.int64]:
    return np.stack([parts.hash, parts.check])


@compiled
def _count(doc, places, hashes, kinds, marks, edges, counts):
    """Count the lines of every text that are a seam by themselves or by the one before; those with a mark are gone."""
    first = 0
    while first < len(doc):
        stop, last = first, -1
        while stop < len(doc) and doc[stop] == doc[first]:
            last = last if marks[stop] else stop
            stop += 1
        before, is_edge = -1, False
        for line in range(first, last + 1):
            is_edge = is_edge or edges[line, BEFORE] or marks[line] > 0
            if marks[line]:
                continue
            is_behind = edges[line, BEHIND] or (line + 1 < stop and marks[line + 1] > 0)
            is_seam = is_edge and before >= 0 and _is_seam(before, line, hashes, kinds)
            if is_edge or is_behind:
                is_seam = is_seam or _is_alone(kinds[line], places[line, 1] - places[line, 0])
            if is_behind and line == last and before >= 0:
                is_seam = is_seam or _is_left_over(kinds[line], kinds[before])
            counts[doc[first]] += is_seam
            before, is_edge = line, False
        first = stop


@inlined
def _is_seam(before, line, hashes, kinds):
    """Return whether two lines are the same, or a heading follows one of its rank or a lower one, or a lead-in."""
    if _is_plain(kinds[line]) and _is_same(hashes, before, hashes, line):
        return True
    rank = kinds[line] >> RANK
    return rank > 0 and (rank <= kinds[before] >> RANK or kinds[before] & LEAD_IN != 0)


@inlined
def _is_alone(kind, size):
    return kind & MARK != 0 and kind & SHORT != 0 and kind & LAID_OUT == 0 and size == 1


@inlined
def _is_left_over(last, before):
    """Return whether the last line of a text leads to nothing, or is a few bare words behind a sentence."""
    return last & LAID_OUT == 0 and (last & LEAD_IN != 0 or (last & BARE != 0 and before & SENTENCE != 0))


@compiled
def _open_at_blocks(lists, starts, ends, lines, points, edges):
    """Open the edges between the blocks of each text at which blocks have no place in it; -1 is no place.

    The blocks of a text are [lists[text], lists[text + 1]) of starts and ends, its lines those of `lines` in points.
    """
    for text in range(len(lists) - 1):
        first, stop = lines[text], lines[text + 1]
        line, is_gone = first, False
        for block in range(lists[text], lists[text + 1]):
            if starts[block] < 0:
                is_gone = True
                continue
            while line + 1 < stop and points[line, 2] <= starts[block]:
                line += 1
            if is_gone:
                edges[line, BEFORE] = True
                if line > first:
                    edges[line - 1, BEHIND] = True
            is_gone = False
            while line + 1 < stop and points[line, 2] < ends[block]:
                line += 1
        if is_gone and first < stop:
            edges[line, BEHIND] = True
            if line + 1 < stop:
                edges[line + 1, BEFORE] = True


def count_seams(texts: pa.Array, blocks: pa.Array | None = None) -> pa.Array:
    """Return how many seams each text shows: what can be seen without its page, in any language.

    Equal lines that follow each other, a Markdown heading with no text before the next of its rank or a higher one or
    right behind a lead-in, a line of one sign, and at the end a lead-in, or a few bare words behind a sentence.
    `blocks` are lists of `schema.BLOCK`: a seam is where one was left out. Without them, or for a null, it is anywhere.
    """
    texts = texts.cast(pa.large_string())
    parts = cut_parts(texts, 1, 1)
    counts, lines = np.zeros(len(texts), np.int64), len(parts.doc)
    edges = np.ones((lines, 2), np.bool_)
    if blocks is not None:
        edges[:] = blocks.is_null().to_numpy(zero_copy_only=False)[parts.doc, None]
        places = blocks.flatten()
        lists = np.append(0, np.cumsum(pc.list_value_length(blocks).fill_null(0).to_numpy()))
        starts, ends = (pc.struct_field(places, name).fill_null(-1).to_numpy() for name in ("start", "end"))
        firsts = np.searchsorted(parts.doc, np.arange(len(texts) + 1))
        _open_at_blocks(lists, starts, ends, firsts, parts.points, edges)
    kinds = _kinds(views(texts)[1], parts.bytes, *classes())
    _count(parts.doc, parts.bytes, _hashes(parts), kinds, np.zeros(lines, np.uint8), edges, counts)
    return pa.array(counts)


def with_cut(batch: pa.RecordBatch, texts: pa.Array, touched: pa.Array) -> pa.RecordBatch:
    """Return documents of which the `touched` ones have other texts, mended, with `chars`, `seams` and `seam_spans`.

    This is how a stage takes stretches out of texts. `texts` are those of the touched ones alone; `seam_spans` are code
    points of what the stage left of them. `seams` are those that it left at the edges of what it took out: 0 where that
    was nothing.
    """
    before = batch.column("text").fill_null("")
    rows = pc.indices_nonzero(touched)
    batch = replace_column(batch, SEAMS, pa.array(np.zeros(batch.num_rows, np.int64)))
    mended = mend(before.take(rows), texts)
    numbers, kind = rows.to_numpy().astype(np.int64), batch.column("text").type
    lengths = pc.utf8_length(mended.texts).cast(pa.int64())
    written = {"text": mended.texts.cast(kind), "chars": lengths, SEAMS: pa.array(mended.seams)}
    for name, values in written.items():
        batch = replace_column(batch, name, pc.replace_with_mask(batch.column(name), touched, values))
    return replace_column(batch, "seam_spans", _lists(mended._replace(rows=numbers[mended.rows]), batch.num_rows))


def _lists(mended: Mended, rows: int) -> pa.ListArray:
    names = pa.array(KINDS, pa.string()).take(pa.array(mended.kinds.astype(np.int64) - 1))
    fields = [names, pa.array(mended.spans[:, 0]), pa.array(mended.spans[:, 1])]
    bounds = np.searchsorted(mended.rows, np.arange(rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.StructArray.from_arrays(fields, fields=list(SEAM_SPAN)))
