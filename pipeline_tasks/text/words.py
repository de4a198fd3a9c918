"""Cuts texts into words and measures them in one pass: lengths, hashes, letters, symbols."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.affixes import cut_chunk
from pipeline_tasks.text.compiled import compiled
from pipeline_tasks.text.hashing import mix
from pipeline_tasks.text.letters import (
    ALPHA,
    ASCII_END,
    MARK,
    PAIRED,
    PUNCTUATION,
    SPACE,
    TERMINAL,
    WORD,
    class_of,
    classes,
    decode,
)

SPLIT, UNICODE, PAIRS, SPACY = 0, 1, 2, 3
"""The rules for what a word is.

SPLIT: what `str.split` gives. UNICODE: runs of letters, marks, digits and `_`; every other visible character is a
word of its own (so punctuation counts as words, as with the spaCy words of huggingface/datatrove); runs of scripts
written without spaces are cut in pairs of code points, because their words are about two long. PAIRS: as SPLIT, and
runs of those scripts are cut in pairs; punctuation belongs to the word before it, as it does in SPLIT. SPACY: the
words of spaCy's blank English tokenizer (`text.affixes`), as huggingface/datatrove counts them.
"""

SOLID = PUNCTUATION
"""Bit of a word's kind, beside ALPHA: some character of it is no punctuation."""

STOPS, MARKS = 1 << 6, 1 << 7
"""Bits of the kind of a SPACY word: it is one sign that ends sentences; it is all punctuation to Unicode."""

FNV_BASIS, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
"""Fowler, Noll and Vo's hash, 64 bits (RFC 9923)."""

Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]


@compiled
def key_of(value):  # type: ignore[no-untyped-def]
    """Return the mixed hash of a 64-bit number as a table key: never 0, which marks a free slot."""
    key = mix(value)
    return key if key != np.uint64(0) else np.uint64(1)


@compiled
def hash_bytes(data, begin, end):  # type: ignore[no-untyped-def]
    """Return the 64-bit FNV-1a hash of data[begin:end], mixed."""
    value = FNV_BASIS
    for at in range(begin, end):
        value = (value ^ np.uint64(data[at])) * FNV_PRIME
    return key_of(value)


@compiled
def cut(data, begin, end, rule, index, flags, lengths, hashes, kinds):  # type: ignore[no-untyped-def]
    """Write code points, hash and kind of every word of data[begin:end]; return the number of words.

    A kind holds ALPHA if any character is a letter and SOLID if any is no punctuation.
    """
    if rule == SPACY:
        return _cut_spacy(data, begin, end, index, flags, lengths, hashes, kinds)
    count, length, script, kind, at = 0, 0, 0, 0, begin
    value = FNV_BASIS
    while at < end:
        code, width = np.int64(data[at]), 1
        if code >= ASCII_END:
            code, width = decode(data, at, end)
        bits = class_of(index, flags, code)
        ends = bits & SPACE
        if rule != SPLIT:
            group = 2 if bits & PAIRED else (1 if bits & WORD else 0)
            if rule == UNICODE:
                ends |= group != script or group == 0 or (group == 2 and length == 2)
                script = group
            elif ends:
                script = 0
            elif group:
                ends |= (script and group != script) or (group == 2 and length >= 2)
                script = group
        if ends and length:
            lengths[count], hashes[count], kinds[count] = length, key_of(value), kind
            count, length, kind, value = count + 1, 0, 0, FNV_BASIS
        if not bits & SPACE:
            length += 1
            kind |= (bits & ALPHA) | (SOLID & ~bits)
            for byte in range(at, at + width):
                value = (value ^ np.uint64(data[byte])) * FNV_PRIME
        at += width
    if length:
        lengths[count], hashes[count], kinds[count] = length, key_of(value), kind
        count += 1
    return count


@compiled
def counted(data, begin, end, index, flags):  # type: ignore[no-untyped-def]
    """Return (words, code points of the longest) of data[begin:end], as `cut` finds them by the rule SPLIT."""
    words, longest_word, length, at = 0, 0, 0, begin
    while at < end:
        code, width = np.int64(data[at]), 1
        if code >= ASCII_END:
            code, width = decode(data, at, end)
        if class_of(index, flags, code) & SPACE:
            words += length > 0
            longest_word = max(longest_word, length)
            length = 0
        else:
            length += 1
        at += width
    return words + (length > 0), max(longest_word, length)


