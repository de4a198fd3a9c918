"""Reads a text for what may be an IP address in one compiled pass per version: the shape and what is next to it."""

import numpy as np

from pipeline_tasks.text.base.ascii import CASE_BIT, COLON, DOT, LOWER_A, LOWER_F, PERCENT, is_alphanumeric, is_digit
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.pii.neighbors import AFTER_COLON, AFTER_DOT, is_free_ahead, is_free_behind
from pipeline_tasks.text.pii.scanning import next_colon, next_digit

Range = tuple[int, int]

_LONGEST_IPV4, _LONGEST_IPV6 = len("255.255.255.255"), 64
IPV4_PARTS, _DIGITS_OF_PART, _DOTTED = 4, 3, 3
_GROUP, FEWEST_COLONS, _COLONS = 4, 2, 7
"""Hexadecimal digits of a group of IPv6, and colons of an address: of a shortened one and of one that is not."""


def ipv4_ranges(text: bytes) -> list[Range]:
    """Return the byte ranges of four numbers with dots between that are no part of a word or of a longer number."""
    return list(map(tuple, _ipv4_ranges(np.frombuffer(text, np.uint8)).tolist()))


def ipv6_ranges(text: bytes) -> list[Range]:
    """Return the byte ranges of hexadecimal groups with colons between that are no part of a word or longer number.

    An address has seven colons, or six before a dotted end, or is shortened by a double one.
    """
    return list(map(tuple, _ipv6_ranges(np.frombuffer(text, np.uint8)).tolist()))


@inlined
def dotted_end(data, at):
    """Return where numbers with dots between end that begin at `at`, and how many; -1 of them if one is too long."""
    parts = 0
    while True:
        start = at
        while at < len(data) and is_digit(data[at]):
            at += 1
        parts = parts + 1 if parts >= 0 and at - start <= _DIGITS_OF_PART else -1
        if at + 1 >= len(data) or data[at] != DOT or not is_digit(data[at + 1]):
            return at, parts
        at += 1


@compiled
def _ipv4_ranges(data):
    ranges, count = np.empty((8, 2), np.int64), 0
    at = next_digit(data, 0)
    while at < len(data):
        start = at
        at, parts = dotted_end(data, start)
        apart = is_free_ahead(data, start, AFTER_DOT) and is_free_behind(data, at, AFTER_DOT)
        if parts == IPV4_PARTS and at - start <= _LONGEST_IPV4 and apart:
            if count == len(ranges):
                ranges = np.concatenate((ranges, np.empty_like(ranges)))
            ranges[count, 0], ranges[count, 1] = start, at
            count += 1
        at = next_digit(data, at)
    return ranges[:count]


@inlined
def _is_hexadecimal(byte):
    return is_digit(byte) or LOWER_A <= (byte | CASE_BIT) <= LOWER_F


@inlined
def groups_end(data, at):
    """Return where the groups end that begin with the colon at `at`, their colons, and whether two are together."""
    colons, shortened = 0, False
    while at < len(data) and data[at] == COLON:
        colons, start = colons + 1, at + 1
        at = start
        while at < min(start + _GROUP, len(data)) and _is_hexadecimal(data[at]):
            at += 1
        shortened = shortened or (at == start and at < len(data) and data[at] == COLON)
    return at, colons, shortened


@inlined
def _tail_end(data, at):
    """Return where the dotted end of an address and its zone end that may be at `at`."""
    for _ in range(_DOTTED):
        if at + 1 >= len(data) or data[at] != DOT or not is_digit(data[at + 1]):
            break
        start = at + 1
        at = start
        while at < min(start + _DIGITS_OF_PART, len(data)) and is_digit(data[at]):
            at += 1
    if at + 1 < len(data) and data[at] == PERCENT and is_alphanumeric(data[at + 1]):
        at += 1
        while at < len(data) and is_alphanumeric(data[at]):
            at += 1
    return at


@compiled
def _ipv6_ranges(data):
    ranges, count = np.empty((8, 2), np.int64), 0
    free, at, glue = 0, 0, AFTER_COLON | AFTER_DOT
    while True:
        at = next_colon(data, at)
        if at == len(data):
            return ranges[:count]
        end, colons, shortened = groups_end(data, at)
        if colons < FEWEST_COLONS:
            at += 1
            continue
        start = at
        while start > max(free, at - _GROUP) and _is_hexadecimal(data[start - 1]):
            start -= 1
        at = free = end = _tail_end(data, end)
        whole = (shortened or colons >= _COLONS - 1) and end - start <= _LONGEST_IPV6
        if whole and is_free_ahead(data, start, glue) and is_free_behind(data, end, glue):
            if count == len(ranges):
                ranges = np.concatenate((ranges, np.empty_like(ranges)))
            ranges[count, 0], ranges[count, 1] = start, end
            count += 1
