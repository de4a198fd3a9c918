"""Cuts texts into paragraphs that a language model can tell, counts their votes, and finds those in other languages."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import NEWLINE, is_letter
from pipeline_tasks.text.base.characters import SPACE, class_of, classes, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.words.windows import holds

LEAST = 100
"""Letters that a paragraph has at least: shorter ones are read with the next. lid.176 is mostly right from here on."""

MOST = 1000
"""Letters after which a paragraph ends with its line: texts without empty lines have paragraphs, too."""

EAST_ASIAN, EAST_ASIAN_END, EAST_ASIAN_LETTERS = 0x2E80, 0xD800, 2
"""Code points between these (CJK radicals, kana, Han, hangul) count as two letters: a translation into English has two
to three times their number."""

PROSE_PARTS, MARK_PARTS = 3, 20
"""Prose has at most 3 ASCII digits and signs in 20 letters; above are programs, listings, tables of figures."""

MIXED_PARTS = 4
"""A text is mixed where more than one sure letter in four is of another language; less is no half to keep by a cut."""

BLANK, DELETE, ASCII_END, TABLE = 0x20, 0x7F, 0x80, ord("|")

Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Paragraphs(NamedTuple):
    """The paragraphs of texts, in order: those of text t are ends[t] to ends[t + 1].

    `points` are the first code point of each paragraph and that past its last, shape (paragraphs, 2). Line ends around
    a paragraph are no part of it. `letters` is its length in characters that are no white space.
    """

    ends: Ints
    points: Ints
    letters: Ints


class Votes(NamedTuple):
    """The language of each text by number, its score, and whether it is mixed; and the foreign stretches of all texts.

    `spans` has the shape (stretches, 4): text, first code point, that past the last, number of the language.
    """

    numbers: Ints
    scores: Scores
    mixed: Flags
    spans: Ints


@inlined
def _ends_block(data, at, end):
    """Return whether the line that begins at `at` is blank, or none."""
    while at < end and data[at] <= BLANK and data[at] != NEWLINE:
        at += 1
    return at >= end or data[at] == NEWLINE


@compiled
def _cut_text(data, at, end, index, flags, places, points, letters, prose, count):
    """Add the paragraphs of data[at:end] from `count` on; return how many there are."""
    first, point = count, 0
    start, start_point, stop, stop_point, total, signs = np.int64(-1), 0, at, 0, 0, 0
    while at < end:
        begin, begin_point, line = at, point, 0
        while at < end and data[at] != NEWLINE:
            lead = data[at]
            point += 1
            if lead < ASCII_END:
                at += 1
                if BLANK < lead < DELETE:
                    line += 1
                    signs += not is_letter(lead)
                continue
            code, width = decode(data, at, end)
            at += width
            if not class_of(index, flags, code) & SPACE:
                line += EAST_ASIAN_LETTERS if EAST_ASIAN <= code < EAST_ASIAN_END else 1
        if line > 0:
            if start < 0:
                start, start_point = begin, begin_point
            stop, stop_point = at, point
            total += line
        at += 1
        point += 1
        is_whole = line >= LEAST and data[begin] != TABLE
        if line > 0 and total >= LEAST and (is_whole or total >= MOST or _ends_block(data, at, end)):
            places[count, 0], places[count, 1] = start, stop
            points[count, 0], points[count, 1] = start_point, stop_point
            letters[count], prose[count] = total, MARK_PARTS * signs <= PROSE_PARTS * total
            count += 1
            start, total, signs = np.int64(-1), 0, 0
    if total == 0:
        return count
    if count == first:
        places[count, 0], points[count, 0], letters[count] = start, start_point, 0
        prose[count] = MARK_PARTS * signs <= PROSE_PARTS * total
        count += 1
    places[count - 1, 1], points[count - 1, 1] = stop, stop_point
    letters[count - 1] += total
    return count


@compiled
def _cut(offsets, data, index, flags, least, ends, places, points, letters, prose):
    """Fill the arrays of `Paragraphs`; what is no prose is not read in a text that has some."""
    count = 0
    ends[0] = 0
    for row in range(len(offsets) - 1):
        first = count
        count = _cut_text(data, offsets[row], offsets[row + 1], index, flags, places, points, letters, prose, count)
        ends[row + 1] = count
        any_prose = False
        for part in range(first, count):
            any_prose |= prose[part]
        for part in range(first, count):
            is_read = prose[part] or not any_prose
            if not is_read or not holds(data, places[part, 0], places[part, 1], index, flags, least):
                places[part, 0], places[part, 1] = -1, -1


def cut_paragraphs(offsets: Ints, data: npt.NDArray[np.uint8], least: int) -> tuple[Paragraphs, Ints]:
    """Cut texts into paragraphs: what stands between empty lines, or a line of at least LEAST letters.

    Also return their bytes in `data`, shape (paragraphs, 2), both -1 for one that the model does not read: programs and
    figures, unless a text has nothing else, and what has fewer than `least` characters. A paragraph with fewer letters
    goes with the next, the last with the one before. Lines of a table stay together.
    """
    rows = len(offsets) - 1
    room = int(offsets[-1] - offsets[0]) // LEAST + rows
    ends, letters, prose = np.empty(rows + 1, np.int64), np.empty(room, np.int64), np.empty(room, np.bool_)
    places, points = np.empty((room, 2), np.int64), np.empty((room, 2), np.int64)
    _cut(offsets, data, *classes(), least, ends, places, points, letters, prose)
    count = int(ends[-1])
    return Paragraphs(ends, points[:count], letters[:count]), places[:count]


# --- Votes -----------------------------------------------------------------------------------------------------------


@inlined
def _spans(first, stop, row, own, read, paragraphs, tagged, least, spans, count):
    """Add the stretches of a text that are surely in other languages than `own`; return how many and their letters."""
    numbers, scores = read
    letters, points = paragraphs
    total, part = 0, first
    while part < stop:
        number, begin, length = numbers[part], part, 0
        while part < stop and numbers[part] == number and scores[part] >= tagged[number]:
            length += letters[part]
            part += 1
        if number > 0 and number != own and length >= least:
            spans[count, 0], spans[count, 3] = row, number
            spans[count, 1], spans[count, 2] = points[begin, 0], points[part - 1, 1]
            count += 1
            total += length
        part = max(part, begin + 1)
    return count, total


@inlined
def _first_most(numbers, first, stop, weights, allowed):
    """Return the number with the highest weight that is allowed, of equal ones the first in the text; else 0."""
    best, most = np.int64(0), 0.0
    for part in range(first, stop):
        number = numbers[part]
        if number > 0 and allowed[number] and weights[number] > most:
            best, most = number, weights[number]
    return best


@compiled
def _count(ends, read, paragraphs, both_bounds, wanted, cuts, least, out):
    """Fill the arrays of `Votes`; return how many foreign stretches there are."""
    numbers, scores = read
    letters, _ = paragraphs
    bounds, tagged = both_bounds
    out_numbers, out_scores, out_mixed, spans = out
    votes, weights, anyone = np.zeros(len(bounds)), np.zeros(len(bounds)), np.ones(len(bounds), np.bool_)
    count = 0
    for row in range(len(ends) - 1):
        first, stop = ends[row], ends[row + 1]
        all_letters, sure = 0, 0
        for part in range(first, stop):
            votes[numbers[part]], weights[numbers[part]] = 0.0, 0.0
        for part in range(first, stop):
            number = numbers[part]
            if number > 0:
                all_letters += letters[part]
                weights[number] += letters[part] * scores[part]
                if scores[part] >= bounds[number]:
                    votes[number] += letters[part]
                    sure += letters[part]
        own = _first_most(numbers, first, stop, votes if sure > 0 else weights, anyone)
        after, cut_letters = _spans(first, stop, row, own, read, paragraphs, tagged, least, spans, count)
        if cuts and not wanted[own]:
            other = _first_most(numbers, first, stop, votes, wanted)
            if other > 0 and votes[other] >= least and MIXED_PARTS * votes[other] > sure:
                rest, taken = _spans(first, stop, row, other, read, paragraphs, tagged, least, spans, count)
                if MIXED_PARTS * (sure - votes[other] - taken) <= sure - taken:
                    own, after, cut_letters = other, rest, taken
                else:
                    after, cut_letters = _spans(first, stop, row, own, read, paragraphs, tagged, least, spans, count)
        count = after
        foreign = sure - votes[own]
        out_numbers[row] = own
        out_scores[row] = weights[own] / (all_letters - foreign) if all_letters > foreign else 0.0
        left = cut_letters if cuts else 0
        out_mixed[row] = MIXED_PARTS * (foreign - left) > sure - left
    return count


def count_votes(
    paragraphs: Paragraphs,
    read: tuple[Ints, Scores],
    bounds: tuple[Scores, Scores],
    wanted: Flags,
    least: int,
    *,
    cuts: bool,
) -> Votes:
    """Return the language of each text by the letters of the paragraphs that the model is sure of.

    `read` is the number of each paragraph's language, 0 for none, and its probability. A paragraph votes where that is
    at least the first of the two `bounds` of its language. In a tie the earliest wins; where none votes, all do, by
    letters times probability. The score is the mean probability of the language, by letters, over the paragraphs that
    are not surely in another one: those that the model takes for another without being sure count as 0.

    A foreign stretch is a run of paragraphs in one other language, each with at least the second bound, and together of
    at least `least` letters. With `cuts` a text whose majority is unwanted is of the wanted language with most votes,
    if these are `least` letters and more than a quarter of the sure ones, and what is left without the stretches is not
    mixed; `mixed` is then what is left.
    """
    rows = len(paragraphs.ends) - 1
    out = (np.empty(rows, np.int64), np.empty(rows), np.empty(rows, np.bool_))
    spans = np.empty((len(paragraphs.letters) + 1, 4), np.int64)
    parts = (paragraphs.letters, paragraphs.points)
    count = _count(paragraphs.ends, read, parts, bounds, wanted, cuts, max(least, 1), (*out, spans))
    numbers, scores, mixed = out
    return Votes(numbers, np.minimum(scores, 1.0).round(6), mixed, spans[:count])
