"""Counts words as the byte-level pre-tokenizer of GPT-2 cuts them, from which byte-level merges are learned.

A word is a contraction ('s 't 're 've 'm 'll 'd); a run of letters, of numbers, or of other signs, each with the blank
before it; or a run of white space, whose last character is left to what follows (openai/gpt-2 `src/encoder.py`). Which
characters are letters, numbers and white space is asked of `tokenizers`, whose Unicode version is not that of Python.
"""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.text.base.ascii import APOSTROPHE
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import BLANK, Classes, class_of, two_level
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import byte_at, hash_bytes, same_bytes
from pipeline_tasks.text.base.utf8 import decode_valid

SIGN, LETTER, NUMBER, SPACE = range(4)
"""What a character is; all that is none of the others is a sign."""

PATTERNS = {LETTER: r"\p{L}", NUMBER: r"\p{N}", SPACE: r"\s"}

LAST_POINT = 0x3FFFF
"""No code point above it is a letter, a number or white space: the planes are empty, private, or have tags."""

SURROGATES = (0xD800, 0xDFFF)

LOWER_D, LOWER_E, LOWER_L, LOWER_M, LOWER_R, LOWER_S, LOWER_T, LOWER_V = b"delmrstv"

FREE = -1
FEW_WORDS, FEW_BYTES = 1 << 10, 1 << 13
"""Room that a table of words begins with: little, so that the recorded calls have its growth."""

SLOTS_PER_WORD = 4

ROW, PLACE, WORDS = 0, 1, 2
"""Entries of a `_Table`'s state: the row and byte of the texts to go on with, and different words."""


class _Table(NamedTuple):
    """Different words in a table of open addresses: a slot has a word's number or FREE.

    Word i has the bytes `letters[ends[i]:ends[i + 1]]`, their hash, and how often it occurs.
    """

    slots: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    letters: npt.NDArray[np.uint8]
    state: npt.NDArray[np.int64]


def count_byte_level_words(columns: Iterable[pa.Array]) -> tuple[pa.Array, pa.Array]:
    """Return the different words of all texts, in the alphabet of bytes and its order, and how often each occurs.

    Raises ArrowInvalid for a text that is no UTF-8. A null has no words.
    """
    table = _empty(FEW_WORDS, FEW_BYTES)
    for texts in columns:
        texts.validate(full=True)
        table = _counted(texts, table)
    words = _spelled(table)
    order = pc.sort_indices(words)
    return words.take(order), pa.array(table.counts[: table.state[WORDS]]).take(order)


def _counted(texts: pa.Array, table: _Table) -> _Table:
    """Return the table with the words of some more texts counted; it grows whenever it is full."""
    offsets, data = views(texts)
    table.state[ROW], table.state[PLACE] = 0, offsets[0]
    while not _count(offsets, data, *character_kinds(), table):
        table = _grown(table, int(offsets[table.state[ROW] + 1] - table.state[PLACE]))
    return table


def _empty(words: int, size: int) -> _Table:
    """Return a table without words that has room for so many, and so many bytes of them."""
    return _Table(
        np.full(SLOTS_PER_WORD * words, FREE, np.int32),
        np.empty(words, np.uint64),
        np.empty(words, np.int64),
        np.zeros(words + 1, np.int64),
        np.empty(size, np.uint8),
        np.zeros(3, np.int64),
    )


def _grown(table: _Table, size: int) -> _Table:
    """Return the table with twice the room, and room for a word of `size` bytes."""
    words = int(table.state[WORDS])
    used = int(table.ends[words])
    grown = _empty(2 * len(table.counts), max(2 * len(table.letters), used + size))
    grown.hashes[:words] = table.hashes[:words]
    grown.counts[:words] = table.counts[:words]
    grown.ends[: words + 1] = table.ends[: words + 1]
    grown.letters[:used] = table.letters[:used]
    grown.state[:] = table.state
    _place_again(grown)
    return grown


def _spelled(table: _Table) -> pa.Array:
    """Return the words of a table in the alphabet of bytes."""
    ends = table.ends[: table.state[WORDS] + 1]
    letters = alphabet()[table.letters[: ends[-1]]]
    places = np.zeros(len(letters) + 1, np.int64)
    np.cumsum(1 + (letters >= 0x80), out=places[1:])  # none takes more than two bytes in UTF-8
    spelled = letters.tobytes().decode("utf-32-le").encode()
    buffers = [None, pa.py_buffer(places[ends]), pa.py_buffer(spelled)]
    return pa.Array.from_buffers(pa.large_string(), len(ends) - 1, buffers).cast(pa.string())


