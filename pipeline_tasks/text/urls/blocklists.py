"""Finds the host of each URL, what part of it somebody registered, and everything in a URL that is listed."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.characters import classes, trim
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.urls.lists import (
    BASE,
    Table,
    after_scheme,
    alphanumeric,
    entries,
    find,
    finished,
    hashed,
    lower,
    probe,
    taken,
    write_bare,
)

ABSENT, BAD, NAME, ODD, ADDRESS = range(5)
"""What stands for a host: there is no URL; no host; a name in ASCII; what Python has to read (letters beyond ASCII,
brackets); an IP address."""

BAD_URL, DOMAIN, SUBDOMAIN, URL, HARD, SOFT, SUBWORD = range(7)
"""Rules, in the order of huggingface/datatrove `src/datatrove/pipeline/filters/url_filter.py`, after our own first."""

MOST = 100
"""Hits that are told of one rule of one URL."""

LONGEST_HOST, LONGEST_LABEL = 253, 63
"""Bytes of a host name and of each of its labels (RFC 1035, 2.3.4)."""

EXACT, WILD, EXCEPTION = 1, 2, 4
"""Bits of a public suffix: `com`, `*.ck`, `!www.ck`."""

FORBIDDEN = bytes(range(0x21)) + b'/?#@:[]\\<>^`{|}"'
"""What no host name may hold (WHATWG URL, 3.5, but `%`, which crawlers let pass)."""

NO_HOST = np.isin(np.arange(128), [*FORBIDDEN])

Suffixes = tuple[Table, npt.NDArray[np.uint8]]
Hits = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]


def read_suffixes(path: str) -> Suffixes:
    """Return the registries' part of the Public Suffix List at `path`: names in ASCII, and the bits of their rules."""
    with pa.input_stream(path) as stream:
        text = stream.read().decode()
    registries = text.partition("===BEGIN ICANN DOMAINS===")[2].partition("===END ICANN DOMAINS===")[0]
    rules: dict[bytes, int] = {}
    for line in registries.splitlines():
        rule = line.strip()
        if rule and not rule.startswith("//"):
            bit = EXCEPTION if rule.startswith("!") else WILD if rule.startswith("*.") else EXACT
            name = rule.removeprefix("!").removeprefix("*.").encode("idna")
            rules[name] = rules.get(name, 0) | bit
    return entries([*rules]), np.array([*rules.values()], np.uint8)


# --- Hosts -----------------------------------------------------------------------------------------------------------


@compiled
def _host_kind(data, begin, end, refused):
    """Return what the host data[begin:end] is, which is not empty, and where a name ends without its last dot."""
    if data[begin] == 0x5B:
        return (ODD if data[end - 1] == 0x5D else BAD), end
    plain = True
    for at in range(begin, end):
        plain = plain and data[at] < 0x80
        if data[at] < 0x80 and refused[data[at]]:
            return BAD, end
    if not plain:
        return ODD, end
    end -= data[end - 1] == 0x2E
    return (NAME if _is_name(data, begin, end) else BAD), end


@compiled
def _is_name(data, begin, end):
    """Return whether all labels of data[begin:end], and it itself, have a length that names may have."""
    label = 0
    for at in range(begin, end):
        if data[at] == 0x2E:
            if label == 0:
                return False
            label = 0
        else:
            label += 1
            if label > LONGEST_LABEL:
                return False
    return label > 0 and end - begin <= LONGEST_HOST


@compiled
def _is_address(data, begin, end):
    """Return whether data[begin:end] is an IPv4 address: four decimal numbers up to 255, without leading zeros."""
    parts, digits, value = 0, 0, 0
    for at in range(begin, end):
        letter = data[at]
        if letter == 0x2E:
            if digits == 0:
                return False
            parts, digits, value = parts + 1, 0, 0
        elif 0x30 <= letter <= 0x39 and not (digits == 1 and value == 0):
            digits, value = digits + 1, value * 10 + letter - 0x30
            if value > 255:
                return False
        else:
            return False
    return parts == 3 and digits > 0


@compiled
def _host(data, begin, end):
    """Return where the host of the URL data[begin:end] begins and ends, (-1, -1) if it is no URL with a host."""
    start = after_scheme(data, begin, end)
    stop, first, users = start, start, 0
    while stop < end and data[stop] != 0x2F and data[stop] != 0x3F and data[stop] != 0x23:
        if data[stop] == 0x40:
            first, users = stop + 1, users + 1
        stop += 1
    last = first
    bracket = first < stop and data[first] == 0x5B
    while last < stop and data[last] != (0x5D if bracket else 0x3A):
        last += 1
    last += bracket and last < stop
    whole = start > begin and first < last and users <= 1
    for at in range(start, first):
        whole = whole and not 0x09 <= data[at] <= 0x0D and data[at] != 0x20
    for at in range(last, stop):
        whole = whole and (data[at] == 0x3A if at == last else 0x30 <= data[at] <= 0x39)
    for at in range(stop, end):
        whole = whole and data[at] != 0x0A and data[at] != 0x0D
    return (first, last) if whole else (-1, -1)


