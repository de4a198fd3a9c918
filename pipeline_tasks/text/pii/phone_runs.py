"""Reads the digit runs of a text in one compiled pass: which parts of them may be phone numbers at all.

A run is six digits and more with at most four marks between two of them; its groups are digits without a mark
between. A candidate is one or more groups. What is left out here could not be accepted, whatever its country: it is a
part of a word or of a longer number, or has neither a form of its own nor a word near it that could announce it. The
tests have the same rules as patterns (`tests/text/pii/plain_finders.py`).
"""

from typing import NamedTuple

import numpy as np

from pipeline_tasks.text.base.ascii import (
    CLOSING_PARENTHESIS,
    COLON,
    COMMA,
    DOT,
    GREATER,
    HASH,
    HYPHEN,
    OPENING_PARENTHESIS,
    PLUS,
    SLASH,
    SPACE,
    TWO,
    ZERO,
    is_digit,
    is_letter,
    starts_character,
)
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.pii.candidates import CONTEXT, NUMBER_MASK
from pipeline_tasks.text.pii.neighbors import (
    AFTER_COLON,
    AFTER_DOT,
    AFTER_HYPHEN,
    AFTER_PLUS,
    AFTER_SLASH,
    is_free_ahead,
    is_free_behind,
)
from pipeline_tasks.text.pii.scanning import next_digit

FEWEST_DIGITS, MOST_DIGITS = 6, 15
"""Digits of a number: local ones have six, E.164 allows fifteen."""

ENDS_TRIED = 6
"""Groups that are given up at the end of a number before its start is."""

FEWEST_TRUNK_DIGITS = 9
"""Digits of a number with its trunk prefix (`02382 59743` has ten): fewer in groups are more often a date."""

NORTH_AMERICAN, EXTENDED, AHEAD, BEHIND = (1 << bit for bit in range(4))
"""What a candidate has: North American groups; perhaps an extension; perhaps a cue ahead; perhaps a label behind."""

_MOST_GAP = 4
_LONGEST_EXTENSION = 72
_GLUE = AFTER_DOT | AFTER_HYPHEN | AFTER_PLUS | AFTER_COLON
_ROW = 6


class Candidate(NamedTuple):
    """A part of a run: which run, its bytes, how many groups and digits, and what it has (bits)."""

    run: int
    start: int
    end: int
    groups: int
    digits: int
    flags: int


def phone_candidates(text: bytes) -> list[Candidate]:
    """Return what may be a phone number in `text`, by where it begins; of one start the longest first."""
    rows = _candidates(np.frombuffer(text, np.uint8))
    return list(map(Candidate._make, rows.tolist()))


@inlined
def _mark_width(data, at):
    """Return the bytes of the mark at `at` that may be within a number, 0 if there is none."""
    byte = data[at]
    if byte in (SPACE, DOT, HYPHEN, SLASH, OPENING_PARENTHESIS, CLOSING_PARENTHESIS):
        return 1
    if byte == 0xC2:
        return 2 if at + 1 < len(data) and data[at + 1] == 0xA0 else 0
    if byte != 0xE2 or at + 2 >= len(data) or data[at + 1] != 0x80:
        return 0
    third = data[at + 2]
    return 3 if third in (0x87, 0x89, 0x8B, 0xAF) or 0x90 <= third <= 0x95 else 0


@inlined
def run_from(data, first):
    """Return where the run ends whose first digit is at `first`, and its digits."""
    digits, end, at, marks = 1, first + 1, first + 1, 0
    while at < len(data):
        if is_digit(data[at]):
            digits, at, marks = digits + 1, at + 1, 0
            end = at
            continue
        width = _mark_width(data, at)
        if width == 0 or marks == _MOST_GAP:
            break
        marks, at = marks + 1, at + width
    return end, digits


@inlined
def _run_start(data, first, free):
    """Return where a run begins whose first digit is at `first`: up to two signs ahead, but not before `free`."""
    start = first
    while start > max(free, first - 2) and data[start - 1] in (PLUS, OPENING_PARENTHESIS):
        start -= 1
    return start


