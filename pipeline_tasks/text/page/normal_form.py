"""Normalizes texts: NFC, no control characters, tidy blanks, layout kept; a whole column at once."""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import (
    DELETE,
    FORM_FEED,
    NEWLINE,
    RETURN,
    SPACE,
    TAB,
    VERTICAL_TAB,
    starts_character,
)
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import ASCII_END, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import HIGH_BITS, LOW_BITS, copy, first_marked, load_eight, mark_blanks
from pipeline_tasks.text.base.replacing import replace_rows

MARKS = 32
"""Combining marks in a row that are kept: NFC sorts each run in quadratic time, no script needs more than about ten."""

_FIRST_MARK = 0x300  # below it, NFC leaves every character as it is
_REPLACEMENT = 0xFFFD
_EIGHT = 8
_ONES, _SPACES = np.uint64(0x0101010101010101), np.uint64(0x2020202020202020)

_BLANK, _BREAK, _NOTHING, _REPLACED, _SEPARATOR = 1, 2, 3, 4, 5
_ZERO_WIDTH_SPACE = 0x200B
_UNSEEN = (0xAD, 0x2060)  # soft hyphen and word joiner: places to break a line, or not to
_KIND, _RANK = 9, 0x1FE  # of the entry of a character: bits below its kind, bits of its combining class
_OPEN, _BROKEN, _MARKED = 1, 2, 4  # bits of a text: NFC has to look at it; it is no UTF-8; it has too many marks
_BITS = 3
_LINE_ENDS = 3  # in a row that are kept: code has two empty lines between its functions


class Normal(NamedTuple):
    """Texts in normal form (large_string), their code points, and U+FFFD per code point of each original text."""

    texts: pa.Array
    chars: npt.NDArray[np.int64]
    replaced: npt.NDArray[np.float64]


def normalize(texts: pa.Array, *, keeps_invisible: bool = False) -> Normal:
    """Return each text of a string column in NFC without controls, blanks at the ends of lines and other blanks.

    Soft hyphens, word joiners and zero-width spaces are left out, as they split words that readers see whole; before
    letters of Southeast Asia, where words have no blanks between, a zero-width space stays. `keeps_invisible` leaves
    all of them in.

    Layout is kept (code, lists and tables need it): line ends, two empty lines in a row at most, spaces and tabs
    wherever they are. Where other blanks are among them, a row of blanks is one space, or as many as it has in front
    of a line. Methods of extraction leave one space where a page shows one. A null is an empty text. Takes time and
    memory linear in the column.
    """
    offsets, data = views(texts)
    out, ends = np.empty(int(offsets[-1] - offsets[0]), np.uint8), np.zeros(len(offsets), np.int64)
    facts = np.zeros((len(offsets) - 1, 3), np.int64)
    _tidy(offsets, data, *_marks(keeps_invisible), out, ends, facts)
    tidy = pa.LargeStringArray.from_buffers(len(facts), pa.py_buffer(ends), pa.py_buffer(out))
    chars, replaced = facts[:, 0].copy(), facts[:, 2] / np.maximum(facts[:, 1] >> _BITS, 1)
    normal = Normal(tidy, chars, replaced)
    doubtful = np.flatnonzero(facts[:, 1] & (_OPEN | _BROKEN))
    return _compose(texts, normal, doubtful, facts[doubtful, 1], keeps_invisible) if len(doubtful) else normal


def _compose(
    texts: pa.Array,
    tidy: Normal,
    rows: npt.NDArray[np.intp],
    bits: npt.NDArray[np.int64],
    keeps_invisible: bool,
) -> Normal:
    """Return the same with `rows`, which have `bits`, in NFC; broken ones are decoded with U+FFFD first."""
    whole = []
    for row, bit in zip(rows.tolist(), bits.tolist(), strict=True):
        if bit & _BROKEN:
            whole_text = pa.array([_bytes(texts, row).decode("utf-8", "replace")], pa.large_string())
            repaired = normalize(whole_text, keeps_invisible=keeps_invisible)
            whole.append(repaired.texts[0].as_py())
            tidy.replaced[row] = repaired.replaced[0]
        else:
            text = tidy.texts[row].as_py()
            whole.append(unicodedata.normalize("NFC", cap_marks(text) if bit & _MARKED else text))
        tidy.chars[row] = len(whole[-1])
    return tidy._replace(texts=replace_rows(tidy.texts, rows.tolist(), pa.array(whole, pa.large_string())))


def _bytes(texts: pa.Array, row: int) -> bytes:
    offsets, data = views(texts.slice(row, 1))
    return data[offsets[0] : offsets[1]].tobytes()


def normalize_text(text: str) -> str:
    """Return one text in normal form; see `normalize`."""
    form: str = normalize(pa.array([text.encode("utf-8", "ignore").decode()], pa.large_string())).texts[0].as_py()
    return form


