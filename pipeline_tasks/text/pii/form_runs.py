"""Reads a text in compiled passes for the places where a written form fits, and for long words."""

import numpy as np

from pipeline_tasks.text.base.ascii import (
    COLON,
    DOT,
    HYPHEN,
    SPACE,
    STAR,
    UNDERSCORE,
    UPPER_A,
    UPPER_Z,
    is_alphanumeric,
    is_digit,
    is_letter,
    lower,
)
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import load_eight
from pipeline_tasks.text.pii.candidates import CONTEXT
from pipeline_tasks.text.pii.neighbors import AFTER_DOT, AFTER_HYPHEN, AFTER_PLUS, is_free_ahead, is_free_behind
from pipeline_tasks.text.pii.scanning import COLONS, mark_equal, next_digit

DIGIT, CAPITAL, LETTER, DIGIT_OR_X, HEXADECIMAL = (ord(sign) for sign in "9Aa#H")

LONG = 20
"""Characters of a long word: every twentieth byte is looked at, so that none is missed."""

HYPHENS, _FRAMED = 5, ord("B")
"""Hyphens in a row ahead of the `BEGIN` of a private key."""

HYPHENS_ALL = np.uint64(0x2D2D2D2D2D2D2D2D)

MOST_FIRST = 31
LETTERS_FIRST, HEXADECIMALS_FIRST = 32, 64
LEADS = 65
"""Leads of forms: so many digits, so many letters more than 32, or hexadecimal digits."""

SLOTS = 65536
"""Slots of a row of cues."""

_GLUE = AFTER_DOT | AFTER_HYPHEN | AFTER_PLUS
_MOST_AHEAD = 18
"""Bytes of a value ahead of its first digit, at most: those of a hardware address."""


@inlined
def _is_hexadecimal(byte):
    return is_digit(byte) or 0x61 <= (byte | 0x20) <= 0x66


@inlined
def _is_upper(byte):
    return UPPER_A <= byte <= UPPER_Z


@inlined
def _blank_width(data, at):
    """Return the bytes of the blank at `at` that is no line break, 0 if there is none."""
    if data[at] == SPACE:
        return 1
    if data[at] == 0xC2:
        return 2 if at + 1 < len(data) and data[at + 1] == 0xA0 else 0
    wide = data[at] == 0xE2 and at + 2 < len(data) and data[at + 1] == 0x80
    return 3 if wide and data[at + 2] in (0x87, 0x89, 0xAF) else 0


@inlined
def _hyphen_width(data, at):
    """Return the bytes of the hyphen or dash at `at`, 0 if there is none."""
    if data[at] == HYPHEN:
        return 1
    wide = data[at] == 0xE2 and at + 2 < len(data) and data[at + 1] == 0x80
    return 3 if wide and 0x90 <= data[at + 2] <= 0x93 else 0


@inlined
def _sign_width(data, at, sign):
    """Return how many bytes at `at` a sign of a form stands for, 0 if it does not fit."""
    byte = data[at]
    if sign == DIGIT:
        return is_digit(byte)
    if sign == CAPITAL:
        return _is_upper(byte)
    if sign == LETTER:
        return is_letter(byte)
    if sign == DIGIT_OR_X:
        return is_digit(byte) or byte | 0x20 == 0x78
    if sign == HEXADECIMAL:
        return _is_hexadecimal(byte)
    if sign == SPACE:
        return _blank_width(data, at)
    if sign == HYPHEN:
        return _hyphen_width(data, at)
    return byte == sign


@inlined
def _form_end(data, at, signs, first, last):
    """Return where the form signs[first:last] ends that begins at `at`, -1 if it does not fit there."""
    for place in range(first, last):
        if signs[place] == STAR:
            return at
        if at >= len(data):
            return -1
        width = _sign_width(data, at, signs[place])
        if width == 0:
            return -1
        at += width
    return at


@inlined
def _word_start(data, at, free):
    """Return where the letters and digits begin that end at `at`, but not before `free`."""
    start = at
    while start > max(free, at - _MOST_AHEAD) and is_alphanumeric(data[start - 1]):
        start -= 1
    return start