@inlined
def _group_begins(data, at, end):
    """Return where the digits begin of a group whose first byte is at `at`, -1 if none begins there."""
    byte = data[at]
    if is_digit(byte):
        return at
    if byte not in (PLUS, OPENING_PARENTHESIS):
        return -1
    if byte == OPENING_PARENTHESIS and at + 1 < end and data[at + 1] == PLUS:
        at += 1
    return at + 1 if at + 1 < end and is_digit(data[at + 1]) else -1


@inlined
def _is_loose(data, last, first):
    """Return whether data[last:first] has a space, a slash or an opening bracket."""
    for at in range(last, first):
        byte = data[at]
        if byte in (SPACE, SLASH, OPENING_PARENTHESIS):
            return True
        if byte == 0xC2 or (byte == 0xE2 and data[at + 2] in (0x89, 0xAF)):
            return True
    return False


@compiled
def _read_groups(data, start, end, groups):
    """Fill `groups` with (start, end, digits, loose, has a plus) of each group of a run; return how many."""
    count, at, last = 0, start, start
    while at < end:
        digit = _group_begins(data, at, end)
        if digit < 0:
            at += 1
            continue
        stop = digit
        while stop < end and is_digit(data[stop]):
            stop += 1
        closed = stop < end and data[stop] == CLOSING_PARENTHESIS
        opened = data[at] == OPENING_PARENTHESIS
        first, after = at + (opened and not closed), stop + (opened and closed)
        groups[count, 0], groups[count, 1], groups[count, 2] = first, after, stop - digit
        groups[count, 3] = opened or _is_loose(data, last, first)
        groups[count, 4] = digit > at and data[digit - 1] == PLUS
        count, last, at = count + 1, after, stop + closed
    return count


@inlined
def _is_apart(data, start, end, several):
    """Return whether a number is no part of a word or of a longer number; a word may follow one with `+`."""
    glue = _GLUE if several else _GLUE | AFTER_SLASH
    if is_free_ahead(data, start, glue) and is_free_behind(data, end, glue):
        return True
    return data[start] == PLUS and end < len(data) and is_letter(data[end]) and is_free_ahead(data, start, _GLUE)


@inlined
def _follows(data, at, lead, seconds):
    """Return whether the ASCII letter `lead`, in any case, and one of two others are at `at`."""
    if data[at] | 0x20 != lead or at + 1 >= len(data):
        return False
    letter = data[at + 1] | 0x20
    return letter in (seconds & 0xFF, seconds >> 8)


@inlined
def _may_extend(data, end):
    """Return whether an extension (`EXTENSION`) or a list of last digits may be at `end`."""
    if end + 1 >= len(data):
        return False
    if data[end] == SLASH:
        return is_digit(data[end + 1])
    at = end
    while at < end + 2 and at + 1 < len(data) and data[at] in (SPACE, COMMA, 0x3B):
        at += 1
    byte, second = data[at], data[at + 1] if at + 1 < len(data) else 0
    if byte == HASH or byte | 0x20 == 0x78:  # `#`, x
        return is_digit(second) or second in (SPACE, DOT, COLON)
    if byte >= 0x80:
        return (byte == 0xD0 and second in (0xB4, 0x94, 0xB2, 0x92)) or byte in (0xE1, 0xE5)
    second |= 0x20
    letter = byte | 0x20
    if letter == 0x64:  # durchwahl, dw, dahili
        return second in (0x75, 0x77, 0x61)
    return (
        (letter == 0x65 and second == 0x78)  # ext
        or (letter == 0x70 and second == 0x6F)  # poste
        or (letter == 0x61 and second == 0x6E)  # anexo
        or (letter == 0x72 and second == 0x61)  # ramal
    )


