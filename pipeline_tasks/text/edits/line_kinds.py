"""Says what the form of a line shows in any language: prose, lead-in, item, row, heading, code, a few bare words."""

import numpy as np

from pipeline_tasks.text.base.ascii import (
    CLOSING_BRACKET,
    CLOSING_PARENTHESIS,
    COLON,
    DOT,
    HASH,
    HYPHEN,
    PLUS,
    SPACE,
    STAR,
    TAB,
    is_digit,
)
from pipeline_tasks.text.base.characters import ALPHA, BLANK, DIGIT, QUOTE, TERMINAL, UNSPACED, WORD, class_of, decode
from pipeline_tasks.text.base.characters import SPACE as WHITE
from pipeline_tasks.text.base.compiled import compiled, inlined

PROSE, SENTENCE, LEAD_IN, ITEM, ROW, INDENTED, WORDY, BARE, SHORT, CODE, MARK = (1 << bit for bit in range(11))
"""Bits of a line: a sentence of more than PROSE_WIDTH, the end of one, one sentence that ends in a colon, an item of a
list, a row of a table, an indent, three letters, fewer than four words and nothing else, at most SHORT_WIDTH, an end as
code has it, and signs alone."""

RANK = 11
"""Bits from here on are the rank of a Markdown heading, 0 for any other line."""

PROSE_WIDTH, SHORT_WIDTH, BARE_WIDTH, BARE_UNSPACED = 72, 120, 32, 8
"""Columns of lines as a terminal shows them (a character of three bytes takes two), and characters of scripts without
spaces that a line of bare words may have. `docs/decisions/0096-seams.md` has the lines that they were read on."""

LETTERS, MOST_WORDS, MOST_RANK, MOST_DIGITS, TWO_BYTES = 3, 3, 6, 3, 0x800
BULLET, WIDE_COLON, RATIO, PIPE = 0x2022, 0xFF1A, 0x2236, ord("|")
CODE_ENDS = tuple(ord(sign) for sign in ">;{}=\\,<")


@inlined
def is_item(data, begin, end):
    """Return whether data[begin:end] begins as an item of a list, after an indent or none."""
    at = begin
    while at < end and data[at] == SPACE:
        at += 1
    first = at
    while at < end and at - first < MOST_DIGITS and is_digit(data[at]):
        at += 1
    if at > first:
        return at + 1 < end and (data[at] == DOT or data[at] == CLOSING_PARENTHESIS) and data[at + 1] == SPACE
    if at + 1 >= end:
        return False
    code, width = decode(data, at, end)
    if code not in (HYPHEN, STAR, PLUS, BULLET):
        return False
    return at + width < end and data[at + width] == SPACE


@inlined
def _rank(data, begin, end):
    """Return the rank of the Markdown heading data[begin:end], 0 if it is none."""
    at = begin
    while at < end and data[at] == HASH:
        at += 1
    return at - begin if at < end and data[at] == SPACE and at - begin <= MOST_RANK else 0


@inlined
def _is_code_end(code):
    for sign in CODE_ENDS:
        if code == sign:
            return True
    return False


@compiled
def kind_of(data, begin, end, index, flags):
    """Return the bits of the line data[begin:end], and its rank times 1 << RANK."""
    width, letters, words, unspaced = 0, 0, 0, 0
    in_word, ended, colon, several, bare, any_tab, any_sign = False, False, False, False, True, False, False
    last, at = np.int64(0), begin
    while at < end:
        code, size = decode(data, at, end)
        bits = class_of(index, flags, code)
        at += size
        width += 1 + (code >= TWO_BYTES)
        if bits & WHITE:
            any_tab |= code == TAB
            in_word = False
            continue
        any_sign = True
        last = code
        if bits & WORD:
            several |= ended or colon
            letters += (bits & ALPHA) != 0
            unspaced += (bits & UNSPACED) != 0
            bare &= not bits & DIGIT
            words += not in_word
            in_word, ended, colon = True, False, False
            continue
        bare = False
        if code in (COLON, WIDE_COLON, RATIO):
            colon, ended = True, False
        elif bits & TERMINAL:
            ended, colon = True, False
        elif not (bits & QUOTE or code in (CLOSING_PARENTHESIS, CLOSING_BRACKET)):
            ended, colon = False, False
        else:
            colon = False
    kind = 0
    kind |= SENTENCE * ended | PROSE * (ended and width > PROSE_WIDTH) | LEAD_IN * (colon and not several)
    kind |= ITEM * is_item(data, begin, end) | ROW * (any_tab or (begin < end and data[begin] == PIPE))
    kind |= INDENTED * (begin < end and data[begin] <= BLANK) | WORDY * (letters >= LETTERS)
    is_bare = bare and 0 < words <= MOST_WORDS and width <= BARE_WIDTH and unspaced <= BARE_UNSPACED
    kind |= BARE * is_bare | SHORT * (width <= SHORT_WIDTH) | CODE * _is_code_end(last)
    kind |= MARK * (any_sign and words == 0)
    return kind | _rank(data, begin, end) << RANK
