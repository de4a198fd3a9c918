"""Brings texts into one form: NFC, no control characters, tidy blanks, line ends kept; a whole column at once."""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.buffers import views
from pipeline_tasks.text.compiled import compiled
from pipeline_tasks.text.letters import decode

MARKS = 32
"""Combining marks in a row that are kept: NFC sorts each run in quadratic time, no script needs more than about ten."""

_TAB, _NEWLINE, _RETURN, _SPACE, _DELETE = 0x09, 0x0A, 0x0D, 0x20, 0x7F
_FIRST_MARK = 0x300  # below it, NFC leaves every character as it is
_REPLACEMENT = 0xFFFD
_STRIDE = 16

_BLANK, _BREAK, _NOTHING = 1, 2, 3
_OPEN, _BROKEN = 1, 2  # bits of a text: NFC has to look at it; it is no UTF-8


class Normal(NamedTuple):
    """Texts in normal form (large_string), their code points, and U+FFFD per code point of each as it was given."""

    texts: pa.Array
    chars: npt.NDArray[np.int64]
    replaced: npt.NDArray[np.float64]


def normalize(texts: pa.Array) -> Normal:
    """Return each text of a string column in NFC without controls, blanks in a row as one space.

    At most one empty line in a row stays; indentation stays (code and lists mean something by it), as do all line
    ends. A null is an empty text. Takes time and memory linear in the column.
    """
    offsets, data = views(texts)
    out, ends = np.empty(int(offsets[-1] - offsets[0]), np.uint8), np.zeros(len(offsets), np.int64)
    facts = np.zeros((len(offsets) - 1, 3), np.int64)
    _tidy(offsets, data, *_marks(), out, ends, facts)
    tidy = pa.LargeStringArray.from_buffers(len(facts), pa.py_buffer(ends), pa.py_buffer(out))
    chars, replaced = facts[:, 0].copy(), facts[:, 2] / np.maximum(facts[:, 1] >> 2, 1)
    done = Normal(tidy, chars, replaced)
    doubtful = np.flatnonzero(facts[:, 1] & (_OPEN | _BROKEN))
    return _composed(texts, done, doubtful, facts[doubtful, 1] & _BROKEN) if len(doubtful) else done


def _composed(texts: pa.Array, tidy: Normal, rows: npt.NDArray[np.intp], broken: npt.NDArray[np.int64]) -> Normal:
    """Return the same with `rows` in NFC; broken ones are decoded with U+FFFD and made anew."""
    mended = [
        normalize(pa.array([_bytes(texts, row).decode("utf-8", "replace")], pa.large_string())) if bad else None
        for row, bad in zip(rows, broken, strict=True)
    ]
    whole = [
        one.texts[0].as_py() if one else unicodedata.normalize("NFC", cap_marks(tidy.texts[int(row)].as_py()))
        for row, one in zip(rows, mended, strict=True)
    ]
    order = np.arange(len(texts))
    order[rows] = len(texts) + np.arange(len(rows))
    tidy.chars[rows] = [len(text) for text in whole]
    tidy.replaced[rows] = [
        one.replaced[0] if one else tidy.replaced[row] for row, one in zip(rows, mended, strict=True)
    ]
    return tidy._replace(texts=pa.concat_arrays([tidy.texts, pa.array(whole, pa.large_string())]).take(pa.array(order)))


def _bytes(texts: pa.Array, row: int) -> bytes:
    offsets, data = views(texts.slice(row, 1))
    return data[offsets[0] : offsets[1]].tobytes()


def normal(text: str) -> str:
    """Return one text in normal form; see `normalize`."""
    form: str = normalize(pa.array([text.encode("utf-8", "ignore").decode()], pa.large_string())).texts[0].as_py()
    return form


