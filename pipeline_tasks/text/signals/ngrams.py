"""Find repeated word n-grams, size by size, and count the characters that they take up by the Gopher rules."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.buffers import Bytes, Offsets
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.hashing import absorb
from pipeline_tasks.text.base.numbering import Numbering, number_distinct, numbering_table
from pipeline_tasks.text.words import cutting
from pipeline_tasks.text.words.cutting import Floats

SMALLEST, TOP, LARGEST = 2, 4, 10
"""Sizes of n-grams. Up to TOP words the most frequent n-gram counts, from the next size on all repeated ones."""

SIZES = tuple(range(SMALLEST, LARGEST + 1))


class Repeats(NamedTuple):
    """Room for the repeated n-grams of a text, in order: their first words and numbers, and hashes of pairs.

    `table.counts` has the occurrences of each number; `seen` is room for a mark per number.
    """

    places: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int32]
    pairs: npt.NDArray[np.uint64]
    seen: npt.NDArray[np.bool_]
    table: Numbering


@compiled
def repeats_for(words):
    """Return room for the repeated n-grams of texts of up to `words` words."""
    places, numbers, pairs = np.empty(words, np.int32), np.empty(words, np.int32), np.empty(words, np.uint64)
    return Repeats(places, numbers, pairs, np.empty(words, np.bool_), numbering_table(words))


@inlined
def repeated_words(hashes, count, places, numbers, table):
    """Write place and number of every word that occurs more than once; return how many there are."""
    number_distinct(hashes, count, table, numbers)
    kept = 0
    for at in range(count):
        number = np.uint64(numbers[at])
        places[kept], numbers[kept] = at, number
        kept += table.counts[number] > 1
    return kept


@inlined
def lengthen(places, numbers, kept, pairs, table):
    """Turn repeated n-grams into the repeated ones of one more word; return (kept, occurrences and place of the most).

    An n-gram is known by its first and its last n - 1 words, and is repeated only if both are: so each size looks at
    fewer places than the one before, and equal numbers are equal words. Of equals the earliest is the most frequent;
    if none is repeated, it is that of place 0, which occurs once. Places are written before it is known whether they
    are kept, because a branch that the processor cannot predict costs more.
    """
    count = 0
    for at in range(kept - 1):
        place = places[at]
        pair = np.uint64(numbers[at]) << np.uint64(32) | np.uint64(numbers[at + 1])
        pairs[count], places[count] = absorb(np.uint64(0), pair), place
        count += places[at + 1] == place + 1
    number_distinct(pairs, count, table, numbers)
    most, first, left = 1, 0, 0
    for at in range(count):
        number = np.uint64(numbers[at])
        times = table.counts[number]
        if times > most:
            most, first = times, places[at]
        places[left], numbers[left] = places[at], number
        left += times > 1
    return left, most, first


@inlined
def _points(lengths, at, n):
    """Return the code points of the `n` words from `at` on."""
    points = np.int64(0)
    for word in range(at, at + n):
        points += lengths[word]
    return points


@inlined
def _greedy(places, numbers, kept, n, lengths, seen):
    """Return the code points in n-grams seen before, read left to right and skipping past each repeat."""
    repeated, free = np.int64(0), np.int64(0)
    for at in range(kept):
        seen[numbers[at]] = False
    for at in range(kept):
        if places[at] >= free:
            if seen[numbers[at]]:
                repeated += _points(lengths, places[at], n)
                free = places[at] + n
            else:
                seen[numbers[at]] = True
    return repeated


@compiled
def _count_gopher(hashes, lengths, count, repeats, out):
    """Fill `out` with the characters of the top n-gram up to the size TOP, then of repeated n-grams."""
    places, numbers, pairs, seen, table = repeats
    kept = repeated_words(hashes, count, places, numbers, table)
    for n in range(SMALLEST, LARGEST + 1):
        if count < n:
            return
        kept, most, first = lengthen(places, numbers, kept, pairs, table)
        if n <= TOP:
            out[n - SMALLEST] = most * (_points(lengths, first, n) + n - 1)
        elif kept == 0:
            return
        else:
            out[n - SMALLEST] = _greedy(places, numbers, kept, n, lengths, seen)


@compiled
def _count_all(words, out):
    """Fill out[row] with what `gopher_ngrams` returns."""
    most = 1
    for row in range(len(words.at) - 1):
        most = max(most, words.at[row + 1] - words.at[row])
    repeats = repeats_for(most)
    for row in range(len(words.at) - 1):
        begin, end = words.at[row], words.at[row + 1]
        _count_gopher(words.hashes[begin:end], words.lengths[begin:end], end - begin, repeats, out[row])


def gopher_ngrams(offsets: Offsets, data: Bytes, rules: npt.NDArray[np.uint8]) -> Floats:
    """Return per text the characters of the most frequent n-gram times its count up to TOP words, then of repeats.

    Shape (rows, sizes). The most frequent n-gram is joined by spaces, the earliest of equals. Repeats are joined
    without spaces and read left to right, each skipping past itself. Both as in huggingface/datatrove
    `src/datatrove/pipeline/filters/gopher_repetition_filter.py`, but n-grams are equal here when their words are.
    """
    out = np.zeros((len(offsets) - 1, len(SIZES)))
    _count_all(cutting.words_of(offsets, data, rules), out)
    return out
