"""Stores lists of millions of words, hosts or URLs in three flat arrays, and finds an entry by its exact bytes.

An entry costs its own bytes, 8 for where it ends, and 12 of the table of slots: a third of what a Python set of strings
takes. The hash only proposes an entry, which is then compared byte by byte.
"""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import (
    COLON,
    DOT,
    HASH,
    HYPHEN,
    NEWLINE,
    PLUS,
    QUESTION_MARK,
    SLASH,
    SPACE,
    is_alphanumeric,
    is_letter,
    lower,
)
from pipeline_tasks.text.base.characters import ASCII_END
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.hashing import GOLDEN, mix
from pipeline_tasks.text.urls.host_lists import plain_hosts
from pipeline_tasks.text.words.wordlist import read_content, require_items

Table = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]
"""(slots, ends, letters): entry i is letters[ends[i]:ends[i + 1]]; a slot has 32 bits of an entry's hash above the
entry's number + 1, and 0 where it is free."""

SPELLED, WORD, HOST, URL = range(4)
"""Forms of an entry: as it is in the file; its ASCII letters and digits in lower case; a host in lower case
without dots at its ends; a URL without scheme, `www.`, fragment and last slash, its host in lower case."""

LOAD = 0.7
"""Share of slots in use: linear probing then looks at about six slots for what is not listed (Knuth, 6.4)."""

LOWER_W = ord("w")
BOM = b"\xef\xbb\xbf"

BASE = np.uint64(0xD1342543DE82EF95)  # odd multiplier of good spectral quality (Steele, Vigna 2021)
_SALT = np.uint64(GOLDEN)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_NONE, _ONE = np.uint64(0), np.uint64(1)


# --- Finding ---------------------------------------------------------------------------------------------------------


@compiled
def hash_byte(state, letter):
    """Return the polynomial `state` with one byte more; the empty text's is 0."""
    return state * BASE + np.uint64(letter) + _ONE


@compiled
def finish_hash(state, size):
    """Return the hash of a text of `size` bytes from its polynomial."""
    return mix(state ^ (np.uint64(size) * _SALT))


@compiled
def hash_range(data, begin, end):
    """Return the hash of data[begin:end]."""
    state = _NONE
    for at in range(begin, end):
        state = hash_byte(state, data[at])
    return finish_hash(state, end - begin)


@compiled
def _is_entry(letters, first, last, data, begin, end):
    """Return whether letters[first:last] equals data[begin:end]."""
    if last - first != end - begin:
        return False
    for at in range(end - begin):
        if letters[first + at] != data[begin + at]:
            return False
    return True


@compiled
def probe(table, key, data, begin, end):
    """Return the number of the entry data[begin:end], whose hash is `key`; -1 if it is not listed."""
    slots, ends, letters = table
    at = np.int64(((key >> _HALF) * np.uint64(len(slots))) >> _HALF)
    while slots[at] != _NONE:
        if slots[at] >> _HALF == key & _LOW:
            entry = np.int64(slots[at] & _LOW) - 1
            if _is_entry(letters, ends[entry], ends[entry + 1], data, begin, end):
                return entry
        at = (at + 1) % len(slots)
    return -1


@compiled
def find_entry(table, data, begin, end):
    """Return the number of the entry data[begin:end]; -1 if it is not listed."""
    return probe(table, hash_range(data, begin, end), data, begin, end)


@compiled
def _fill(slots, ends, letters):
    """Put every entry into a slot, of equal ones the first; return how many different ones there are."""
    count = 0
    for entry in range(len(ends) - 1):
        key = hash_range(letters, ends[entry], ends[entry + 1])
        if probe((slots, ends, letters), key, letters, ends[entry], ends[entry + 1]) >= 0:
            continue
        at = np.int64(((key >> _HALF) * np.uint64(len(slots))) >> _HALF)
        while slots[at] != _NONE:
            at = (at + 1) % len(slots)
        slots[at] = ((key & _LOW) << _HALF) | np.uint64(entry + 1)
        count += 1
    return count


def make_table(ends: npt.NDArray[np.int64], letters: npt.NDArray[np.uint8]) -> Table:
    """Return the table of the entries letters[ends[i]:ends[i + 1]]."""
    slots = np.zeros(int((len(ends) - 1) / LOAD) + 1, np.uint64)
    _fill(slots, ends, letters)
    return slots, ends, letters


def short_table(items: list[bytes]) -> Table:
    """Return the table of a short list."""
    ends = np.cumsum([0, *map(len, items)]).astype(np.int64)
    return make_table(ends, np.frombuffer(b"".join(items), np.uint8).copy())


def entry_text(table: Table, number: int) -> str:
    """Return an entry as text."""
    _, ends, letters = table
    return letters[ends[number] : ends[number + 1]].tobytes().decode()


def table_bytes(table: Table) -> int:
    """Return the bytes that a table takes."""
    return sum(part.nbytes for part in table)


# --- Reading ---------------------------------------------------------------------------------------------------------


@compiled
def after_scheme(data, begin, end):
    """Return where `scheme://` of data[begin:end] ends, or `begin` if it has none (RFC 3986, 3.1)."""
    at = begin
    while at < end and (is_alphanumeric(data[at]) or (at > begin and data[at] in (PLUS, HYPHEN, DOT))):
        at += 1
    if at == begin or not is_letter(data[begin]) or end - at < 3:
        return begin
    return at + 3 if data[at] == COLON and data[at + 1] == SLASH and data[at + 2] == SLASH else begin