@inlined
def _may_be_labelled(data, end):
    """Return whether a `LABEL` may be at `end`."""
    at = end
    while at < end + 2 and at < len(data) and data[at] in (SPACE, HYPHEN):
        at += 1
    if at == end:
        return False
    at += at < len(data) and data[at] == OPENING_PARENTHESIS
    # office, fax, mobile, cell, home, work, phone, tel, direct
    return at < len(data) and data[at] | 0x20 in (0x6F, 0x66, 0x6D, 0x63, 0x68, 0x77, 0x70, 0x74, 0x64)


@inlined
def _may_be_announced(data, start):
    """Return whether a letter, a placeholder or a masked number is before `start`, with no digit between."""
    for at in range(start - 1, max(start - CONTEXT, 0) - 1, -1):
        byte = data[at]
        if is_digit(byte):
            return False
        if is_letter(byte) or byte >= 0x80 or byte in (GREATER, NUMBER_MASK):
            return True
    return False


@inlined
def _is_north_american(groups, at, stop):
    """Return whether groups are area, exchange and line of the North American plan, with or without its code 1."""
    if groups[at, 2] == 1:
        at += 1
    count, first = stop - at, groups[at, 2] if at < stop else 0
    if count == 1:
        return first in (10, 11)
    if count == 2:
        return (first == 3 and groups[at + 1, 2] == 7) or (first == 6 and groups[at + 1, 2] == 4)
    return count == 3 and first == 3 and groups[at + 1, 2] == 3 and groups[at + 2, 2] == 4


@inlined
def _is_international(data, start):
    """Return whether a number begins with `+`, `(+` or `00`."""
    byte, second = data[start], data[start + 1]
    return byte == PLUS or (byte == OPENING_PARENTHESIS and second == PLUS) or (byte == ZERO and second == ZERO)


@inlined
def _is_trunk(data, start):
    """Return whether a number may begin as one that is dialed within its country (`is_trunk`)."""
    second = data[start + 1]
    if data[start] == OPENING_PARENTHESIS:
        return True
    return data[start] == ZERO and (is_digit(second) or second in (SPACE, HYPHEN, SLASH, OPENING_PARENTHESIS))


@inlined
def _is_day_part(data, groups, at):
    """Return whether a group is a day or a month: one digit, or two of which the first is at most 3."""
    start, digits = groups[at, 0], groups[at, 2]
    if groups[at, 1] - start != digits or not is_digit(data[start]):
        return False
    return digits == 1 or (digits == 2 and data[start] <= ZERO + 3)


@inlined
def _is_year(data, groups, at):
    """Return whether a group is a year of the last century or this."""
    start = groups[at, 0]
    if groups[at, 1] - start != 4 or groups[at, 2] != 4:
        return False
    return (data[start] == ZERO + 1 and data[start + 1] == ZERO + 9) or (data[start] == TWO and data[start + 1] == ZERO)


@inlined
def _is_near(data, groups, at):
    """Return whether spaces, dots, slashes and hyphens alone are between a group and the next."""
    for place in range(groups[at, 1], groups[at + 1, 0]):
        if data[place] not in (SPACE, DOT, SLASH, HYPHEN):
            return False
    return True


@inlined
def _marks_between(data, groups, at):
    """Return how many marks are between a group and the next."""
    count = 0
    for place in range(groups[at, 1], groups[at + 1, 0]):
        count += starts_character(data[place])
    return count


@compiled
def _is_date(data, groups, at, stop):
    """Return whether a part of a run begins with a date or is a range of years."""
    if stop - at == 2:
        return _is_year(data, groups, at) and _is_year(data, groups, at + 1) and _marks_between(data, groups, at) <= 3
    if stop - at < 3 or not (_is_near(data, groups, at) and _is_near(data, groups, at + 1)):
        return False
    if not _is_day_part(data, groups, at + 1):
        return False
    if _is_year(data, groups, at):
        return _is_day_part(data, groups, at + 2)
    return _is_day_part(data, groups, at) and _is_year(data, groups, at + 2)


@inlined
def _has_single_digits(groups, at, stop):
    """Return whether four groups in a row have one digit each: no phone number is written so."""
    row = 0
    for group in range(at, stop):
        row = row + 1 if groups[group, 2] == 1 else 0
        if row == 4:
            return True
    return False