@cache
def alphabet() -> npt.NDArray[np.uint32]:
    """Return the code point that stands for each byte: the visible Latin-1 characters themselves, others from 256 on.

    Shape (256,); see `bytes_to_unicode` of openai/gpt-2 `src/encoder.py`.
    """
    visible = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    points = np.zeros(256, np.uint32)
    points[visible] = visible
    hidden = np.flatnonzero(points == 0)
    points[hidden] = 256 + np.arange(len(hidden))
    return points


@cache
def character_kinds() -> Classes:
    """Return the table of what each character is to `tokenizers`, shared and read-only; 0.1 s, once per process."""
    from tokenizers import Regex, normalizers

    points = np.arange(1, LAST_POINT + 1, dtype=np.uint32)
    points = points[(points < SURROGATES[0]) | (points > SURROGATES[1])]
    text = points.tobytes().decode("utf-32-le")
    kinds = np.full(0x110000, SIGN, np.uint16)
    for kind, pattern in PATTERNS.items():
        blanked = normalizers.Replace(Regex(pattern), "\0").normalize_str(text)
        kinds[points[np.frombuffer(blanked.encode("utf-32-le"), np.uint32) == 0]] = kind
    return two_level(kinds)


# --- Loops --------------------------------------------------------------------------------------------------------


@compiled
def _count(offsets, data, index, kinds, table):
    """Count the words of texts from the row and byte of `table.state` on; return False where the table is full."""
    slots, hashes, counts, ends, letters, state = table
    mask, words, at = np.uint64(len(slots) - 1), state[WORDS], state[PLACE]
    for row in range(state[ROW], len(offsets) - 1):
        text_end = offsets[row + 1]
        while at < text_end:
            end = _word_end(data, at, text_end, index, kinds)
            value = hash_bytes(data, at, end)
            slot = value & mask
            number = np.int64(slots[slot])
            while number != FREE and not (
                hashes[number] == value and same_bytes(letters, ends[number], ends[number + 1], data, at, end)
            ):
                slot = (slot + np.uint64(1)) & mask
                number = np.int64(slots[slot])
            if number == FREE:
                begin, stop = ends[words], ends[words] + end - at
                if words == len(counts) or stop > len(letters):
                    state[ROW], state[PLACE], state[WORDS] = row, at, words
                    return False
                letters[begin:stop] = data[at:end]
                number, slots[slot] = words, words
                hashes[words], counts[words], ends[words + 1] = value, 0, stop
                words += 1
            counts[number] += 1
            at = end
    state[WORDS] = words
    return True


@inlined
def _word_end(data, at, end, index, kinds):
    """Return where the word ends that begins at byte `at` of a text, which ends at `end`."""
    code, after = decode_valid(data, at)
    if code == APOSTROPHE:
        length = _contraction(data, at, end)
        if length:
            return at + length
    kind, last = class_of(index, kinds, code), at
    if code == BLANK and after < end:
        next_code, next_end = decode_valid(data, after)
        next_kind = class_of(index, kinds, next_code)
        if next_kind != SPACE:
            kind, after = next_kind, next_end
    while after < end:
        code, following = decode_valid(data, after)
        if class_of(index, kinds, code) != kind:
            return last if kind == SPACE and last > at else after
        last, after = after, following
    return end


@inlined
def _contraction(data, at, end):
    """Return the bytes of the contraction that begins with the apostrophe at byte `at`, 0 if none does."""
    if at + 1 >= end:
        return 0
    first = byte_at(data, at + 1)
    if first in (LOWER_S, LOWER_T, LOWER_M, LOWER_D):
        return 2
    if at + 2 >= end:
        return 0
    second = byte_at(data, at + 2)
    with_e = second == LOWER_E and first in (LOWER_R, LOWER_V)
    return 3 if with_e or first == second == LOWER_L else 0


@compiled
def _place_again(table):
    """Insert all words into the slots of a table, which are free."""
    slots, hashes, mask = table.slots, table.hashes, np.uint64(len(table.slots) - 1)
    for word in range(table.state[WORDS]):
        slot = hashes[word] & mask
        while slots[slot] != FREE:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = word
