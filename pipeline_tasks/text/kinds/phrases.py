"""Cut texts into words, and find phrases of up to six of them by hash, in any script and letter case."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import is_alphanumeric, lower
from pipeline_tasks.text.base.characters import ASCII_END, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.small_letters import fold

LONGEST = 6
"""Words of the longest phrase."""

SLOTS = 1 << 13
"""Slots of a table of phrases, a power of two; at most half of them are taken."""

FREE = np.uint64(0)
_PRIME = np.uint64(0x100000001B3)  # FNV-1a
_START = np.uint64(0xCBF29CE484222325)
_JOIN = np.uint64(0xD1342543DE82EF95)


class Phrases(NamedTuple):
    """A table of phrases, and of what they begin with: `keys[slot]` is a hash.

    `firsts[slot]` is its first meaning, -1 of a mere beginning; `nexts` chains meanings.
    """

    keys: npt.NDArray[np.uint64]
    firsts: npt.NDArray[np.int64]
    nexts: npt.NDArray[np.int64]


@inlined
def is_ideograph(code):
    """Return whether a code point is a word of its own: kana, or a Chinese character."""
    return 0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0x20000 <= code <= 0x3FFFF


@inlined
def is_word_sign(code):
    """Return whether a code point above ASCII is of words: signs, punctuation and blanks are not."""
    if code < 0xC0 or code in (0xD7, 0xF7):
        return code in (0xAA, 0xB5, 0xBA)
    if 0x2000 <= code <= 0x2BFF or 0x3000 <= code <= 0x3020 or 0xFF00 <= code <= 0xFF0F:
        return False
    return code not in (0xFEFF, 0xFFFD, 0x60C, 0x61B, 0x61F, 0x964) and code < 0x1F000


@inlined
def word_at(data, at, end):
    """Return (hash, end) of the word that begins at `at`; a hash of 0 and the end of the sign if none does."""
    value = _START
    place = at
    while place < end:
        byte = data[place]
        if byte < ASCII_END:
            if not is_alphanumeric(byte):
                break
            value = (value ^ np.uint64(lower(byte))) * _PRIME
            place += 1
            continue
        code, width = decode(data, place, end)
        if is_ideograph(code) or not is_word_sign(code):
            if place == at and is_ideograph(code):
                return ((value ^ np.uint64(code)) * _PRIME) | np.uint64(1), at + width
            if place == at:
                return FREE, at + width
            break
        value = (value ^ np.uint64(fold(code))) * _PRIME
        place += width
    if place == at:
        return FREE, at + 1
    return value | np.uint64(1), place


@inlined
def joined(before, word):
    """Return the hash of a phrase with one more word."""
    value = (before ^ (before >> np.uint64(29))) * _JOIN + word
    return value | np.uint64(1)


@inlined
def slot_of(keys, key):
    """Return the slot of a key in a table, or the free one in which it would be."""
    slot = np.int64((key >> np.uint64(20)) & np.uint64(SLOTS - 1))
    while keys[slot] != FREE and keys[slot] != key:
        slot = (slot + 1) & (SLOTS - 1)
    return slot


@compiled
def _hash_phrase(data, hashes):
    """Write the hash of the first word of a text, of the first two, and so on; return how many words it has."""
    count, at = 0, 0
    while at < len(data):
        word, at = word_at(data, at, len(data))
        if word != FREE:
            if count < len(hashes):
                hashes[count] = word if count == 0 else joined(hashes[count - 1], word)
            count += 1
    return count


@compiled
def _insert(keys, hashes, count):
    """Put hashes into a table; return the slot of the last."""
    slot = np.int64(0)
    for at in range(count):
        slot = slot_of(keys, hashes[at])
        keys[slot] = hashes[at]
    return slot


def phrase_table(phrases: Sequence[str]) -> Phrases:
    """Return the table of phrases; the meaning of each is its place. ValueError for one without words, or too long."""
    table = Phrases(
        np.zeros(SLOTS, np.uint64), np.full(SLOTS, -1, np.int64), np.full(max(len(phrases), 1), -1, np.int64)
    )
    hashes = np.zeros(LONGEST, np.uint64)
    for meaning, phrase in enumerate(phrases):
        words = _hash_phrase(np.frombuffer(phrase.encode(), np.uint8), hashes)
        if not 1 <= words <= LONGEST:
            message = f"{phrase!r} has {words} words; a phrase has 1 to {LONGEST}"
            raise ValueError(message)
        slot = _insert(table.keys, hashes, words)
        if np.count_nonzero(table.keys) > SLOTS // 2:
            message = f"{len(phrases)} phrases are more than a table of {SLOTS} slots takes"
            raise ValueError(message)
        table.nexts[meaning] = table.firsts[slot]
        table.firsts[slot] = meaning
    for column in table:
        column.setflags(write=False)
    return table
