"""Counts the characters that repeated word n-grams take up in each text."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.compiled import compiled
from pipeline_tasks.text.hashing import GOLDEN
from pipeline_tasks.text.letters import classes
from pipeline_tasks.text.words import Floats, cut, key_of, longest

TOP = (2, 3, 4)
DUPLICATED = (5, 6, 7, 8, 9, 10)


@compiled
def table_size(entries):  # type: ignore[no-untyped-def]
    """Return the power of two that holds `entries` at most half full."""
    size = 16
    while size < 2 * entries:
        size *= 2
    return size


@compiled
def slot_of(keys, mask, key):  # type: ignore[no-untyped-def]
    """Return where `key` is or would go in an open-addressing table whose free slots are 0."""
    slot = np.int64(key) & mask
    while keys[slot] != np.uint64(0) and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def _repeats(grams, live, count, keys, tally, slots):  # type: ignore[no-untyped-def]
    """Count the live n-grams; return (times, first position) of the most frequent, the earliest of equals.

    Afterwards `live` holds only the positions whose n-gram occurs more than once: only those can start a longer
    n-gram that does, so each longer n looks at few positions.
    """
    mask = np.int64(table_size(count) - 1)
    keys[: mask + 1] = 0
    best, first = 0, 0
    for at in range(count):
        if live[at]:
            slot = slot_of(keys, mask, grams[at])
            if keys[slot] == np.uint64(0):
                keys[slot], tally[slot] = grams[at], 0
            slots[at] = slot
            tally[slot] += 1
    for at in range(count):
        if live[at]:
            times = tally[slots[at]]
            if times > best:
                best, first = times, at
            live[at] = times > 1
    return best, first


@compiled
def _greedy(grams, live, count, n, points, keys):  # type: ignore[no-untyped-def]
    """Return the code points in n-grams seen before, read left to right and skipping past each repeat."""
    mask = np.int64(table_size(count) - 1)
    keys[: mask + 1] = 0
    repeated, at = 0, 0
    while at < count:
        if live[at]:
            slot = slot_of(keys, mask, grams[at])
            if keys[slot] != np.uint64(0):
                repeated += points[at + n] - points[at]
                at += n
                continue
            keys[slot] = grams[at]
        at += 1
    return repeated


@compiled
def _measure(offsets, data, rules, index, flags, out):  # type: ignore[no-untyped-def]
    """Fill out[row] with the characters of the top 2-, 3- and 4-gram and of the repeated 5- to 10-grams."""
    room = longest(offsets)
    lengths, hashes, kinds = np.empty(room, np.int32), np.empty(room, np.uint64), np.empty(room, np.uint8)
    grams, live, slots = np.empty(room, np.uint64), np.empty(room, np.bool_), np.empty(room, np.int64)
    points = np.empty(room + 1, np.int64)
    keys, tally = np.empty(16, np.uint64), np.empty(16, np.int64)
    for row in range(len(offsets) - 1):
        words = cut(data, offsets[row], offsets[row + 1], rules[row], index, flags, lengths, hashes, kinds)
        if table_size(words) > len(keys):
            keys, tally = np.empty(table_size(words), np.uint64), np.empty(table_size(words), np.int64)
        points[0] = 0
        for word in range(words):
            points[word + 1] = points[word] + lengths[word]
            grams[word] = hashes[word]
            live[word] = True
        any_live = True
        for n in range(2, 11):
            count = words - n + 1
            if count < 1:
                break
            if n > 4 and not any_live:
                break
            for at in range(count):
                if live[at]:
                    grams[at] = key_of(grams[at] * np.uint64(GOLDEN) + hashes[at + n - 1])
            best, first = _repeats(grams, live, count, keys, tally, slots)
            any_live = best > 1
            if n <= 4:
                times, at = (best, first) if any_live else (1, 0)
                out[row, n - 2] = times * (points[at + n] - points[at] + n - 1)
            elif any_live:
                out[row, n - 2] = _greedy(grams, live, count, n, points, keys)


def measure(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], rules: npt.NDArray[np.uint8]) -> Floats:
    """Return per text the characters of the most frequent n-gram times its count (n of TOP), then of repeats.

    Shape (rows, 9). The most frequent n-gram is joined by spaces, the earliest of equals. Repeats (n of DUPLICATED)
    are joined without spaces and read left to right, each skipping past itself. Both as in huggingface/datatrove
    `src/datatrove/pipeline/filters/gopher_repetition_filter.py`, but n-grams are equal here when their words are.
    """
    out = np.zeros((len(offsets) - 1, len(TOP) + len(DUPLICATED)))
    _measure(offsets, data, rules, *classes(), out)
    return out
