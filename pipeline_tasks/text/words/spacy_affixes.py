"""Find the prefixes, suffixes and infixes that spaCy's English tokenizer cuts off, one step per rule.

The rules are those of explosion/spaCy 3.8 `spacy/lang/punctuation.py` and `spacy/lang/en/punctuation.py` (MIT).
"""

import numpy as np

from pipeline_tasks.text.base.ascii import (
    APOSTROPHE,
    CARET,
    COLON,
    COMMA,
    DOLLAR,
    DOT,
    EQUAL,
    GREATER,
    HYPHEN,
    LESS,
    LOWER_S,
    PLUS,
    SLASH,
    STAR,
    TILDE,
    UPPER_A,
    UPPER_C,
    UPPER_S,
    UPPER_U,
    is_digit,
    starts_character,
)
from pipeline_tasks.text.base.characters import (
    ASCII_END,
    CASED_ANY,
    DOTTED,
    ICON,
    LOWER,
    PREFIX,
    QUOTE,
    SUFFIX,
    UPPER,
    class_of,
    decode,
)
from pipeline_tasks.text.base.compiled import inlined
from pipeline_tasks.text.words.spacy_exceptions import is_unit

CURLY_APOSTROPHE = ord("\u2019")
EN_DASH, EM_DASH, ELLIPSIS = ord("\u2013"), ord("\u2014"), ord("\u2026")
ELLIPSIS_SIZE = 3

FARTHEST_DIGIT = 10
"""A unit has fewer bytes than this, so its digit is not looked for farther from the end."""


@inlined
def last_start(data, begin, end):
    """Return where the last code point of data[begin:end] begins."""
    last = end - 1
    while last > begin and not starts_character(data[last]):
        last -= 1
    return last


@inlined
def class_at(data, at, end, index, flags):
    """Return the class of the code point at `at`, 0 at the end."""
    if at >= end:
        return np.int64(0)
    code, _ = decode(data, at, end)
    return np.int64(class_of(index, flags, code))


@inlined
def prefix_size(data, begin, end, index, flags):
    """Return the bytes of the prefix of data[begin:end], 0 for none."""
    code, width = decode(data, begin, end)
    if class_of(index, flags, code) & PREFIX:
        return width
    if code == PLUS:
        return 0 if begin + 1 < end and is_digit(data[begin + 1]) else 1
    if code == DOT:
        dots = _dots(data, begin, end)
        return dots if dots > 1 else 0
    return _lettered_dollar(data, begin, end)


@inlined
def _dots(data, at, end):
    """Return how many full stops follow each other from `at` on."""
    tip = at
    while tip < end and data[tip] == DOT:
        tip += 1
    return tip - at


@inlined
def _lettered_dollar(data, begin, end):
    """Return the bytes of `US$`, `A$` or `C$` at `begin`, 0 for none."""
    lead = data[begin]
    if lead == UPPER_U and begin + 2 < end and data[begin + 1] == UPPER_S and data[begin + 2] == DOLLAR:
        return 3
    if lead in (UPPER_A, UPPER_C) and begin + 1 < end and data[begin + 1] == DOLLAR:
        return 2
    return 0


@inlined
def suffix_size(data, begin, end, index, flags):
    """Return the bytes of the longest suffix of data[begin:end], 0 for none."""
    if begin >= end:
        return 0
    unit = _unit_size(data, begin, end)
    if unit:
        return unit
    last = last_start(data, begin, end)
    code, width = decode(data, last, end)
    if code == DOT and last > begin:
        return _stop_size(data, begin, last, index, flags)
    if code in (LOWER_S, UPPER_S) and last > begin:
        return _possessive_size(data, begin, last)
    if not class_of(index, flags, code) & SUFFIX:
        return 0
    if code == ELLIPSIS and last - ELLIPSIS_SIZE >= begin:
        before, _ = decode(data, last - ELLIPSIS_SIZE, last)
        return 2 * ELLIPSIS_SIZE if before == ELLIPSIS else width
    return width


