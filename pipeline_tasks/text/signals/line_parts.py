"""Count lines and paragraphs as the DCLM, Dolma and NeMo Curator rules do: repeated, unique, by edges and content."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.characters import classes, count_code_points, trim
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import hash_and_points
from pipeline_tasks.text.base.newlines import line_end, most_lines, part_end
from pipeline_tasks.text.base.numbering import numbering_table
from pipeline_tasks.text.base.phrases import Phrases, ends_with, occurrences
from pipeline_tasks.text.signals.lines import distinct_parts

RAW, FILLED, STRIPPED = 0, 1, 2
"""Every part; parts that are not all white space; those, without the white space around them."""

LINES, PARAGRAPHS = 1, 2
"""Newlines that separate the parts of a text."""

COUNTS = ("parts", "points", "repeated", "repeated_points", "unique", "unique_points")
"""Parts; their code points; parts that occur more than once, every occurrence counted, and their code points; different
parts and their code points."""

Floats = npt.NDArray[np.float64]


PARTS, POINTS, REPEATED, REPEATED_POINTS, UNIQUE, UNIQUE_POINTS = range(len(COUNTS))
"""Columns of COUNTS."""


@inlined
def _hash_parts(data, at, end, newlines, cut, index, flags, hashes, lengths):
    """Write hash and code points of each part of data[at:end]; return how many there are."""
    count = 0
    while at <= end:
        stop = part_end(data, at, end, newlines)
        first, last = trim(data, at, stop, index, flags) if cut != RAW else (at, stop)
        if cut == RAW or first < last:
            begin, finish = (first, last) if cut == STRIPPED else (at, stop)
            hashes[count], lengths[count] = hash_and_points(data, begin, finish)
            count += 1
        if stop == end:
            break
        at = stop + newlines
    return count


@compiled
def _count_parts(offsets, data, newlines, cut, index, flags, out):
    """Fill out[row] with the COUNTS."""
    room = most_lines(offsets, data)
    hashes, lengths, numbers = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int32)
    table = numbering_table(room)
    for row in range(len(offsets) - 1):
        count = _hash_parts(data, offsets[row], offsets[row + 1], newlines, cut, index, flags, hashes, lengths)
        out[row, PARTS] = count
        out[row, UNIQUE], out[row, UNIQUE_POINTS] = distinct_parts(hashes, lengths, count, table, numbers)
        for part in range(count):
            out[row, POINTS] += lengths[part]
            if table.counts[numbers[part]] > 1:
                out[row, REPEATED] += 1
                out[row, REPEATED_POINTS] += lengths[part]


def count_parts(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], newlines: int, cut: int
) -> dict[str, Floats]:
    """Return the COUNTS of the LINES or PARAGRAPHS of each text by name, shape (rows,) each."""
    out = np.zeros((len(offsets) - 1, len(COUNTS)))
    _count_parts(offsets, data, newlines, cut, *classes(), out)
    return dict(zip(COUNTS, out.T, strict=True))


@inlined
def _begins_with(data, first, last, letters, ends):
    """Return whether data[first:last] begins with one of the phrases."""
    for phrase in range(len(ends) - 1):
        stop = min(first + ends[phrase + 1] - ends[phrase], last)
        if ends_with(data, first, stop, letters, ends[phrase], ends[phrase + 1], 1):
            return True
    return False


@inlined
def _finishes_with(data, first, last, letters, ends):
    """Return whether data[first:last] ends with one of the phrases."""
    for phrase in range(len(ends) - 1):
        if ends_with(data, first, last, letters, ends[phrase], ends[phrase + 1], 1):
            return True
    return False


@compiled
def _count_edges(offsets, data, cut, starts, finishes, index, flags, out):
    """Fill out[row] with the lines that begin with one of `starts`, and those that end with one of `finishes`."""
    start_letters, start_ends = starts
    finish_letters, finish_ends = finishes
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        while at <= end:
            stop = line_end(data, at, end)
            first, last = (at, stop) if cut == RAW else trim(data, at, stop, index, flags)
            out[row, 0] += _begins_with(data, first, last, start_letters, start_ends)
            out[row, 1] += _finishes_with(data, first, last, finish_letters, finish_ends)
            at = stop + 1


def count_edges(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], cut: int, starts: Phrases, finishes: Phrases
) -> Floats:
    """Return per text the lines that begin with one of `starts` and those that end with one of `finishes`, (rows, 2).

    White space around a line is ignored unless `cut` is RAW. Phrases are in lower case and match ASCII letters of
    either case.
    """
    out = np.zeros((len(offsets) - 1, 2))
    _count_edges(offsets, data, cut, starts, finishes, *classes(), out)
    return out


@inlined
def _has_phrase(data, at, stop, letters, ends):
    """Return whether data[at:stop] has one of the phrases."""
    for phrase in range(len(ends) - 1):
        if occurrences(data, at, stop, letters, ends[phrase], ends[phrase + 1], 1):
            return True
    return False


@compiled
def _count_containing(offsets, data, newlines, letters, ends, out):
    """Fill out[row] with the parts that contain one of the phrases."""
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        while at <= end:
            stop = part_end(data, at, end, newlines)
            out[row] += _has_phrase(data, at, stop, letters, ends)
            if stop == end:
                break
            at = stop + newlines


def count_containing(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], newlines: int, phrases: Phrases
) -> Floats:
    """Return per text the parts that contain one of the phrases (lower case, ASCII letters of either case), (rows,)."""
    out = np.zeros(len(offsets) - 1)
    _count_containing(offsets, data, newlines, *phrases, out)
    return out


@compiled
def _count_long_lines(offsets, data, least, out):
    """Fill out[row] with the lines of at least `least` code points."""
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        while at <= end:
            stop = line_end(data, at, end)
            out[row] += count_code_points(data, at, stop) >= least
            at = stop + 1


def count_long_lines(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], least: float) -> Floats:
    """Return per text the lines of at least `least` code points, white space included, shape (rows,)."""
    out = np.zeros(len(offsets) - 1)
    _count_long_lines(offsets, data, float(least), out)
    return out
