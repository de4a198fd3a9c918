"""Cuts text into folded words over raw UTF-8 buffers, for everything that compares texts by their words.

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

from pipeline_tasks.text.compiled import compiled_as
from pipeline_tasks.text.hashing import absorb, mix

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

READ_BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)  # Arrow buffers may be read-only
READ_OFFSETS = numba.types.Array(numba.int64, 1, "C", readonly=True)
READ_HASHES = numba.types.Array(numba.uint64, 1, "C", readonly=True)


@cache
def fold_table() -> npt.NDArray[np.uint32]:
    """Return class << 24 | folded code point for every code point below `TABLE_SIZE`."""
    return np.fromiter((_folded(point) for point in range(TABLE_SIZE)), dtype=np.uint32, count=TABLE_SIZE)


def _folded(point: int) -> int:
    if 0xD800 <= point <= 0xDFFF:  # surrogates never stand in UTF-8
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


@compiled_as(
    numba.int64(
        READ_BYTES, numba.int64, numba.int64, numba.uint32[::1], numba.uint64[::1], numba.int64[::1], numba.int64[::1]
    )
)
def scan(data, start, end, table, words, starts, ends):  # type: ignore[no-untyped-def]
    """Hash the words of `data[start:end]` (valid UTF-8), with first and past-last byte of each; return their number.

    The arrays must hold (end - start + 1) // 2 words, the most there can be.
    """
    count = 0
    state = np.uint64(0)
    inside = False
    at = start
    while at < end:
        begin = at
        lead = np.uint32(data[at])
        if lead < 0x80:
            point = lead
            at += 1
        elif lead < 0xE0:
            point = (lead & np.uint32(0x1F)) << 6 | np.uint32(data[at + 1] & 0x3F)
            at += 2
        elif lead < 0xF0:
            point = (
                (lead & np.uint32(0x0F)) << 12 | np.uint32(data[at + 1] & 0x3F) << 6 | np.uint32(data[at + 2] & 0x3F)
            )
            at += 3
        else:
            point = (
                (lead & np.uint32(0x07)) << 18
                | np.uint32(data[at + 1] & 0x3F) << 12
                | np.uint32(data[at + 2] & 0x3F) << 6
                | np.uint32(data[at + 3] & 0x3F)
            )
            at += 4
        if point < TABLE_SIZE:
            entry = np.uint32(table[point])
        elif point < 0x40000:
            entry = np.uint32(ALONE << 24) | np.uint32(point)
        else:
            entry = np.uint32(0)
        kind = entry >> np.uint32(24)
        if kind == LETTER or (kind == MARK and inside):
            if not inside:
                starts[count] = begin
                state = np.uint64(0)
                inside = True
            state = absorb(state, np.uint64(entry & np.uint32(0xFFFFFF)))
            ends[count] = at
        elif kind == ALONE:
            if inside:
                words[count] = mix(state)
                count += 1
            starts[count] = begin
            ends[count] = at
            words[count] = mix(absorb(np.uint64(0), np.uint64(entry & np.uint32(0xFFFFFF))))
            count += 1
            inside = False
        elif kind == SEPARATOR and inside:
            words[count] = mix(state)
            count += 1
            inside = False
    if inside:
        words[count] = mix(state)
        count += 1
    return count


def longest(offsets: npt.NDArray[np.int64]) -> int:
    """Return the most words any text between `offsets` can have."""
    return (int(np.diff(offsets).max(initial=0)) + 1) // 2 + 1


def words(text: str) -> list[tuple[int, str]]:
    """Return (hash, slice of `text`) for each word: what `scan` sees, for tests and explanations."""
    data = text.encode()
    room = len(data) // 2 + 2
    hashes, starts, ends = np.zeros(room, np.uint64), np.zeros(room, np.int64), np.zeros(room, np.int64)
    count = scan(np.frombuffer(data, np.uint8), 0, len(data), fold_table(), hashes, starts, ends)
    return [(int(hashes[n]), data[starts[n] : ends[n]].decode()) for n in range(count)]
