"""Measures the text of each block: words, letters, signs, links, sentences, in scripts with and without blanks."""

import numpy as np

from pipeline_tasks.text.base.compiled import compiled, inlined

(
    WORDS, LINKED, CHARS, DIGITS, CAPITALS, STOPS, COMMAS, SIGNS, LINES, WIDE, ENDS, STARTS, SENTENCES, LONGEST, HASH,
    COLONS, LINKS, BARS, SPACED_SIGNS, CODED, STRONGS, EMPHASES,
) = range(22)  # fmt: skip
MEASURES = 22
END_NONE, END_STOP, END_COLON, END_COMMA, END_ASKS, END_OTHER = range(6)

SENTENCE_WORDS = 8
"""Words that a sentence has at least; shorter ones are labels as well."""


def _kinds() -> np.ndarray:
    """Return kinds of code points: 0 blanks and signs, 1 letters and digits, 2 those of scripts without blanks."""
    kinds = np.ones(0x10000, np.uint8)
    for first, last in (
        (0, 0xBF),
        (0x2000, 0x2BFF),
        (0x3000, 0x3004),
        (0x3008, 0x3020),
        (0xFE10, 0xFE6F),
        (0xE000, 0xF8FF),
    ):
        kinds[first : last + 1] = 0
    for sign in "\u00aa\u00b5\u00ba":
        kinds[ord(sign)] = 1
    for first, last in ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)):
        kinds[first : last + 1] = 1
    for code in (
        0xD7,
        0xF7,
        0x37E,
        0x387,
        0x589,
        0x5BE,
        0x60C,
        0x61B,
        0x61F,
        0x66A,
        0x6D4,
        0x964,
        0x965,
        0xFEFF,
        0xFF01,
        0xFF0C,
        0xFF0E,
        0xFF1A,
        0xFF1B,
        0xFF1F,
        0x10FB,
        0x1362,
    ):
        kinds[code] = 0
    for first, last in ((0xFF00, 0xFF0F), (0xFF1A, 0xFF20), (0xFF3B, 0xFF40), (0xFF5B, 0xFF65)):
        kinds[first : last + 1] = 0
    for first, last in (
        (0x0E01, 0x0EDF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FFF), (0x3005, 0x3007), (0x3021, 0x9FFF),
        (0xF900, 0xFAFF), (0x0F40, 0x0FBC),
    ):  # fmt: skip
        kinds[first : last + 1] = 2
    kinds[0xAC00:0xD7A4] = 1
    return kinds


KINDS = _kinds()
_ASKING = "?\uff1f\u061f;\u055e\u1367\u2047\u2048"
_STOPS = np.zeros(0x10000, np.uint8)
_STOP_SIGNS = (
    ".!?\u3002\uff01\uff1f\uff0e\uff61\u0589\u061f\u06d4\u0964\u0965\u055c\u055e"
    "\u1362\u1367\u104b\u2026\u203d\u2047\u2048\u2049"
)
for _sign in _STOP_SIGNS:
    _STOPS[ord(_sign)] = 2 if _sign in _ASKING else 1
_COMMA = np.zeros(0x10000, np.uint8)
for _sign in ",\u3001\uff0c\u060c\u055d\u1363;\uff1b\u061b":
    _COMMA[ord(_sign)] = 1
_COLON = np.zeros(0x10000, np.uint8)
for _sign in ":\uff1a":
    _COLON[ord(_sign)] = 1
_CLOSERS = np.zeros(0x10000, np.uint8)
for _sign in "\"')]}\u00bb\u201d\u2019\u203a\u300d\u300f\uff09\u3011":
    _CLOSERS[ord(_sign)] = 1
_PRIME, _BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)


@compiled
def measure(text, table, spans, measures):
    """Fill in the measures of each block."""
    order = np.argsort(spans[:, 1], kind="mergesort")
    at_span = 0
    for block in range(len(table)):
        start, end = table[block, 0], table[block, 1]
        while at_span < len(order) and spans[order[at_span], 2] <= start:
            at_span += 1
        _measure(text, start, end, spans, order, at_span, measures[block])