@inlined
def _pair_start(data, start, free):
    """Return where pairs of hexadecimal digits begin that a colon or a hyphen joins to the word at `start`."""
    least = max(free, start - _MOST_AHEAD)
    while start - 3 >= least and data[start - 1] in (COLON, HYPHEN):
        if not (_is_hexadecimal(data[start - 2]) and _is_hexadecimal(data[start - 3])):
            break
        if start - 4 >= least and is_alphanumeric(data[start - 4]):
            break
        start -= 3
    if start - 5 >= least and data[start - 1] == DOT:  # of four digits: aabb.ccdd.0011
        whole = True
        for at in range(start - 5, start - 1):
            whole = whole and _is_hexadecimal(data[at])
        start -= 5 * whole
    return start


@inlined
def _prefix_start(data, start, free):
    """Return where one or two letters begin that a blank or a hyphen parts from the word at `start`, else `start`."""
    if start - 2 < free or data[start - 1] not in (SPACE, HYPHEN) or not is_letter(data[start - 2]):
        return start
    first = start - 2
    first -= first - 1 >= free and is_letter(data[first - 1])
    return start if first > 0 and is_alphanumeric(data[first - 1]) else first


@inlined
def _lead_of(data, at):
    """Return which forms may begin at `at`: those with as many digits first, or with as many letters."""
    end = at
    if is_digit(data[at]):
        while end < len(data) and end - at < MOST_FIRST and is_digit(data[end]):
            end += 1
        return end - at
    while end < len(data) and end - at < MOST_FIRST and is_letter(data[end]):
        end += 1
    return LETTERS_FIRST + end - at


def slot_of(first: int, second: int, third: int, fourth: int) -> int:
    """Return the slot of four bytes, of which letters are in lower case, in a row of cues."""
    return (((first * 31 + second) * 31 + third) * 31 + fourth) & (SLOTS - 1)


_slot_of = inlined(slot_of)


@inlined
def _has_cue(data, start, slots):
    """Return whether one of the cues that fill `slots` may be ahead of `start`."""
    first, second, third = 0, 0, 0
    for at in range(max(start - CONTEXT, 0), start):
        fourth = lower(data[at])
        if slots[_slot_of(first, second, third, fourth)]:
            return True
        first, second, third = second, third, fourth
    return False


@compiled
def _write_fits(data, start, lead, forms, rows, count):
    """Write the forms with this lead that fit at `start` to `rows` from `count` on; return the rows and their number.

    A value is no part of a word or of a longer number; where a form ends in a star, its check looks behind it.
    """
    signs, places, leads, cue_of, cues = forms
    for form in range(leads[lead], leads[lead + 1]):
        end = _form_end(data, start, signs, places[form], places[form + 1])
        if end < 0 or (cue_of[form] >= 0 and not _has_cue(data, start, cues[cue_of[form]])):
            continue
        goes_on = signs[places[form + 1] - 1] == STAR
        if is_free_ahead(data, start, _GLUE) and (goes_on or is_free_behind(data, end, _GLUE)):
            if count == len(rows):
                rows = np.concatenate((rows, np.empty_like(rows)))
            rows[count, 0], rows[count, 1], rows[count, 2] = form, start, end
            count += 1
    return rows, count


@compiled
def _fit(data, start, forms, rows, count):
    """Write the forms that fit at `start`; return the rows, and how many there are now."""
    leads, lead = forms[2], _lead_of(data, start)
    if leads[lead] < leads[lead + 1]:
        rows, count = _write_fits(data, start, lead, forms, rows, count)
    if leads[HEXADECIMALS_FIRST] < leads[HEXADECIMALS_FIRST + 1]:
        rows, count = _write_fits(data, start, HEXADECIMALS_FIRST, forms, rows, count)
    return rows, count


@inlined
def _are_letters(data, start, end):
    """Return whether data[start:end] are letters from A to F, of which no part of a word is ahead."""
    if start < 0 or (start > 0 and is_alphanumeric(data[start - 1])):
        return False
    for at in range(start, end):
        if is_digit(data[at]) or not _is_hexadecimal(data[at]):
            return False
    return True


