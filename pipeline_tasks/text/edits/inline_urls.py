"""Removes URLs and IP addresses from texts as DCLM does.

Rules are those of `url_removal_modifier` in mlfoundations/dclm `baselines/mappers/modifiers.py`, which searches with
two patterns. A URL is up to 256 of the characters of a host, a dot and a top-level domain in lower case at whose end a
word ends, with the scheme before it, up to ten white spaces before that, and all that may follow in a path. It is
looked for only in texts whose first letters spell a top-level domain, in any case: upstream calls `match` where
`search` was meant. An address is four numbers with dots between them; scheme, white space and path are removed with it,
in every text.
"""

import functools
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base import character_traits
from pipeline_tasks.text.base.ascii import DOT, LOWER_A, LOWER_Z, TWO, UNDERSCORE, is_digit, starts_character
from pipeline_tasks.text.base.buffers import Bytes, Offsets, views
from pipeline_tasks.text.base.characters import ASCII_END, class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.phrases import Phrases, encode_phrases, ends_with

URL, ADDRESS = 1, 2
"""Marks of `Removed.why`."""

HOST_ROOM = 256
"""Most characters of a host before the dot of its top-level domain."""

BLANKS = 10
"""Most white spaces that are removed with what is behind them."""

SPACE, WORD = np.uint16(character_traits.SPACE), np.uint16(character_traits.ALNUM)

SCHEMES = ("https://", "http://", "ftp://")
"""None is a suffix of another; the first two share a prefix."""

FOLDED = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
"""Letters beyond ASCII that Python's patterns match with one of ASCII where case is ignored."""

Marks = npt.NDArray[np.uint8]


class Removed(NamedTuple):
    """Texts without URLs and addresses, a mark per byte of the old texts (0: it is kept), and counts (rows, 2)."""

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
    begins = np.searchsorted(np.array([name[0] for name in plain]), [chr(code) for code in range(LOWER_A, LOWER_Z + 2)])
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
    """Return of each text whether its first letters are a top-level domain, whatever their case and what follows."""
    names = domains()
    sizes = sorted({len(name) for name in names})
    room = max(len(name.encode()) for name in names)
    begins = [data[begin : min(begin + room, end)].tobytes() for begin, end in pairwise(offsets.tolist())]
    heads = (begin.decode("utf-8", "replace").translate(FOLDED).lower() for begin in begins)
    return np.fromiter((any(head[:size] in names for size in sizes) for head in heads), np.bool_, len(begins))


@inlined
def _previous(data, least, at):
    """Return where the code point before `at` begins, not before `least`."""
    at -= 1
    while at > least and not starts_character(data[at]):
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
    """Return whether a word character is before `at` in a text that begins at `first`."""
    return at > first and _in_word(data, _previous(data, first, at), end, index, flags)


@inlined
def _is_at(data, at, end, letters, first, last):
    """Return whether letters[first:last] is at `at`."""
    stop = at + last - first
    return stop <= end and ends_with(data, at, stop, letters, first, last, 0)


@inlined
def _ascii_domain_end(data, at, end, names, ends, begins, index, flags):
    """Return where the top-level domain in ASCII at `at` ends, if a word ends there; else `at`."""
    tip = at
    while tip < end and LOWER_A <= data[tip] <= LOWER_Z:
        tip += 1
    if tip > at and not _in_word(data, tip, end, index, flags):
        letter = data[at] - LOWER_A
        for name in range(begins[letter], begins[letter + 1]):
            if ends[name + 1] - ends[name] == tip - at and _is_at(data, at, end, names, ends[name], ends[name + 1]):
                return tip
    return at


@inlined
def _other_domain_end(data, at, end, names, ends, index, flags):
    """Return where the top-level domain beyond ASCII at `at` ends, if a word ends or begins there; else `at`."""
    for name in range(len(ends) - 1):
        if _is_at(data, at, end, names, ends[name], ends[name + 1]):
            stop = at + ends[name + 1] - ends[name]
            last = _previous(data, at, stop)
            if _in_word(data, last, stop, index, flags) != _in_word(data, stop, end, index, flags):
                return stop
    return at


@inlined
def _domain_end(data, at, end, plain, plain_ends, others, other_ends, begins, index, flags):
    """Return where the top-level domain at `at` ends, if a word ends or begins there; else `at`."""
    stop = _ascii_domain_end(data, at, end, plain, plain_ends, begins, index, flags)
    if stop > at:
        return stop
    tip = at
    while tip < end and LOWER_A <= data[tip] <= LOWER_Z:
        tip += 1
    if tip < end and data[tip] >= ASCII_END:
        return _other_domain_end(data, at, end, others, other_ends, index, flags)
    return at


@inlined
def _scheme(data, least, at, schemes, scheme_ends):
    """Return where the scheme that ends at `at` begins, not before `least`; `at` if there is none."""
    for scheme in range(len(scheme_ends) - 1):
        first = at - (scheme_ends[scheme + 1] - scheme_ends[scheme])
        if first >= least and _is_at(data, first, at, schemes, scheme_ends[scheme], scheme_ends[scheme + 1]):
            return first
    return at


@inlined
def _blanks(data, least, at, end, index, flags):
    """Return where the white space before `at` begins, at most BLANKS of it."""
    for _ in range(BLANKS):
        if at == least:
            break
        before = _previous(data, least, at)
        code, _width = decode(data, before, end)
        if class_of(index, flags, code) & SPACE == 0:
            break
        at = before
    return at


