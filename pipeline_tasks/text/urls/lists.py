"""Holds lists of millions of words, hosts or URLs in three flat arrays, and finds an entry by its exact bytes.

An entry costs its own bytes, 8 for where it ends, and 12 of the table of slots: a third of what a Python set of strings
takes. The hash only proposes; what is found is compared byte by byte.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.hashing import GOLDEN, mix

Table = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]
"""(slots, ends, letters): entry i is letters[ends[i]:ends[i + 1]]; a slot holds 32 bits of an entry's hash above the
entry's number + 1, and 0 where it is free."""

SPELLED, WORD, HOST, URL = range(4)
"""Forms of an entry: as it stands in the file; its ASCII letters and digits in lower case; a host in lower case
without dots at its ends; a URL without scheme, `www.`, fragment and last slash, its host in lower case."""

LOAD = 0.7
"""Share of slots in use: linear probing then looks at about six slots for what is not listed (Knuth, 6.4)."""

BOM = b"\xef\xbb\xbf"

BASE = np.uint64(0xD1342543DE82EF95)  # odd multiplier of good spectral quality (Steele, Vigna 2021)
_SALT = np.uint64(GOLDEN)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_NONE, _ONE = np.uint64(0), np.uint64(1)


# --- Finding ---------------------------------------------------------------------------------------------------------


@compiled
def taken(state, letter):
    """Return the polynomial `state` with one byte more; the empty text's is 0."""
    return state * BASE + np.uint64(letter) + _ONE


@compiled
def finished(state, size):
    """Return the hash of a text of `size` bytes from its polynomial."""
    return mix(state ^ (np.uint64(size) * _SALT))


@compiled
def hashed(data, begin, end):
    """Return the hash of data[begin:end]."""
    state = _NONE
    for at in range(begin, end):
        state = taken(state, data[at])
    return finished(state, end - begin)


@compiled
def probe(table, key, data, begin, end):
    """Return the number of the entry data[begin:end], whose hash is `key`; -1 if it is not listed."""
    slots, ends, letters = table
    at = np.int64(((key >> _HALF) * np.uint64(len(slots))) >> _HALF)
    while slots[at] != _NONE:
        if slots[at] >> _HALF == key & _LOW:
            entry = np.int64(slots[at] & _LOW) - 1
            first = ends[entry]
            same = ends[entry + 1] - first == end - begin
            place = begin
            while same and place < end:
                same = letters[first + place - begin] == data[place]
                place += 1
            if same:
                return entry
        at = (at + 1) % len(slots)
    return -1


@compiled
def find(table, data, begin, end):
    """Return the number of the entry data[begin:end]; -1 if it is not listed."""
    return probe(table, hashed(data, begin, end), data, begin, end)


@compiled
def _fill(slots, ends, letters):
    """Put every entry into a slot, of equal ones the first; return how many different ones there are."""
    count = 0
    for entry in range(len(ends) - 1):
        key = hashed(letters, ends[entry], ends[entry + 1])
        if probe((slots, ends, letters), key, letters, ends[entry], ends[entry + 1]) >= 0:
            continue
        at = np.int64(((key >> _HALF) * np.uint64(len(slots))) >> _HALF)
        while slots[at] != _NONE:
            at = (at + 1) % len(slots)
        slots[at] = ((key & _LOW) << _HALF) | np.uint64(entry + 1)
        count += 1
    return count


def table_of(ends: npt.NDArray[np.int64], letters: npt.NDArray[np.uint8]) -> Table:
    """Return the table of the entries letters[ends[i]:ends[i + 1]]."""
    slots = np.zeros(int((len(ends) - 1) / LOAD) + 1, np.uint64)
    _fill(slots, ends, letters)
    return slots, ends, letters


def entries(items: list[bytes]) -> Table:
    """Return the table of a short list."""
    ends = np.cumsum([0, *map(len, items)]).astype(np.int64)
    return table_of(ends, np.frombuffer(b"".join(items), np.uint8).copy())


def entry(table: Table, number: int) -> str:
    """Return an entry as text."""
    _, ends, letters = table
    return letters[ends[number] : ends[number + 1]].tobytes().decode()


def size(table: Table) -> int:
    """Return the bytes that a table takes."""
    return sum(part.nbytes for part in table)


# --- Reading ---------------------------------------------------------------------------------------------------------


@compiled
def lower(letter):
    """Return an ASCII letter in lower case, any other byte as it is."""
    return letter | 0x20 if 0x41 <= letter <= 0x5A else letter


@compiled
def alphanumeric(letter):
    """Return whether a byte is an ASCII letter or digit."""
    return 0x30 <= letter <= 0x39 or 0x41 <= letter <= 0x5A or 0x61 <= letter <= 0x7A


