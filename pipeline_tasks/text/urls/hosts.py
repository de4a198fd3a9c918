"""Finds the host of each URL, and the part of it that is a registered domain."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import (
    AT_SIGN,
    CLOSING_BRACKET,
    COLON,
    DOT,
    HASH,
    NEWLINE,
    OPENING_BRACKET,
    PERCENT,
    QUESTION_MARK,
    RETURN,
    SLASH,
    SPACE,
    TAB,
    ZERO,
    is_alphanumeric,
    is_digit,
)
from pipeline_tasks.text.base.characters import ASCII_END, classes, trim
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.urls.addresses import canonical_host
from pipeline_tasks.text.urls.lists import Table, after_scheme, find_entry, short_table

ABSENT, BAD, NAME, ODD, ADDRESS = range(5)
"""Kinds of host: there is no URL, or that of a file, which has none; no host; a name in ASCII; what Python has to read
(letters beyond ASCII, brackets, percent forms, addresses in other forms); an IP address."""

LONGEST_HOST, LONGEST_LABEL = 253, 63
"""Bytes of a host name and of each of its labels (RFC 1035, 2.3.4)."""

EXACT, WILD, EXCEPTION = 1, 2, 4
"""Bits of a public suffix: `com`, `*.ck`, `!www.ck`."""

FORBIDDEN = bytes(range(0x21)) + b'/?#@:[]\\<>^`{|}"'
"""What no host name may contain (WHATWG URL, 3.5, but `%`, which crawlers let pass)."""

FILE = np.frombuffer(b"file:///", np.uint8)
"""How the address of a document of a folder begins (RFC 8089: a file of this machine has no host)."""

IS_FORBIDDEN = np.isin(np.arange(ASCII_END), [*FORBIDDEN])

Suffixes = tuple[Table, npt.NDArray[np.uint8]]
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
            name = canonical_host(rule.removeprefix("!").removeprefix("*.")).encode()
            rules[name] = rules.get(name, 0) | bit
    return short_table([*rules]), np.array([*rules.values()], np.uint8)


# --- Where the host is -----------------------------------------------------------------------------------------------


@compiled
def _authority_end(data, at, end):
    """Return where `[user@]host[:port]` ends."""
    while at < end and data[at] != SLASH and data[at] != QUESTION_MARK and data[at] != HASH:
        at += 1
    return at


@compiled
def _user_end(data, begin, end):
    """Return where the host of an authority begins, and how many `@` are before it."""
    first, users = begin, 0
    for at in range(begin, end):
        if data[at] == AT_SIGN:
            first, users = at + 1, users + 1
    return first, users


@compiled
def _host_end(data, first, end):
    """Return where a host ends: behind its bracket, else at the colon of a port."""
    bracket = first < end and data[first] == OPENING_BRACKET
    closing = CLOSING_BRACKET if bracket else COLON
    last = first
    while last < end and data[last] != closing:
        last += 1
    return last + (bracket and last < end)


@compiled
def _has_space(data, begin, end):
    for at in range(begin, end):
        if TAB <= data[at] <= RETURN or data[at] == SPACE:
            return True
    return False


@compiled
def _is_port(data, begin, end):
    """Return whether data[begin:end] is nothing, or a colon and digits."""
    if begin < end and data[begin] != COLON:
        return False
    for at in range(begin + 1, end):
        if not is_digit(data[at]):
            return False
    return True


@compiled
def _is_one_line(data, begin, end):
    for at in range(begin, end):
        if data[at] == NEWLINE or data[at] == RETURN:
            return False
    return True


@compiled
def _find_host(data, begin, end):
    """Return where the host of the URL data[begin:end] begins and ends, (-1, -1) if it is no URL with a host."""
    start = after_scheme(data, begin, end)
    stop = _authority_end(data, start, end)
    first, users = _user_end(data, start, stop)
    last = _host_end(data, first, stop)
    if start == begin or first >= last or users > 1:
        return -1, -1
    if _has_space(data, start, first) or not _is_port(data, last, stop) or not _is_one_line(data, stop, end):
        return -1, -1
    return first, last


@compiled
def _is_file(data, begin, end):
    """Return whether data[begin:end] is the address of a file without a host."""
    if end - begin < len(FILE):
        return False
    for at in range(len(FILE)):
        if data[begin + at] != FILE[at]:
            return False
    return True


# --- What kind of host it is -----------------------------------------------------------------------------------------


@compiled
def _host_kind(data, begin, end, forbidden):
    """Return what the host data[begin:end] is, which is not empty, and where a name ends without its last dot."""
    if data[begin] == OPENING_BRACKET:
        return (ODD if data[end - 1] == CLOSING_BRACKET else BAD), end
    plain = True
    for at in range(begin, end):
        plain = plain and data[at] < ASCII_END and data[at] != PERCENT
        if data[at] < ASCII_END and forbidden[data[at]]:
            return BAD, end
    if not plain:
        return ODD, end
    end -= data[end - 1] == DOT
    if not _is_name(data, begin, end):
        return BAD, end
    return (ODD if _ends_in_number(data, begin, end) and not is_address(data, begin, end) else NAME), end


@compiled
def _ends_in_number(data, begin, end):
    """Return whether the last label is a number, so that the host is an address (WHATWG URL, 3.5)."""
    at = end
    while at > begin and data[at - 1] != DOT:
        at -= 1
    hexadecimal = end - at > 2 and data[at] == ZERO and data[at + 1] in (ord("x"), ord("X"))
    for place in range(at + 2 * hexadecimal, end):
        if not is_digit(data[place]) and not (hexadecimal and is_alphanumeric(data[place])):
            return False
    return True


@compiled
def _is_name(data, begin, end):
    """Return whether all labels of data[begin:end], and it itself, have a length that names may have."""
    label = 0
    for at in range(begin, end):
        if data[at] == DOT:
            if label == 0:
                return False
            label = 0
        else:
            label += 1
            if label > LONGEST_LABEL:
                return False
    return label > 0 and end - begin <= LONGEST_HOST


@compiled
def is_address(data, begin, end):
    """Return whether data[begin:end] is an IPv4 address: four decimal numbers up to 255, without leading zeros."""
    dots, digits, value = 0, 0, 0
    for at in range(begin, end):
        byte = data[at]
        if byte == DOT:
            if digits == 0:
                return False
            dots, digits, value = dots + 1, 0, 0
        elif is_digit(byte) and not (digits == 1 and value == 0):
            digits, value = digits + 1, value * 10 + byte - ZERO
            if value > 255:
                return False
        else:
            return False
    return dots == 3 and digits > 0


@compiled
def _locate(offsets, data, forbidden, index, flags, places, kinds):
    """Fill places[row] with where the URL and its host begin and end, and kinds[row]."""
    for row in range(len(offsets) - 1):
        begin, end = trim(data, offsets[row], offsets[row + 1], index, flags)
        first, last = _find_host(data, begin, end)
        kinds[row] = ABSENT if begin == end or _is_file(data, begin, end) else BAD
        if first >= 0:
            kinds[row], last = _host_kind(data, first, last, forbidden)
        places[row, 0], places[row, 1], places[row, 2], places[row, 3] = begin, end, first, last


def locate_hosts(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> tuple[Places, npt.NDArray[np.uint8]]:
    """Return where each URL and its host begin and end, shape (rows, 4), and the kind of host, shape (rows,).

    A URL is `scheme://[user@]host[:port]` and whatever follows on the same line, as crawlers have it (RFC 3986, 3.2).
    """
    places = np.empty((len(offsets) - 1, 4), np.int64)
    kinds = np.empty(len(offsets) - 1, np.uint8)
    _locate(offsets, data, IS_FORBIDDEN, *classes(), places, kinds)
    return places, kinds


# --- The registered domain --------------------------------------------------------------------------------------------


@compiled
def label_starts(data, begin, end, starts):
    """Write where the labels of a host begin; return how many there are."""
    starts[0] = begin
    count = 1
    for at in range(begin, end):
        if data[at] == DOT and count < len(starts):
            starts[count] = at + 1
            count += 1
    return count


@compiled
def public_labels(data, starts, labels, end, suffixes):
    """Return how many labels at the end of a host are a public suffix, 0 if no rule names them (publicsuffix.org)."""
    table, kinds = suffixes
    for depth in range(labels, 0, -1):
        rule = find_entry(table, data, starts[labels - depth], end)
        if rule >= 0:
            if kinds[rule] & EXCEPTION:
                return depth - 1
            if kinds[rule] & WILD:
                return min(depth + 1, labels)
            return depth
    return 0
