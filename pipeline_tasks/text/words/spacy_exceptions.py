"""Look up spaCy's English exceptions and its units after a digit, by hash, inside compiled loops."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import inlined
from pipeline_tasks.text.base.hashing import mix
from pipeline_tasks.text.words.spacy_english import AFTER_DIGIT, exceptions

LONGEST = 40
"""No exception has more bytes."""

SLOTS = 4096
"""Slots of a table: about three times the exceptions."""

FNV_BASIS, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@inlined
def spelling_hash(data, begin, end):
    """Return a 64-bit hash of data[begin:end], never 0: FNV-1a, mixed."""
    value = FNV_BASIS
    for at in range(begin, end):
        value = (value ^ np.uint64(data[at])) * FNV_PRIME
    value = mix(value)
    return value if value != np.uint64(0) else np.uint64(1)


def _table(words: Mapping[str, Sequence[str]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return (hashes, packed part sizes), a table of open addresses.

    The bytes of the parts of a word are packed into one number, eight bits each, the first part lowest.
    """
    keys, values = np.zeros(SLOTS, np.uint64), np.zeros(SLOTS, np.int64)
    for word, parts in words.items():
        letters = np.frombuffer(word.encode(), np.uint8)
        key = spelling_hash(letters, 0, len(letters))
        slot = int(key) & SLOTS - 1
        while keys[slot]:
            slot = (slot + 1) & SLOTS - 1
        keys[slot] = key
        values[slot] = sum(len(part.encode()) << 8 * place for place, part in enumerate(parts))
    return keys, values


def _rims(words: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return per pair of bytes whether some word begins with the first and ends with the second, shape (65536,)."""
    rims = np.zeros(1 << 16, np.bool_)
    for word in words:
        letters = word.encode()
        rims[letters[0] << 8 | letters[-1]] = True
    return rims


@inlined
def letter_rim(data, begin, end):
    """Return a number below 32768 of some letters: the first and its case, the last, and how many up to 15."""
    first, last = np.int64(data[begin]), np.int64(data[end - 1])
    return first & 63 | (last & 31) << 6 | min(end - begin, 15) << 11


def _letter_rims(words: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return per `letter_rim` whether some of the words that are ASCII letters has it, shape (32768,)."""
    rims = np.zeros(1 << 15, np.bool_)
    for word in words:
        if word.isascii() and word.isalpha():
            letters = np.frombuffer(word.encode(), np.uint8)
            rims[letter_rim(letters, 0, len(letters))] = True
    return rims


KEYS, VALUES = _table(exceptions())
RIMS = _rims(exceptions())
LETTER_RIMS = _letter_rims(exceptions())
UNIT_KEYS, UNIT_VALUES = _table({unit: (unit,) for unit in AFTER_DIGIT})


@inlined
def _look_up(keys, values, data, begin, end):
    """Return the packed part sizes of data[begin:end] in a table, 0 if it is not there."""
    if end - begin > LONGEST or end <= begin:
        return 0
    key = spelling_hash(data, begin, end)
    slot = np.int64(key) & SLOTS - 1
    while keys[slot] != np.uint64(0):
        if keys[slot] == key:
            return values[slot]
        slot = (slot + 1) & SLOTS - 1
    return 0


@inlined
def exception_parts(data, begin, end):
    """Return the packed part sizes if data[begin:end] is an exception, else 0; first and last byte rule most out."""
    if begin >= end or not RIMS[np.int64(data[begin]) << 8 | data[end - 1]]:
        return 0
    return _look_up(KEYS, VALUES, data, begin, end)


@inlined
def is_exception_of_letters(data, begin, end):
    """Return whether data[begin:end], which is ASCII letters, is an exception."""
    return LETTER_RIMS[letter_rim(data, begin, end)] and exception_parts(data, begin, end) != 0


@inlined
def is_unit(data, begin, end):
    """Return whether data[begin:end] is a unit or currency that is a word of its own after a digit."""
    return _look_up(UNIT_KEYS, UNIT_VALUES, data, begin, end) != 0
