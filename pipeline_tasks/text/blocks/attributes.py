"""Reads the attributes of a tag that say how a page is shown (HTML Living Standard, 13.2.5)."""

import re

import numpy as np

from pipeline_tasks.text.base.ascii import APOSTROPHE, EQUAL, GREATER, HYPHEN, QUOTE, SLASH, SPACE, lower
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks.tags import name_key, read_key

NAMES = re.findall(
    r"\S+",
    "hidden style href start value reversed type open class alt src shadowrootmode shadowroot aria-expanded "
    "aria-hidden role data-latex data-",
)
(
    HIDDEN, STYLE, HREF, START, VALUE, REVERSED, TYPE, OPEN, CLASS, ALT, SRC, SHADOW, OLD_SHADOW, EXPANDED, NOT_READ,
    ROLE, LATEX, DATA,
) = range(len(NAMES))  # fmt: skip
_KEYS = np.array([name_key(name) for name in NAMES], np.uint64)
COUNT = len(NAMES)
_SLOTS = np.uint64(next(size for size in range(COUNT, 1 << 12) if len({int(key) % size for key in _KEYS}) == COUNT))
_NUMBERS = np.zeros(int(_SLOTS), np.uint8)
_NUMBERS[(_KEYS % _SLOTS).astype(np.int64)] = range(COUNT)  # each name has a slot of its own


@compiled
def read_attributes(page, at, end, values):
    """Fill `values` (begin and end of each value, -1 if the tag lacks it); return where the tag ends, behind `>`.

    The first attribute of a name counts.
    """
    values[:, 0] = -1
    while at < end:
        byte = page[at]
        if byte == GREATER:
            return at + 1
        if byte <= SPACE or byte == SLASH:
            at += 1
            continue
        start = at
        key, first, last, at = read_attribute(page, at, end)
        if at - start > 5 and values[DATA, 0] < 0 and _begins_data(page, start):
            values[DATA, 0], values[DATA, 1] = first, last
        nth = _NUMBERS[key % _SLOTS]
        if _KEYS[nth] == key and values[nth, 0] < 0:
            values[nth, 0], values[nth, 1] = first, last
    return at


@inlined
def read_attribute(page, at, end):
    """Return the key of the attribute that begins here, where its value begins and ends, and what is behind it."""
    start = at
    key, at, _ = read_key(page, at, end)
    at += at == start  # a lone `=` is the name's first sign
    while at < end and page[at] <= SPACE:
        at += 1
    first = last = at
    if at < end and page[at] == EQUAL:
        at += 1
        while at < end and page[at] <= SPACE:
            at += 1
        first, last, at = _value(page, at, end)
    return key, first, last, at


@inlined
def _begins_data(page, at):
    """Return whether a name is of the page's own scripts: `data-` and more."""
    return (
        lower(page[at]) == 100 and lower(page[at + 1]) == 97 and lower(page[at + 2]) == 116 and page[at + 4] == HYPHEN
    )


@inlined
def _value(page, at, end):
    """Return where the value that is here begins and ends, and where the rest of the tag goes on."""
    if at < end and page[at] in (QUOTE, APOSTROPHE):
        quote = page[at]
        first = at + 1
        at = first
        while at < end and page[at] != quote:
            at += 1
        return first, at, at + 1
    first = at
    while at < end and page[at] > SPACE and page[at] != GREATER:
        at += 1
    return first, at, at


@inlined
def has_word(page, first, last, word):
    """Return whether a value has a word, which is written in small letters; blanks within it do not count."""
    at = first
    while at < last:
        nth, place = 0, at
        while nth < len(word) and place < last and (page[place] <= SPACE or lower(page[place]) == word[nth]):
            nth += page[place] > SPACE
            place += 1
        if nth == len(word):
            return True
        at += 1
    return False


@inlined
def equals(page, first, last, word):
    """Return whether a value is a word, in any case."""
    if last - first != len(word):
        return False
    for nth in range(len(word)):
        if lower(page[first + nth]) != word[nth]:
            return False
    return True


@inlined
def _is(page, values, nth, word):
    """Return whether a tag has an attribute with this value."""
    return values[nth, 0] >= 0 and equals(page, values[nth, 0], values[nth, 1], word)


@inlined
def whole_number(page, first, last, default):
    """Return the whole number that a value begins with, of at most nine digits."""
    at = first
    while at < last and page[at] <= SPACE:
        at += 1
    negative = at < last and page[at] == 45
    at += negative
    number, digits = 0, 0
    while at < last and 48 <= page[at] <= 57 and digits < 9:
        number = 10 * number + page[at] - 48
        digits += 1
        at += 1
    if not digits:
        return default
    return -number if negative else number


