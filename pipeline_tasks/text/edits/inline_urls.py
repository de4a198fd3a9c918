"""Takes URLs and IP addresses out of texts as DCLM does.

Rules are those of `url_removal_modifier` in mlfoundations/dclm `baselines/mappers/modifiers.py`, which searches with
two patterns. A URL is up to 256 of the characters of a host, a dot and a top-level domain in lower case at whose end a
word ends, with the scheme before it, up to ten white spaces before that, and all that may follow in a path. It is
looked for only in texts whose first letters spell a top-level domain, in any case: there, `match` stands where `search`
was meant. An address is four numbers with dots between them; scheme, white space and path go with it, in every text.
"""

import functools
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base import character_traits
from pipeline_tasks.text.base.buffers import Bytes, Offsets, views
from pipeline_tasks.text.base.characters import ASCII_END, class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.phrases import Phrases, encode_phrases, ends_with

URL, ADDRESS = 1, 2
"""What `Removed.why` calls the bytes that go."""

HOST_ROOM = 256
"""Most characters of a host before the dot of its top-level domain."""

BLANKS = 10
"""Most white spaces that go with what stands behind them."""

DOT, SLASH, UNDERSCORE, ZERO, TWO, NINE, FIRST, LAST = (ord(letter) for letter in "./_029az")
SPACE, WORD = np.uint16(character_traits.SPACE), np.uint16(character_traits.ALNUM)

SCHEMES = ("https://", "http://", "ftp://")
"""No one of them ends another, but the first two begin alike."""

FOLDED = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
"""Letters beyond ASCII that Python's patterns take for one of ASCII where case is ignored."""

Marks = npt.NDArray[np.uint8]


class Removed(NamedTuple):
    """Texts without URLs and addresses, what each byte of the old texts went as (0: it stays), and counts (rows, 2)."""

    texts: pa.Array
    why: Marks
    counts: npt.NDArray[np.float64]