@compiled
def _tidy(offsets, data, index, flags, out, ends, facts):
    """Write each text without controls, its blanks tidy, to `out`, and where it ends there.

    Row by row, `facts` gets: code points written; code points read (0 where none was U+FFFD), shifted by the bits of
    the text; U+FFFD read. `ends` has one more entry than there are rows.
    """
    to = 0
    for row in range(len(offsets) - 1):
        first, end = to, offsets[row + 1]
        to, replaced, state = _tidy_text(data, offsets[row], end, index, flags, out, to)
        ends[row + 1] = to
        facts[row, 0], facts[row, 2] = _points(out, first, to), replaced
        facts[row, 1] = (_points(data, offsets[row], end) if replaced else 0) << _BITS | state


@compiled
def _tidy_text(data, at, end, index, flags, out, to):
    """Write data[at:end] tidy to out[to:]; return (where it ends there, U+FFFD read, bits of the text)."""
    first = to
    lines = blanks = since = 0  # what may still come before the next sign: line ends, then blanks, which are there
    is_plain = True  # these blanks are spaces and tabs, with nothing else among them
    replaced = state = 0
    run, previous = 0, np.int64(0)  # marks in a row, combining class of the last
    while at < end:
        code, width = decode(data, at, end)
        known = _known(index, flags, code)
        kind = known >> _KIND
        if not _is_sound(data, at, code, width):
            state |= _BROKEN
        replaced += kind == _REPLACED
        if kind == _SEPARATOR and not _is_southeast_asian(data, at + width, end):
            is_plain = False
            at += width
            continue
        if 0 < kind < _REPLACED:  # white space and controls
            if kind == _BREAK:
                lines, blanks = lines + 1, 0
            else:
                since = since if blanks else at
                is_plain = (is_plain or not blanks) and kind == _BLANK and width == 1
                blanks += kind == _BLANK
            at += _break_width(data, at, end, code, width)
            continue
        if lines or blanks:  # a sign behind a gap
            to = _write_lines(out, to, lines, to == first)
            is_front = lines > 0 or to == first
            if is_plain:
                copy(data, since, blanks, out, to)
            to = to + blanks if is_plain else _write_spaces(out, to, blanks if is_front else min(blanks, 1))
            lines = blanks = 0
            run, previous = 0, np.int64(0)
        rank = (known & _RANK) >> 1
        run = run + 1 if rank else 0
        state |= _mark_bits(known, rank, previous, run)
        previous = rank
        stop = _tidy_end(data, at + width, end, index, flags)
        if stop > at + width:
            run, previous = 0, np.int64(0)
        copy(data, at, stop - at, out, to)
        to, at = to + stop - at, stop
    return to, replaced, state


@inlined
def _is_southeast_asian(data, at, end):
    """Return whether a character of Thai, Lao, Tibetan, Burmese, Khmer or a script beside them is at `at`."""
    code = decode(data, at, end)[0] if at < end else 0
    return 0xE00 <= code < 0x10A0 or 0x1780 <= code < 0x1800 or 0x1950 <= code < 0x1AB0


@inlined
def _break_width(data, at, end, code, width):
    """Return the bytes of a character; CR LF counts as one character."""
    is_pair = code == RETURN and at + width < end and data[at + width] == NEWLINE
    return width + is_pair


@inlined
def _write_lines(out, to, lines, is_first):
    """Write the line ends before a sign; return where they end."""
    lines = 0 if is_first else min(lines, _LINE_ENDS)
    for at in range(to, to + lines):
        out[at] = NEWLINE
    return to + lines


@inlined
def _write_spaces(out, to, spaces):
    """Write spaces; return where they end."""
    for at in range(to, to + spaces):
        out[at] = SPACE
    return to + spaces


@inlined
def _mark_bits(known, rank, previous, run):
    """Return the bits of a text with this character, whose combining class is `rank`, the last one's `previous`."""
    if run > MARKS:
        return _OPEN | _MARKED
    return _OPEN if known & 1 or 0 < rank < previous else 0


@inlined
def _tidy_end(data, at, end, index, flags):
    """Return where text that begins behind a sign is no longer as it is kept: signs, between them a gap at most.

    A gap is a space, or one or two newlines. Signs are all characters whose entry in `_marks` is 0.
    """
    while True:
        at = _ascii_end(data, at, end)
        behind = _gap_end(data, at, end)
        stop = _signs_end(data, behind, end, index, flags)
        if stop == behind:
            return at
        at = stop


@inlined
def _ascii_end(data, at, end):
    """Return where signs of ASCII and single spaces before them end, up to eight bytes too early at the end."""
    while at + _EIGHT <= end:  # most of most texts
        size = first_marked(_untidy(load_eight(data, at)))
        at += size
        if size < _EIGHT:
            break
    return at


@inlined
def _gap_end(data, at, end):
    """Return where a space, or one or two newlines, at `at` end."""
    if at < end and data[at] == SPACE:
        return at + 1
    if at < end and data[at] == NEWLINE:
        return at + 2 if at + 1 < end and data[at + 1] == NEWLINE else at + 1
    return at