def _word(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


_NONE, _INVISIBLE, _COLLAPSED, _UNRENDERED, _ZERO_SIZE, _CLEAR, _INSET, _UNTIL_FOUND = map(
    _word,
    (
        "display:none",
        "visibility:hidden",
        "visibility:collapse",
        "content-visibility:hidden",
        "font-size:0",
        "opacity:0",
        "clip-path:inset(50%",
        "until-found",
    ),
)
_CLIPPED_0, _CLIPPED_1, _LEFT, _TOP, _RIGHT, _INDENT, _MARGIN, _TRANSFORM, _TRANSITION, _ANIMATION = map(
    _word,
    (
        "clip:rect(0",
        "clip:rect(1px",
        "left:-",
        "top:-",
        "right:-",
        "text-indent:-",
        "margin-left:-",
        "transform",
        "transition",
        "animation",
    ),
)
_DIALOG, _TRUE = map(_word, ("dialog", "true"))
_SR_ONLY, _UNDRAWN, _READERS = map(_word, ("sr-only", "visually-hidden", "screen-reader-text"))
_FAR = 999  # pixels beyond the edge of a screen


@compiled
def is_unseen(page, values):
    """Return whether a tag says that browsers do not show its element: by `hidden`, or by its style (CSS).

    Or that it is a dialog which is closed: no script for screen readers would hide one that is open (WAI-ARIA).
    """
    if values[HIDDEN, 0] >= 0 and not equals(page, values[HIDDEN, 0], values[HIDDEN, 1], _UNTIL_FOUND):
        return True
    if _is(page, values, ROLE, _DIALOG) and _is(page, values, NOT_READ, _TRUE):
        return True
    first, last = values[STYLE, 0], values[STYLE, 1]
    if first < 0 or last - first < 5:
        return False
    at, hides, clear = first, False, False
    while at < last:
        if (at == first or page[at - 1] == 59 or page[at - 1] <= SPACE) and page[at] > SPACE:
            hides |= _hides(page, at, last)
            clear |= _is_zero(page, _match(page, at, last, _CLEAR), last) or _match(page, at, last, _INVISIBLE) > 0
        at += 1
    return hides or (clear and values[DATA, 0] < 0 and not _moves(page, first, last))


@compiled
def is_for_screen_readers(page, values):
    """Return whether a class is one by which frameworks draw a text nowhere: Bootstrap, Tailwind, WordPress."""
    first, end = values[CLASS, 0], values[CLASS, 1]
    at = first
    while 0 <= first <= at < end:
        while at < end and page[at] <= SPACE:
            at += 1
        start = at
        while at < end and page[at] > SPACE:
            at += 1
        if equals(page, start, at, _SR_ONLY) or equals(page, start, at, _UNDRAWN) or equals(page, start, at, _READERS):
            return True
    return False


@compiled
def _hides(page, at, last):
    """Return whether the declaration that begins here takes its element off the screen for good."""
    return (
        _match(page, at, last, _NONE) > 0
        or _match(page, at, last, _COLLAPSED) > 0
        or _match(page, at, last, _UNRENDERED) > 0
        or _match(page, at, last, _INSET) > 0
        or _match(page, at, last, _CLIPPED_0) > 0
        or _match(page, at, last, _CLIPPED_1) > 0
        or _is_zero(page, _match(page, at, last, _ZERO_SIZE), last)
        or _is_far(page, _match(page, at, last, _LEFT), last)
        or _is_far(page, _match(page, at, last, _TOP), last)
        or _is_far(page, _match(page, at, last, _RIGHT), last)
        or _is_far(page, _match(page, at, last, _INDENT), last)
        or _is_far(page, _match(page, at, last, _MARGIN), last)
    )


@inlined
def _moves(page, first, last):
    """Return whether a script lets an element appear that is transparent at first."""
    return (
        has_word(page, first, last, _TRANSFORM)
        or has_word(page, first, last, _TRANSITION)
        or has_word(page, first, last, _ANIMATION)
    )


@inlined
def _match(page, at, last, word):
    """Return where a word ends that is here, blanks in it left out; 0 if it is not."""
    nth = 0
    while nth < len(word) and at < last:
        if page[at] > SPACE:
            if lower(page[at]) != word[nth]:
                return 0
            nth += 1
        at += 1
    return at if nth == len(word) else 0


@inlined
def _is_zero(page, at, last):
    """Return whether the number that goes on here behind a 0 is 0."""
    if at == 0:
        return False
    while at < last and page[at] in (46, 48):
        at += 1
    return at == last or not 48 <= page[at] <= 57


@inlined
def _is_far(page, at, last):
    """Return whether a length is larger than a screen: so many pixels, or a tenth as many of a larger unit."""
    if at == 0:
        return False
    number = whole_number(page, at, last, 0)
    while at < last and (48 <= page[at] <= 57 or page[at] == 46):
        at += 1
    is_large_unit = at + 1 < last and lower(page[at]) in (101, 114)  # em, rem
    return number >= (_FAR // 10 if is_large_unit else _FAR)
