"""Find the words and line breaks of texts in one pass, for all filters that read the same texts."""

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import LOWER_A, LOWER_Z, NEWLINE, RETURN
from pipeline_tasks.text.base.buffers import Bytes, Offsets
from pipeline_tasks.text.base.characters import (
    ALPHA,
    ASCII_END,
    BLANK,
    BREAK,
    PUNCTUATION,
    SPACE,
    TERMINAL,
    WORD,
    class_of,
    classes,
    decode,
)
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import (
    HASH_START,
    HIGH_BITS,
    byte_at,
    finish_hash,
    first_marked,
    hash_bytes,
    keep_first,
    load_eight,
    load_tail,
    mark_blanks,
    mark_digits,
    mark_letters,
)
from pipeline_tasks.text.base.hashing import absorb

SOLID = PUNCTUATION
"""Bit of a word's kind, next to ALPHA: some character of it is no punctuation."""

VISIBLE, ENDS = 1 << 3, 1 << 4
"""Bits of a word's kind: it has more than signs that end sentences, quotes and brackets that close; its last such sign
(quotes and brackets may follow) ends a sentence."""

WIDE, WIDE_STOP, ODD_BREAK = 1, 2, 4
"""Bits of a text: it is not all ASCII; ends of sentences in it are not ASCII; its lines break at more than newlines."""

FILE_SEPARATOR, RECORD_SEPARATOR = 0x1C, 0x1E
ASCII_ENDS = (ord("!"), ord("."), ord("?"))
CLOSERS = (ord('"'), ord("'"), ord(")"), ord("]"), ord("\u2019"), ord("\u201d"))
"""Quotes and brackets that may follow the end of a sentence; the last two are the curly quotes."""

NEXT_LINE_LEAD, OGHAM_LEAD, SEPARATOR_LEAD, IDEOGRAPHIC_LEAD = 0xC2, 0xE1, 0xE2, 0xE3
"""First bytes of white space beyond ASCII: U+0085 and U+00A0, U+1680, U+2000 to U+205F, U+3000."""

Counts = npt.NDArray[np.int64]


class Outline(NamedTuple):
    """The words (as `str.split` cuts) and line breaks (as `str.splitlines`) of texts.

    Text i has words `words_at[i]:words_at[i + 1]` and breaks `breaks_at[i]:breaks_at[i + 1]`; `traits[i]` has its bits.
    Per word: code points, hash (`eight_bytes.hash_bytes`), kind (ALPHA, SOLID, VISIBLE, ENDS). Per break: the byte
    where it begins, its bytes, and the number of the first word after it.
    """

    words_at: Counts
    lengths: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.uint64]
    kinds: npt.NDArray[np.uint8]
    breaks_at: Counts
    places: Counts
    widths: npt.NDArray[np.uint8]
    first_words: Counts
    traits: npt.NDArray[np.uint8]


class _Cached(NamedTuple):
    """The texts of the last outline. They are kept alive, so that no other texts can have their address."""

    offsets: Offsets
    data: Bytes
    outline: Outline


class _Last(threading.local):
    """What a thread has read last: another's may change between two looks at it."""

    cached: _Cached | None = None


_last = _Last()


def outline_of(offsets: Offsets, data: Bytes) -> Outline:
    """Return the outline of texts as `buffers.views` gives them; those of the last call are not read again."""
    last = _last.cached
    if last is not None and _same(last.offsets, offsets) and _same(last.data, data):
        return last.outline
    return set_outline(offsets, data, read_outline(offsets, data))


def set_outline(offsets: Offsets, data: Bytes, outline: Outline) -> Outline:
    """Let `outline_of` return `outline` for these texts; return it."""
    _last.cached = _Cached(offsets, data, outline)
    return outline


def _same(left: npt.NDArray[np.generic], right: npt.NDArray[np.generic]) -> bool:
    """Return whether two arrays are views of the same memory."""
    return len(left) == len(right) and left.ctypes.data == right.ctypes.data


def read_outline(offsets: Offsets, data: Bytes) -> Outline:
    """Read the texts once and return their outline."""
    rows = len(offsets) - 1
    words, breaks = _room(offsets, data)
    target = empty_outline(rows, words, breaks)
    _read_texts(offsets, data, *classes(), target)
    return trim_outline(target)


def empty_outline(rows: int, words: int, breaks: int) -> Outline:
    """Return an outline with room for this many rows, words and breaks."""
    return Outline(
        np.zeros(rows + 1, np.int64),
        np.empty(words, np.int32),
        np.empty(words, np.uint64),
        np.empty(words, np.uint8),
        np.zeros(rows + 1, np.int64),
        np.empty(breaks, np.int64),
        np.empty(breaks, np.uint8),
        np.empty(breaks, np.int64),
        np.zeros(rows, np.uint8),
    )


def trim_outline(outline: Outline) -> Outline:
    """Return `outline` without its unused room."""
    words, breaks = int(outline.words_at[-1]), int(outline.breaks_at[-1])
    sizes = dict.fromkeys(("lengths", "hashes", "kinds"), words)
    sizes |= dict.fromkeys(("places", "widths", "first_words"), breaks)
    return outline._replace(**{name: getattr(outline, name)[:size] for name, size in sizes.items()})


@compiled
def _room(offsets, data):
    """Return an upper bound of words and of breaks: both need a byte that may begin white space."""
    text = data[offsets[0] : offsets[-1]]
    words, breaks = 0, 0
    for at in range(len(text)):
        byte = text[at]
        wide = (byte == NEXT_LINE_LEAD) | (byte == SEPARATOR_LEAD)
        words += (byte <= BLANK) | wide | (byte == OGHAM_LEAD) | (byte == IDEOGRAPHIC_LEAD)
        breaks += wide | ((byte >= NEWLINE) & (byte <= RETURN))
        breaks += (byte >= FILE_SEPARATOR) & (byte <= RECORD_SEPARATOR)
    return words + len(offsets), breaks


