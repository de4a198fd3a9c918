"""Tests inside compiled loops what is next to a candidate: `candidates.is_separate` in machine code."""

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
from pipeline_tasks.text.pii.candidates import NAME_MASK, NUMBER_MASK

AFTER_DOT, AFTER_HYPHEN, AFTER_PLUS, AFTER_COLON, AFTER_SLASH = (1 << bit for bit in range(5))
"""Which bytes join digits to a longer number."""

LETTER_X = ord("x")


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
    """Return how the placeholder data[at:end] reads: `0` for a number, `x` for mail, 0 if it is no placeholder."""
    if at < 0 or end > len(data) or data[at] != LESS or data[end - 1] != GREATER:
        return 0
    if end - at == 4:
        return ZERO if data[at + 1] == 73 and data[at + 2] == 80 else 0  # IP
    middle = data[at + 3]
    if data[at + 1] == 80 and data[at + 2] == 72 and middle == 79 and data[at + 4] == 78 and data[at + 5] == 69:
        return ZERO  # PHONE
    if data[at + 1] == 69 and data[at + 2] == 77 and middle == 65 and data[at + 4] == 73 and data[at + 5] == 76:
        return LETTER_X  # EMAIL
    return 0


@inlined
def _placeholder_before(data, end):
    return _replaced(data, end - 4, end) or _replaced(data, end - 7, end) if end > 0 else 0


@inlined
def _placeholder_after(data, start):
    return _replaced(data, start, start + 4) or _replaced(data, start, start + 7) if start < len(data) else 0


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
