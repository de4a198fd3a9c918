"""Finds the stretches of a text that may have an e-mail address, in one compiled pass.

An address with a sign (`@`, `%40`, the full-width sign) lies between two bytes that no address has, such as spaces,
with the exception of a quoted local part. One that is written out has `(at)` or ` dot `.
"""

import numpy as np

from pipeline_tasks.text.base.ascii import (
    APOSTROPHE,
    AT_SIGN,
    CASE_BIT,
    CLOSING_BRACE,
    CLOSING_BRACKET,
    CLOSING_PARENTHESIS,
    COLON,
    DOLLAR,
    DOT,
    EQUAL,
    HASH,
    HYPHEN,
    OPENING_BRACE,
    OPENING_BRACKET,
    OPENING_PARENTHESIS,
    PERCENT,
    PLUS,
    QUOTE,
    SPACE,
    TILDE,
    UNDERSCORE,
    is_alphanumeric,
)
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import load_eight
from pipeline_tasks.text.pii.scanning import has_bracket_or_word, has_sign

IN_BRACKETS, IN_WORDS, IN_CAPITALS = 1, 2, 4
"""How addresses may be written out: `jane [at] example.org`, `jane at example dot org`, `jane AT example.org`."""

_AMPERSAND, _LETTER_D, _CAPITAL_A, _CAPITAL_T = (ord(sign) for sign in "&dAT")
_FULL_WIDTH_AT = (0xEF, 0xBC, 0xA0)
_LONGEST_QUOTED = 2 + 4 * 62
"""Bytes of a quoted local part, at most."""


def mail_stretches(text: bytes) -> list[tuple[int, int]]:
    """Return the disjoint byte ranges of `text` in which every e-mail address with a sign lies."""
    return list(map(tuple, _stretches(np.frombuffer(text, np.uint8)).tolist()))


def written_forms(text: bytes) -> int:
    """Return which forms (bits) the addresses of `text` may have that are written out."""
    return int(written_forms_of(np.frombuffer(text, np.uint8)))


@inlined
def _is_of_local(byte):
    """Return whether a local part may have a byte; of characters beyond ASCII any."""
    if is_alphanumeric(byte) or byte >= 0x80:
        return True
    return byte in (DOT, HYPHEN, UNDERSCORE, PLUS, PERCENT, APOSTROPHE, _AMPERSAND, HASH, DOLLAR, TILDE, EQUAL)


@inlined
def _is_of_address(byte):
    """Return whether an address without a quoted part may have a byte."""
    return _is_of_local(byte) or byte in (AT_SIGN, OPENING_BRACKET, CLOSING_BRACKET, COLON)


@inlined
def _sign_end(data, at):
    """Return where the sign ends that begins at `at`, or `at` if none does."""
    byte = data[at]
    if byte == AT_SIGN:
        return at + 1
    if byte == _FULL_WIDTH_AT[0] and at + 2 < len(data):
        return at + 3 if data[at + 1] == _FULL_WIDTH_AT[1] and data[at + 2] == _FULL_WIDTH_AT[2] else at
    if byte != PERCENT:
        return at
    end = at + 1
    while end + 1 < len(data) and data[end] == 0x32 and data[end + 1] == 0x35:  # 25
        end += 2
    return end + 2 if end + 1 < len(data) and data[end] == 0x34 and data[end + 1] == 0x30 else at  # 40


@compiled
def next_sign(data, at):
    """Return where the next sign between a local part and a domain is and ends; the end of the text if none is."""
    while at < len(data):
        if at + 8 <= len(data) and not has_sign(load_eight(data, at)):
            at += 8
            continue
        byte = data[at]
        if byte in (AT_SIGN, PERCENT, _FULL_WIDTH_AT[0]):
            end = _sign_end(data, at)
            if end > at > 0 and end < len(data):
                ahead, behind = data[at - 1], data[end]
                named = _is_of_local(ahead) or ahead == QUOTE
                if named and (is_alphanumeric(behind) or behind >= 0x80 or behind in (HYPHEN, OPENING_BRACKET)):
                    return at, end
        at += 1
    return len(data), len(data)


@compiled
def _stretches(data):
    ranges, count = np.empty((8, 2), np.int64), 0
    sign, end = next_sign(data, 0)
    while sign < len(data):
        start = max(sign - _LONGEST_QUOTED, 0) if data[sign - 1] == QUOTE else sign
        if data[sign - 1] != QUOTE:
            least = ranges[count - 1, 1] if count else 0
            while start > least and _is_of_address(data[start - 1]):
                start -= 1
        while end < len(data) and _is_of_address(data[end]):
            end += 1
        while count and ranges[count - 1, 1] >= start:
            count -= 1
            start = min(start, ranges[count, 0])
        if count == len(ranges):
            ranges = np.concatenate((ranges, np.empty_like(ranges)))
        ranges[count, 0], ranges[count, 1] = start, end
        count += 1
        sign, end = next_sign(data, end)
    return ranges[:count]


@inlined
def _has_letters(data, at, first, second, third):
    """Return whether two or three ASCII letters, in any case, are at `at`; 0 for no third."""
    if at + 2 + (third > 0) > len(data):
        return False
    if data[at] | CASE_BIT != first or data[at + 1] | CASE_BIT != second:
        return False
    return third == 0 or data[at + 2] | CASE_BIT == third


@inlined
def _word_end(data, at):
    """Return where a word for the sign ends that begins at `at` (at, @, ät, arroba), or `at`."""
    if at < len(data) and data[at] == AT_SIGN:
        return at + 1
    if _has_letters(data, at, 0x61, 0x74, 0):
        return at + 2
    if _has_letters(data, at, 0x61, 0x72, 0x72) and _has_letters(data, at + 3, 0x6F, 0x62, 0x61):
        return at + 6
    if at + 2 < len(data) and data[at] == 0xC3 and data[at + 1] in (0xA4, 0x84) and data[at + 2] | CASE_BIT == 0x74:
        return at + 3
    return at


@inlined
def _is_in_brackets(data, at):
    """Return whether a word for the sign follows the opening bracket at `at`, and a closing one follows that."""
    at += 1
    at += at < len(data) and data[at] == SPACE
    end = _word_end(data, at)
    if end == at:
        return False
    end += end < len(data) and data[end] == SPACE
    return end < len(data) and data[end] in (CLOSING_BRACKET, CLOSING_PARENTHESIS, CLOSING_BRACE)


@inlined
def _is_dot(data, at):
    """Return whether the word `dot`, in any case, and a space are at `at`."""
    return _has_letters(data, at, 0x64, 0x6F, 0x74) and at + 3 < len(data) and data[at + 3] == SPACE


@compiled
def written_forms_of(data):
    """Return the forms (bits) that addresses in a text may have."""
    forms, at = 0, 0
    while at < len(data):
        if at + 8 <= len(data) and not has_bracket_or_word(load_eight(data, at)):
            at += 8
            continue
        byte = data[at]
        if byte | CASE_BIT == _LETTER_D:
            if at > 0 and data[at - 1] == SPACE and _is_dot(data, at):
                forms |= IN_WORDS
        elif byte == _CAPITAL_A:
            if 0 < at < len(data) - 3 and data[at + 1] == _CAPITAL_T and data[at - 1] == data[at + 2] == SPACE:
                forms |= IN_CAPITALS
        elif byte in (OPENING_BRACKET, OPENING_PARENTHESIS, OPENING_BRACE) and _is_in_brackets(data, at):
            forms |= IN_BRACKETS
        at += 1
    return forms
