"""Finds the windows of a text that a language model reads, in bytes, and leaves out those with too little text."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import starts_character
from pipeline_tasks.text.base.characters import SPACE, class_of, classes, count_code_points, decode
from pipeline_tasks.text.base.compiled import compiled

BLOCK = 256
"""Bytes counted at once: the compiler vectorizes a sum over a fixed number of bytes."""

Bounds = npt.NDArray[np.int64]


@compiled
def _after(data, begin, end, points):
    """Return the place in data[begin:end] after `points` code points, at most `end`."""
    if end - begin <= points:
        return end
    at, left = begin, points
    while end - at >= BLOCK:
        count = count_code_points(data, at, at + BLOCK)
        if count > left:
            break
        left -= count
        at += BLOCK
    while at < end:
        if starts_character(data[at]):
            if left == 0:
                break
            left -= 1
        at += 1
    return at


@compiled
def holds(data, begin, end, index, flags, least):
    """Return whether data[begin:end] has `least` code points that are no white space."""
    seen, at = 0, begin
    while at < end and seen < least:
        code, width = decode(data, at, end)
        seen += (class_of(index, flags, code) & SPACE) == 0
        at += width
    return seen >= least


@compiled
def _fill_bounds(offsets, data, shares, size, least, index, flags, out):
    """Fill out[row, window] with (begin, end), both -1 for a window with too little text."""
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        points = 0
        short = size == 0 or end - begin <= size
        if not short and (len(shares) > 1 or shares[0] > 0):
            points = count_code_points(data, begin, end)
            short = points <= size
        for window in range(len(shares)):
            first, last = begin, end
            if short and window > 0:
                first = last
            elif not short:
                first = _after(data, begin, end, np.int64(points * shares[window]))
                last = _after(data, first, end, size)
            if first < last and holds(data, first, last, index, flags, least):
                out[row, window, 0], out[row, window, 1] = first, last
            else:
                out[row, window, 0], out[row, window, 1] = -1, -1


def window_bounds(
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    shares: tuple[float, ...],
    size: int,
    least: int,
) -> Bounds:
    """Return (begin, end) in bytes of `size` code points from each share of each text on, shape (rows, shares, 2).

    A text of at most `size` code points is one window, the first, whatever the shares; so is every text if `size`
    is 0. Windows at a text's end are as long as it lasts. (-1, -1) marks windows that have fewer than `least` code
    points that are no white space.
    """
    out = np.empty((len(offsets) - 1, len(shares), 2), np.int64)
    _fill_bounds(offsets, data, np.asarray(shares, np.float64), size, least, *classes(), out)
    return out
