"""Find newlines in texts, eight bytes at a time, inside compiled loops."""

import numpy as np

from pipeline_tasks.text.base.ascii import NEWLINE
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import HIGH_BITS, LOW_BITS, byte_at, first_marked, load_eight

NEWLINES = np.uint64(0x0101010101010101 * NEWLINE)


@inlined
def _mark_newlines(eight):
    """Mark each byte that is a newline."""
    other = eight ^ NEWLINES
    return ~(((other & LOW_BITS) + LOW_BITS) | other) & HIGH_BITS


@inlined
def line_end(data, at, end):
    """Return where the first newline of data[at:end] is, `end` if there is none."""
    while at + 8 <= end:
        size = first_marked(_mark_newlines(load_eight(data, at)))
        if size < 8:
            return at + size
        at += 8
    while at < end and byte_at(data, at) != NEWLINE:
        at += 1
    return at


@inlined
def part_end(data, at, end, newlines):
    """Return where the part that begins at `at` ends, as `str.split` of one or two newlines cuts data[at:end]."""
    stop = line_end(data, at, end)
    while newlines > 1 and stop < end and (stop + 1 == end or byte_at(data, stop + 1) != NEWLINE):
        stop = line_end(data, stop + 1, end)
    return stop


@compiled
def most_lines(offsets, data):
    """Return the number of lines of the text that has the most."""
    most = 1
    for row in range(len(offsets) - 1):
        text, lines = data[offsets[row] : offsets[row + 1]], 1
        for at in range(len(text)):
            lines += text[at] == NEWLINE
        most = max(most, lines)
    return most
