"""Counts the characters that repeated word n-grams take up in each text."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.buffers import Bytes, Offsets
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.hashing import absorb
from pipeline_tasks.text.base.numbering import number_distinct, numbering_table
from pipeline_tasks.text.words import cutting
from pipeline_tasks.text.words.cutting import Floats

TOP = (2, 3, 4)
DUPLICATED = (5, 6, 7, 8, 9, 10)


@inlined
def _repeated_words(hashes, count, table, places, names):
    """Write place and number of every word that is said more than once; return how many."""
    number_distinct(hashes, count, table, names)
    times, kept = table[2], 0
    for at in range(count):
        name = np.uint64(names[at])
        places[kept], names[kept] = at, name
        kept += times[name] > 1
    return kept


@inlined
def _lengthen(places, names, kept, pairs, table):
    """Turn repeated n-grams into those of one more word that are repeated; return (kept, times and place of the most).

    An n-gram is known by its first and its last n - 1 words, and is repeated only if both are: so each size looks at
    fewer places than the one before, and equal numbers are equal words. Of equals the earliest is the most frequent.
    What is not kept is written and overwritten: whether a place stays cannot be foretold, and a wrong guess costs more.
    """
    found = 0
    for at in range(kept - 1):
        place = places[at]
        pairs[found] = absorb(np.uint64(0), np.uint64(names[at]) << np.uint64(32) | np.uint64(names[at + 1]))
        places[found] = place
        found += places[at + 1] == place + 1
    number_distinct(pairs, found, table, names)
    times, best, first, left = table[2], 1, 0, 0
    for at in range(found):
        name = np.uint64(names[at])
        often = times[name]
        if often > best:
            best, first = often, places[at]
        places[left], names[left] = places[at], name
        left += often > 1
    return left, best, first


@inlined
def _points(lengths, at, n):
    """Return the code points of the `n` words from `at` on."""
    points = np.int64(0)
    for word in range(at, at + n):
        points += lengths[word]
    return points


@inlined
def _greedy(places, names, kept, n, lengths, seen):
    """Return the code points in n-grams seen before, read left to right and skipping past each repeat."""
    repeated, free = np.int64(0), np.int64(0)
    for at in range(kept):
        seen[names[at]] = False
    for at in range(kept):
        if places[at] >= free:
            if seen[names[at]]:
                repeated += _points(lengths, places[at], n)
                free = places[at] + n
            else:
                seen[names[at]] = True
    return repeated


@compiled
def _measure_words(hashes, lengths, count, room, out):
    """Fill `out` with the characters of the top 2-, 3- and 4-gram and of the repeated 5- to 10-grams of the words."""
    table, places, names, pairs, seen = room
    kept = _repeated_words(hashes, count, table, places, names)
    for n in range(2, 11):
        if count < n:
            return
        kept, best, first = _lengthen(places, names, kept, pairs, table)
        if n <= 4:
            out[n - 2] = best * (_points(lengths, first, n) + n - 1)
        elif kept == 0:
            return
        else:
            out[n - 2] = _greedy(places, names, kept, n, lengths, seen)


@compiled
def _measure(words, out):
    """Fill out[row] with what `measure` returns."""
    most = 1
    for row in range(len(words.at) - 1):
        most = max(most, words.at[row + 1] - words.at[row])
    places, names, pairs = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint64)
    room = numbering_table(most), places, names, pairs, np.empty(most, np.bool_)
    for row in range(len(words.at) - 1):
        begin, end = words.at[row], words.at[row + 1]
        _measure_words(words.hashes[begin:end], words.lengths[begin:end], end - begin, room, out[row])


def gopher_ngrams(offsets: Offsets, data: Bytes, rules: npt.NDArray[np.uint8]) -> Floats:
    """Return per text the characters of the most frequent n-gram times its count (n of TOP), then of repeats.

    Shape (rows, 9). The most frequent n-gram is joined by spaces, the earliest of equals. Repeats (n of DUPLICATED)
    are joined without spaces and read left to right, each skipping past itself. Both as in huggingface/datatrove
    `src/datatrove/pipeline/filters/gopher_repetition_filter.py`, but n-grams are equal here when their words are.
    """
    out = np.zeros((len(offsets) - 1, len(TOP) + len(DUPLICATED)))
    _measure(cutting.words_of(offsets, data, rules), out)
    return out
