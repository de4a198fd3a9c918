"""Measures repeated word n-grams as DCLM, Dolma and NeMo Curator do: three functions of one name."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base import character_traits
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.eight_bytes import hash_bytes
from pipeline_tasks.text.base.hashing import mix
from pipeline_tasks.text.base.numbering import number_distinct, numbering_table
from pipeline_tasks.text.base.phrases import occurrences
from pipeline_tasks.text.words.word_counts import next_unicode_word, next_word

DCLM, DOLMA, NEMO = 0, 1, 2
"""How repetition is measured; see `shares`."""

SIZES = tuple(range(2, 11))
TOP = 4
"""Up to this size the most frequent n-gram is measured, from the next on all repeated ones."""

SPACE = 0x20
ODD = np.uint64(0x9E3779B97F4A7C15)


@compiled
def _cut(data, begin, end, style, index, flags, begins, ends, lengths, hashes):
    """Write where the words of data[begin:end] begin and end, their code points and hashes; return how many there are.

    Words beyond the room of the arrays are counted only.
    """
    count, at, room = 0, begin, len(begins)
    while True:
        if style == 0:
            first, at, points = next_unicode_word(data, at, end, index, flags)
        else:
            first, at, points, _ = next_word(data, at, end, index, flags)
        if first == at:
            return count
        if count < room:
            begins[count], ends[count], lengths[count] = first, at, points
            hashes[count] = hash_bytes(data, first, at)
        count += 1


@compiled
def _best(often, slots, points, live, count, n, longest):
    """Return (times, code points, position) of the most frequent n-gram: the longest of equals, or the earliest."""
    best, most, first = 1, points[n], 0
    for at in range(count):
        if live[at]:
            found, size = often[slots[at]], points[at + n] - points[at]
            if found > best or (longest and found == best and size > most):
                best, most, first = found, size, at
    return best, most, first


@compiled
def _covered(often, slots, points, live, count, n):
    """Return the code points of words that lie in any n-gram that occurs more than once."""
    total, reach = 0, 0
    for at in range(count):
        if live[at] and often[slots[at]] > 1:
            total += points[at + n] - points[max(at, reach)]
            reach = at + n
    return total


@compiled
def _overlapping(often, slots, points, live, count, n):
    """Return (code points of n-grams that occur more than once, of all n-grams): words count once per n-gram."""
    repeated, total = 0, 0
    for at in range(count):
        size = points[at + n] - points[at]
        total += size
        if live[at] and often[slots[at]] > 1:
            repeated += size
    return repeated, total


@compiled
def _later(slots, points, live, count, n, seen):
    """Return the characters of n-grams that occurred before, spaces between words included, overlaps counted once."""
    total, overlap = 0, 0
    for at in range(count):
        if live[at]:
            if seen[slots[at]]:
                total += points[at + n] - points[at + overlap] + min(n - overlap, n - 1)
                overlap = n
            seen[slots[at]] = True
        overlap = max(overlap - 1, 0)
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


@compiled
def _shares(offsets, data, style, index, flags, out):
    """Fill out[row] with one share per size."""
    room = 1024
    begins, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    lengths, hashes = np.empty(room, np.int64), np.empty(room, np.uint64)
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        words = _cut(data, begin, end, style, index, flags, begins, ends, lengths, hashes)
        if words > room:
            room = words
            begins, ends = np.empty(room, np.int64), np.empty(room, np.int64)
            lengths, hashes = np.empty(room, np.int64), np.empty(room, np.uint64)
            _cut(data, begin, end, style, index, flags, begins, ends, lengths, hashes)
        characters = 0
        for byte in range(begin, end):
            characters += (data[byte] & 0xC0) != 0x80
        points = np.zeros(words + 1, np.int64)
        for word in range(words):
            points[word + 1] = points[word] + lengths[word]
        table, names = numbering_table(words), np.empty(words, np.int32)
        often = table[2]
        slots, live = np.empty(words, np.int32), np.ones(words, np.bool_)
        grams, asked = hashes[:words].copy(), np.empty(words, np.uint64)
        for n in range(2, 11):
            count = words - n + 1
            if count < 1:
                out[row, n - 2] = 1.0 if style == 2 else 0.0
                continue
            living = 0
            for at in range(count):
                if live[at]:
                    grams[at] = mix(grams[at] * ODD + hashes[at + n - 1])
                    asked[living] = grams[at]
                    living += 1
            number_distinct(asked, living, table, names)
            living = 0
            for at in range(count):
                if live[at]:
                    slots[at] = names[living]
                    living += 1
            if n <= TOP:
                best, most, first = _best(often, slots, points, live, count, n, style == 0)
                if style == 0:
                    out[row, n - 2] = best * most / points[words] if best > 1 else 0.0
                elif style == 1:
                    out[row, n - 2] = best * most / points[words]
                else:
                    shrunk = _replaced(data, begin, end, begins, ends, first, n, points[first + n] - points[first])
                    out[row, n - 2] = shrunk / characters
            elif style == 0:
                out[row, n - 2] = _covered(often, slots, points, live, count, n) / points[words]
            elif style == 1:
                repeated, total = _overlapping(often, slots, points, live, count, n)
                out[row, n - 2] = repeated / total
            else:
                out[row, n - 2] = _later(slots, points, live, count, n, np.zeros(words, np.bool_)) / characters
            for at in range(count):
                live[at] = live[at] and often[slots[at]] > 1


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
    _shares(offsets, data, style, *character_traits.traits(), out)
    return out
