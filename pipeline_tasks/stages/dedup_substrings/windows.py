"""Finds, for every window of texts, the first one that has the same characters.

Windows of a text that follow each other and have the same least hash of a shorter run of characters are one piece, as
in minimizers and super-k-mers (Roberts et al. 2004; Deorowicz et al., KMC 2, 2015). Windows with equal characters have
the same least hash, so only pieces of one key need to be compared. These loops are numpy's: a stage that few recipes
have compiles nothing in the first hour of everyone.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.tables import Flags, Rows

Points = npt.NDArray[np.uint32]
Hashes = npt.NDArray[np.uint64]

BASE = 0x9E3779B97F4A7C15
"""Of the rolling hash modulo 2^64; odd, so that it has an inverse."""

BLOCK = 1 << 18
"""Windows that are hashed at once: what they take (20 MB) does not grow with a text."""

COMPARED = 1 << 22
"""Characters that are compared at once."""


class Pieces(NamedTuple):
    """Pieces of texts, in order: the text, its first window (a code point), how many windows, and the key."""

    doc: Rows
    start: Rows
    windows: Rows
    key: Rows


class Matches(NamedTuple):
    """Runs of windows that another place had before: the piece, where in it the run begins, and how many they are.

    `first` is the piece that has them first, and `place` where in that they begin.
    """

    piece: Rows
    at: Rows
    windows: Rows
    first: Rows
    place: Rows


def code_points(text: str) -> Points:
    """Return the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


def _mix(hashes: Hashes) -> Hashes:
    """Return hashes of which each bit depends on all bits: the finalizer of splitmix64."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


@lru_cache(maxsize=2)
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """Return the first powers of `BASE` and of its inverse."""
    inverse = pow(BASE, -1, 1 << 64)
    both = [np.full(count, base, np.uint64) for base in (BASE, inverse)]
    for powers in both:
        powers[:1] = 1
        np.cumprod(powers, out=powers)
    return both[0], both[1]


def window_hashes(points: Points, width: int) -> Hashes:
    """Return a hash of each `width` code points in a row."""
    count = max(len(points) - width + 1, 0)
    powers, inverses = _powers(1 << len(points).bit_length())
    sums = np.zeros(len(points) + 1, np.uint64)
    np.cumsum(_mix(points.astype(np.uint64)) * powers[: len(points)], out=sums[1:])
    return _mix((sums[width : width + count] - sums[:count]) * inverses[:count])


def _least(hashes: Hashes, width: int) -> Hashes:
    """Return the least of each `width` hashes in a row."""
    span = 1
    while 2 * span <= width:
        hashes = np.minimum(hashes[:-span], hashes[span:])
        span *= 2
    rest = width - span
    return np.minimum(hashes[:-rest], hashes[rest:]) if rest else hashes


def _bounds(texts: Sequence[str]) -> Rows:
    """Return where each text begins when they are one, and the end of the last."""
    return np.cumsum([0, *map(len, texts)], dtype=np.int64)


def _places(bounds: Rows, start: int, stop: int, width: int) -> tuple[Rows, Rows]:
    """Return the windows from `start` to `stop` that are within one text, and the text of each."""
    at = np.arange(start, stop, dtype=np.int64)
    doc = np.searchsorted(bounds, at, "right") - 1
    inside = at + width <= bounds[doc + 1]
    return at[inside], doc[inside]


def _starts(*changes: Flags) -> Rows:
    """Return where runs begin, by flags that say what differs from the one before; there is at least one."""
    return np.flatnonzero(np.concatenate([[True], np.logical_or.reduce(changes)]))


def cut_pieces(texts: Sequence[str], width: int) -> Pieces:
    """Return the pieces that all windows of texts are in; a key is the least hash of half as many code points."""
    joined, bounds, half = "".join(texts), _bounds(texts), max(width // 2, 1)
    tables = [Pieces(*(np.empty(0, np.int64) for _ in Pieces._fields))]
    for start in range(0, len(joined) - width + 1, BLOCK):
        points = code_points(joined[start : start + BLOCK + width - 1])
        least = _least(window_hashes(points, half), width - half + 1)
        at, doc = _places(bounds, start, start + len(least), width)
        if not len(at):
            continue
        keys = least[at - start]
        starts = _starts(keys[1:] != keys[:-1], doc[1:] != doc[:-1])
        counts = np.diff(np.append(starts, len(at)))
        doc = doc[starts]
        tables.append(Pieces(doc, at[starts] - bounds[doc], counts, keys[starts].view(np.int64)))
    return Pieces(*(np.concatenate(column) for column in zip(*tables, strict=True)))


def find_first(pieces: Sequence[str], width: int) -> tuple[Matches, Rows]:
    """Return the windows that were in an earlier place, and the pieces that have one for the first time."""
    points, bounds = code_points("".join(pieces)), _bounds(pieces)
    at, piece = _places(bounds, 0, max(len(points) - width + 1, 0), width)
    first = _first_equal(points, at, window_hashes(points, width)[at], width)
    own = np.arange(len(at))
    repeated = np.flatnonzero(first != own)
    having_first = np.unique(piece[first == own])
    if not len(repeated):
        return Matches(*(np.empty(0, np.int64) for _ in Matches._fields)), having_first
    starts, counts = _runs(repeated, first[repeated], piece)
    begin, firsts = repeated[starts], first[repeated[starts]]
    found = Matches(
        piece[begin],
        at[begin] - bounds[piece[begin]],
        counts,
        piece[firsts],
        at[firsts] - bounds[piece[firsts]],
    )
    return found, having_first


def _runs(windows: Rows, first: Rows, piece: Rows) -> tuple[Rows, Rows]:
    """Return where runs of windows begin that follow each other as their first ones do, and how long they are."""
    starts = _starts(
        np.diff(windows) != 1,
        np.diff(first) != 1,
        np.diff(piece[windows]) != 0,
        np.diff(piece[first]) != 0,
    )
    return starts, np.diff(np.append(starts, len(windows)))


def _first_equal(points: Points, at: Rows, hashes: Hashes, width: int) -> Rows:
    """Return for each window the number of the first that has the same characters: itself, if none had before."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = _starts(ordered[1:] != ordered[:-1]) if len(order) else np.empty(0, np.int64)
    first = np.empty(len(at), np.int64)
    first[order] = np.repeat(order[starts], np.diff(np.append(starts, len(order))))
    collided = np.unique(hashes[_different(points, at, first, width)])
    seen: dict[bytes, int] = {}
    for window in np.flatnonzero(np.isin(hashes, collided)).tolist():  # hardly ever: equal hashes, other characters
        first[window] = seen.setdefault(points[at[window] : at[window] + width].tobytes(), window)
    return first