@inlined
def _signs_end(data, at, end, index, flags):
    """Return where signs end: before anything that is none, or behind the last one before ASCII."""
    while at < end:
        code, width = decode(data, at, end)
        if _known(index, flags, code) or not _is_sound(data, at, code, width):
            break
        at += width
        if at < end and data[at] < DELETE:
            break
    return at


@inlined
def _untidy(word):
    """Mark each of eight bytes that is no sign of ASCII and no space before one; a space at the end is marked."""
    other = word ^ _SPACES
    spaces = ~(((other & LOW_BITS) + LOW_BITS) | other) & HIGH_BITS
    signs = ~(mark_blanks(word) | word | ((word & LOW_BITS) + _ONES)) & HIGH_BITS
    return ~(signs | (spaces & (signs >> np.uint64(8)))) & HIGH_BITS


@inlined
def _known(index, flags, code):
    """Return the entry of a character in `_marks`."""
    return np.int64(flags[(np.int64(index[code >> 8]) << 8) | (code & 0xFF)])


@inlined
def _is_sound(data, at, code, width):
    """Return whether a character is decoded as its bytes say: no broken or overlong sequence, no surrogate."""
    if width == 1:
        return code < ASCII_END
    if (data[at + 1] & 0xC0) != 0x80 or (width > 2 and (data[at + 2] & 0xC0) != 0x80):
        return False
    if width < 4:
        return not 0xD800 <= code < 0xE000 and (width == 2 or code >= 0x800)
    return (data[at + 3] & 0xC0) == 0x80 and code >= 0x10000  # above U+10FFFF it is U+FFFD, of four bytes


@compiled
def _points(data, begin, end):
    """Return the number of code points of data[begin:end]."""
    part, count = data[begin:end], 0
    for at in range(len(part)):
        count += starts_character(part[at])
    return count


@cache
def _marks(keeps_invisible: bool) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """Return a table in two levels, (block of cp >> 8, block * 256 + (cp & 255)); 0 is a character that is kept.

    Else: doubt of NFC + combining class * 2 + 512 times how it is taken: `_BLANK`, `_BREAK`, `_NOTHING`, `_REPLACED`,
    `_SEPARATOR`.
    Doubtful is what NFC changes when it is alone, or what may join the character before it (UAX 15, quick check).
    """
    table = np.zeros(0x110000, np.uint16)
    joining = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul vowels and final consonants
    for code in (*range(_FIRST_MARK, 0x32400), *range(0xE0000, 0xE0200)):
        letter = chr(code)
        table[code] = unicodedata.combining(letter) << 1 | (not unicodedata.is_normalized("NFC", letter))
        parts = unicodedata.decomposition(letter)
        if parts and parts[0] != "<":
            joining.update(int(part, 16) for part in parts.split()[1:])
    for code in range(_FIRST_MARK):
        parts = unicodedata.decomposition(chr(code))
        if parts and parts[0] != "<":
            joining.update(int(part, 16) for part in parts.split()[1:])
    table[sorted(joining)] |= 1
    kinds = {
        _NOTHING: [*range(SPACE), *range(DELETE, 0xA0), *range(0xD800, 0xE000), 0xFEFF, 0xFFFE, 0xFFFF],
        _BLANK: [TAB, SPACE, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000],
        _BREAK: [NEWLINE, VERTICAL_TAB, FORM_FEED, RETURN, 0x85, 0x2028, 0x2029],
        _REPLACED: [_REPLACEMENT],
    }
    if not keeps_invisible:
        kinds[_NOTHING] += _UNSEEN
        kinds[_SEPARATOR] = [_ZERO_WIDTH_SPACE]
    for kind, codes in kinds.items():  # blanks and breaks after the controls that they are among
        table[codes] = kind << _KIND
    blocks, index = np.unique(table.reshape(-1, 256), axis=0, return_inverse=True)
    return index.reshape(-1).astype(np.uint16), np.ascontiguousarray(blocks).reshape(-1)


def cap_marks(text: str) -> str:
    """Cut every run of combining marks to its first `MARKS`, so that NFC stays linear."""
    return _runs().sub(r"\1", text)


@cache
def _runs() -> re.Pattern[str]:
    """Match too many characters in a row that have a combining class in this Python's Unicode."""
    near, far = (_ranges(first, last) for first, last in ((0x300, 0xFFFF), (0x10000, 0x1F000)))
    # without the look ahead, every character that is no mark is compared with each far range
    mark = f"(?:[{near}]|(?=[\\U00010000-\\U0001f000])[{far}])"
    return re.compile(f"({mark}{{{MARKS}}}){mark}+")


def _ranges(first: int, last: int) -> str:
    """Return the characters from `first` to `last` that have a combining class, as ranges of a regular expression."""
    members = {code for code in range(first, last + 1) if unicodedata.combining(chr(code))}
    ranges = []
    for start in sorted(code for code in members if code - 1 not in members):
        end = start
        while end + 1 in members:
            end += 1
        ranges.append(f"\\U{start:08x}-\\U{end:08x}")
    return "".join(ranges)