@compiled
def _locate(offsets, data, refused, index, flags, places, kinds):
    """Fill places[row] with where the URL and its host begin and end, and kinds[row]."""
    for row in range(len(offsets) - 1):
        begin, end = trim(data, offsets[row], offsets[row + 1], index, flags)
        first, last = _host(data, begin, end)
        kinds[row] = ABSENT if begin == end else BAD
        if first >= 0:
            kinds[row], last = _host_kind(data, first, last, refused)
        places[row, 0], places[row, 1], places[row, 2], places[row, 3] = begin, end, first, last


def locate(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> tuple[Places, npt.NDArray[np.uint8]]:
    """Return where each URL and its host begin and end, shape (rows, 4), and what the host is, shape (rows,).

    A URL is `scheme://[user@]host[:port]` and whatever follows on the same line, as crawlers have it (RFC 3986, 3.2).
    """
    places = np.empty((len(offsets) - 1, 4), np.int64)
    kinds = np.empty(len(offsets) - 1, np.uint8)
    _locate(offsets, data, NO_HOST, *classes(), places, kinds)
    return places, kinds


@compiled
def _starts(data, begin, end, starts):
    """Write where the labels of a host begin; return how many there are."""
    starts[0] = begin
    count = 1
    for at in range(begin, end):
        if data[at] == 0x2E and count < len(starts):
            starts[count] = at + 1
            count += 1
    return count


@compiled
def _public(data, starts, labels, end, suffixes):
    """Return how many labels at the end of a host are a public suffix, 0 if no rule names them (publicsuffix.org)."""
    table, kinds = suffixes
    for depth in range(labels, 0, -1):
        found = find(table, data, starts[labels - depth], end)
        if found >= 0:
            if kinds[found] & EXCEPTION:
                return depth - 1
            if kinds[found] & WILD:
                return min(depth + 1, labels)
            return depth
    return 0


# --- What is listed --------------------------------------------------------------------------------------------------


@compiled
def _hit(hits, count, row, rule, found):
    """Note that an entry of a rule's list was found, once; return how many hits there are, noted or not."""
    same, at = 0, min(count, len(hits)) - 1
    while at >= 0 and hits[at, 0] == row and same < MOST:
        if hits[at, 1] == rule:
            if hits[at, 2] == found:
                return count
            same += 1
        at -= 1
    if same >= MOST:
        return count
    if count < len(hits):
        hits[count, 0], hits[count, 1], hits[count, 2] = row, rule, found
    return count + 1


@compiled
def _hosts(name, spelled, kind, tables, suffixes, exact, starts, hits, count, row):
    """Look up the hosts that a URL's host lies below, from the registered one to itself."""
    domains = tables[0]
    data, begin, end = name
    labels = _starts(data, begin, end, starts)
    if kind == ADDRESS or _is_address(data, begin, end):
        if not exact:
            found = find(domains, data, begin, end)
            count = _hit(hits, count, row, DOMAIN, found) if found >= 0 else count
        return count
    public = _public(data, starts, labels, end, suffixes)
    if exact:
        data, begin, end = spelled
        known = 0 < public < labels
        if not known or _starts(data, begin, end, starts) != labels:
            return count
    registered = max(labels - max(public, 1) - 1, 0)
    for at in range(registered, -1, -1):
        if at == registered or not exact or at == 0:
            found = find(domains, data, starts[at], end)
            if found >= 0:
                count = _hit(hits, count, row, DOMAIN if at == registered else SUBDOMAIN, found)
    return count


@compiled
def _words(data, begin, end, tables, hits, count, row):
    """Look up the runs of ASCII letters and digits."""
    hard, soft = tables[2], tables[3]
    at = begin
    while at < end:
        if not alphanumeric(data[at]):
            at += 1
            continue
        stop = at
        while stop < end and alphanumeric(data[stop]):
            stop += 1
        key = hashed(data, at, stop)
        found = probe(hard, key, data, at, stop)
        count = _hit(hits, count, row, HARD, found) if found >= 0 else count
        found = probe(soft, key, data, at, stop)
        count = _hit(hits, count, row, SOFT, found) if found >= 0 else count
        at = stop
    return count


@compiled
def _six_bits(letter):
    """Return a number below 64 for a digit or lower-case letter, different for each."""
    return (np.int64(letter) & 0x1F) | ((np.int64(letter) & 0x40) >> 1)


@compiled
def _mark_beginnings(ends, letters, beginnings, size):
    """Set beginnings[code] for the first `size` letters of every entry."""
    for entry in range(len(ends) - 1):
        code = 0
        for at in range(ends[entry], ends[entry] + size):
            code = code << 6 | _six_bits(letters[at])
        beginnings[code] = True


@compiled
def _subwords(data, begin, end, table, subwords, room, states, hits, count, row):
    """Look up every stretch, of a length that is listed, of the letters and digits joined.

    Only stretches that begin as an entry does are hashed, from the running hashes of the beginnings of the whole
    (Karp and Rabin, 1987).
    """
    sizes, powers, beginnings, first = subwords
    letters = 0
    for at in range(begin, end):
        if alphanumeric(data[at]):
            room[letters] = lower(data[at])
            states[letters + 1] = taken(states[letters], room[letters])
            letters += 1
    code, mask = 0, len(beginnings) - 1
    for last in range(letters):
        code = (code << 6 | _six_bits(room[last])) & mask
        at = last + 1 - first
        if at < 0 or not beginnings[code]:
            continue
        for which in range(len(sizes)):
            size = sizes[which]
            if at + size > letters:
                break
            key = finished(states[at + size] - states[at] * powers[which], size)
            found = probe(table, key, room, at, at + size)
            count = _hit(hits, count, row, SUBWORD, found) if found >= 0 else count
    return count


@compiled
def _screen(data, small, places, kinds, odd_ends, odd, tables, subwords, suffixes, exact, hits):
    """Write a hit (row, rule, entry) for everything against each URL; return how many there are."""
    longest, count, others = 0, 0, 0
    for row in range(len(kinds)):
        longest = max(longest, places[row, 1] - places[row, 0])
    room, states = np.empty(longest, np.uint8), np.zeros(longest + 1, np.uint64)
    starts = np.empty(LONGEST_HOST, np.int64)
    spelled = data if exact else small
    for row in range(len(kinds)):
        kind = kinds[row]
        begin, end, first, last = places[row]
        if kind == ABSENT:
            continue
        if kind == BAD:
            count = _hit(hits, count, row, BAD_URL, -1)
            continue
        name = (small, first, last)
        if kind != NAME:
            name = (odd, odd_ends[others], odd_ends[others + 1])
            others += 1
        count = _hosts(name, (spelled, first, last), kind, tables, suffixes, exact, starts, hits, count, row)
        if len(tables[1][1]) > 1:
            if exact:
                found = find(tables[1], data, begin, end)
            else:
                found = find(tables[1], room, 0, write_bare(data, begin, end, room, 0))
            count = _hit(hits, count, row, URL, found) if found >= 0 else count
        if len(tables[2][1]) > 1 or len(tables[3][1]) > 1:
            count = _words(spelled, begin, end, tables, hits, count, row)
        if len(tables[4][1]) > 1:
            count = _subwords(data, begin, end, tables[4], subwords, room, states, hits, count, row)
    return count


@compiled
def _small(data, out):
    """Write ASCII in lower case."""
    for at in range(len(data)):
        out[at] = lower(data[at])


Tables = tuple[Table, Table, Table, Table, Table]
"""Hosts, URLs, hard words, soft words, subwords."""

Subwords = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.bool_], int]
"""What is known of the list of subwords: the different lengths in bytes, ascending; the power of the hash's base for
each; which beginnings there are, and their length, at most three letters."""