@inlined
def _path_end(data, at, end, path):
    """Return where the characters of a path end."""
    while at < end and path[data[at]]:
        at += 1
    return at


@inlined
def _longest_host_end(data, run, dot, tip, end, host, domains, index, flags):
    """Return where a host ends whose first domain ends at `tip`: behind its last dot within HOST_ROOM with a domain."""
    (plain, plain_ends), (others, other_ends), begins = domains
    last = max(run, dot - HOST_ROOM) + HOST_ROOM
    at = dot + 1
    while at < end and at <= last and host[data[at]]:
        if data[at] == DOT:
            stop = _domain_end(data, at + 1, end, plain, plain_ends, others, other_ends, begins, index, flags)
            tip = stop if stop > at + 1 else tip
        at += 1
    return tip


@inlined
def _next_host(data, at, run, end, host, domains, index, flags):
    """Return (where the run of a host's characters begins, its first dot with a domain behind it, where that ends).

    The run of `at` began at `run`. Where no host follows, the dot is `end`.
    """
    (plain, plain_ends), (others, other_ends), begins = domains
    while at < end:
        if not host[data[at]]:
            run = at + 1
        elif data[at] == DOT and at > run:
            tip = _domain_end(data, at + 1, end, plain, plain_ends, others, other_ends, begins, index, flags)
            if tip > at + 1:
                return run, at, tip
        at += 1
    return run, end, end


@compiled
def _mark_urls(offsets, data, wanted, tables, names, schemes, traits_, why, counts, removed):
    """Mark the URLs of the texts that are `wanted`, and count them and their bytes.

    A pattern finds the first place from which it matches, and there the longest host.
    """
    (host, path), (index, flags) = tables, traits_
    letters, ends = schemes
    for row in range(len(offsets) - 1):
        least, end = offsets[row], offsets[row + 1]
        at = least if wanted[row] else end
        while at < end:
            run, dot, tip = _next_host(data, at, least, end, host, names, index, flags)
            if dot == end:
                break
            tip = _longest_host_end(data, run, dot, tip, end, host, names, index, flags)
            stop = _path_end(data, tip, end, path)
            begin = max(run, dot - HOST_ROOM)
            if begin == run:
                begin = _blanks(data, least, _scheme(data, least, run, letters, ends), end, index, flags)
            why[begin:stop] = URL
            counts[row] += 1
            removed[row] += stop - begin
            at = least = stop


@inlined
def _quad_end(data, at, end):
    """Return where the last of four numbers with dots between them begins, `at` if there are no four."""
    place = at
    for _ in range(3):
        first = place
        while place < end and is_digit(data[place]):
            place += 1
        digits = place - first
        if digits < 1 or digits > 3 or (digits == 3 and data[first] > TWO) or place >= end or data[place] != DOT:
            return at
        place += 1
    return place if place < end and is_digit(data[place]) else at


@compiled
def _mark_addresses(offsets, data, tables, schemes, traits_, why, counts, removed):
    """Mark the IP addresses of texts, and count them and their bytes: a word begins where they, or their scheme, do."""
    (_, path), (index, flags) = tables, traits_
    letters, ends = schemes
    for row in range(len(offsets) - 1):
        first, least, end = offsets[row], offsets[row], offsets[row + 1]
        at = least
        while at < end:
            if not is_digit(data[at]):
                at += 1
                continue
            begin = _scheme(data, least, at, letters, ends)
            if _behind_word(data, first, begin, end, index, flags):
                begin = at
            last = at if _behind_word(data, first, begin, end, index, flags) else _quad_end(data, at, end)
            if last == at:
                while at < end and is_digit(data[at]):
                    at += 1
                continue
            stop = _path_end(data, last, end, path)
            begin = _blanks(data, least, begin, end, index, flags)
            why[begin:stop] = ADDRESS
            counts[row] += 1
            removed[row] += stop - begin
            at = least = stop


def _without(offsets: Offsets, data: Bytes, why: Marks, removed: Offsets) -> tuple[Offsets, Bytes]:
    """Return the texts without the bytes that are marked, of which there are `removed` in each."""
    if not removed.any():
        return offsets, data
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(offsets) - removed)]), data[why == 0]


def remove_urls(texts: pa.Array) -> Removed:
    """Return texts as upstream leaves them: URLs are removed first, then the addresses of what is left."""
    offsets, data = views(texts)
    start, stop = int(offsets[0]), int(offsets[-1])
    original = offsets - start, data[start:stop]
    counts, removed = np.zeros((2, len(texts))), np.zeros((2, len(texts)), np.int64)
    tables, schemes, kinds = _tables(), encode_phrases(SCHEMES), character_traits.traits()
    first = np.zeros(stop - start, np.uint8)
    _mark_urls(
        *original, _begin_with_domain(*original), tables, _spellings(), schemes, kinds, first, counts[0], removed[0]
    )
    edited = _without(*original, first, removed[0])
    second = np.zeros(len(edited[1]), np.uint8)
    _mark_addresses(*edited, tables, schemes, kinds, second, counts[1], removed[1])
    why = np.zeros(len(data), np.uint8)
    if not counts.any():
        return Removed(texts, why, counts.T)
    first[np.flatnonzero(first == 0)[second > 0]] = ADDRESS
    why[start:stop] = first
    kept_offsets, kept = _without(*edited, second, removed[1])
    buffers = [None, pa.py_buffer(np.ascontiguousarray(kept_offsets)), pa.py_buffer(np.ascontiguousarray(kept))]
    return Removed(pa.Array.from_buffers(pa.large_string(), len(texts), buffers), why, counts.T)
