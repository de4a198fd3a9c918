"""Cut text into folded words, or their characters, over raw UTF-8 buffers, for everything that compares texts.

A word is a run of letters, digits and marks, lower-cased and brought to its compatibility form where
that is one code point (full-width Latin, ligature-free cases). Ideographs, kana and the letters of
scripts written without spaces (Thai, Lao, Tibetan, Myanmar, Khmer) are words of their own, so that
such documents have shingles too. Format characters (soft hyphen, zero-width joiners) are skipped.
"""

import unicodedata
from functools import cache

import numba
import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import SPACE
from pipeline_tasks.text.base.characters import ASCII_END
from pipeline_tasks.text.base.compiled import compiled_as, inlined
from pipeline_tasks.text.base.hashing import absorb, mix
from pipeline_tasks.text.base.utf8 import BYTES, decode_valid, eight_at, encode, leading_alphanumerics

TABLE_SIZE = 0x20000  # planes 0 and 1; planes 2 and 3 are ideographs, the rest are no letters
SEPARATOR, LETTER, ALONE, MARK, SKIPPED = range(5)
_UNSPACED = (
    (0x0E00, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark and zero
    (0x3041, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # CJK ideographs
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # half-width Katakana
)

READ_BYTES = BYTES
READ_OFFSETS = numba.types.Array(numba.int64, 1, "C", readonly=True)  # Arrow buffers may be read-only
READ_HASHES = numba.types.Array(numba.uint64, 1, "C", readonly=True)
_EMPTY = (np.uint64(0), np.uint64(0), np.uint64(0))  # a word with nothing in it yet: hash, waiting bytes, their number


@cache
def fold_table() -> npt.NDArray[np.uint32]:
    """Return class << 24 | folded code point for every code point below `TABLE_SIZE`."""
    return np.fromiter((_folded(point) for point in range(TABLE_SIZE)), dtype=np.uint32, count=TABLE_SIZE)


def _folded(point: int) -> int:
    if 0xD800 <= point <= 0xDFFF:  # surrogates do not occur in UTF-8
        return 0
    category = unicodedata.category(chr(point))
    if category[0] in "ZPSC":
        return (SKIPPED if category == "Cf" else SEPARATOR) << 24
    if category[0] == "M":
        return MARK << 24 | point
    plain = unicodedata.normalize("NFKC", chr(point))
    lower = plain.lower() if len(plain.lower()) == 1 else chr(point)
    alone = any(low <= ord(lower) <= high for low, high in _UNSPACED)
    return (ALONE if alone else LETTER) << 24 | ord(lower)


@inlined
def _classed(point, table):
    """Return the class of a code point and what it folds to."""
    if point < TABLE_SIZE:
        entry = np.int64(table[point])
        return entry >> 24, entry & 0xFFFFFF
    return np.int64(ALONE) if point < 0x40000 else np.int64(SEPARATOR), point


@inlined
def _append(state, waiting, size, count, octets):
    """Add `count` bytes to a word's hash `state`; `size` bytes (fewer than 8) wait until they are 8 with others."""
    shift = np.uint64(8) * size
    whole = waiting | octets << shift
    size += count
    if size < 8:
        return state, whole, size
    left = octets >> (np.uint64(64) - shift) if shift else np.uint64(0)
    return absorb(state, whole), left, size - np.uint64(8)


@inlined
def _word_hash(state, waiting):
    """Return the hash of a word of which `waiting` bytes were not taken in yet."""
    return mix(absorb(state, waiting))


@compiled_as(
    numba.int64(
        READ_BYTES, numba.int64, numba.int64, numba.uint32[::1], numba.uint64[::1], numba.int64[::1], numba.int64[::1]
    )
)
def scan(data, start, end, table, words, starts, ends):
    """Hash the words of `data[start:end]` (valid UTF-8), with first and past-last byte of each; return their number.

    A word's hash is that of its folded UTF-8, taken eight bytes at a time. The arrays must hold
    (end - start + 1) // 2 words, the most there can be.
    """
    state, waiting, size = _EMPTY
    count = 0
    inside = False
    at = start
    while at < end:
        begin = at
        # Read a run of ASCII letters and digits, up to eight bytes at a time, or any other character.
        if data[np.uint64(at)] < ASCII_END:
            taken, octets = leading_alphanumerics(eight_at(data, at), np.uint64(end - at))
            at += np.int64(taken)
            kind = LETTER
            over = taken < 8 and (at == end or data[np.uint64(at)] < ASCII_END)  # a separator, if anything, comes next
        else:
            point, at = decode_valid(data, at)
            kind, point = _classed(point, table)
            taken, octets = encode(point)
            over = kind == ALONE
            if inside and kind in (ALONE, SEPARATOR):  # the word before ends here
                words[count] = _word_hash(state, waiting)
                count += 1
                inside = False
        # Add what was read to the word, or begin one.
        if taken and (kind in (LETTER, ALONE) or (kind == MARK and inside)):
            if not inside:
                starts[count] = begin
                state, waiting, size = _EMPTY
                inside = True
            state, waiting, size = _append(state, waiting, size, taken, octets)
            ends[count] = at
        # End the word before a separator, and pass over that.
        if over:
            if inside:
                words[count] = _word_hash(state, waiting)
                count += 1
                inside = False
            at += kind == LETTER
    if inside:
        words[count] = _word_hash(state, waiting)
        count += 1
    return count


@compiled_as(numba.int64(READ_BYTES, numba.int64, numba.int64, numba.uint32[::1], numba.uint64[::1]))
def spell(data, start, end, table, units):
    """Write the folded characters of the words of `data[start:end]`, a space between words; return their number.

    `units` must hold end - start of them. Characters of scripts written without spaces follow one another.
    """
    count = 0
    apart = False  # whether a separator follows the last character
    at = start
    while at < end:
        point, at = decode_valid(data, at)
        kind, folded = _classed(point, table)
        if kind == SEPARATOR:
            apart = count > 0
        elif kind in (LETTER, ALONE) or (kind == MARK and count > 0 and not apart):
            if apart:
                units[count] = np.uint64(SPACE)
                count += 1
                apart = False
            units[count] = np.uint64(folded)
            count += 1
    return count


def longest(offsets: npt.NDArray[np.int64]) -> int:
    """Return the most words any text between `offsets` can have."""
    return (int(np.diff(offsets).max(initial=0)) + 1) // 2 + 1


def characters(text: str) -> str:
    """Return what `spell` sees of a text, for tests and explanations."""
    data = text.encode()
    units = np.zeros(len(data), np.uint64)
    count = spell(np.frombuffer(data, np.uint8), 0, len(data), fold_table(), units)
    return "".join(chr(unit) for unit in units[:count].tolist())


def words(text: str) -> list[tuple[int, str]]:
    """Return (hash, slice of `text`) for each word: what `scan` sees, for tests and explanations."""
    data = text.encode()
    room = len(data) // 2 + 2
    hashes, starts, ends = np.zeros(room, np.uint64), np.zeros(room, np.int64), np.zeros(room, np.int64)
    count = scan(np.frombuffer(data, np.uint8), 0, len(data), fold_table(), hashes, starts, ends)
    return [(int(hashes[n]), data[starts[n] : ends[n]].decode()) for n in range(count)]