def known(subwords: Table) -> Subwords:
    """Return what is known of a list's entries."""
    _, ends, letters = subwords
    sizes = np.unique(np.diff(ends))
    with np.errstate(over="ignore"):
        powers = [np.multiply.reduce(np.full(int(size), BASE, np.uint64)) for size in sizes]
    first = int(min([*sizes, 3]))
    beginnings = np.zeros(64**first, np.bool_)
    _mark_beginnings(ends, letters, beginnings, first)
    return sizes, np.array(powers, np.uint64), beginnings, first


def screen(
    data: npt.NDArray[np.uint8],
    located: tuple[Places, npt.NDArray[np.uint8]],
    odd: list[bytes],
    tables: Tables,
    subwords: Subwords,
    suffixes: Suffixes,
    *,
    exact: bool,
) -> Hits:
    """Return a row (URL, rule, entry of the rule's list) for everything that is listed, in the order of the URLs.

    `odd` holds, in order, a name in ASCII or an address for every host whose kind is ODD or ADDRESS. Unless `exact`,
    all hosts from the registered one down to the URL's are looked up, and ASCII letters match in any case.
    """
    small = np.empty(len(data), np.uint8)
    _small(data, small)
    ends = np.cumsum([0, *map(len, odd)]).astype(np.int64)
    names = np.frombuffer(b"".join(odd), np.uint8).copy()
    places, kinds = located
    hits = np.empty((max(len(kinds), 64), 3), np.int64)
    while True:
        given = (data, small, places, kinds, ends, names, tables, subwords, suffixes)
        count = _screen(*given, exact, hits)
        if count <= len(hits):
            return hits[:count]
        hits = np.empty((count, 3), np.int64)