@compiled
def _cut_spacy(data, begin, end, index, flags, lengths, hashes, kinds):  # type: ignore[no-untyped-def]
    """Write the words as `cut` does, by the rule SPACY."""
    ends = np.empty(512, np.int64)
    count, at = 0, begin
    while at < end:
        code, width = decode(data, at, end)
        if class_of(index, flags, code) & SPACE:
            at += width
            continue
        stop = at
        while stop < end:
            code, width = decode(data, stop, end)
            if class_of(index, flags, code) & SPACE:
                break
            stop += width
        if 2 * (stop - at) > len(ends):
            ends = np.empty(2 * (stop - at), np.int64)
        pieces = cut_chunk(data, at, stop, index, flags, ends, 0)
        for piece in range(pieces):
            _weigh(data, at, ends[piece], index, flags, lengths, hashes, kinds, count)
            count += 1
            at = ends[piece]
        at = stop
    return count


@compiled
def _weigh(data, begin, end, index, flags, lengths, hashes, kinds, count):  # type: ignore[no-untyped-def]
    """Write length, hash and kind of the word data[begin:end]."""
    any_bits, all_bits, lacks = np.int64(0), np.int64(0xFFFF), np.int64(0)
    length, at = 0, begin
    while at < end:
        code, width = decode(data, at, end)
        bits = np.int64(class_of(index, flags, code))
        any_bits |= bits
        all_bits &= bits
        lacks |= ~bits
        length += 1
        at += width
    kind = (any_bits & ALPHA) | (SOLID & lacks)
    if all_bits & MARK:
        kind |= MARKS
    if length == 1 and any_bits & TERMINAL:
        kind |= STOPS
    lengths[count], hashes[count], kinds[count] = length, hash_bytes(data, begin, end), kind


@compiled
def longest(offsets):  # type: ignore[no-untyped-def]
    """Return the bytes of the longest text, at least 1: room for the words of any of them."""
    size = 1
    for row in range(len(offsets) - 1):
        size = max(size, offsets[row + 1] - offsets[row])
    return size


@compiled
def _measure(offsets, data, rules, stops, index, flags, out):  # type: ignore[no-untyped-def]
    """Fill out[row] with: solid words, all words, code points of solid words, words with a letter, stop words."""
    room = longest(offsets)
    lengths, hashes, kinds = np.empty(room, np.int32), np.empty(room, np.uint64), np.empty(room, np.uint8)
    for row in range(len(offsets) - 1):
        count = cut(data, offsets[row], offsets[row + 1], rules[row], index, flags, lengths, hashes, kinds)
        solid, points, alpha, seen = 0, 0, 0, 0
        for word in range(count):
            if kinds[word] & SOLID:
                solid += 1
                points += lengths[word]
            if kinds[word] & ALPHA:
                alpha += 1
            for stop in range(len(stops)):
                if hashes[word] == stops[stop]:
                    seen |= 1 << stop
        stop_words = 0
        for stop in range(len(stops)):
            stop_words += seen >> stop & 1
        out[row, 0], out[row, 1], out[row, 2], out[row, 3], out[row, 4] = solid, count, points, alpha, stop_words


@compiled
def _count(offsets, data, rules, index, flags, out):  # type: ignore[no-untyped-def]
    """Fill out[row] with the number of words."""
    room = longest(offsets)
    lengths, hashes, kinds = np.empty(room, np.int32), np.empty(room, np.uint64), np.empty(room, np.uint8)
    for row in range(len(offsets) - 1):
        if rules[row] == SPLIT:
            words, _ = counted(data, offsets[row], offsets[row + 1], index, flags)
        else:
            words = cut(data, offsets[row], offsets[row + 1], rules[row], index, flags, lengths, hashes, kinds)
        out[row] = words


def count(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], rules: npt.NDArray[np.uint8]) -> Floats:
    """Return the number of words per text, shape (rows,); `rules` as for `measure`."""
    out = np.zeros(len(offsets) - 1)
    _count(offsets, data, rules, *classes(), out)
    return out


def measure(
    offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], rules: npt.NDArray[np.uint8], stops: Hashes
) -> Floats:
    """Return per text: solid words, all words, code points of solid words, words with a letter, distinct stop words.

    Shape (rows, 5). A solid word has a character that is no punctuation. `rules` is SPLIT, UNICODE or PAIRS per text,
    `stops` at most 63 hashes of `hashes_of`.
    """
    out = np.zeros((len(offsets) - 1, 5))
    _measure(offsets, data, rules, stops, *classes(), out)
    return out


def hashes_of(words: tuple[str, ...]) -> Hashes:
    """Return the hashes that `cut` gives these words."""
    spelled = [np.frombuffer(word.encode(), np.uint8) for word in words]
    return np.array([hash_bytes(letters, 0, len(letters)) for letters in spelled], np.uint64)
