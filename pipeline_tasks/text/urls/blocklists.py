"""Finds blocklist entries in URLs: the host and its parent domains, the URL itself, its words, and its subwords."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import is_alphanumeric, lower
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.urls.hosts import (
    ABSENT,
    ADDRESS,
    BAD,
    LONGEST_HOST,
    NAME,
    Places,
    Suffixes,
    is_address,
    label_starts,
    public_labels,
)
from pipeline_tasks.text.urls.lists import (
    BASE,
    Table,
    find_entry,
    finish_hash,
    hash_byte,
    hash_range,
    probe,
    write_bare,
)

BAD_URL, DOMAIN, SUBDOMAIN, URL, HARD, SOFT, SUBWORD = range(7)
"""Rules: BAD_URL is ours; the others follow huggingface/datatrove `src/datatrove/pipeline/filters/url_filter.py`."""

MOST_HITS = 100
"""Hits that are reported of one rule of one URL."""

BEGINNING = 3
"""Letters of a subword by which candidates are selected, at most."""

Hits = npt.NDArray[np.int64]

Tables = tuple[Table, Table, Table, Table, Table]
"""Hosts, URLs, hard words, soft words, subwords."""

SubwordIndex = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.bool_], int]
"""What subwords can be: the different lengths in bytes, ascending; the power of the hash's base for each; which
beginnings there are, and their length, at most BEGINNING letters."""


@compiled
def _has_entries(table):
    return len(table[1]) > 1


@compiled
def _add_hit(hits, count, row, rule, entry):
    """Note that an entry of a rule's list is in a URL, once; return how many hits there are, noted or not."""
    same, at = 0, min(count, len(hits)) - 1
    while at >= 0 and hits[at, 0] == row and same < MOST_HITS:
        if hits[at, 1] == rule:
            if hits[at, 2] == entry:
                return count
            same += 1
        at -= 1
    if same >= MOST_HITS:
        return count
    if count < len(hits):
        hits[count, 0], hits[count, 1], hits[count, 2] = row, rule, entry
    return count + 1


@compiled
def _look_up(table, key, data, begin, end, hits, count, row, rule):
    """Note a hit if data[begin:end], whose hash is `key`, is listed; return how many hits there are."""
    entry = probe(table, key, data, begin, end)
    return _add_hit(hits, count, row, rule, entry) if entry >= 0 else count


@compiled
def _look_up_host(domains, data, begin, end, hits, count, row, rule):
    return _look_up(domains, hash_range(data, begin, end), data, begin, end, hits, count, row, rule)


@compiled
def _look_up_hosts(name, spelled, kind, domains, suffixes, exact, starts, hits, count, row):
    """Look up the hosts above a URL's host, from the registered one to itself."""
    data, begin, end = name
    if kind == ADDRESS or is_address(data, begin, end):
        return count if exact else _look_up_host(domains, data, begin, end, hits, count, row, DOMAIN)
    labels = label_starts(data, begin, end, starts)
    public = public_labels(data, starts, labels, end, suffixes)
    if exact:
        data, begin, end = spelled
        if not 0 < public < labels or label_starts(data, begin, end, starts) != labels:
            return count
    registered = max(labels - max(public, 1) - 1, 0)
    for label in range(registered, -1, -1):
        if label in (registered, 0) or not exact:
            rule = DOMAIN if label == registered else SUBDOMAIN
            count = _look_up_host(domains, data, starts[label], end, hits, count, row, rule)
    return count


@compiled
def _look_up_url(data, begin, end, urls, exact, room, hits, count, row):
    """Look up the URL itself, as it is spelled or in the form that lists of URLs are read in."""
    if not _has_entries(urls):
        return count
    if exact:
        entry = find_entry(urls, data, begin, end)
    else:
        entry = find_entry(urls, room, 0, write_bare(data, begin, end, room, 0))
    return _add_hit(hits, count, row, URL, entry) if entry >= 0 else count


@compiled
def _look_up_words(data, begin, end, hard, soft, hits, count, row):
    """Look up the runs of ASCII letters and digits."""
    if not _has_entries(hard) and not _has_entries(soft):
        return count
    at = begin
    while at < end:
        if not is_alphanumeric(data[at]):
            at += 1
            continue
        stop = at
        while stop < end and is_alphanumeric(data[stop]):
            stop += 1
        key = hash_range(data, at, stop)
        count = _look_up(hard, key, data, at, stop, hits, count, row, HARD)
        count = _look_up(soft, key, data, at, stop, hits, count, row, SOFT)
        at = stop
    return count