def _different(points: Points, at: Rows, first: Rows, width: int) -> Rows:
    """Return the windows that have not the characters of those that are called their first, by comparing them."""
    windows = np.flatnonzero(first != np.arange(len(at)))
    if not len(windows):
        return windows
    starts = _starts(np.diff(at[windows]) != 1, np.diff(at[first[windows]]) != 1)
    counts = np.diff(np.append(starts, len(windows)))
    lengths = counts + width - 1  # characters of a run of windows
    wrong = [np.empty(0, np.int64)]
    ends = np.cumsum(lengths)
    part = np.searchsorted(ends, np.arange(COMPARED, ends[-1] + COMPARED, COMPARED), "left") + 1
    low = 0
    for high in np.unique(np.minimum(part, len(starts))).tolist():
        size = lengths[low:high]
        begins = np.cumsum(size) - size
        inside = np.arange(int(size.sum())) - np.repeat(begins, size)
        here, there = at[windows[starts[low:high]]], at[first[windows[starts[low:high]]]]
        unequal = points[np.repeat(here, size) + inside] != points[np.repeat(there, size) + inside]
        if unequal.any():
            sums = np.concatenate([[0], np.cumsum(unequal)])
            count = counts[low:high]
            of_run = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
            place = np.repeat(begins, count) + of_run
            numbers = np.repeat(starts[low:high], count) + of_run
            wrong.append(windows[numbers[sums[place + width] != sums[place]]])
        low = high
    return np.concatenate(wrong)
