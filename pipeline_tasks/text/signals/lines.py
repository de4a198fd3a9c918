"""Measures lines and paragraphs of texts: how many, how they begin and end, which are said twice."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.characters import ASCII_END, TERMINAL, class_of, classes, decode, trim
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import byte_at, finish_hash, hash_and_points
from pipeline_tasks.text.base.numbering import number_distinct, numbering_table
from pipeline_tasks.text.words import outline
from pipeline_tasks.text.words.cutting import Floats
from pipeline_tasks.text.words.outline import NEWLINE, RETURN, WIDE

DOT, HASH = 0x2E, 0x23
BULLET, DASH, ELLIPSIS = 0x2022, 0x2D, 0x2026


@inlined
def newlines(data, found, row, out):
    """Write where the newlines of a text are; return how many there are."""
    count = 0
    for at in range(found.breaks_at[row], found.breaks_at[row + 1]):
        place = found.places[at]
        byte = byte_at(data, place)
        if byte == RETURN and found.widths[at] == 2:
            place += 1
        elif byte != NEWLINE:
            continue
        out[count] = place
        count += 1
    return count


@compiled
def _most_breaks(found):
    """Return the most breaks that a text has."""
    most = 0
    for row in range(len(found.breaks_at) - 1):
        most = max(most, found.breaks_at[row + 1] - found.breaks_at[row])
    return most


@compiled
def _signs(text, wide):
    """Return how often `#` occurs, and `...` or, in a text that is not all ASCII, its single character.

    Whether there are any is asked of many bytes at once; only a text that has some is counted.
    """
    hash_signs, dotted, single = False, False, False
    for at in range(len(text) - 2):
        dotted |= (text[at] == DOT) & (text[at + 1] == DOT) & (text[at + 2] == DOT)
        hash_signs |= text[at] == HASH
    if wide:
        for at in range(len(text) - 2):
            single |= (text[at] == 0xE2) & (text[at + 1] == 0x80) & (text[at + 2] == 0xA6)
    for at in range(max(len(text) - 2, 0), len(text)):
        hash_signs |= text[at] == HASH
    hashes, ellipses, run = 0, 0, 0
    if hash_signs:
        for at in range(len(text)):
            hashes += text[at] == HASH
    if dotted:
        for at in range(len(text)):
            run = run + 1 if text[at] == DOT else 0
            if run == 3:
                ellipses, run = ellipses + 1, 0
    if single:
        for at in range(len(text) - 2):
            ellipses += (text[at] == 0xE2) & (text[at + 1] == 0x80) & (text[at + 2] == 0xA6)
    return hashes, ellipses


@compiled
def _shapes(offsets, data, found, index, flags, out):
    """Fill out[row] with: lines, bulleted lines, lines that trail off, `#`, ellipses."""
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        lines, bullets, trailing = 0, 0, 0
        out[row, 3], out[row, 4] = _signs(data[at:end], found.traits[row] & WIDE)
        for line in range(found.breaks_at[row], found.breaks_at[row + 1] + 1):
            last_line = line == found.breaks_at[row + 1]
            if last_line and at == end:
                break
            stop = end if last_line else found.places[line]
            first, last = trim(data, at, stop, index, flags)
            lines += 1
            if first < last:
                code, _ = decode(data, first, last)
                bullets += code in (BULLET, DASH)
            if last - first >= 3:
                tail, _ = decode(data, last - 3, last)
                dotted = data[last - 1] == DOT and data[last - 2] == DOT and data[last - 3] == DOT
                trailing += dotted or tail == ELLIPSIS
            at = end if last_line else stop + found.widths[line]
        out[row, 0], out[row, 1], out[row, 2] = lines, bullets, trailing


def line_shapes(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Floats:
    """Return per text: lines, lines that begin with a bullet or dash, lines that end in an ellipsis, `#`, ellipses.

    Shape (rows, 5). Lines are those of `str.splitlines`; an ellipsis is `...` or its single character.
    """
    out = np.zeros((len(offsets) - 1, 5))
    _shapes(offsets, data, outline.outline_of(offsets, data), *classes(), out)
    return out


@inlined
def _cut_lines(data, begin, end, places, count, starts, stops, hashes, lengths):
    """Cut data[begin:end] at runs of newlines; write begin, end, hash and code points of each line."""
    lines, start = 0, begin
    for at in range(count + 1):
        stop = places[at] if at < count else end
        if at < count and at and stop == start:  # one more newline of a run
            start += 1
            continue
        starts[lines], stops[lines] = start, stop
        hashes[lines], lengths[lines] = hash_and_points(data, start, stop)
        lines, start = lines + 1, stop + 1
    return lines


@inlined
def _join_paragraphs(data, first, last, lines, starts, stops, hashes, lengths):
    """Turn the lines within data[first:last] into the paragraphs that two newlines part; return how many there are.

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