# --- Subwords --------------------------------------------------------------------------------------------------------


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


def index_subwords(subwords: Table) -> SubwordIndex:
    """Return what the entries of a list can be."""
    _, ends, letters = subwords
    sizes = np.unique(np.diff(ends))
    with np.errstate(over="ignore"):
        powers = [np.multiply.reduce(np.full(int(size), BASE, np.uint64)) for size in sizes]
    first = int(min([*sizes, BEGINNING]))
    beginnings = np.zeros(64**first, np.bool_)
    _mark_beginnings(ends, letters, beginnings, first)
    return sizes, np.array(powers, np.uint64), beginnings, first


@compiled
def _join_letters(data, begin, end, room, states):
    """Write the letters and digits to `room` and their running hashes to `states`; return how many there are."""
    letters = 0
    for at in range(begin, end):
        if is_alphanumeric(data[at]):
            room[letters] = lower(data[at])
            states[letters + 1] = hash_byte(states[letters], room[letters])
            letters += 1
    return letters


@compiled
def _look_up_subwords(data, begin, end, table, subwords, room, states, hits, count, row):
    """Look up every stretch, of a length that is listed, of the letters and digits joined.

    Only stretches that begin as an entry does are hashed, from the running hashes of the beginnings of the whole
    (Karp and Rabin, 1987).
    """
    if not _has_entries(table):
        return count
    sizes, powers, beginnings, first = subwords
    letters = _join_letters(data, begin, end, room, states)
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
            key = finish_hash(states[at + size] - states[at] * powers[which], size)
            count = _look_up(table, key, room, at, at + size, hits, count, row, SUBWORD)
    return count


# --- All rules -------------------------------------------------------------------------------------------------------


@compiled
def _find_hits(data, small, places, kinds, odd_ends, odd, tables, subwords, suffixes, exact, hits):
    """Write a hit (row, rule, entry) for everything against each URL; return how many there are."""
    domains, urls, hard, soft, _ = tables
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
            count = _add_hit(hits, count, row, BAD_URL, -1)
            continue
        name = (small, first, last)
        if kind != NAME:
            name = (odd, odd_ends[others], odd_ends[others + 1])
            others += 1
        count = _look_up_hosts(name, (spelled, first, last), kind, domains, suffixes, exact, starts, hits, count, row)
        count = _look_up_url(data, begin, end, urls, exact, room, hits, count, row)
        count = _look_up_words(spelled, begin, end, hard, soft, hits, count, row)
        count = _look_up_subwords(data, begin, end, tables[4], subwords, room, states, hits, count, row)
    return count


@compiled
def _write_lower(data, out):
    """Write ASCII in lower case."""
    for at in range(len(data)):
        out[at] = lower(data[at])


def find_listed(
    data: npt.NDArray[np.uint8],
    located: tuple[Places, npt.NDArray[np.uint8]],
    odd: list[bytes],
    tables: Tables,
    subwords: SubwordIndex,
    suffixes: Suffixes,
    *,
    exact: bool,
) -> Hits:
    """Return a row (URL, rule, entry of the rule's list) for everything that is listed, in the order of the URLs.

    `located` is what `locate_hosts` returned. `odd` has, in order, a name in ASCII or an address for every host whose
    kind is ODD or ADDRESS. Unless `exact`, all hosts from the registered one down to the URL's are looked up, and
    ASCII letters match in any case.
    """
    small = np.empty(len(data), np.uint8)
    _write_lower(data, small)
    ends = np.cumsum([0, *map(len, odd)]).astype(np.int64)
    names = np.frombuffer(b"".join(odd), np.uint8).copy()
    places, kinds = located
    hits = np.empty((max(len(kinds), 64), 3), np.int64)
    while True:
        count = _find_hits(data, small, places, kinds, ends, names, tables, subwords, suffixes, exact, hits)
        if count <= len(hits):
            return hits[:count]
        hits = np.empty((count, 3), np.int64)
