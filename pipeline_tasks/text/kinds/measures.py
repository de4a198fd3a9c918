"""Read texts once, line by line: count headings, lists, tables, code and prose, syllables, and phrases of a table."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import (
    CLOSING_BRACE,
    DOLLAR,
    DOT,
    EXCLAMATION_MARK,
    GREATER,
    HASH,
    HYPHEN,
    LESS,
    OPENING_BRACE,
    PLUS,
    QUESTION_MARK,
    SLASH,
    SPACE,
    STAR,
    TAB,
    is_digit,
    starts_character,
)
from pipeline_tasks.text.base.buffers import Bytes, Offsets
from pipeline_tasks.text.base.characters import ASCII_END, count_code_points, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.newlines import line_end
from pipeline_tasks.text.base.small_letters import fold
from pipeline_tasks.text.kinds.phrases import FREE, LONGEST, Phrases, joined, slot_of, word_at

BLANK, HEADING, LIST, TABLE, CODE, SHORT, PROSE, FENCE = range(8)
"""Kinds of lines. A short line has at most `SHORT_BYTES` and does not end like a sentence."""

SHORT_BYTES = 80

COUNTS = (
    "headings",
    "list_lines",
    "table_rows",
    "code_lines",
    "short_lines",
    "prose_lines",
    "bytes",
    "list_bytes",
    "table_bytes",
    "code_bytes",
    "prose_bytes",
    "words",
    "sentences",
    "syllables",
)
"""Lines by kind; bytes of lines, of all and by kind; words, sentences and syllables of prose."""

_BYTES, _WORDS, _SENTENCES, _SYLLABLES = (COUNTS.index(name) for name in COUNTS[6:7] + COUNTS[11:])

BAR, BACKTICK, SEMICOLON, CLOSING = ord("|"), ord("`"), ord(";"), ord(")")
BULLET = 0x2022
VOWEL_CODES = 0x530
_INDENT = 4
_STOPS = (DOT, EXCLAMATION_MARK, QUESTION_MARK)


def vowels() -> npt.NDArray[np.int64]:
    """Return for each code point of Latin, Greek and Cyrillic letters: 1 for a vowel, 2 for one of Cyrillic."""
    flags = np.zeros(VOWEL_CODES, np.int64)
    for letter in "\u0131aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýÿāăąēĕėęěĩīĭįōŏőœũūŭůűųŷ":
        flags[ord(letter)] = 1
    for letter in "аеёиоуыэюяіїє":
        flags[ord(letter)] = 2
    flags.setflags(write=False)
    return flags


@inlined
def _begins_list(data, first, last):
    """Return whether data[first:last] begins with a bullet or a number, and a space."""
    byte = data[first]
    if byte in (HYPHEN, STAR, PLUS):
        return first + 1 < last and data[first + 1] == SPACE
    if byte >= ASCII_END:
        code, width = decode(data, first, last)
        return code == BULLET and first + width < last
    at = first
    while at < last and at < first + 3 and is_digit(data[at]):
        at += 1
    return at > first and at + 1 < last and data[at] in (DOT, CLOSING) and data[at + 1] == SPACE


@inlined
def _is_heading(data, first, last):
    """Return whether data[first:last] is a heading of Markdown."""
    at = first
    while at < last and at < first + 6 and data[at] == HASH:
        at += 1
    return at > first and at < last and data[at] == SPACE


@inlined
def _is_row(data, first, last):
    """Return whether data[first:last] is a row of a table: cells between bars, or parted by tabs."""
    if data[first] == BAR and data[last - 1] == BAR and last > first + 1:
        return True
    for at in range(first, last):
        if data[at] == TAB:
            return True
    return False


@inlined
def _is_code(data, first, last, indent):
    """Return whether data[first:last] looks like a line of a program or a terminal."""
    begin, end = data[first], data[last - 1]
    second = data[first + 1] if first + 1 < last else SPACE
    if indent >= _INDENT or end in (OPENING_BRACE, CLOSING_BRACE) or begin == CLOSING_BRACE:
        return True
    if end == SEMICOLON and (second != SPACE):
        return True
    if begin == LESS and end == GREATER:
        return True
    if begin == DOLLAR and second == SPACE:
        return True
    if begin == SLASH and second in (SLASH, STAR):
        return True
    return begin == GREATER and second == GREATER


@inlined
def _ends_sentence(data, first, last):
    """Return whether data[first:last] ends with a stop, of any script, or a quote or bracket behind one."""
    at = last - 1
    for _ in range(2):
        while at > first and not starts_character(data[at]):
            at -= 1
        code, _ = decode(data, at, last)
        if code in (0x2E, 0x21, 0x3F, 0x3002, 0xFF01, 0xFF1F, 0x2026, 0x964, 0x61F, 0x3A, 0x3B):
            return True
        if code not in (0x22, 0x27, 0x29, 0x201D, 0x2019, 0xBB, 0x300D) or at <= first:
            return False
        at -= 1
    return False


@inlined
def _kind_of(data, first, last, indent, in_code):
    """Return the kind of the line data[first:last], which is not empty."""
    if data[first] == BACKTICK and last - first >= 3 and data[first + 1] == BACKTICK and data[first + 2] == BACKTICK:
        return FENCE
    if in_code:
        return CODE
    if _begins_list(data, first, last):
        return LIST
    if _is_row(data, first, last):
        return TABLE
    if _is_heading(data, first, last):
        return HEADING
    if _is_code(data, first, last, indent):
        return CODE
    if last - first <= SHORT_BYTES and not _ends_sentence(data, first, last):
        return SHORT
    return PROSE


@inlined
def _syllables(data, at, end, vowel_flags):
    """Return the groups of vowels of a word; of Cyrillic each vowel; a silent e at its end is none."""
    count, in_group, code = 0, False, np.int64(0)
    while at < end:
        code, width = decode(data, at, end)
        code = fold(code if code >= ASCII_END else code | 0x20)
        flag = vowel_flags[code] if code < VOWEL_CODES else 0
        count += (flag == 2) or (flag == 1 and not in_group)
        in_group = flag > 0
        at += width
    return count


@inlined
def _silent_end(data, at, end):
    """Return whether a word ends in e behind a consonant that is not l, as English and French leave it unspoken."""
    if end - at < 4 or data[end - 1] | 0x20 != ord("e"):
        return False
    before = data[end - 2] | 0x20
    return ord("a") <= before <= ord("z") and before not in (ord("a"), ord("e"), ord("i"), ord("o"), ord("u"), ord("l"))


@inlined
def _read_phrases(data, at, stop, row, language, table, meanings, hashes, starts, seen, scores, notice):
    """Find the phrases that end with each word of data[at:stop]; return its words."""
    words = 0
    for size in range(LONGEST):
        hashes[size] = FREE
    while at < stop:
        begin = at
        word, at = word_at(data, at, stop)
        if word == FREE:
            continue
        words += 1
        for size in range(LONGEST - 1, 0, -1):
            known = hashes[size - 1] != FREE
            hashes[size] = joined(hashes[size - 1], word) if known else FREE
            starts[size] = starts[size - 1]
        hashes[0], starts[0] = word, begin
        for size in range(LONGEST):
            if hashes[size] == FREE:
                continue
            slot = slot_of(table.keys, hashes[size])
            if table.keys[slot] == FREE:  # no phrase begins so
                hashes[size] = FREE
                continue
            meaning = table.firsts[slot]
            while meaning >= 0:
                kind, own = meanings[meaning, 0], meanings[meaning, 2]
                if own < 0 or own == language:
                    if meanings[meaning, 3]:
                        if notice[row, 0] < 0 or notice[row, 1] == starts[size]:
                            notice[row, 0], notice[row, 1], notice[row, 2] = kind, starts[size], at
                    elif seen[meaning] != row:
                        seen[meaning] = row
                        scores[row, kind] += meanings[meaning, 1]
                meaning = table.nexts[meaning]
    return words


@inlined
def _read_prose(data, at, stop, row, vowel_flags, drops_silent, out):
    """Count words, sentences and syllables of the line of prose data[at:stop]."""
    is_open = False
    while at < stop:
        begin = at
        word, at = word_at(data, at, stop)
        if word == FREE:
            if is_open and data[begin] in _STOPS and (at == stop or data[at] == SPACE or data[at] >= ASCII_END):
                out[row, _SENTENCES] += 1
                is_open = False
            continue
        is_open = True
        out[row, _WORDS] += 1
        syllables = _syllables(data, begin, at, vowel_flags)
        if drops_silent and syllables > 1 and _silent_end(data, begin, at):
            syllables -= 1
        out[row, _SYLLABLES] += max(syllables, 1)
    out[row, _SENTENCES] += is_open


@compiled
def _measure(offsets, data, languages, silent, table, meanings, vowel_flags, out, scores, notice):
    """Fill out[row] with COUNTS, scores[row] with weights of phrases, notice[row] with kind, first and last byte."""
    seen = np.full(len(table.nexts), -1, np.int64)
    hashes, starts = np.zeros(LONGEST, np.uint64), np.zeros(LONGEST, np.int64)
    for row in range(len(languages)):
        at, end = offsets[row], offsets[row + 1]
        in_code, after_blank, pending = False, True, False
        while at < end:
            stop = line_end(data, at, end)
            first, last = at, stop
            while first < last and data[first] in (SPACE, TAB):
                first += 1
            while last > first and data[last - 1] in (SPACE, TAB):
                last -= 1
            indent, at = first - at, stop + 1
            if first == last:
                after_blank = True
                continue
            kind = _kind_of(data, first, last, indent, in_code)
            if kind == FENCE:
                in_code = not in_code
                continue
            if pending and kind in (PROSE, LIST, TABLE, CODE):  # a short line on its own, with text below
                out[row, SHORT - 1] -= 1
                out[row, HEADING - 1] += 1
            pending = kind == SHORT and after_blank
            after_blank = False
            out[row, kind - 1] += 1
            size = last - first
            out[row, _BYTES] += size
            if kind in (LIST, TABLE, CODE):
                out[row, _BYTES + kind - 1] += size
            if kind == PROSE:
                out[row, _BYTES + 4] += size
                _read_prose(data, first, last, row, vowel_flags, silent[row], out)
            _read_phrases(data, first, last, row, languages[row], table, meanings, hashes, starts, seen, scores, notice)
        if notice[row, 0] >= 0:
            begin = offsets[row]
            start = count_code_points(data, begin, notice[row, 1])
            notice[row, 2] = start + count_code_points(data, notice[row, 1], notice[row, 2])
            notice[row, 1] = start


class Measures(NamedTuple):
    """What texts have: `counts` by name (`COUNTS`), `scores` of phrases, and a `notice` each.

    Shapes (rows,), (rows, kinds) and (rows, 3): kind of the notice, -1 for none, and its first and last code point.
    """

    counts: dict[str, npt.NDArray[np.int64]]
    scores: npt.NDArray[np.int64]
    notices: npt.NDArray[np.int64]


def measures(
    texts: tuple[Offsets, Bytes],
    languages: npt.NDArray[np.int64],
    silent: npt.NDArray[np.bool_],
    table: Phrases,
    meanings: npt.NDArray[np.int64],
    kinds: int,
) -> Measures:
    """Read texts once.

    `languages` are numbers, those of `meanings`; `silent` says whether an e at the end of a word is no syllable.
    `meanings` has a row for each phrase: the kind that it speaks for, its weight, its language (-1 for any), and
    whether it is a notice. A phrase counts once in a text. Of notices the first counts, of equal beginning the longest.
    """
    rows = len(languages)
    out, scores = np.zeros((rows, len(COUNTS)), np.int64), np.zeros((rows, kinds), np.int64)
    notices = np.full((rows, 3), -1, np.int64)
    _measure(*texts, languages, silent, table, meanings, vowels(), out, scores, notices)
    return Measures(dict(zip(COUNTS, out.T, strict=True)), scores, notices)