@compiled
def _said_before(hashes, lengths, count, table, names):
    """Return (parts, code points) of the parts equal to an earlier part."""
    if number_distinct(hashes, count, table, names) == count:
        return 0, 0
    parts, points, fresh = 0, 0, 0
    for at in range(count):
        if names[at] == fresh:
            fresh += 1
        else:
            parts += 1
            points += lengths[at]
    return parts, points


@compiled
def _repeats(offsets, data, found, index, flags, out):
    """Fill out[row] with: paragraphs, repeated ones, their characters; the same of lines; characters."""
    room = _most_breaks(found) + 2
    hashes, lengths, names = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int32)
    places, starts, stops = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    table = numbering_table(room)
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        breaks = newlines(data, found, row, places)
        count = _cut_lines(data, begin, end, places, breaks, starts, stops, hashes, lengths)
        points = breaks
        for line in range(count):
            points += lengths[line]
        out[row, 3], out[row, 6] = count, points
        out[row, 4], out[row, 5] = _said_before(hashes, lengths, count, table, names)
        first, last = trim(data, begin, end, index, flags)
        count = _join_paragraphs(data, first, last, count, starts, stops, hashes, lengths)
        out[row, 0] = count
        out[row, 1], out[row, 2] = _said_before(hashes, lengths, count, table, names)


def repeated_parts(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Floats:
    """Return per text: paragraphs, repeated paragraphs, their characters; lines, repeated, characters; all characters.

    Shape (rows, 7). Paragraphs are cut at two or more newlines after `str.strip`, lines at one or more; a part is
    repeated when an earlier part is equal.
    """
    out = np.zeros((len(offsets) - 1, 7))
    _repeats(offsets, data, outline.outline_of(offsets, data), *classes(), out)
    return out


@compiled
def _prose(offsets, data, found, short, index, flags, out):
    """Fill out[row] with: lines, those that end a sentence, short ones, repeated characters, characters, newlines."""
    room = _most_breaks(found) + 2
    hashes, lengths, names = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int32)
    places, table = np.empty(room, np.int64), numbering_table(room)
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        breaks, count, ends, shorts, points = newlines(data, found, row, places), 0, 0, 0, 0
        for line in range(breaks + 1):
            stop = places[line] if line < breaks else end
            value, length = hash_and_points(data, at, stop)
            points += length
            first, last = trim(data, at, stop, index, flags)
            if first < last:
                code = np.int64(byte_at(data, stop - 1))
                if code >= ASCII_END:
                    tail = stop - 1
                    while (data[tail] & 0xC0) == 0x80 and tail > at:
                        tail -= 1
                    code, _ = decode(data, tail, stop)
                ends += (class_of(index, flags, code) & TERMINAL) != 0
                shorts += length <= short[row]
                hashes[count], lengths[count] = value, length
                count += 1
            at = stop + 1
        _, repeated = _said_before(hashes, lengths, count, table, names)
        out[row, 0], out[row, 1], out[row, 2] = count, ends, shorts
        out[row, 3], out[row, 4], out[row, 5] = repeated, points, breaks


def prose_lines(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], short: npt.NDArray[np.float64]) -> Floats:
    """Return per text: lines, lines that end a sentence, short lines, repeated characters, characters, newlines.

    Shape (rows, 6). Lines are cut at newlines and blank ones left out; a line is short with at most `short[row]`
    code points; the characters leave newlines out.
    """
    out = np.zeros((len(offsets) - 1, 6))
    _prose(offsets, data, outline.outline_of(offsets, data), short, *classes(), out)
    return out