@compiled
def _read_texts(offsets, data, index, flags, target):
    """Fill the outline text by text."""
    words, breaks = 0, 0
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        words, breaks, target.traits[row] = read_text(data, begin, end, index, flags, target, words, breaks)
        target.words_at[row + 1], target.breaks_at[row + 1] = words, breaks


@compiled
def read_text(data, begin, end, index, flags, target, words, breaks):
    """Append the words and breaks of data[begin:end] to `target`; return its words, its breaks and the text's bits."""
    at, bits_of_text = begin, np.int64(0)
    lengths, hashes, kinds = target.lengths, target.hashes, target.kinds
    while True:
        # white space and line breaks before the next word
        while at < end:
            if byte_at(data, at) == BLANK:
                at += 1
                continue
            code, width, bits = _space_at(data, at, end, index, flags)
            if width == 0:
                break
            if bits & BREAK:
                target.places[breaks], target.widths[breaks], target.first_words[breaks] = at, width, words
                breaks += 1
                bits_of_text |= ODD_BREAK * (code != NEWLINE)
            bits_of_text |= WIDE * (code >= ASCII_END)
            at += width
        if at >= end:
            return words, breaks, bits_of_text
        # the word: eight bytes at a time while it is ASCII, else code point by code point
        first = at
        at, value, alpha, digits = _ascii_run(data, at, end)
        if _goes_on(data, at, end, index, flags):
            at, lengths[words], kinds[words], bits = _wide_word(data, first, end, index, flags)
            hashes[words] = hash_bytes(data, first, at)
            bits_of_text |= bits
        else:
            lengths[words], hashes[words] = at - first, finish_hash(value, at - first)
            kinds[words] = _ascii_kind(data, first, at, alpha, digits)
        words += 1


@inlined
def _space_at(data, at, end, index, flags):
    """Return (code point, bytes, class) of the white space at `at`, no bytes if there is none; CR LF has two bytes."""
    code, width = np.int64(byte_at(data, at)), 1
    if BLANK < code < ASCII_END:
        return code, 0, np.uint16(0)
    if code >= ASCII_END:
        code, width = decode(data, at, end)
    bits = class_of(index, flags, code)
    if not bits & SPACE:
        return code, 0, bits
    if code == RETURN and at + 1 < end and byte_at(data, at + 1) == NEWLINE:
        width = 2
    return code, width, bits


@inlined
def _ascii_run(data, at, end):
    """Return (end, unfinished hash, marks of letters, marks of digits) of the visible ASCII from `at` on."""
    value, alpha, digits, safe = HASH_START, np.uint64(0), np.uint64(0), len(data) - 7
    while True:
        eight = load_eight(data, at) if at < safe else load_tail(data, at)
        size = min(first_marked(mark_blanks(eight) | (eight & HIGH_BITS)), end - at)
        if size < 8:
            eight = keep_first(eight, size)
        alpha |= mark_letters(eight)
        digits |= mark_digits(eight)
        if size:
            value = absorb(value, eight)
        at += size
        if size < 8 or at == end:
            return at, value, alpha, digits


@inlined
def _goes_on(data, at, end, index, flags):
    """Return whether a word goes on after its visible ASCII, which ends at `at`."""
    code = np.int64(byte_at(data, at)) if at < end else np.int64(BLANK)
    return code != BLANK and (code >= ASCII_END or not class_of(index, flags, code) & SPACE)


@inlined
def _ascii_kind(data, first, end, alpha, digits):
    """Return the kind of an ASCII word; one that ends with a small letter ends no sentence."""
    kind = ALPHA * (alpha != np.uint64(0))
    if (alpha | digits) != np.uint64(0):
        kind |= SOLID | VISIBLE
    if kind == 0 or not LOWER_A <= byte_at(data, end - 1) <= LOWER_Z:
        kind |= _ending(data, first, end)
    return kind


@inlined
def _closes(code):
    """Return whether a code point is a quote or bracket that may follow the end of a sentence."""
    return code in CLOSERS


@inlined
def _ends(byte):
    """Return whether an ASCII character ends sentences."""
    return byte in ASCII_ENDS


@inlined
def _ending(data, first, end):
    """Return the bits VISIBLE and ENDS of an ASCII word, read from its end."""
    kind, at = 0, end
    while at > first:
        byte = byte_at(data, at - 1)
        if _ends(byte):
            kind |= ENDS
        elif not _closes(byte):
            return kind | VISIBLE
        at -= 1
    return kind


@inlined
def _wide_word(data, at, end, index, flags):
    """Return (end, code points, kind, bits of the text) of the word at `at`, code point by code point."""
    length, kind, bits_of_text = 0, 0, 0
    while at < end:
        code, width = decode(data, at, end)
        bits = class_of(index, flags, code)
        if bits & SPACE:
            break
        bits_of_text |= WIDE * (code >= ASCII_END)
        kind |= (bits & ALPHA) | (SOLID & ~bits)
        if bits & TERMINAL and not bits & WORD:
            kind |= ENDS
            bits_of_text |= WIDE_STOP * (code >= ASCII_END)
        elif bits & WORD or not _closes(code):
            kind = (kind | VISIBLE) & ~ENDS
        length += 1
        at += width
    return at, length, np.uint8(kind), bits_of_text
