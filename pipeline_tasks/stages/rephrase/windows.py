"""Windows over long texts: cut at the borders of blocks, and where a block is too long at the ends of its sentences."""

import re
from typing import NamedTuple

SHORTEST = 0.5
"""Part of a window that it has at least, if the text goes on: a better border before that is passed over."""

REST = 0.25
"""A rest shorter than this part of a window gets no window of its own: it and the window before it share their text."""

_SENTENCE_END = re.compile(
    r"""[.!?\u2026\u061f\u0964][\"'\u201d\u2019\u00bb)\]]*(?=\s)|[\u3002\uff01\uff1f][\u201d\u2019\u300d\u300f)]*"""
)
"""Behind what a sentence ends: marks of Latin, Arabic and Indic scripts before a space, and of East Asian ones."""

_BORDERS = (re.compile(r"\n[ \t]*\n"), _SENTENCE_END, re.compile(r"\n"), re.compile(r"\s"))
"""Borders from the best to the worst: blank lines, ends of sentences, of lines, of words. Else anywhere."""


class Window(NamedTuple):
    """A stretch of a text: its first code point, and that past its last one."""

    start: int
    end: int


def windows(text: str, most: int) -> list[Window]:
    """Return the windows of a text, each of at most `most` code points, in order; none of a blank text.

    No window begins or ends with space. Together they have all of the text that is no space.
    """
    found, start = [], 0
    while start < len(text):
        end = _end(text, start, most)
        if window := _trimmed(text, start, end):
            found.append(window)
        start = end
    return found


def _end(text: str, start: int, most: int) -> int:
    """Return where the window that begins at `start` ends."""
    left = len(text) - start
    if left <= most:
        return len(text)
    room = most if left > most * (1 + REST) else -(-left // 2)
    least = start + max(int(room * SHORTEST), 1)
    for border in _BORDERS:
        ends = [match.end() for match in border.finditer(text, least, start + room)]
        if ends:
            return ends[-1]
    return start + room


def _trimmed(text: str, start: int, end: int) -> Window | None:
    """Return a window without the space around it, None for one that is all space."""
    stretch = text[start:end]
    inner = stretch.strip()
    if not inner:
        return None
    first = start + len(stretch) - len(stretch.lstrip())
    return Window(first, first + len(inner))
