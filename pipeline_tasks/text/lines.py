"""Measures lines and paragraphs of texts: how many, how they begin and end, which are said twice."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.compiled import compiled
from pipeline_tasks.text.hashing import absorb
from pipeline_tasks.text.letters import ASCII_END, BREAK, TERMINAL, class_of, classes, decode, trim
from pipeline_tasks.text.ngrams import slot_of, table_size
from pipeline_tasks.text.words import FNV_BASIS, Floats, key_of, longest

NEWLINE, RETURN, DOT, HASH = 0x0A, 0x0D, 0x2E, 0x23
ASCII_PRINTED = 0x20
BULLET, DASH, ELLIPSIS = 0x2022, 0x2D, 0x2026


@compiled
def hash_part(data, begin, end):  # type: ignore[no-untyped-def]
    """Return a 64-bit hash of data[begin:end], eight bytes at a time, never 0."""
    value, at = FNV_BASIS ^ np.uint64(end - begin), begin
    while at + 8 <= end:
        low = np.uint64(data[at]) | np.uint64(data[at + 1]) << np.uint64(8)
        low |= np.uint64(data[at + 2]) << np.uint64(16) | np.uint64(data[at + 3]) << np.uint64(24)
        high = np.uint64(data[at + 4]) | np.uint64(data[at + 5]) << np.uint64(8)
        high |= np.uint64(data[at + 6]) << np.uint64(16) | np.uint64(data[at + 7]) << np.uint64(24)
        value = absorb(value, low | high << np.uint64(32))
        at += 8
    while at < end:
        value = absorb(value, np.uint64(data[at]))
        at += 1
    return key_of(value)


@compiled
def code_points(data, begin, end):  # type: ignore[no-untyped-def]
    """Return the number of code points of data[begin:end]."""
    count = 0
    for at in range(begin, end):
        count += (data[at] & 0xC0) != 0x80
    return count


@compiled
def next_break(data, at, end, index, flags):  # type: ignore[no-untyped-def]
    """Return (end of the line that begins at `at`, begin of the next line), as `str.splitlines` breaks lines."""
    while at < end:
        code, width = np.int64(data[at]), 1
        if ASCII_PRINTED <= code < ASCII_END:
            at += 1
            continue
        if code >= ASCII_END:
            code, width = decode(data, at, end)
        if class_of(index, flags, code) & BREAK:
            pair = code == RETURN and at + 1 < end and data[at + 1] == NEWLINE
            return at, at + width + pair
        at += width
    return end, end


@compiled
def _shapes(offsets, data, index, flags, out):  # type: ignore[no-untyped-def]
    """Fill out[row] with: lines, bulleted lines, lines that trail off, `#`, ellipses."""
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        dots, hashes, ellipses = 0, 0, 0
        for byte in range(at, end):
            hashes += data[byte] == HASH
            if data[byte] == DOT:
                dots += 1
                if dots == 3:
                    ellipses += 1
                    dots = 0
            else:
                dots = 0
        while at < end:
            stop, following = next_break(data, at, end, index, flags)
            first, last = trim(data, at, stop, index, flags)
            out[row, 0] += 1
            if first < last:
                code, _ = decode(data, first, last)
                out[row, 1] += code in (BULLET, DASH)
            if last - first >= 3:
                tail, _ = decode(data, last - 3, last)
                dotted = data[last - 1] == DOT and data[last - 2] == DOT and data[last - 3] == DOT
                out[row, 2] += dotted or tail == ELLIPSIS
            at = following
        for byte in range(offsets[row], end - 2):
            ellipses += data[byte] == 0xE2 and data[byte + 1] == 0x80 and data[byte + 2] == 0xA6
        out[row, 3], out[row, 4] = hashes, ellipses


def shapes(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Floats:
    """Return per text: lines, lines that begin with a bullet or dash, lines that end in an ellipsis, `#`, ellipses.

    Shape (rows, 5). Lines are those of `str.splitlines`; an ellipsis is `...` or its single character.
    """
    out = np.zeros((len(offsets) - 1, 5))
    _shapes(offsets, data, *classes(), out)
    return out


@compiled
def _cut(data, begin, end, least, hashes, lengths):  # type: ignore[no-untyped-def]
    """Cut data[begin:end] at runs of at least `least` newlines; write hash and code points of each part."""
    count, start, at = 0, begin, begin
    while at < end:
        if data[at] != NEWLINE:
            at += 1
            continue
        run = at
        while run < end and data[run] == NEWLINE:
            run += 1
        if run - at >= least:
            hashes[count], lengths[count] = hash_part(data, start, at), code_points(data, start, at)
            count, start = count + 1, run
        at = max(run, at + 1)
    hashes[count], lengths[count] = hash_part(data, start, end), code_points(data, start, end)
    return count + 1


@compiled
def _said_before(hashes, lengths, count, keys):  # type: ignore[no-untyped-def]
    """Return (parts, code points) of the parts equal to an earlier part; `keys` must have room."""
    mask = np.int64(table_size(count) - 1)
    keys[: mask + 1] = 0
    parts, points = 0, 0
    for at in range(count):
        slot = slot_of(keys, mask, hashes[at])
        if keys[slot] != np.uint64(0):
            parts += 1
            points += lengths[at]
        keys[slot] = hashes[at]
    return parts, points


@compiled
def _repeats(offsets, data, index, flags, out):  # type: ignore[no-untyped-def]
    """Fill out[row] with: paragraphs, repeated ones, their characters; the same of lines; characters."""
    room = longest(offsets) + 1
    hashes, lengths = np.empty(room, np.uint64), np.empty(room, np.int64)
    keys = np.empty(table_size(room), np.uint64)
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        first, last = trim(data, begin, end, index, flags)
        count = _cut(data, first, last, 2, hashes, lengths)
        out[row, 0] = count
        out[row, 1], out[row, 2] = _said_before(hashes, lengths, count, keys)
        count = _cut(data, begin, end, 1, hashes, lengths)
        out[row, 3] = count
        out[row, 4], out[row, 5] = _said_before(hashes, lengths, count, keys)
        out[row, 6] = code_points(data, begin, end)


def repeats(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Floats:
    """Return per text: paragraphs, repeated paragraphs, their characters; lines, repeated, characters; all characters.

    Shape (rows, 7). Paragraphs are cut at two or more newlines after `str.strip`, lines at one or more; a part is
    repeated when an earlier part is equal.
    """
    out = np.zeros((len(offsets) - 1, 7))
    _repeats(offsets, data, *classes(), out)
    return out


@compiled
def _prose(offsets, data, short, index, flags, out):  # type: ignore[no-untyped-def]
    """Fill out[row] with: lines, those that end a sentence, short ones, repeated characters, characters, newlines."""
    room = longest(offsets) + 1
    hashes, lengths = np.empty(room, np.uint64), np.empty(room, np.int64)
    keys = np.empty(table_size(room), np.uint64)
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        newlines = 0
        count = 0
        out[row, 4] = code_points(data, at, end)
        while at <= end:
            stop = at
            while stop < end and data[stop] != NEWLINE:
                stop += 1
            newlines += stop < end
            first, last = trim(data, at, stop, index, flags)
            if first < last:
                tail = stop - 1
                while (data[tail] & 0xC0) == 0x80 and tail > at:
                    tail -= 1
                code, _ = decode(data, tail, stop)
                hashes[count], lengths[count] = hash_part(data, at, stop), code_points(data, at, stop)
                out[row, 1] += (class_of(index, flags, code) & TERMINAL) != 0
                out[row, 2] += lengths[count] <= short[row]
                count += 1
            at = stop + 1
        out[row, 0] = count
        _, out[row, 3] = _said_before(hashes, lengths, count, keys)
        out[row, 4] -= newlines
        out[row, 5] = newlines


def prose(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], short: npt.NDArray[np.float64]) -> Floats:
    """Return per text: lines, lines that end a sentence, short lines, repeated characters, characters, newlines.

    Shape (rows, 6). Lines are cut at newlines and blank ones left out; a line is short with at most `short[row]`
    code points; the characters leave newlines out.
    """
    out = np.zeros((len(offsets) - 1, 6))
    _prose(offsets, data, short, *classes(), out)
    return out