@compiled
def _tidy(offsets, data, index, flags, out, ends, facts):  # type: ignore[no-untyped-def]
    """Write each text without controls, its blanks tidy, to `out`, and where it ends there.

    Row by row, `facts` gets: code points written; code points read, shifted by the two bits of the text; U+FFFD read.
    `ends` has one more entry than there are rows.
    """
    to = 0
    for row in range(len(offsets) - 1):
        at, end, first = offsets[row], offsets[row + 1], to
        lines = blanks = 0  # what may still come before the next sign: line ends, then blanks
        replaced = state = 0
        run, previous = 0, np.int64(0)  # marks in a row, combining class of the last
        while at < end:
            byte, code, width = data[at], np.int64(data[at]), 1
            if not _SPACE < byte < _DELETE:
                if byte >= _DELETE:
                    code, width = decode(data, at, end)
                    if not _sound(data, at, code, width):
                        state |= _BROKEN
                    replaced += code == _REPLACEMENT
                kind = 0 if 0xA1 <= code < 0x1680 or 0x3001 <= code < 0xD800 else _kind(code)
                if kind:
                    at += width
                    if kind == _BLANK:
                        blanks += 1
                    elif kind == _BREAK:
                        at += code == _RETURN and at < end and data[at] == _NEWLINE
                        lines, blanks = lines + 1, 0
                    continue
            if lines or blanks:
                lines = 0 if to == first else min(lines, 2)
                blanks = blanks if lines or to == first else 1
                out[to : to + lines] = _NEWLINE
                out[to + lines : to + lines + blanks] = _SPACE
                to += lines + blanks
                lines = blanks = 0
                run, previous = 0, np.int64(0)
            if code < _FIRST_MARK:
                run, previous = 0, np.int64(0)
            else:
                known = flags[(np.int64(index[code >> 8]) << 8) | (code & 0xFF)]
                if known:
                    rank = np.int64(known >> 1)
                    run = run + 1 if rank else 0
                    if known & 1 or 0 < rank < previous or run > MARKS:
                        state |= _OPEN
                    previous = rank
                else:
                    run, previous = 0, np.int64(0)
            out[to] = byte
            if width > 1:
                out[to + 1] = data[at + 1]
                if width > 2:
                    out[to + 2] = data[at + 2]
                    if width > 3:
                        out[to + 3] = data[at + 3]
            to += width
            at += width
            if at == end or data[at] >= _DELETE:
                continue
            while at + _STRIDE < end and _is_tidy(data, at):  # the same again, for most of the text
                there, here = out[to : to + _STRIDE], data[at : at + _STRIDE]
                for other in range(_STRIDE):
                    there[other] = here[other]
                to += _STRIDE
                at += _STRIDE
                run, previous = 0, np.int64(0)
                if out[to - 1] == _SPACE:
                    to, at = to - 1, at - 1
                    break
            while at < end and _SPACE < data[at] < _DELETE:
                out[to] = data[at]
                to += 1
                at += 1
                run, previous = 0, np.int64(0)
        ends[row + 1] = to
        facts[row, 0], facts[row, 1] = _points(out, first, to), _points(data, offsets[row], end) << 2 | state
        facts[row, 2] = replaced


@compiled
def _is_tidy(data, at):  # type: ignore[no-untyped-def]
    """Tell whether the next `_STRIDE` bytes are signs of ASCII and single spaces."""
    bad = np.uint8(0)
    part = data[at : at + _STRIDE + 1]
    for other in range(_STRIDE):
        byte = part[other]
        bad |= np.uint8(byte < _SPACE) | np.uint8(byte >= _DELETE)
        bad |= np.uint8(byte == _SPACE) & np.uint8(part[other + 1] == _SPACE)
    return bad == 0


@compiled
def _sound(data, at, code, width):  # type: ignore[no-untyped-def]
    """Tell whether a character that was decoded is what its bytes say: no broken sequence, no surrogate."""
    if width == 1:
        return code == _DELETE
    if (data[at + 1] & 0xC0) != 0x80 or (width > 2 and (data[at + 2] & 0xC0) != 0x80):
        return False
    return not 0xD800 <= code < 0xE000 and (width < 4 or (data[at + 3] & 0xC0) == 0x80)


@compiled
def _points(data, begin, end):  # type: ignore[no-untyped-def]
    """Return the number of code points of data[begin:end]."""
    part, count = data[begin:end], 0
    for at in range(len(part)):
        count += (part[at] & 0xC0) != 0x80
    return count


@compiled
def _kind(code):  # type: ignore[no-untyped-def]
    """Return how a character is taken: `_BLANK`, `_BREAK`, `_NOTHING`, or 0 for as it is."""
    kind = 0
    if code in (_SPACE, _TAB, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000) or 0x2000 <= code <= 0x200A:
        kind = _BLANK
    elif code in (_NEWLINE, 0x0B, 0x0C, _RETURN, 0x85, 0x2028, 0x2029):
        kind = _BREAK
    elif code < _SPACE or _DELETE <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in (0xFEFF, 0xFFFE, 0xFFFF):
        kind = _NOTHING
    return kind


@cache
def _marks() -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """Return a table in two levels, (block of cp >> 8, block * 256 + (cp & 255)): combining class * 2 + doubt of NFC.

    Doubtful is what NFC changes when it stands alone, or what may join the character before it (UAX 15, quick check).
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