@compiled
def _has_a_form(data, groups, at, stop, digits, flags):
    """Return whether a number may be accepted for its form alone."""
    start = groups[at, 0]
    if flags & NORTH_AMERICAN and (stop - at > 1 or data[start] == OPENING_PARENTHESIS):
        return True
    if _has_single_digits(groups, at, stop):
        return False
    return (digits >= FEWEST_TRUNK_DIGITS and _is_trunk(data, start)) or stop - at > 2 or digits == 10


@inlined
def _follows_a_candidate(ends, start):
    """Return whether a candidate ends up to three bytes before `start`."""
    for at in range(max(start - 3, 0), start):
        if ends[at]:
            return True
    return False


@inlined
def _last_stop(groups, begin, count):
    """Return behind which group the longest number ends that begins with group `begin`, and its digits."""
    digits, stop = 0, begin
    while stop < count and digits + groups[stop, 2] <= MOST_DIGITS and (stop == begin or not groups[stop, 4]):
        digits, stop = digits + groups[stop, 2], stop + 1
    return stop, digits


@compiled
def _flags_of(data, groups, begin, stop):
    """Return what a part of a run has."""
    end = groups[stop - 1, 1]
    return (
        NORTH_AMERICAN * _is_north_american(groups, begin, stop)
        | EXTENDED * _may_extend(data, end)
        | AHEAD * _may_be_announced(data, groups[begin, 0])
        | BEHIND * _may_be_labelled(data, end)
    )


@compiled
def _write_candidates(data, groups, begin, many, ends, extended, row):
    """Fill row[:n] with the candidates that begin with group `begin`; return n, and where extensions end at most."""
    stop, digits = _last_stop(groups, begin, many)
    start, count, tried = groups[begin, 0], 0, 0
    international = _is_international(data, start)
    near = international or start <= extended or _follows_a_candidate(ends, start)
    while stop > begin and digits >= FEWEST_DIGITS and tried < ENDS_TRIED:
        if stop == many or groups[stop, 3]:
            tried += 1
            end, flags = groups[stop - 1, 1], _flags_of(data, groups, begin, stop)
            if (
                (near or flags & ~NORTH_AMERICAN or _has_a_form(data, groups, begin, stop, digits, flags))
                and (flags & EXTENDED or _is_apart(data, start, end, stop - begin > 1))
                and (international or not _is_date(data, groups, begin, stop))
            ):
                row[count, 1], row[count, 2], row[count, 3] = start, end, stop - begin
                row[count, 4], row[count, 5] = digits, flags
                count += 1
                ends[end] = 1
                if flags & EXTENDED:
                    extended = max(extended, end + _LONGEST_EXTENSION)
        stop -= 1
        digits -= groups[stop, 2]
    return count, extended


@compiled
def _candidates(data):
    """Return the candidates of a text as rows of `Candidate`."""
    rows, count = np.empty((16, _ROW), np.int64), 0
    groups, ends = np.empty((32, 5), np.int64), np.zeros(0, np.uint8)
    free, run, extended = 0, 0, -1
    at = next_digit(data, 0)
    while at < len(data):
        end, digits = run_from(data, at)
        if digits >= FEWEST_DIGITS:
            if len(ends) == 0:
                ends = np.zeros(len(data) + 1, np.uint8)
            if digits > len(groups):
                groups = np.empty((2 * digits, 5), np.int64)
            many = _read_groups(data, _run_start(data, at, free), end, groups)
            for begin in range(many):
                if begin == 0 or groups[begin, 3]:
                    if count + ENDS_TRIED > len(rows):
                        rows = np.concatenate((rows, np.empty_like(rows)))
                    new, extended = _write_candidates(data, groups, begin, many, ends, extended, rows[count:])
                    rows[count : count + new, 0] = run
                    count += new
            free, run = end, run + 1
        at = next_digit(data, end)
    return rows[:count]