@compiled
def _fit_letters(data, forms, rows, count):
    """As `_fit`, where pairs of hexadecimal digits begin of which the first are letters."""
    at = 2
    while at < len(data) - 8:
        word = load_eight(data, at)
        if (mark_equal(word, COLONS) | mark_equal(word, HYPHENS_ALL)) == np.uint64(0):
            at += 8
            continue
        byte = data[at]
        if byte in (COLON, HYPHEN) and data[at + 3] == byte and _are_letters(data, at - 2, at):
            rows, count = _fit(data, at - 2, forms, rows, count)
        at += 1
    return rows, count


@compiled
def form_places(data, forms):
    """Return (form, start, end) of each place of `data` where a form fits; one may be there twice.

    A form has a digit, or is of hexadecimal digits. `forms` are (signs, places, leads, cue_of, cues): all signs, where
    each form begins in them, the first form of each lead, and of each form its row of cues, or -1.
    """
    rows, count = np.empty((8, 3), np.int64), 0
    leads = forms[2]
    pairs = leads[HEXADECIMALS_FIRST] < leads[HEXADECIMALS_FIRST + 1]
    free, at = 0, next_digit(data, 0) if len(forms[1]) > 1 else len(data)
    while at < len(data):
        start = _word_start(data, at, free)
        rows, count = _fit(data, start, forms, rows, count)
        if start > free:
            other = _prefix_start(data, start, free)
            if other < start:
                rows, count = _fit(data, other, forms, rows, count)
            other = _pair_start(data, start, free) if pairs else start
            if other < start:
                rows, count = _fit(data, other, forms, rows, count)
        while at < len(data) and is_alphanumeric(data[at]):
            at += 1
        free, at = at, next_digit(data, at)
    if pairs:
        rows, count = _fit_letters(data, forms, rows, count)
    return rows[:count]


@inlined
def _is_of_word(byte):
    return is_alphanumeric(byte) or byte in (HYPHEN, UNDERSCORE)


@inlined
def _is_of_key(data, start, end):
    """Return whether a long word has a digit or an underscore."""
    for at in range(start, end):
        if is_digit(data[at]) or data[at] == UNDERSCORE:
            return True
    return False


@compiled
def next_long_word(data, at):
    """Return where the next long word from `at` on begins and ends that has a digit or an underscore.

    The end of the text if there is none.
    """
    free = at
    while at < len(data):
        if not _is_of_word(data[at]):
            at += LONG
            continue
        start, end = at, at + 1
        while start > free and _is_of_word(data[start - 1]):
            start -= 1
        while end < len(data) and _is_of_word(data[end]):
            end += 1
        if end - start >= LONG and _is_of_key(data, start, end):
            return start, end
        free, at = end, end + LONG
    return len(data), len(data)


@compiled
def next_frame(data, at):
    """Return where five hyphens and a B are, as a private key begins; the end of the text if they are nowhere."""
    at += HYPHENS - 1
    while at < len(data):
        if data[at] == HYPHEN:
            end = at
            while end < len(data) and data[end] == HYPHEN:
                end += 1
            if end < len(data) and data[end] == _FRAMED and data[end - HYPHENS : end].min() == HYPHEN:
                return end - HYPHENS
            at = end
        at += HYPHENS
    return len(data)


@compiled
def long_words(data):
    """Return (start, end) of each long word that may be a key, and of each frame of a private key."""
    rows, count = np.empty((8, 2), np.int64), 0
    start, end = next_long_word(data, 0)
    frame = next_frame(data, 0)
    while min(start, frame) < len(data):
        if count == len(rows):
            rows = np.concatenate((rows, np.empty_like(rows)))
        if start <= frame:
            rows[count, 0], rows[count, 1] = start, end
            start, end = next_long_word(data, end)
        else:
            rows[count, 0], rows[count, 1] = frame, frame + HYPHENS
            frame = next_frame(data, frame + HYPHENS)
        count += 1
    return rows[:count]
