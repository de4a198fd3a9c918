"""Skips what cannot begin a finding, eight bytes at a time, inside compiled loops."""

import numpy as np

from pipeline_tasks.text.base.ascii import COLON, is_digit
from pipeline_tasks.text.base.compiled import inlined
from pipeline_tasks.text.base.eight_bytes import HIGH_BITS, load_eight, mark_digits

ONES = np.uint64(0x0101010101010101)
LOWER_CASE = np.uint64(0x2020202020202020)
SPACES, COLONS = np.uint64(0x2020202020202020), np.uint64(0x3A3A3A3A3A3A3A3A)
LETTERS_D = np.uint64(0x6464646464646464)
CAPITALS_A, CAPITALS_T = np.uint64(0x4141414141414141), np.uint64(0x5454545454545454)
PARENTHESES, BRACES = np.uint64(0x2828282828282828), np.uint64(0x7B7B7B7B7B7B7B7B)
AT_SIGNS, PERCENTS, LEADS_OF_FULL_WIDTH = (
    np.uint64(0x4040404040404040),
    np.uint64(0x2525252525252525),
    np.uint64(0xEFEFEFEFEFEFEFEF),
)
LEADS_C2, LEADS_E2 = np.uint64(0xC2C2C2C2C2C2C2C2), np.uint64(0xE2E2E2E2E2E2E2E2)
FIRST = np.uint64(0x80)
"""The mark of the first byte."""

LAST = np.uint64(0x8000000000000000)
"""The mark of the last byte."""


@inlined
def mark_equal(word, octets):
    """Mark the first byte of `word` that is as in `octets`, and perhaps bytes after it; 0 if there is none."""
    differences = word ^ octets
    return (differences - ONES) & ~differences & HIGH_BITS


@inlined
def next_digit(data, at):
    """Return the place of the first digit from `at` on, the end of the text if there is none."""
    while at < len(data):
        if at + 8 <= len(data) and mark_digits(load_eight(data, at)) == np.uint64(0):
            at += 8
        elif is_digit(data[at]):
            break
        else:
            at += 1
    return at


@inlined
def next_colon(data, at):
    """Return the place of the first colon from `at` on, the end of the text if there is none."""
    while at < len(data):
        if at + 8 <= len(data) and mark_equal(load_eight(data, at), COLONS) == np.uint64(0):
            at += 8
        elif data[at] == COLON:
            break
        else:
            at += 1
    return at


@inlined
def next_lead(data, at):
    """Return the next place from `at` on of the byte 0xC2, 0xE2 or 0xEF, the end of the text if there is none.

    With these bytes, in UTF-8, soft hyphens, general punctuation and byte order marks begin.
    """
    while at < len(data):
        if at + 8 <= len(data):
            word = load_eight(data, at)
            leads = mark_equal(word, LEADS_C2) | mark_equal(word, LEADS_E2) | mark_equal(word, LEADS_OF_FULL_WIDTH)
            if leads == np.uint64(0):
                at += 8
                continue
        if data[at] == 0xC2 or data[at] == 0xE2 or data[at] == 0xEF:
            break
        at += 1
    return at


@inlined
def has_sign(word):
    """Return whether eight bytes may have `@`, `%` or the full-width sign."""
    marks = mark_equal(word, AT_SIGNS) | mark_equal(word, PERCENTS) | mark_equal(word, LEADS_OF_FULL_WIDTH)
    return marks != np.uint64(0)


@inlined
def has_bracket_or_word(word):
    """Return whether eight bytes may have an opening bracket, or the beginning of the words `dot` or `AT`.

    The space of a word may be ahead of the bytes, and its end behind them.
    """
    folded = word | LOWER_CASE
    brackets = mark_equal(folded, PARENTHESES) | mark_equal(folded, BRACES)
    begins = mark_equal(folded, SPACES) << np.uint64(8) | FIRST
    capitals = mark_equal(word, CAPITALS_A) & (mark_equal(word, CAPITALS_T) >> np.uint64(8) | LAST)
    return (brackets | begins & (mark_equal(folded, LETTERS_D) | capitals)) != np.uint64(0)