@inlined
def point(text, at, end):
    """Return the code point here, at most 0xFFFF, and where the next one begins; 0 for a byte of no UTF-8."""
    lead = np.int64(text[at])
    if lead < 0x80:
        return lead, at + 1
    if lead < 0xE0 and at + 1 < end:
        return (lead & 0x1F) << 6 | (np.int64(text[at + 1]) & 0x3F), at + 2
    if lead < 0xF0 and at + 2 < end:
        return (lead & 0x0F) << 12 | (np.int64(text[at + 1]) & 0x3F) << 6 | (np.int64(text[at + 2]) & 0x3F), at + 3
    if lead < 0xF8:
        return np.int64(0x20000 >> 4), min(at + 4, end)
    return np.int64(0x3B1), at + 1  # a formula counts as a word


@inlined
def _measure(text, start, end, spans, order, at_span, row):
    at, in_word, first, last, before_last = start, False, True, np.int64(0), np.int64(0)
    linked_until, key, since, length = np.int64(-1), _BASIS, 0, 0
    while at < end:
        while at_span < len(order) and spans[order[at_span], 1] <= at:
            span = order[at_span]
            if spans[span, 0] == 0:
                linked_until = max(linked_until, np.int64(spans[span, 2]))
                row[LINKS] += 1
            elif spans[span, 0] == 3:
                row[CODED] += spans[span, 2] - spans[span, 1]
            elif spans[span, 0] == 1:
                row[STRONGS] += spans[span, 2] - spans[span, 1]
            else:
                row[EMPHASES] += spans[span, 2] - spans[span, 1]
            at_span += 1
        begin = at
        code, at = point(text, at, end)
        kind = KINDS[code]
        row[CHARS] += 1
        if kind:
            if not in_word or kind == 2:
                row[WORDS] += 1
                row[LINKED] += begin < linked_until
                row[WIDE] += kind == 2
                since += 1
                length = 0
            length += 1
            row[LONGEST] = max(row[LONGEST], length if kind == 1 else 0)
            in_word = kind == 1
            is_digit = 48 <= code <= 57
            is_capital = 65 <= code <= 90 or 0x410 <= code <= 0x42F or 0x391 <= code <= 0x3A9 or 0xC0 <= code <= 0xDE
            row[DIGITS] += is_digit
            row[CAPITALS] += is_capital
            if first:
                row[STARTS] = 1 + is_capital + 2 * is_digit
                first = False
            folded = code | 0x20 if 65 <= code <= 90 else code
            key = (key ^ np.uint64(folded)) * _PRIME
        else:
            in_word = False
            if code > 32:
                row[SIGNS] += 1
                before_last, last = last, code
                stop = _STOPS[code]
                if stop:
                    row[STOPS] += 1
                    if since >= SENTENCE_WORDS:
                        row[SENTENCES] += since
                        since = 0
                    elif at >= end or text[at] <= 32:
                        since = 0
                row[COMMAS] += _COMMA[code]
                row[COLONS] += _COLON[code]
                row[BARS] += code in (124, 0xB7, 0x2022, 0xBB, 0x203A, 0xA9, 0x2192)
                if first:
                    row[STARTS] = 4
            row[LINES] += code == 10
            key = (key ^ np.uint64(32)) * _PRIME if code > 32 else key
        if kind:
            before_last, last = last, code
    row[HASH] = np.int64(key >> np.uint64(33))
    row[ENDS] = _end_kind(last, before_last)


@inlined
def _end_kind(last, before):
    if _CLOSERS[last] and (_STOPS[before] or _COLON[before]):
        last = before
    if _STOPS[last]:
        return END_ASKS if _STOPS[last] == 2 else END_STOP
    if _COLON[last]:
        return END_COLON
    if _COMMA[last]:
        return END_COMMA
    return END_NONE if KINDS[last] else END_OTHER
