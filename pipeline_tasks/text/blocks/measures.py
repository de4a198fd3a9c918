"""Measures the text of each block: words, letters, signs, links, sentences, in scripts with and without blanks."""

import numpy as np

from pipeline_tasks.text.base.characters import TERMINAL, UNSPACED, WORD, classes
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks.reading import CODE_SPAN, EMPHASIS_SPAN, LINK, STRONG_SPAN

(
    WORDS, LINKED, CHARS, DIGITS, CAPITALS, STOPS, COMMAS, SIGNS, LINES, ENDS, STARTS, SENTENCES, LONGEST, HASH,
    COLONS, LINKS, BARS, SPACED_SIGNS, CODED, STRONGS, EMPHASES,
) = range(21)  # fmt: skip
MEASURES = 21
END_NONE, END_STOP, END_COLON, END_COMMA, END_ASKS, END_OTHER = range(6)

SENTENCE_WORDS = 8
"""Words that a sentence has at least; shorter ones are labels as well."""


def _signs(signs: str) -> np.ndarray:
    """Return 1 at each of these code points, and 0 at others."""
    table = np.zeros(0x10000, np.uint8)
    table[[ord(sign) for sign in signs]] = 1
    return table


_INDEX, _FLAGS = classes()
_CLASSES = _FLAGS.reshape(-1, 256)[_INDEX[:256]].reshape(-1)  # of the Basic Multilingual Plane
KINDS = np.where(_CLASSES & UNSPACED, 2, _CLASSES & WORD != 0).astype(np.uint8)
"""Kinds of code points: 0 blanks and signs, 1 letters and digits, 2 those of scripts without blanks."""

_ASKS = _signs("?\uff1f\u061f\u055e\u1367\u2047\u2048")
_STOPS = np.maximum(_CLASSES & TERMINAL != 0, _signs("\u2026\u055c\u055e")) + _ASKS
_COMMA = _signs(",\u3001\uff0c\u060c\u055d\u1363;\uff1b\u061b")
_COLON = _signs(":\uff1a")
_CLOSERS = _signs("\"')]}\u00bb\u201d\u2019\u203a\u300d\u300f\uff09\u3011")
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
            if spans[span, 0] == LINK:
                linked_until = max(linked_until, np.int64(spans[span, 2]))
                row[LINKS] += 1
            elif spans[span, 0] == CODE_SPAN:
                row[CODED] += spans[span, 2] - spans[span, 1]
            elif spans[span, 0] == STRONG_SPAN:
                row[STRONGS] += spans[span, 2] - spans[span, 1]
            elif spans[span, 0] == EMPHASIS_SPAN:
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
