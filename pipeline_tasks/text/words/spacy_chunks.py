"""Cuts the words of an outline as spaCy does: words of letters at sight, any other once for all texts that have it."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.characters import ALPHA, ASCII_END, BLANK, SPACE, class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import HIGH_BITS, byte_at, keep_first, load_eight, load_tail, mark_letters
from pipeline_tasks.text.words.outline import SOLID
from pipeline_tasks.text.words.spacy_exceptions import is_exception_of_letters

SLOTS = 1 << 18
"""Slots of a memory (16 MB). Half of them are used at most; a full memory begins anew."""

COLUMNS, FACTS, FIRST = 8, 1, 2
"""Columns of a memory, which are a line of the processor's cache; that of the facts, and that of the first hash."""

MOST_PIECES = COLUMNS - FIRST
LONGEST = 63
"""Most pieces of a chunk in memory, and most code points of a piece. All but one in 300 chunks of prose are within."""

COUNT_BITS, PIECE_BITS, LENGTH_BITS = np.uint64(3), np.uint64(10), np.uint64(6)
"""Bits of facts: the number of pieces, then per piece its code points and four bits of its kind."""

LOW_KIND, HIGH_KIND = np.uint64(1), np.uint64(6)
"""Where the two pairs of bits are that a kind has."""

PAIR_BITS = np.uint64(3)
ONE, NOTHING = np.uint64(1), np.uint64(0)


class Memory(NamedTuple):
    """The pieces of chunks: white space parts chunks, and rules cut them.

    `rows` is a table of open addresses with a row per chunk: its hash (0: free), the facts of its pieces, the hash of
    each piece. `used` is the number of chunks.
    """

    rows: npt.NDArray[np.uint64]
    used: npt.NDArray[np.int64]


def new_memory(slots: int = SLOTS) -> Memory:
    """Return an empty memory; `slots` is a power of two."""
    return Memory(np.zeros((slots, COLUMNS), np.uint64), np.zeros(1, np.int64))


_memory: list[Memory] = []
_lock = Lock()


@contextmanager
def held_memory() -> Iterator[Memory]:
    """Hold this process's memory: loops release the interpreter's lock, and one at a time may read and write it."""
    with _lock:
        if not _memory:
            _memory.append(new_memory())
        yield _memory[0]


def forget() -> None:
    """Begin with an empty memory, as a new process does."""
    with _lock:
        _memory.clear()


@inlined
def skip_space(data, at, end, index, flags):
    """Return where the white space at `at` ends."""
    while at < end:
        code, width = np.int64(byte_at(data, at)), 1
        if code != BLANK:
            if code > BLANK and code < ASCII_END:
                break
            if code >= ASCII_END:
                code, width = decode(data, at, end)
            if not class_of(index, flags, code) & SPACE:
                break
        at += width
    return at


@inlined
def chunk_end(data, at, end, index, flags):
    """Return where the visible characters from `at` on end."""
    while at < end:
        code, width = np.int64(byte_at(data, at)), 1
        if code <= BLANK or code >= ASCII_END:
            if code >= ASCII_END:
                code, width = decode(data, at, end)
            if class_of(index, flags, code) & SPACE:
                break
        at += width
    return at


@inlined
def is_letters(data, begin, end):
    """Return whether data[begin:end] is ASCII letters, eight bytes at a time."""
    at = begin
    while at + 8 <= end:
        if mark_letters(load_eight(data, at)) != HIGH_BITS:
            return False
        at += 8
    if at == end:
        return True
    eight = load_eight(data, at) if at + 8 <= len(data) else load_tail(data, at)
    return keep_first(~mark_letters(eight) & HIGH_BITS, end - at) == NOTHING


@inlined
def is_one_word(data, begin, end):
    """Return whether data[begin:end] is ASCII letters that no rule cuts: all letters are, but for exceptions."""
    return is_letters(data, begin, end) and not is_exception_of_letters(data, begin, end)


@inlined
def slot_of(memory, value):
    """Return the slot of a chunk's hash, or the free one where it belongs."""
    mask = np.uint64(len(memory.rows) - 1)
    slot = value & mask
    while memory.rows[slot, 0] != value and memory.rows[slot, 0] != NOTHING:
        slot = (slot + ONE) & mask
    return slot


@compiled
def keep(memory, value, words, at, count):
    """Add a chunk that was cut into the `count` words from `at` on, unless they are many or long."""
    facts = np.uint64(count)
    if count > MOST_PIECES:
        return
    for piece in range(count):
        length, kind = np.uint64(words.lengths[at + piece]), np.uint64(words.kinds[at + piece])
        if length > LONGEST:
            return
        pairs = (kind >> LOW_KIND & PAIR_BITS) | (kind >> HIGH_KIND & PAIR_BITS) << np.uint64(2)
        facts |= (length | pairs << LENGTH_BITS) << (COUNT_BITS + PIECE_BITS * np.uint64(piece))
    if 2 * memory.used[0] >= len(memory.rows):
        memory.rows[:] = 0
        memory.used[0] = 0
    row = memory.rows[slot_of(memory, value)]
    row[0], row[FACTS] = value, facts
    for piece in range(count):
        row[FIRST + piece] = words.hashes[at + piece]
    memory.used[0] += 1


@inlined
def write_kept(memory, slot, words, at):
    """Write the pieces of the chunk of a slot to `words` from `at` on; return how many there are."""
    facts = memory.rows[slot, FACTS]
    count = np.int64(facts & np.uint64(7))
    facts >>= COUNT_BITS
    for piece in range(count):
        pairs = facts >> LENGTH_BITS
        kind = (pairs & PAIR_BITS) << LOW_KIND | (pairs >> np.uint64(2) & PAIR_BITS) << HIGH_KIND
        words.lengths[at + piece], words.kinds[at + piece] = facts & np.uint64(LONGEST), kind
        words.hashes[at + piece] = memory.rows[slot, FIRST + piece]
        facts >>= PIECE_BITS
    return count


@inlined
def write_one_word(words, at, length, value):
    """Write a word of letters."""
    words.lengths[at], words.hashes[at], words.kinds[at] = length, value, ALPHA | SOLID