@functools.cache
def domains() -> frozenset[str]:
    """Return the names of top-level domains that are looked for."""
    lines = Path(__file__).with_name("top_level_domains.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(name for line in lines if not line.startswith("#") for name in line.split())


@functools.cache
def _spellings() -> tuple[Phrases, Phrases, npt.NDArray[np.int64]]:
    """Return the names in ASCII, sorted, the others, longest first, and where names with each letter a to z begin."""
    plain = sorted(name for name in domains() if name.isascii())
    others = sorted((name for name in domains() if not name.isascii()), key=lambda name: (-len(name.encode()), name))
    begins = np.searchsorted(np.array([name[0] for name in plain]), [chr(code) for code in range(FIRST, LAST + 2)])
    return encode_phrases(tuple(plain)), encode_phrases(tuple(others)), begins.astype(np.int64)


@functools.cache
def _tables() -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which bytes a host, and which a path may have."""
    host, path = np.zeros(256, np.bool_), np.zeros(256, np.bool_)
    alphanumeric = "".join(chr(code) for code in range(ASCII_END) if chr(code).isalnum())
    host[list(f"{alphanumeric}-@:%._+~#=".encode())] = True
    path[list(f"{alphanumeric}-()@:%_+.~#?&/=".encode())] = True
    return host, path


def _begin_with_domain(offsets: Offsets, data: Bytes) -> npt.NDArray[np.bool_]:
    """Tell of each text whether its first letters are a top-level domain, whatever their case and what follows."""
    names = domains()
    sizes = sorted({len(name) for name in names})
    room = max(len(name.encode()) for name in names)
    begins = [data[begin : min(begin + room, end)].tobytes() for begin, end in pairwise(offsets.tolist())]
    heads = (begin.decode("utf-8", "replace").translate(FOLDED).lower() for begin in begins)
    return np.fromiter((any(head[:size] in names for size in sizes) for head in heads), np.bool_, len(begins))


@inlined
def _step_back(data, least, at):
    """Return where the code point before `at` begins, not before `least`."""
    at -= 1
    while at > least and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@inlined
def _in_word(data, at, end, index, flags):
    """Return whether a word character (a letter, a digit, `_`) begins at `at`."""
    if at >= end:
        return False
    code, _ = decode(data, at, end)
    return code == UNDERSCORE or class_of(index, flags, code) & WORD != 0


@inlined
def _behind_word(data, first, at, end, index, flags):
    """Return whether a word character stands before `at` in a text that begins at `first`."""
    return at > first and _in_word(data, _step_back(data, first, at), end, index, flags)


@inlined
def _stands(data, at, end, letters, first, last):
    """Return whether letters[first:last] stands at `at`."""
    stop = at + last - first
    return stop <= end and ends_with(data, at, stop, letters, first, last, 0)


@inlined
def _domain_end(data, at, end, plain, plain_ends, others, other_ends, begins, index, flags):
    """Return where the top-level domain at `at` ends, if a word ends or begins there; else `at`."""
    tip = at
    while tip < end and FIRST <= data[tip] <= LAST:
        tip += 1
    if tip > at and not _in_word(data, tip, end, index, flags):
        letter = data[at] - FIRST
        for name in range(begins[letter], begins[letter + 1]):
            size = plain_ends[name + 1] - plain_ends[name]
            if size == tip - at and _stands(data, at, end, plain, plain_ends[name], plain_ends[name + 1]):
                return tip
    if tip < end and data[tip] >= ASCII_END:
        for name in range(len(other_ends) - 1):
            if _stands(data, at, end, others, other_ends[name], other_ends[name + 1]):
                stop = at + other_ends[name + 1] - other_ends[name]
                last = _step_back(data, at, stop)
                if _in_word(data, last, stop, index, flags) != _in_word(data, stop, end, index, flags):
                    return stop
    return at


@inlined
def _scheme(data, least, at, schemes, scheme_ends):
    """Return where the scheme that ends at `at` begins, not before `least`; `at` if there is none."""
    for one in range(len(scheme_ends) - 1):
        first = at - (scheme_ends[one + 1] - scheme_ends[one])
        if first >= least and _stands(data, first, at, schemes, scheme_ends[one], scheme_ends[one + 1]):
            return first
    return at


@inlined
def _blanks(data, least, at, end, index, flags):
    """Return where the white space before `at` begins, of which at most BLANKS go."""
    for _ in range(BLANKS):
        if at == least:
            break
        before = _step_back(data, least, at)
        code, _width = decode(data, before, end)
        if class_of(index, flags, code) & SPACE == 0:
            break
        at = before
    return at


@inlined
def _path_end(data, at, end, path):
    """Return where what may stand in a path ends."""
    while at < end and path[data[at]]:
        at += 1
    return at


@compiled
def _urls(offsets, data, asked, tables, names, schemes, traits_, why, counts, gone):
    """Mark the URLs of the texts that are `asked`, and count them and their bytes.

    A pattern finds the first place from which it matches, and there the longest host: of the dots with a domain behind
    them that lie within HOST_ROOM, the last.
    """
    (host, path), (index, flags) = tables, traits_
    (plain, plain_ends), (others, other_ends), begins = names
    letters, ends = schemes
    for row in range(len(offsets) - 1):
        least, end = offsets[row], offsets[row + 1]
        at, run = least, least
        while asked[row] and at < end:
            if not host[data[at]]:
                at += 1
                run = at
                continue
            tip = at + 1
            if data[at] == DOT and at > run:
                tip = _domain_end(data, at + 1, end, plain, plain_ends, others, other_ends, begins, index, flags)
            if tip == at + 1:
                at += 1
                continue
            begin = max(run, at - HOST_ROOM)
            dot = at + 1
            while dot < end and dot <= begin + HOST_ROOM and host[data[dot]]:
                if data[dot] == DOT:
                    stop = _domain_end(data, dot + 1, end, plain, plain_ends, others, other_ends, begins, index, flags)
                    tip = stop if stop > dot + 1 else tip
                dot += 1
            stop = _path_end(data, tip, end, path)
            if begin == run:
                begin = _blanks(data, least, _scheme(data, least, run, letters, ends), end, index, flags)
            why[begin:stop] = URL
            counts[row] += 1
            gone[row] += stop - begin
            at = run = least = stop


@inlined
def _quad_end(data, at, end):
    """Return where the last of four numbers with dots between them begins, `at` if there are no four."""
    place = at
    for _ in range(3):
        first = place
        while place < end and ZERO <= data[place] <= NINE:
            place += 1
        digits = place - first
        if digits < 1 or digits > 3 or (digits == 3 and data[first] > TWO) or place >= end or data[place] != DOT:
            return at
        place += 1
    return place if place < end and ZERO <= data[place] <= NINE else at


@compiled
def _addresses(offsets, data, tables, schemes, traits_, why, counts, gone):
    """Mark the IP addresses of texts, and count them and their bytes: a word begins where they, or their scheme, do."""
    (_, path), (index, flags) = tables, traits_
    letters, ends = schemes
    for row in range(len(offsets) - 1):
        first, least, end = offsets[row], offsets[row], offsets[row + 1]
        at = least
        while at < end:
            if not ZERO <= data[at] <= NINE:
                at += 1
                continue
            begin = _scheme(data, least, at, letters, ends)
            if _behind_word(data, first, begin, end, index, flags):
                begin = at
            last = at if _behind_word(data, first, begin, end, index, flags) else _quad_end(data, at, end)
            if last == at:
                while at < end and ZERO <= data[at] <= NINE:
                    at += 1
                continue
            stop = _path_end(data, last, end, path)
            begin = _blanks(data, least, begin, end, index, flags)
            why[begin:stop] = ADDRESS
            counts[row] += 1
            gone[row] += stop - begin
            at = least = stop


def _left(offsets: Offsets, data: Bytes, why: Marks, gone: Offsets) -> tuple[Offsets, Bytes]:
    """Return the texts without the bytes that are marked, of which there are `gone` in each."""
    if not gone.any():
        return offsets, data
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(offsets) - gone)]), data[why == 0]


def remove(texts: pa.Array) -> Removed:
    """Return texts as upstream leaves them: URLs go first, and addresses of what is left then."""
    offsets, data = views(texts)
    start, stop = int(offsets[0]), int(offsets[-1])
    given = offsets - start, data[start:stop]
    counts, gone = np.zeros((2, len(texts))), np.zeros((2, len(texts)), np.int64)
    tables, schemes, kinds = _tables(), encode_phrases(SCHEMES), character_traits.traits()
    first = np.zeros(stop - start, np.uint8)
    _urls(*given, _begin_with_domain(*given), tables, _spellings(), schemes, kinds, first, counts[0], gone[0])
    left = _left(*given, first, gone[0])
    second = np.zeros(len(left[1]), np.uint8)
    _addresses(*left, tables, schemes, kinds, second, counts[1], gone[1])
    why = np.zeros(len(data), np.uint8)
    if not counts.any():
        return Removed(texts, why, counts.T)
    first[np.flatnonzero(first == 0)[second > 0]] = ADDRESS
    why[start:stop] = first
    kept_offsets, kept = _left(*left, second, gone[1])
    buffers = [None, pa.py_buffer(np.ascontiguousarray(kept_offsets)), pa.py_buffer(np.ascontiguousarray(kept))]
    return Removed(pa.Array.from_buffers(pa.large_string(), len(texts), buffers), why, counts.T)
