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

LAID_OUT = ITEM | ROW | INDENTED
"""Lines that a lead-in can lead to beside one that is removed: a list, a table or code goes on."""

LEAST_LINES = 3
"""Lines of a text of which the last can be a scrap or a lead-in to nothing."""


class Mended(NamedTuple):
    """Texts without the lines around a removal that lead to nothing, and which of their lines these were."""

    texts: pa.LargeStringArray
    rows: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]
    spans: npt.NDArray[np.int64]


@inlined
def _is_same(left, a, right, b):
    return left[0, a] == right[0, b] and left[1, a] == right[1, b]


@compiled
def _gaps(first, stop, hashes, begin, end, hashes_before, gaps):
    """Write to gaps[line] the first line of before that was removed right before a line, -1 where none was.

    A line that is not among those that follow in the text before was changed: it is that at its place.
    """
    at = begin
    for line in range(first, stop):
        found = at
        while found < end and not _is_same(hashes, line, hashes_before, found):
            found += 1
        gaps[line] = at if at < found < end else -1
        at = found + 1 if found < end else min(at + 1, end)
    gaps[stop] = at if at < end else -1


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
def _mark(data, doc, places, hashes, before, table, has_before, kinds, gaps, marks):
    """Write the kind and the mark of every line; `before` has data, doc, places and hashes of the texts before."""
    index, flags = table
    data_before, doc_before, places_before, hashes_before = before
    first, begin = 0, 0
    while first < len(doc):
        stop, end = first, begin
        while stop < len(doc) and doc[stop] == doc[first]:
            kinds[stop] = kind_of(data, places[stop, 0], places[stop, 1], index, flags)
            stop += 1
        while end < len(doc_before) and doc_before[end] == doc[first]:
            end += 1
        if has_before:
            _gaps(first, stop, hashes, begin, end, hashes_before, gaps)
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
    lines = len(parts.doc)
    kinds, gaps, marks = np.zeros(lines, np.int64), np.empty(lines + 1, np.int64), np.zeros(lines, np.uint8)
    of_old = (views(before_cut)[1], old.doc, old.bytes, _hashes(old))
    place = (views(after)[1], parts.doc, parts.bytes, _hashes(parts))
    _mark(*place, of_old, classes(), before is not None, kinds, gaps, marks)
    texts, spans = remove_parts(after, parts, marks > 0)
    out = np.flatnonzero(marks)
    return Mended(texts, parts.doc[out], marks[out], spans[out])


def _hashes(parts: Parts) -> npt.NDArray[np.int64]:
    return np.stack([parts.hash, parts.check])


@compiled
def _count(data, doc, places, hashes, index, flags, counts):
    """Count the lines of every text that are a seam by themselves or by the line behind them."""
    before = 0
    for line in range(len(doc)):
        is_first = line == 0 or doc[line - 1] != doc[line]
        is_last = line + 1 == len(doc) or doc[line + 1] != doc[line]
        kind = kind_of(data, places[line, 0], places[line, 1], index, flags)
        rank = kind >> RANK
        is_twice = not is_first and _is_plain(kind) and _is_same(hashes, line - 1, hashes, line)
        is_empty = not is_first and 0 < rank <= before >> RANK
        is_alone = kind & MARK and kind & SHORT and not kind & LAID_OUT and places[line, 1] - places[line, 0] == 1
        leads = not is_first and before & LEAD_IN and rank > 0
        ends = (
            is_last and not is_first and (kind & LEAD_IN or (kind & BARE and before & SENTENCE)) and not kind & LAID_OUT
        )
        counts[doc[line]] += bool(is_twice or is_empty or is_alone or leads or ends)
        before = kind


def count_seams(texts: pa.Array) -> pa.Array:
    """Return how many seams each text shows: what can be seen without its page, in any language.

    Equal lines that follow each other, a Markdown heading with no text before the next of its rank or a higher one or
    right behind a lead-in, a line of one sign, and at the end a lead-in, or a few bare words behind a sentence.
    """
    texts = texts.cast(pa.large_string())
    parts = cut_parts(texts, 1, 1)
    counts = np.zeros(len(texts), np.int64)
    _count(views(texts)[1], parts.doc, parts.bytes, _hashes(parts), *classes(), counts)
    return pa.array(counts)


def with_cut(batch: pa.RecordBatch, texts: pa.Array, touched: pa.Array) -> pa.RecordBatch:
    """Return documents of which the `touched` ones have other texts, mended, with `chars`, `seams` and `seam_spans`.

    This is how a stage takes stretches out of texts. `texts` are those of the touched ones alone; `seam_spans` are code
    points of what the stage left of them.
    """
    before = batch.column("text").fill_null("")
    rows = pc.indices_nonzero(touched)
    if SEAMS not in batch.schema.names:
        batch = replace_column(batch, SEAMS, count_seams(before))
    mended = mend(before.take(rows), texts)
    numbers, kind = rows.to_numpy().astype(np.int64), batch.column("text").type
    lengths = pc.utf8_length(mended.texts).cast(pa.int64())
    written = {"text": mended.texts.cast(kind), "chars": lengths, SEAMS: count_seams(mended.texts)}
    for name, values in written.items():
        batch = replace_column(batch, name, pc.replace_with_mask(batch.column(name), touched, values))
    return replace_column(batch, "seam_spans", _lists(mended._replace(rows=numbers[mended.rows]), batch.num_rows))


def _lists(mended: Mended, rows: int) -> pa.ListArray:
    names = pa.array(KINDS, pa.string()).take(pa.array(mended.kinds.astype(np.int64) - 1))
    fields = [names, pa.array(mended.spans[:, 0]), pa.array(mended.spans[:, 1])]
    bounds = np.searchsorted(mended.rows, np.arange(rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.StructArray.from_arrays(fields, fields=list(SEAM_SPAN)))