@inlined
def _unit_size(data, begin, end):
    """Return the bytes of the unit or currency after the last digit, 0 for none."""
    digit = end - 1
    while digit >= begin and end - digit <= FARTHEST_DIGIT and not is_digit(data[digit]):
        digit -= 1
    if begin <= digit < end - 1 and is_digit(data[digit]) and is_unit(data, digit + 1, end):
        return end - 1 - digit
    return 0


@inlined
def _stop_size(data, begin, last, index, flags):
    """Return the bytes of the full stops that end at `last`, 0 where a single one belongs to the word (`Mr.`).

    A single full stop is cut off after lower-case letters, digits and signs, and after two upper-case letters.
    """
    if data[last - 1] == DOT:
        run = last
        while run > begin and data[run - 1] == DOT:
            run -= 1
        return last + 1 - run
    before = last_start(data, begin, last)
    bits = class_at(data, before, last, index, flags)
    if bits & DOTTED:
        return 1
    if bits & UPPER and before > begin:
        return 1 if class_at(data, last_start(data, begin, before), before, index, flags) & UPPER else 0
    return 0


@inlined
def _possessive_size(data, begin, last):
    """Return the bytes of the apostrophe before the `s` at `last` and of the `s`, 0 without apostrophe."""
    apostrophe = last_start(data, begin, last)
    code, _ = decode(data, apostrophe, last)
    return last + 1 - apostrophe if code in (APOSTROPHE, CURLY_APOSTROPHE) else 0


@inlined
def infix_size(data, begin, at, end, index, flags):
    """Return the bytes of the infix at `at` of data[begin:end], 0 for none."""
    code, width = decode(data, at, end)
    bits = class_of(index, flags, code)
    if code == DOT:
        dots = _dots(data, at, end)
        if dots > 1:
            return dots
    if code == ELLIPSIS or bits & ICON:
        return width
    if at == begin or (code < ASCII_END and bits & CASED_ANY) or is_digit(code):
        return 0
    return _infix_between(data, begin, at, end, code, width, index, flags)


@inlined
def _infix_between(data, begin, at, end, code, width, index, flags):
    """Return the bytes of an infix that depends on the characters before and after it, 0 for none."""
    before, after = last_start(data, begin, at), at + width
    digit = is_digit(data[before])
    if digit and _is_operator(data, code, after, end):
        return 1
    left, right = class_at(data, before, at, index, flags), class_at(data, after, end, index, flags)
    if code == DOT:
        return 1 if left & (LOWER | QUOTE) and right & (UPPER | QUOTE) else 0
    if code == COMMA:
        return 1 if left & CASED_ANY and right & CASED_ANY else 0
    if not (digit or left & CASED_ANY):
        return 0
    if code in (COLON, LESS, EQUAL, GREATER, SLASH):
        return 1 if right & CASED_ANY else 0
    if code in (HYPHEN, EN_DASH, EM_DASH, TILDE):
        return _dash_size(data, at, end, code, width, index, flags)
    return 0


@inlined
def _is_operator(data, code, after, end):
    """Return whether a sign after a digit is an operator before another number: `2*3`, `2^-1`."""
    if code not in (PLUS, HYPHEN, STAR, CARET) or after >= end:
        return False
    return is_digit(data[after]) or data[after] == HYPHEN


@inlined
def _dash_size(data, at, end, code, width, index, flags):
    """Return the bytes of the dashes at `at` before a letter: at most three `-`, two em dashes, one of others."""
    most = 3 if code == HYPHEN else (2 if code == EM_DASH else 1)
    tip, times = at, 0
    while times < most and tip < end:
        same, _ = decode(data, tip, end)
        if same != code:
            break
        tip, times = tip + width, times + 1
        if class_at(data, tip, end, index, flags) & CASED_ANY:
            return tip - at
    return 0
