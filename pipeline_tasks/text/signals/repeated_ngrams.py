"""Measure repeated word n-grams as DCLM, Dolma and NeMo Curator do, each by its own definition."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base import character_traits
from pipeline_tasks.text.base.ascii import SPACE
from pipeline_tasks.text.base.characters import count_code_points
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import hash_bytes
from pipeline_tasks.text.base.phrases import occurrences
from pipeline_tasks.text.signals.ngrams import LARGEST, SIZES, SMALLEST, TOP, lengthen, repeated_words, repeats_for
from pipeline_tasks.text.words.word_counts import next_unicode_word, next_word

DCLM, DOLMA, NEMO = 0, 1, 2
"""The definition of repetition; see `ngram_shares`."""

FEW = 1024
"""Words that there is room for at first."""


@compiled
def _read_words(data, begin, end, style, index, flags, begins, ends, hashes, points):
    """Write begin, end and hash of the words of data[begin:end], and the code points before each; return their number.

    Words beyond the room of the arrays are counted only.
    """
    count, at, room = 0, begin, len(begins)
    while True:
        if style == DCLM:
            first, at, length = next_unicode_word(data, at, end, index, flags)
        else:
            first, at, length, _ = next_word(data, at, end, index, flags)
        if first == at:
            return count
        if count < room:
            begins[count], ends[count], hashes[count] = first, at, hash_bytes(data, first, at)
            points[count + 1] = points[count] + length
        count += 1


@inlined
def _longest_top(places, numbers, kept, counts, points, n):
    """Return (occurrences, code points) of the top n-gram, the longest of equals; (1, 0) if none is repeated."""
    most, size = 1, np.int64(0)
    for at in range(kept):
        times, length = counts[numbers[at]], points[places[at] + n] - points[places[at]]
        if times > most or (times == most and length > size):
            most, size = times, length
    return most, size


@inlined
def _covered(places, kept, points, n):
    """Return the code points of words that are in any repeated n-gram, each word once."""
    total, reach = np.int64(0), np.int64(0)
    for at in range(kept):
        first = np.int64(places[at])
        total += points[first + n] - points[max(first, reach)]
        reach = first + n
    return total


@inlined
def _overlapping(places, kept, points, n):
    """Return the code points of repeated n-grams: a word counts once per n-gram."""
    total = np.int64(0)
    for at in range(kept):
        total += points[places[at] + n] - points[places[at]]
    return total


@inlined
def _all_ngrams(points, count, n):
    """Return the code points of all n-grams: a word counts once per n-gram."""
    total = np.int64(0)
    for at in range(count - n + 1):
        total += points[at + n] - points[at]
    return total


@inlined
def _later(places, numbers, kept, points, n, seen):
    """Return the characters of n-grams that occurred before, spaces between words included, overlaps counted once."""
    for at in range(kept):
        seen[numbers[at]] = False
    total, reach = np.int64(0), np.int64(0)
    for at in range(kept):
        first = np.int64(places[at])
        if seen[numbers[at]]:
            begin = max(first, reach)
            total += points[first + n] - points[begin] + min(first + n - begin, n - 1)
            reach = first + n
        seen[numbers[at]] = True
    return total


@compiled
def _replaced(data, begin, end, begins, ends, first, n, points):
    """Return by how many characters data[begin:end] shrinks without the n-gram at word `first`, joined by spaces."""
    size = n - 1
    for word in range(first, first + n):
        size += ends[word] - begins[word]
    gram = np.full(size, SPACE, np.uint8)
    tip = 0
    for word in range(first, first + n):
        width = ends[word] - begins[word]
        gram[tip : tip + width] = data[begins[word] : ends[word]]
        tip += width + 1
    return occurrences(data, begin, end, gram, 0, size, 0) * (points + n - 1)


@inlined
def _repeated_share(style, places, numbers, kept, points, words, n, seen, characters):
    """Return the share of repeated n-grams."""
    if style == DCLM:
        return _covered(places, kept, points, n) / points[words]
    if style == DOLMA:
        return _overlapping(places, kept, points, n) / _all_ngrams(points, words, n)
    return _later(places, numbers, kept, points, n, seen) / characters


@compiled
def _word_room(words):
    """Return room for begin, end and hash of so many words, and for the code points before each and after the last."""
    begins, ends, hashes = np.empty(words, np.int64), np.empty(words, np.int64), np.empty(words, np.uint64)
    return begins, ends, hashes, np.zeros(words + 1, np.int64)


@compiled
def _fill_shares(offsets, data, style, index, flags, out):
    """Fill out[row] with one share per size."""
    room = FEW
    begins, ends, hashes, points = _word_room(room)
    repeats = repeats_for(room)
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        words = _read_words(data, begin, end, style, index, flags, begins, ends, hashes, points)
        if words > room:
            room = words
            begins, ends, hashes, points = _word_room(room)
            repeats = repeats_for(room)
            _read_words(data, begin, end, style, index, flags, begins, ends, hashes, points)
        characters = count_code_points(data, begin, end)
        places, numbers, pairs, seen, table = repeats
        kept = repeated_words(hashes, words, places, numbers, table)
        for n in range(SMALLEST, LARGEST + 1):
            if words < n:
                share = 1.0 if style == NEMO else 0.0
            else:
                kept, most, first = lengthen(places, numbers, kept, pairs, table)
                size = points[first + n] - points[first]
                if n > TOP:
                    share = _repeated_share(style, places, numbers, kept, points, words, n, seen, characters)
                elif style == NEMO:
                    share = _replaced(data, begin, end, begins, ends, first, n, size) / characters
                else:
                    if style == DCLM:
                        most, size = _longest_top(places, numbers, kept, table.counts, points, n)
                    share = most * size / points[words]
            out[row, n - SMALLEST] = share


def ngram_shares(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], style: int) -> npt.NDArray[np.float64]:
    """Return per text the share of the most frequent n-gram (n of 2-4) and of repeated n-grams (5-10), shape (rows, 9).

    DCLM (mlfoundations/dclm `baselines/mappers/filters/content_filters.py`): words of UAX #29 that begin with a letter
    or digit; the longest of the most frequent, and words covered by any repeated n-gram, by characters of words.
    DOLMA (allenai/dolma `python/dolma/taggers/gopher.py`): words of `str.split`; the earliest of the most frequent, by
    characters of words; every occurrence of repeated n-grams, by the characters of all n-grams, overlaps and all.
    NEMO (NVIDIA/NeMo-Curator `nemo_curator/stages/text/filters/heuristic/repetition.py`): words of `str.split`; what
    `str.replace` of the earliest of the most frequent takes away, and what later repeats take up with their spaces,
    by all characters; 1 for a text with fewer words than n. Its ties depend on Python's hash seed, here they do not.
    """
    out = np.zeros((len(offsets) - 1, len(SIZES)))
    _fill_shares(offsets, data, style, *character_traits.traits(), out)
    return out
