"""Count letters, punctuation, words and function words of texts, for the score of prose."""

import functools
import string
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base import character_traits
from pipeline_tasks.text.base.ascii import DELETE, SPACE
from pipeline_tasks.text.base.buffers import Bytes, Offsets
from pipeline_tasks.text.base.characters import ASCII_END, class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import byte_at
from pipeline_tasks.text.base.hashing import absorb
from pipeline_tasks.text.base.small_letters import fold
from pipeline_tasks.text.base.utf8 import eight_at, encode, leading_alphanumerics

COUNTS = ("letters", "punctuation", "visible", "words", "stops")
"""ASCII letters and bytes above ASCII, which are letters of other scripts far more often than not; ASCII punctuation
and symbols; bytes that are neither white space nor controls; runs of such bytes; words of the text's list."""

LETTERS, PUNCTUATION, VISIBLE, WORDS, STOPS = range(len(COUNTS))
"""Columns of COUNTS."""

NO_LIST = -1
"""The list of a text whose function words are not counted."""

BLANK_KIND, LETTER_KIND, DIGIT_KIND, SIGN_KIND = range(4)
"""Kinds of bytes."""

SLOTS = 256
"""Places for the words of a list, which has some tens of them."""

LAST_SLOT = np.uint64(SLOTS - 1)
LONGEST = 8
"""UTF-8 bytes of the longest word that a list may have."""

ALNUM = np.uint16(character_traits.ALNUM)
FREE = np.uint64(0)


@inlined
def _is_listed(keys, first, key):
    """Return whether `keys`, from slot `first` on, have `key`."""
    slot = absorb(FREE, key) & LAST_SLOT
    while keys[first + np.int64(slot)] not in (FREE, key):
        slot = (slot + np.uint64(1)) & LAST_SLOT
    return keys[first + np.int64(slot)] == key


@inlined
def _any_word(data, at, end, index, flags):
    """Return (key, end) of a run of letters and digits of any script in lower case; no key if it is too long."""
    key, size = np.uint64(0), np.uint64(0)
    while at < end:
        code, width = decode(data, at, end)
        if not class_of(index, flags, code) & ALNUM:
            break
        taken, octets = encode(fold(code))
        if size + taken <= np.uint64(LONGEST):
            key |= octets << (np.uint64(8) * size)
        size += taken
        at += width
    return (key if size <= np.uint64(LONGEST) else FREE), at


@compiled
def _count_stops(offsets, data, index, flags, keys, lists, out):
    """Fill out[row, STOPS]; words are the longest runs of letters and digits."""
    for row in range(len(lists)):
        at, end, first = offsets[row], offsets[row + 1], lists[row] * SLOTS
        if first < 0:
            continue
        count = 0
        while at < end:
            size, key = leading_alphanumerics(eight_at(data, at), np.uint64(min(end - at, LONGEST)))
            stop = at + np.int64(size)
            if stop < end and (size == np.uint64(LONGEST) or byte_at(data, stop) >= ASCII_END):
                key, stop = _any_word(data, at, end, index, flags)
            if stop > at:
                count += key != FREE and _is_listed(keys, first, key)
                at = stop
            else:
                _, width = decode(data, at, end)
                at += width
        out[row, STOPS] = count


@compiled
def _count_bytes(offsets, data, kinds, out):
    """Fill out[row] with the other COUNTS."""
    for row in range(len(offsets) - 1):
        letters, signs, visible, words, before = 0, 0, 0, 0, np.uint8(0)
        for at in range(offsets[row], offsets[row + 1]):
            kind = kinds[byte_at(data, at)]
            letters += kind == LETTER_KIND
            signs += kind == SIGN_KIND
            visible += kind != BLANK_KIND
            words += (kind != BLANK_KIND) & (before == BLANK_KIND)
            before = kind
        out[row, LETTERS], out[row, PUNCTUATION], out[row, VISIBLE], out[row, WORDS] = letters, signs, visible, words


def prose_signs(
    offsets: Offsets, data: Bytes, lists: npt.NDArray[np.int64], words: Sequence[tuple[str, ...]]
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the COUNTS of each text by name, shape (rows,) each.

    `lists` is the list in `words` of each text, or NO_LIST. Words of lists are in lower case and have at most LONGEST
    bytes (ValueError); those of texts are runs of letters and digits, in simple case folding.
    """
    out = np.zeros((len(offsets) - 1, len(COUNTS)))
    _count_bytes(offsets, data, _byte_kinds(), out)
    _count_stops(offsets, data, *character_traits.traits(), _keys(tuple(words)), lists, out)
    return dict(zip(COUNTS, out.T, strict=True))


@functools.cache
def _keys(words: tuple[tuple[str, ...], ...]) -> npt.NDArray[np.uint64]:
    """Return the packed words of all lists, SLOTS for each, FREE where there is none; found as by `_is_listed`."""
    keys = np.zeros(len(words) * SLOTS, np.uint64)
    for nth, listed in enumerate(words):
        for word in listed:
            octets = word.encode()
            if len(octets) > LONGEST:
                message = f"{word!r} has more than {LONGEST} bytes"
                raise ValueError(message)
            key = np.uint64(int.from_bytes(octets, "little"))
            slot = int(absorb(FREE, key) & LAST_SLOT)
            while keys[nth * SLOTS + slot] not in {FREE, key}:
                slot = (slot + 1) % SLOTS
            keys[nth * SLOTS + slot] = key
    return keys


@functools.cache
def _byte_kinds() -> npt.NDArray[np.uint8]:
    kinds = np.full(256, SIGN_KIND, np.uint8)
    kinds[: SPACE + 1] = kinds[DELETE] = BLANK_KIND
    kinds[ASCII_END:] = LETTER_KIND
    kinds[list(string.ascii_letters.encode())] = LETTER_KIND
    kinds[list(string.digits.encode())] = DIGIT_KIND
    return kinds
