"""Count which letters of texts are in running sentences, in code and tables, or in neither."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import HYPHEN, NEWLINE, PLUS, SPACE, STAR, TAB
from pipeline_tasks.text.base.characters import DIGIT, TERMINAL, UNSPACED, WORD, class_of, classes, decode
from pipeline_tasks.text.base.characters import SPACE as BLANK_KIND
from pipeline_tasks.text.base.compiled import compiled, inlined

SENTENCE = 20
"""Letters of the shortest running sentence, a letter of a script without blanks as two: `Chapter 1.` is none."""

WRAPPED = 40
"""Letters of a line from which on its sentence may go on in the next one, as in text that is wrapped."""

LONG_LINE = 80
"""Letters of a line from which on it is running text, whatever ends it: Thai ends no sentence by a sign, and people
leave the last stop out. Entries of contents lists are shorter."""

CODE_SHARE = 12
"""A line is code if one of so many of its characters, or more, is a sign of `CODE_SIGNS`."""

CODE_SIGNS = "{}[]<>=;_\\|#$&*+~^@`/"

INDENTED = 2
"""Blanks at the start of a line of code; items of inner lists, which have a marker behind them, are none."""

BULLETS = (HYPHEN, STAR, PLUS, ord("\u2022"), ord("\u2013"), ord("\u25cf"), ord("\u25e6"), ord("\u25aa"))


def running_letters(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return per text: letters in running sentences, letters of code and of rows of tables, all letters.

    Shape (rows, 3). A letter of a script without blanks counts as two. A running sentence has `SENTENCE` letters before
    its end; it may go on in the next line if its own is long and that is no item of a list. A long line is running
    text. A line is code by its signs or the blanks before it, a row of a table by a tab.
    """
    out = np.zeros((len(offsets) - 1, 3))
    _fill(offsets, data, *classes(), _CODE, out)
    return out


@compiled
def _fill(offsets, data, index, flags, code_signs, out):
    """Fill out[row] with the letters of each kind."""
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        running = apart = letters = 0
        open_letters = 0  # of a sentence that may go on in the next line
        while at < end:
            stop = at
            while stop < end and data[stop] != NEWLINE:
                stop += 1
            own, ended, rest, kind = _read_line(data, at, stop, index, flags, code_signs, open_letters)
            letters += own
            if kind == _CODE_LINE:
                apart += own
                open_letters = 0
            else:
                running += ended
                open_letters = rest
            at = stop + 1
        out[row, 0], out[row, 1], out[row, 2] = running, apart, letters


@inlined
def _read_line(data, at, stop, index, flags, code_signs, before):
    """Return the letters of a line, those that running sentences end (with those before it), those after, its kind."""
    blanks = 0
    start = at
    while start < stop and (data[start] == SPACE or data[start] == TAB):
        blanks += 4 if data[start] == TAB else 1
        start += 1
    if start == stop:
        return 0, 0, 0, _PLAIN_LINE
    code, width = decode(data, start, stop)
    is_item = _is_bullet(code) and start + width < stop and data[start + width] == SPACE
    pending = 0 if is_item else before
    letters = ended = signs = shown = 0
    has_tab = in_word = False
    last_word = 0  # letters of the word before a mark, without digits
    at = start
    while at < stop:
        code, width = decode(data, at, stop)
        at += width
        kind = class_of(index, flags, code)
        if kind & WORD and code != _LOW_LINE:
            last_word = last_word if in_word else 0
            in_word = True
            weight = 2 if kind & UNSPACED else 1
            letters += weight
            pending += weight
            last_word += weight * (kind & DIGIT == 0)
            shown += 1
            continue
        in_word = False
        shown += kind & BLANK_KIND == 0
        if code == TAB:
            has_tab = True
        elif code < 128 and code_signs[code]:
            signs += 1
        elif kind & TERMINAL and last_word > 1:
            next_code, _ = decode(data, at, stop) if at < stop else (SPACE, 1)
            if _ends(class_of(index, flags, next_code), code):
                if pending >= SENTENCE:
                    ended += pending
                pending = 0
    if has_tab or (blanks >= INDENTED and not is_item) or signs * CODE_SHARE >= shown:
        return letters, 0, 0, _CODE_LINE
    if letters >= LONG_LINE:
        ended = max(ended, letters)
    return letters, ended, pending if WRAPPED <= letters < LONG_LINE else 0, _PLAIN_LINE


@inlined
def _ends(following, code):
    """Return whether a mark ends a sentence before a character of this class: no letter, but for wide scripts."""
    return following & WORD == 0 or code >= _WIDE


@inlined
def _is_bullet(code):
    for bullet in BULLETS:
        if code == bullet:
            return True
    return False


_CODE = np.array([chr(code) in CODE_SIGNS for code in range(128)])
_PLAIN_LINE, _CODE_LINE = range(2)
_LOW_LINE, _WIDE = ord("_"), 0x2E80