@compiled
def _after_www(data, begin, end):
    """Return where `www.` at the start of data[begin:end] ends, or `begin` if it is not there, whatever its case."""
    if end - begin < 4 or data[begin + 3] != DOT:
        return begin
    for at in range(begin, begin + 3):
        if lower(data[at]) != LOWER_W:
            return begin
    return begin + 4


@compiled
def _find_byte(data, begin, end, byte):
    """Return where `byte` is first in data[begin:end], or `end`."""
    while begin < end and data[begin] != byte:
        begin += 1
    return begin


@compiled
def write_bare(data, begin, end, out, at):
    """Write the URL data[begin:end] in the form URL from out[at] on; return the place after it."""
    begin = after_scheme(data, begin, end)
    last = _find_byte(data, begin, end, HASH)
    host_end = begin
    while host_end < last and data[host_end] != SLASH and data[host_end] != QUESTION_MARK:
        host_end += 1
    begin = _after_www(data, begin, host_end)
    while last > host_end and data[last - 1] == SLASH:
        last -= 1
    for place in range(begin, last):
        out[at] = lower(data[place]) if place < host_end else data[place]
        at += 1
    return at


@compiled
def _write_word(data, begin, end, out, at):
    for place in range(begin, end):
        if is_alphanumeric(data[place]):
            out[at] = lower(data[place])
            at += 1
    return at


@compiled
def _write_host(data, begin, end, out, at):
    while begin < end and data[begin] == DOT:
        begin += 1
    while end > begin and data[end - 1] == DOT:
        end -= 1
    for place in range(begin, end):
        out[at] = lower(data[place])
        at += 1
    return at


@compiled
def _is_odd_host(data, begin, end):
    """Return whether a host needs more than ASCII rules: letters beyond ASCII, or the colons of an IPv6 address."""
    for place in range(begin, end):
        if data[place] >= ASCII_END or data[place] == COLON:
            return True
    return False


@compiled
def _write_entry(data, begin, end, form, out, at):
    """Write data[begin:end] in its form from out[at] on; return the place after it."""
    if form == HOST:
        return _write_host(data, begin, end, out, at)
    if form == WORD:
        return _write_word(data, begin, end, out, at)
    if form == URL:
        return write_bare(data, begin, end, out, at)
    out[at : at + end - begin] = data[begin:end]
    return at + end - begin


@compiled
def _strip(data, begin, end):
    """Return where a line begins and ends without blanks and control characters around it."""
    while begin < end and data[begin] <= SPACE:
        begin += 1
    while end > begin and data[end - 1] <= SPACE:
        end -= 1
    return begin, end


@compiled
def _read_lines(data, form, out, ends, odd):
    """Write the entries of all lines to `out` and `ends`, and where odd hosts are to `odd`; return both counts."""
    count, others, at, begin = 0, 0, 0, 0
    while begin < len(data):
        stop = _find_byte(data, begin, len(data), NEWLINE)
        first, last = _strip(data, begin, stop)
        begin, start = stop + 1, at
        if first == last or data[first] == HASH:
            continue
        if form == HOST and _is_odd_host(data, first, last):
            odd[others, 0], odd[others, 1] = first, last
            others += 1
        else:
            at = _write_entry(data, first, last, form, out, at)
        if at > start:
            count += 1
            ends[count] = at
    return count, others


def read_list(path: str, form: int) -> tuple[Table, list[str]]:
    """Return the table of the UTF-8 list at `path`, and the hosts of it that are not plain ASCII names.

    One entry per line, hosts in any form of `host_lists`; blank lines and `#` comments are skipped; the suffix (.gz,
    .zst, .bz2) names the compression.
    Reading takes the size of the unpacked file once more than the table. Raises RecipeError if it is no list.
    """
    letters, ends, names = _entries(_content(path, form), form)  # which is freed before the table is made
    require_items(len(ends) > 1 or names, path)
    return make_table(ends, letters), names


def _content(path: str, form: int) -> bytes:
    """Return an unpacked list with one entry per line."""
    return plain_hosts(read_content(path), path) if form == HOST else read_content(path)


def _entries(content: bytes, form: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], list[str]]:
    """Return the letters of all entries in a row, where they end, and the odd hosts."""
    data, lines = np.frombuffer(content, np.uint8), content.count(b"\n") + 1
    letters, ends = np.empty(len(data), np.uint8), np.zeros(lines + 1, np.int64)
    plain = form != HOST or (content.isascii() and b":" not in content)
    odd = np.empty((0 if plain else lines, 2), np.int64)
    count, others = _read_lines(data, form, letters, ends, odd)
    letters.resize(int(ends[count]), refcheck=False)  # frees the unused end; a copy would need more memory first
    ends.resize(count + 1, refcheck=False)
    return letters, ends, [content[begin:end].decode() for begin, end in odd[:others].tolist()]


def extend_table(table: Table, more: list[bytes]) -> Table:
    """Return the table of a list with `more` entries."""
    if not more:
        return table
    _, ends, letters = table
    further = ends[-1] + np.cumsum([len(item) for item in more]).astype(np.int64)
    return make_table(
        np.concatenate([ends, further]), np.concatenate([letters, np.frombuffer(b"".join(more), np.uint8)])
    )
