"""Skips what cannot begin a finding, eight bytes at a time, inside compiled loops."""

import numpy as np

from pipeline_tasks.text.base.ascii import COLON, is_digit
from pipeline_tasks.text.base.compiled import inlined
from pipeline_tasks.text.base.eight_bytes import HIGH_BITS, load_eight, mark_digits

ONES = np.uint64(0x0101010101010101)
LOWER_CASE = np.uint64(0x2020202020202020)
SPACES, COLONS = np.uint64(0x2020202020202020), np.uint64(0x3A3A3A3A3A3A3A3A)
LETTERS_D = np.uint64(0x6464646464646464)
PARENTHESES, BRACES = np.uint64(0x2828282828282828), np.uint64(0x7B7B7B7B7B7B7B7B)
AT_SIGNS, PERCENTS, LEADS_OF_FULL_WIDTH = (
    np.uint64(0x4040404040404040),
    np.uint64(0x2525252525252525),
    np.uint64(0xEFEFEFEFEFEFEFEF),
)
FIRST = np.uint64(0x80)
"""The mark of the first byte."""


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
def has_sign(word):
    """Return whether eight bytes may have `@`, `%` or the full-width sign."""
    marks = mark_equal(word, AT_SIGNS) | mark_equal(word, PERCENTS) | mark_equal(word, LEADS_OF_FULL_WIDTH)
    return marks != np.uint64(0)


@inlined
def has_bracket_or_d(word):
    """Return whether eight bytes may have an opening bracket, or the `d` of a word; its space may be ahead of them."""
    folded = word | LOWER_CASE
    brackets = mark_equal(folded, PARENTHESES) | mark_equal(folded, BRACES)
    words = (mark_equal(folded, SPACES) << np.uint64(8) | FIRST) & mark_equal(folded, LETTERS_D)
    return (brackets | words) != np.uint64(0)
