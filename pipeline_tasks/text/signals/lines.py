"""Count lines and paragraphs as the Gopher and FineWeb rules do: all, bulleted, ending a sentence, short, repeated."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import DOT, HASH, HYPHEN, starts_character
from pipeline_tasks.text.base.characters import TERMINAL, class_of, classes, decode, is_ellipsis, trim
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import byte_at, finish_hash, hash_and_points
from pipeline_tasks.text.base.newlines import line_end, most_lines
from pipeline_tasks.text.base.numbering import number_distinct, numbering_table
from pipeline_tasks.text.words import outline
from pipeline_tasks.text.words.cutting import Floats
from pipeline_tasks.text.words.outline import WIDE

BULLET = ord("\u2022")
ELLIPSIS_SIZE = 3
"""Bytes of `...` and of U+2026."""


@inlined
def _has_marks(text):
    """Return whether a text has `#`, and whether it has `...`."""
    hashes, dots = False, False
    for at in range(len(text) - 2):
        dots |= (text[at] == DOT) & (text[at + 1] == DOT) & (text[at + 2] == DOT)
        hashes |= text[at] == HASH
    for at in range(max(len(text) - 2, 0), len(text)):
        hashes |= text[at] == HASH
    return hashes, dots


@inlined
def _count_hashes(text):
    """Return how often `#` occurs."""
    count = 0
    for at in range(len(text)):
        count += text[at] == HASH
    return count


@inlined
def _count_dots(text):
    """Return how often `...` occurs, as `str.count` counts."""
    count, run = 0, 0
    for at in range(len(text)):
        run = run + 1 if text[at] == DOT else 0
        if run == ELLIPSIS_SIZE:
            count, run = count + 1, 0
    return count


@inlined
def _count_ellipses(text):
    """Return how often U+2026 occurs; a first pass over many bytes at once finds out whether it does."""
    count, any_of = 0, False
    for at in range(len(text) - 2):
        any_of |= is_ellipsis(text, at)
    if any_of:
        for at in range(len(text) - 2):
            count += is_ellipsis(text, at)
    return count


@compiled
def _count_marks(text, wide):
    """Return how often `#` occurs, and `...` or, in a text that is not all ASCII, U+2026.

    One pass over many bytes at once finds out whether there are any; only a text that has some is counted.
    """
    has_hashes, has_dots = _has_marks(text)
    hashes = _count_hashes(text) if has_hashes else 0
    ellipses = _count_dots(text) if has_dots else 0
    return hashes, ellipses + (_count_ellipses(text) if wide else 0)


@inlined
def _is_bulleted(data, first, last):
    """Return whether data[first:last] begins with a bullet or dash."""
    if first == last:
        return False
    code, _ = decode(data, first, last)
    return code in (BULLET, HYPHEN)


@inlined
def _trails_off(data, first, last):
    """Return whether data[first:last] ends with `...` or U+2026."""
    if last - first < ELLIPSIS_SIZE:
        return False
    dots = data[last - 1] == DOT and data[last - 2] == DOT and data[last - 3] == DOT
    return dots or is_ellipsis(data, last - ELLIPSIS_SIZE)


@compiled
def _fill_shapes(offsets, data, text_outline, index, flags, out):
    """Fill out[row] with: lines, bulleted lines, lines that trail off, `#`, ellipses."""
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        lines, bullets, trailing = 0, 0, 0
        for line in range(text_outline.breaks_at[row], text_outline.breaks_at[row + 1] + 1):
            last_line = line == text_outline.breaks_at[row + 1]
            if last_line and at == end:
                break
            stop = end if last_line else text_outline.places[line]
            first, last = trim(data, at, stop, index, flags)
            lines += 1
            bullets += _is_bulleted(data, first, last)
            trailing += _trails_off(data, first, last)
            at = end if last_line else stop + text_outline.widths[line]
        out[row, 0], out[row, 1], out[row, 2] = lines, bullets, trailing
        out[row, 3], out[row, 4] = _count_marks(data[offsets[row] : end], text_outline.traits[row] & WIDE)


def line_shapes(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Floats:
    """Return per text: lines, lines that begin with a bullet or dash, lines that end in an ellipsis, `#`, ellipses.

    Shape (rows, 5). Lines are those of `str.splitlines`; an ellipsis is `...` or its single character.
    """
    out = np.zeros((len(offsets) - 1, 5))
    _fill_shapes(offsets, data, outline.outline_of(offsets, data), *classes(), out)
    return out


@inlined
def _cut_lines(data, begin, end, starts, stops, hashes, lengths):
    """Cut data[begin:end] at runs of newlines; write begin, end, hash and code points of each line.

    Returns the lines and the code points of the text, newlines included.
    """
    lines, start, points = 0, begin, 0
    while True:
        stop = line_end(data, start, end)
        if stop == start and begin < start and stop < end:  # one more newline of a run
            start, points = start + 1, points + 1
            continue
        starts[lines], stops[lines] = start, stop
        hashes[lines], lengths[lines] = hash_and_points(data, start, stop)
        points += lengths[lines]
        lines += 1
        if stop == end:
            return lines, points
        start, points = stop + 1, points + 1


@inlined
def _join_paragraphs(data, first, last, lines, starts, stops, hashes, lengths):
    """Merge the lines within data[first:last] to paragraphs, which two newlines separate; return how many there are.

    Between the lines of one paragraph there is one newline, so their hashes in a row are the paragraph's.
    """
    parts, closed = 0, True
    for line in range(lines):
        start, stop = max(starts[line], first), min(stops[line], last)
        if stop <= start:
            continue
        value, points = hashes[line], lengths[line]
        if start != starts[line] or stop != stops[line]:
            value, points = hash_and_points(data, start, stop)
        if closed:
            hashes[parts], lengths[parts] = value, points
            parts += 1
        else:
            hashes[parts - 1] = finish_hash(hashes[parts - 1], value)
            lengths[parts - 1] += points + 1
        closed = line + 1 < lines and starts[line + 1] > stops[line] + 1
    if parts == 0:
        hashes[0], lengths[0] = hash_and_points(data, first, first)
        parts = 1
    return parts


@inlined
def distinct_parts(hashes, lengths, count, table, numbers):
    """Return (different parts, their code points); `numbers` then has the number of each part in `table`."""
    distinct = number_distinct(hashes, count, table, numbers)
    points, fresh = 0, 0
    for part in range(count):
        if numbers[part] == fresh:
            points += lengths[part]
            fresh += 1
    return distinct, points


@inlined
def _earlier_parts(hashes, lengths, count, table, numbers):
    """Return (parts, code points) of the parts equal to an earlier part."""
    distinct, points = distinct_parts(hashes, lengths, count, table, numbers)
    if distinct == count:
        return 0, np.int64(0)
    for part in range(count):
        points -= lengths[part]
    return count - distinct, -points


@compiled
def _fill_repeated(offsets, data, index, flags, out):
    """Fill out[row] with: paragraphs, repeated ones, their characters; the same of lines; characters."""
    room = most_lines(offsets, data)
    hashes, lengths, numbers = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int32)
    starts, stops, table = np.empty(room, np.int64), np.empty(room, np.int64), numbering_table(room)
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        count, points = _cut_lines(data, begin, end, starts, stops, hashes, lengths)
        out[row, 3], out[row, 6] = count, points
        out[row, 4], out[row, 5] = _earlier_parts(hashes, lengths, count, table, numbers)
        first, last = trim(data, begin, end, index, flags)
        count = _join_paragraphs(data, first, last, count, starts, stops, hashes, lengths)
        out[row, 0] = count
        out[row, 1], out[row, 2] = _earlier_parts(hashes, lengths, count, table, numbers)


def repeated_parts(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Floats:
    """Return per text: paragraphs, repeated paragraphs, their characters; lines, repeated, characters; all characters.

    Shape (rows, 7). Paragraphs are cut at two or more newlines after `str.strip`, lines at one or more; a part is
    repeated when an earlier part is equal.
    """
    out = np.zeros((len(offsets) - 1, 7))
    _fill_repeated(offsets, data, *classes(), out)
    return out


@inlined
def _ends_sentence(data, at, stop, index, flags):
    """Return whether the last code point of data[at:stop] ends a sentence."""
    tail = stop - 1
    while tail > at and not starts_character(byte_at(data, tail)):
        tail -= 1
    code, _ = decode(data, tail, stop)
    return (class_of(index, flags, code) & TERMINAL) != 0


@compiled
def _fill_prose(offsets, data, short, index, flags, out):
    """Fill out[row] with: lines, those that end a sentence, short ones, repeated characters, characters, newlines."""
    room = most_lines(offsets, data)
    hashes, lengths, numbers = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int32)
    table = numbering_table(room)
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        lines, count, ends, shorts, points = 0, 0, 0, 0, 0
        while at <= end:
            stop = line_end(data, at, end)
            value, length = hash_and_points(data, at, stop)
            first, last = trim(data, at, stop, index, flags)
            if first < last:
                ends += _ends_sentence(data, at, stop, index, flags)
                shorts += length <= short[row]
                hashes[count], lengths[count] = value, length
                count += 1
            lines += 1
            points += length
            at = stop + 1
        _, repeated = _earlier_parts(hashes, lengths, count, table, numbers)
        out[row, 0], out[row, 1], out[row, 2] = count, ends, shorts
        out[row, 3], out[row, 4], out[row, 5] = repeated, points, lines - 1


def prose_lines(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], short: npt.NDArray[np.float64]) -> Floats:
    """Return per text: lines, lines that end a sentence, short lines, repeated characters, characters, newlines.

    Shape (rows, 6). Lines are cut at newlines and blank ones left out; a line is short with at most `short[row]`
    code points; the characters leave newlines out.
    """
    out = np.zeros((len(offsets) - 1, 6))
    _fill_prose(offsets, data, short, *classes(), out)
    return out
