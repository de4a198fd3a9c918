"""Cuts texts at newlines into lines or paragraphs; counts repeated and unique ones, and how they begin and end."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.characters import classes, trim
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import hash_and_points
from pipeline_tasks.text.base.numbering import number_distinct, numbering_table
from pipeline_tasks.text.base.phrases import Phrases, ends_with, occurrences

RAW, FILLED, STRIPPED = 0, 1, 2
"""Every part as it stands; parts that are not all white space, as they stand; those, without the white space around."""

LINES, PARAGRAPHS = 1, 2
"""Newlines that part a text."""

NEWLINE = 0x0A

COUNTS = ("parts", "points", "repeated", "repeated_points", "unique", "unique_points")
"""Parts; their code points; parts that occur more than once, every occurrence counted, and their code points; different
parts and their code points."""

Floats = npt.NDArray[np.float64]


@inlined
def stop_of(data, at, end, newlines):
    """Return where the part that begins at `at` ends, as `str.split` of one or two newlines has it."""
    while at < end:
        if data[at] == NEWLINE and (newlines == 1 or (at + 1 < end and data[at + 1] == NEWLINE)):
            return at
        at += 1
    return end


@compiled
def _measure(offsets, data, newlines, cut, index, flags, out):
    """Fill out[row] with the COUNTS."""
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        room = 1
        for byte in range(at, end):
            room += data[byte] == NEWLINE
        hashes, lengths, names = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int32)
        count = 0
        while at <= end:
            stop = stop_of(data, at, end, newlines)
            first, last = trim(data, at, stop, index, flags)
            if cut == 0 or first < last:
                begin, finish = (first, last) if cut == 2 else (at, stop)
                hashes[count], lengths[count] = hash_and_points(data, begin, finish)
                count += 1
            at = stop + newlines
            if stop == end:
                break
        table, fresh = numbering_table(count), 0
        out[row, 0], out[row, 4] = count, number_distinct(hashes, count, table, names)
        for part in range(count):
            out[row, 1] += lengths[part]
            if table[2][names[part]] > 1:
                out[row, 2] += 1
                out[row, 3] += lengths[part]
            if names[part] == fresh:
                out[row, 5] += lengths[part]
                fresh += 1


def count_parts(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], newlines: int, cut: int
) -> dict[str, Floats]:
    """Return the COUNTS of the LINES or PARAGRAPHS of each text by name, shape (rows,) each."""
    out = np.zeros((len(offsets) - 1, len(COUNTS)))
    _measure(offsets, data, newlines, cut, *classes(), out)
    return dict(zip(COUNTS, out.T, strict=True))


@compiled
def _edges(offsets, data, bare, starts, finishes, index, flags, out):
    """Fill out[row] with the lines that begin with one of `starts`, and those that end with one of `finishes`."""
    start_letters, start_ends = starts
    finish_letters, finish_ends = finishes
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        while at <= end:
            stop = stop_of(data, at, end, 1)
            first, last = (at, stop) if bare else trim(data, at, stop, index, flags)
            begins, closes = False, False
            for phrase in range(len(start_ends) - 1):
                size = start_ends[phrase + 1] - start_ends[phrase]
                room = min(first + size, last)
                begins |= ends_with(data, first, room, start_letters, start_ends[phrase], start_ends[phrase + 1], 1)
            for phrase in range(len(finish_ends) - 1):
                closes |= ends_with(data, first, last, finish_letters, finish_ends[phrase], finish_ends[phrase + 1], 1)
            out[row, 0] += begins
            out[row, 1] += closes
            at = stop + 1
            if stop == end:
                break


def count_edges(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], cut: int, starts: Phrases, finishes: Phrases
) -> Floats:
    """Return per text the lines that begin with one of `starts` and those that end with one of `finishes`, (rows, 2).

    Lines are looked at without the white space around them unless `cut` is RAW; phrases are in lower case and find
    ASCII letters of either case.
    """
    out = np.zeros((len(offsets) - 1, 2))
    _edges(offsets, data, cut == RAW, starts, finishes, *classes(), out)
    return out


@compiled
def _containing(offsets, data, newlines, letters, ends, out):
    """Fill out[row] with the parts that contain one of the phrases."""
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        while at <= end:
            stop = stop_of(data, at, end, newlines)
            for phrase in range(len(ends) - 1):
                if occurrences(data, at, stop, letters, ends[phrase], ends[phrase + 1], 1):
                    out[row] += 1
                    break
            at = stop + newlines
            if stop == end:
                break


def count_containing(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], newlines: int, phrases: Phrases
) -> Floats:
    """Return per text the parts that contain one of the phrases (lower case, ASCII letters of either case), (rows,)."""
    out = np.zeros(len(offsets) - 1)
    _containing(offsets, data, newlines, *phrases, out)
    return out


@compiled
def _longer(offsets, data, least, out):
    """Fill out[row] with the lines of at least `least` code points."""
    for row in range(len(offsets) - 1):
        points = 0
        for at in range(offsets[row], offsets[row + 1]):
            if data[at] == NEWLINE:
                out[row] += points >= least
                points = 0
            else:
                points += (data[at] & 0xC0) != 0x80
        out[row] += points >= least


def count_long_lines(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], least: float) -> Floats:
    """Return per text the lines of at least `least` code points, as they stand, shape (rows,)."""
    out = np.zeros(len(offsets) - 1)
    _longer(offsets, data, float(least), out)
    return out
