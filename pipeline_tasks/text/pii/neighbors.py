"""Tests inside compiled loops what is next to a candidate: `candidates.is_separate` in machine code."""

import numpy as np

from pipeline_tasks.text.base.ascii import (
    COLON,
    DOT,
    GREATER,
    HYPHEN,
    LESS,
    PLUS,
    SLASH,
    SPACE,
    UNDERSCORE,
    ZERO,
    is_alphanumeric,
    is_digit,
)
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.pii.candidates import LONGEST_PLACEHOLDER, NAME_MASK, NUMBER_MASK, READS_AS

AFTER_DOT, AFTER_HYPHEN, AFTER_PLUS, AFTER_COLON, AFTER_SLASH = (1 << bit for bit in range(5))
"""Which bytes join digits to a longer number."""

LETTER_X = ord("x")

_SIZES = np.array([len(name) for name in READS_AS])
_NAMES = np.array([list(name.ljust(LONGEST_PLACEHOLDER)) for name in READS_AS], np.uint8)
_READS = np.array([ZERO if read == b"00" else LETTER_X for read in READS_AS.values()])
"""Of each placeholder its length, its bytes, and what it reads as."""


@inlined
def glue_of(byte):
    """Return the bit of a byte that may join digits, 0 for any other."""
    if byte == DOT:
        return AFTER_DOT
    if byte == HYPHEN:
        return AFTER_HYPHEN
    if byte == PLUS:
        return AFTER_PLUS
    if byte == COLON:
        return AFTER_COLON
    return AFTER_SLASH if byte == SLASH else 0


@inlined
def _replaced(data, at, end):
    """Return how the placeholder data[at:end] reads: `0` for a number, `x` for others, 0 if it is no placeholder."""
    for kind in range(len(_READS)):
        if end - at == _SIZES[kind]:
            same = True
            for place in range(end - at):
                same = same and data[at + place] == _NAMES[kind, place]
            if same:
                return _READS[kind]
    return 0


@inlined
def _placeholder_before(data, end):
    if end <= 0 or data[end - 1] != GREATER:
        return 0
    for at in range(end - 2, max(end - LONGEST_PLACEHOLDER, 0) - 1, -1):
        if data[at] == LESS:
            return _replaced(data, at, end)
    return 0


@inlined
def _placeholder_after(data, start):
    if start >= len(data) or data[start] != LESS:
        return 0
    for at in range(start + 1, min(start + LONGEST_PLACEHOLDER, len(data))):
        if data[at] == GREATER:
            return _replaced(data, start, at + 1)
    return 0


@inlined
def _unmasked(byte):
    if byte == NAME_MASK:
        return LETTER_X
    return ZERO if byte == NUMBER_MASK else byte


@inlined
def before(data, start):
    """Return the two bytes before `start` as `candidates.before` does, the far one first."""
    kind = _placeholder_before(data, start)
    if kind:
        return kind, kind
    near = data[start - 1] if start > 0 else SPACE
    kind = _placeholder_before(data, start - 1)
    if kind:
        return kind, near
    far = data[start - 2] if start > 1 else SPACE
    return _unmasked(far), _unmasked(near)


@inlined
def after(data, end):
    """Return the two bytes after `end` as `candidates.after` does."""
    kind = _placeholder_after(data, end)
    if kind:
        return kind, kind
    first = data[end] if end < len(data) else SPACE
    kind = _placeholder_after(data, end + 1)
    if kind:
        return first, kind
    second = data[end + 1] if end + 1 < len(data) else SPACE
    return _unmasked(first), _unmasked(second)


@inlined
def _is_wordlike(byte):
    return is_alphanumeric(byte) or byte == UNDERSCORE


@compiled
def is_free_ahead(data, start, glue):
    """Return whether nothing before `start` makes what begins there a part of a word or of a longer number."""
    far, near = before(data, start)
    return not _is_wordlike(near) and not (glue_of(near) & glue and is_digit(far))


@compiled
def is_free_behind(data, end, glue):
    """Return whether nothing after `end` makes what ends there a part of a word or of a longer number."""
    first, second = after(data, end)
    return not _is_wordlike(first) and not (glue_of(first) & glue and is_digit(second))
