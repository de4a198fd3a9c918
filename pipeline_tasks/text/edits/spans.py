"""Lists which stretches of a text an edit removed, and by which rule, from one mark per byte."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.schema import EDIT_SPAN
from pipeline_tasks.text.base.ascii import NEWLINE, OPENING_BRACKET, RETURN, SPACE, starts_character
from pipeline_tasks.text.base.buffers import Bytes, Offsets
from pipeline_tasks.text.base.characters import BREAK, class_of, classes, decode, trim
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.phrases import encode_phrases
from pipeline_tasks.text.edits.citations import MARKERS, citation_end

WIDE_BREAK = 0xC2
"""The first byte of U+0085, the lowest line end that is not ASCII; no byte from SPACE to here begins one."""


Marks = npt.NDArray[np.uint8]
"""Per byte 0 if it is kept, else which rule removed it, counted from 1."""


class Spans(NamedTuple):
    """Stretches that were removed: which text, which rule, first code point, past the last; ascending, one row each."""

    rows: npt.NDArray[np.int64]
    rules: pa.StringArray
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


@compiled
def _runs(offsets, marks):
    """Return how many runs of one mark the texts have."""
    count = 0
    for row in range(len(offsets) - 1):
        before = 0
        for at in range(offsets[row], offsets[row + 1]):
            count += (marks[at] != before) & (marks[at] != 0)
            before = marks[at]
    return count


@compiled
def _spans(offsets, data, marks, out):
    """Write text, mark, first code point and that past the last of every run of one mark."""
    count = 0
    for row in range(len(offsets) - 1):
        before, points = 0, 0
        for at in range(offsets[row], offsets[row + 1]):
            mark = marks[at]
            if mark != before:
                if before:
                    out[count, 3] = points
                    count += 1
                if mark:
                    out[count, 0], out[count, 1], out[count, 2] = row, mark, points
                before = mark
            points += starts_character(data[at])
        if before:
            out[count, 3] = points
            count += 1


def find_spans(offsets: Offsets, data: Bytes, marks: Marks, rules: tuple[str, ...]) -> Spans:
    """Return the marked stretches of each text in order."""
    out = np.empty((_runs(offsets, marks), 4), np.int64)
    _spans(offsets, data, marks, out)
    rows, mark, starts, ends = np.ascontiguousarray(out.T)
    return Spans(rows, pa.array(rules, pa.string()).take(pa.array(mark - 1)), starts, ends)


def span_lists(edits: Sequence[Spans], rows: int) -> pa.ListArray:
    """Return the spans of each of `rows` texts as a list of EDIT_SPAN: those of the first edit, then of the next."""
    owners = np.concatenate([np.empty(0, np.int64), *(spans.rows for spans in edits)])
    order = np.argsort(owners, kind="stable")
    columns = [
        pa.concat_arrays([pa.array([], pa.string()), *(spans.rules for spans in edits)]),
        *(
            pa.array(np.concatenate([np.empty(0, np.int64), *(getattr(spans, side) for spans in edits)]))
            for side in ("starts", "ends")
        ),
    ]
    values = pa.StructArray.from_arrays([column.take(pa.array(order)) for column in columns], fields=list(EDIT_SPAN))
    bounds = np.searchsorted(owners[order], np.arange(rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), values)


# --- Lines ----------------------------------------------------------------------------------------------------


class Lines(NamedTuple):
    """The lines of texts as `str.splitlines` has them: where each line and its line end begin, and its text."""

    texts: pa.LargeStringArray
    bounds: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


@compiled
def _lines(offsets, data, index, flags, bounds, stops, rows):
    """Write where each line begins, where its line end does, and its text; return how many there are."""
    count = 0
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        while at < end:
            bounds[count], stops[count], rows[count] = at, end, row
            while at < end:
                lead = data[at]
                if SPACE <= lead < WIDE_BREAK:
                    at += 1
                    continue
                code, width = decode(data, at, end)
                if class_of(index, flags, code) & BREAK:
                    stops[count] = at
                    is_pair = code == RETURN and at + 1 < end and data[at + 1] == NEWLINE
                    at += 2 if is_pair else width
                    break
                at += width
            count += 1
    bounds[count] = offsets[-1]
    return count


def split_lines(offsets: Offsets, data: Bytes) -> Lines:
    """Return the lines of texts; `offsets` begin at 0."""
    bounds, stops, rows = (np.empty(len(data) + 1, np.int64) for _ in range(3))
    count = _lines(offsets, data, *classes(), bounds, stops, rows)
    texts = pa.LargeStringArray.from_buffers(count, pa.py_buffer(bounds[: count + 1].copy()), pa.py_buffer(data))
    return Lines(texts, bounds[: count + 1], stops[:count], rows[:count])


@compiled
def _mark_line(data, begin, stop, cited, markers, rules, index, flags, marks):
    """Mark what a line that is kept loses: white space at its edges, and citations if `cited`."""
    citation, blank = rules
    first, last = trim(data, begin, stop, index, flags)
    marks[begin:first] = blank
    marks[last:stop] = blank
    at = first
    while cited and at < last:
        after = citation_end(data, at, last, markers, index, flags) if data[at] == OPENING_BRACKET else at
        marks[at:after] = citation
        at = max(after, at + 1)


@compiled
def _mark_lines(lines, data, reasons, cited, markers, rules, index, flags, marks):
    """Mark lines that are removed with the line end before them, and what the others lose."""
    bounds, stops, rows = lines
    tail, any_kept = 0, False
    for line in range(len(rows)):
        begin, stop = bounds[line], stops[line]
        if line == 0 or rows[line] != rows[line - 1]:
            tail, any_kept = begin, False
        if reasons[line]:
            marks[tail:stop] = reasons[line]
        else:
            for at in range(tail, begin):
                if not any_kept or data[at] != NEWLINE:
                    marks[at] = rules[1]
            _mark_line(data, begin, stop, cited, markers, rules, index, flags, marks)
            any_kept = True
        tail = stop
        if line + 1 == len(rows) or rows[line + 1] != rows[line]:
            marks[tail : bounds[line + 1]] = rules[1]


@compiled
def _mark_ends(offsets, data, blank, index, flags, marks):
    """Mark the white space at both ends of what is left of each text."""
    for row in range(len(offsets) - 1):
        for step in (1, -1):
            at = offsets[row] if step > 0 else offsets[row + 1] - 1
            while offsets[row] <= at < offsets[row + 1]:
                if not marks[at] and starts_character(data[at]):
                    _, width = decode(data, at, offsets[row + 1])
                    first, last = trim(data, at, at + width, index, flags)
                    if first < last:
                        break
                    marks[at : at + width] = blank
                at += step


def mark_lines(
    texts: tuple[Offsets, Bytes], lines: Lines, reasons: Marks, rules: tuple[int, int], *, cited: bool
) -> Marks:
    """Return the marks of an edit that removes whole lines, strips the others, and joins them with newlines.

    `reasons` has a mark per line; `rules` are the marks of citations (looked for if `cited`) and of white space at
    edges. A line is removed with the line end before it. A line end that is no newline is marked, too, where the
    edit writes a newline for it; `extract` leaves none.
    """
    offsets, data = texts
    marks = np.zeros(len(data), np.uint8)
    _mark_lines(tuple(lines[1:]), data, reasons, cited, encode_phrases(MARKERS), rules, *classes(), marks)
    _mark_ends(offsets, data, rules[1], *classes(), marks)
    return marks