@compiled
def after_scheme(data, begin, end):
    """Return the place after `scheme://` in data[begin:end], or `begin` if it has none (RFC 3986, 3.1)."""
    at = begin
    while at < end and (alphanumeric(data[at]) or (at > begin and data[at] in (0x2B, 0x2D, 0x2E))):
        at += 1
    there = at > begin and data[begin] > 0x39 and end - at >= 3
    return at + 3 if there and data[at] == 0x3A and data[at + 1] == 0x2F and data[at + 2] == 0x2F else begin


@compiled
def write_bare(data, begin, end, out, at):
    """Write the URL data[begin:end] in the form URL from out[at] on; return the place after it."""
    begin = after_scheme(data, begin, end)
    host, last = begin, begin
    while last < end and data[last] != 0x23:
        last += 1
    while host < last and data[host] != 0x2F and data[host] != 0x3F:
        host += 1
    if host - begin >= 4 and data[begin + 3] == 0x2E:
        www = True
        for place in range(begin, begin + 3):
            www = www and lower(data[place]) == 0x77
        begin += 4 if www else 0
    while last > host and data[last - 1] == 0x2F:
        last -= 1
    for place in range(begin, last):
        out[at] = lower(data[place]) if place < host else data[place]
        at += 1
    return at


@compiled
def _write_word(data, begin, end, out, at):
    for place in range(begin, end):
        if alphanumeric(data[place]):
            out[at] = lower(data[place])
            at += 1
    return at


@compiled
def _write_host(data, begin, end, out, at):
    while begin < end and data[begin] == 0x2E:
        begin += 1
    while end > begin and data[end - 1] == 0x2E:
        end -= 1
    for place in range(begin, end):
        out[at] = lower(data[place])
        at += 1
    return at


@compiled
def _odd(data, begin, end):
    """Return whether a host needs more than ASCII rules: letters beyond ASCII, or the colons of an IPv6 address."""
    found = False
    for place in range(begin, end):
        found = found or data[place] >= 0x80 or data[place] == 0x3A
    return found


@compiled
def _read_lines(data, form, out, ends, odd):
    """Write the entries of all lines to `out` and `ends`, and where odd hosts stand to `odd`; return both counts."""
    count, others, at, begin = 0, 0, 0, 0
    while begin < len(data):
        stop = begin
        while stop < len(data) and data[stop] != 0x0A:
            stop += 1
        first, last = begin, stop
        while first < last and data[first] <= 0x20:
            first += 1
        while last > first and data[last - 1] <= 0x20:
            last -= 1
        begin, start = stop + 1, at
        if first == last or data[first] == 0x23:
            continue
        if form == HOST and _odd(data, first, last):
            odd[others, 0], odd[others, 1] = first, last
            others += 1
        elif form == HOST:
            at = _write_host(data, first, last, out, at)
        elif form == WORD:
            at = _write_word(data, first, last, out, at)
        elif form == URL:
            at = write_bare(data, first, last, out, at)
        else:
            out[at : at + last - first] = data[first:last]
            at += last - first
        if at > start:
            count += 1
            ends[count] = at
    return count, others


def read(path: str, form: int) -> tuple[Table, list[str]]:
    """Return the table of the UTF-8 list at `path`, and the hosts of it that are not plain ASCII names.

    One entry per line; blank lines and `#` comments are none; the suffix (.gz, .zst, .bz2) says how it is compressed.
    Reading takes the size of the unpacked file once more than the table. Raises RecipeError if it is not UTF-8.
    """
    letters, ends, names = _entries(_content(path), form)
    return table_of(ends, letters), names


def _content(path: str) -> bytes:
    """Return the unpacked file without a byte order mark."""
    with pa.input_stream(path, compression="detect") as stream:
        content: bytes = stream.read()
    if not content.isascii():
        _check(content, path)
    return content.removeprefix(BOM)


def _entries(content: bytes, form: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], list[str]]:
    """Return the letters of all entries in a row, where they end, and the odd hosts."""
    data, lines = np.frombuffer(content, np.uint8), content.count(b"\n") + 1
    letters, ends = np.empty(len(data), np.uint8), np.zeros(lines + 1, np.int64)
    plain = form != HOST or (content.isascii() and b":" not in content)
    odd = np.empty((0 if plain else lines, 2), np.int64)
    count, others = _read_lines(data, form, letters, ends, odd)
    letters.resize(int(ends[count]), refcheck=False)  # gives back what is left, where a copy would take more first
    ends.resize(count + 1, refcheck=False)
    return letters, ends, [content[begin:end].decode() for begin, end in odd[:others].tolist()]


def _check(content: bytes, path: str) -> None:
    try:
        content.decode()
    except UnicodeDecodeError as broken:
        message = f"word list {path}: byte {broken.start} is not UTF-8; save the list as UTF-8"
        raise RecipeError(message) from broken


def joined(table: Table, more: list[bytes]) -> Table:
    """Return the table of a list with `more` entries."""
    if not more:
        return table
    _, ends, letters = table
    further = ends[-1] + np.cumsum([len(item) for item in more]).astype(np.int64)
    return table_of(np.concatenate([ends, further]), np.concatenate([letters, np.frombuffer(b"".join(more), np.uint8)]))
