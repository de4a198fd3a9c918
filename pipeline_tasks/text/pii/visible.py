"""Reads a text as people see it: without invisible characters, and full-width forms as the ASCII that they show.

A text whose digits and hyphens are those of U+FF01 to U+FF5E reads as `090-1234-5678`. What is found there is told by
its place in the text itself.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.pii.candidates import Span
from pipeline_tasks.text.pii.scanning import next_lead

_FULL_WIDTH = 3
"""Bytes of a full-width form (U+FF01 to U+FF5E)."""


@inlined
def _invisible_bytes(data, at):
    """Return how many bytes the invisible character has that begins at `at`, 0 if none does.

    These are soft hyphens, zero-width characters, marks of direction and byte order marks: U+00AD, U+200B to U+200F,
    U+202A to U+202E, U+2060 to U+2064, U+2066 to U+2069, U+FEFF.
    """
    first, second, third = data[at], data[at + 1], data[at + 2] if at + 2 < len(data) else 0
    if first == 0xC2:
        return 2 if second == 0xAD else 0
    if first == 0xEF:
        return 3 if second == 0xBB and third == 0xBF else 0
    if second == 0x80:
        return 3 if 0x8B <= third <= 0x8F or 0xAA <= third <= 0xAE else 0
    return 3 if second == 0x81 and (0xA0 <= third <= 0xA4 or 0xA6 <= third <= 0xA9) else 0


@inlined
def _ascii_form(data, at):
    """Return the ASCII form of the full-width character that begins at `at`, 0 if none does."""
    if data[at] != 0xEF or at + 2 >= len(data):
        return 0
    second, third = data[at + 1], data[at + 2]
    if second == 0xBC and 0x81 <= third <= 0xBF:
        return third - 0x60
    return third - 0x20 if second == 0xBD and 0x80 <= third <= 0x9E else 0


@inlined
def _next_other(data, at):
    """Return the next place from `at` on of a character that reads as another one or none, else the end of the text."""
    at = next_lead(data, at)
    while at + 1 < len(data):
        if _invisible_bytes(data, at) or _ascii_form(data, at):
            return at
        at = next_lead(data, at + 1)
    return len(data)


@compiled
def reads_otherwise(data):
    """Return whether a text has any of these characters."""
    return _next_other(data, 0) < len(data)


@compiled
def visible_bytes(data):
    """Return a text as it reads, and of each byte where it is in `data`: of a full-width form where that begins."""
    text, places, size = np.empty(len(data), np.uint8), np.empty(len(data), np.int64), 0
    at = 0
    while at < len(data):
        end = _next_other(data, at)
        while at < end:
            text[size], places[size] = data[at], at
            at, size = at + 1, size + 1
        if end == len(data):
            break
        sign = _ascii_form(data, end)
        if sign:
            text[size], places[size] = sign, end
            size += 1
        at = end + (_FULL_WIDTH if sign else _invisible_bytes(data, end))
    return text[:size], places[:size]


class Visible(NamedTuple):
    """A text as it reads, and of each of its bytes the place in the text itself."""

    text: bytes
    places: npt.NDArray[np.int64]
    original: bytes

    def in_original(self, span: Span) -> Span:
        """Return where a finding is in the text itself; invisible characters at its ends are no part of it."""
        last = int(self.places[span.end - 1])
        is_full_width = self.original[last] != self.text[span.end - 1]
        return span._replace(start=int(self.places[span.start]), end=last + (_FULL_WIDTH if is_full_width else 1))


def visible(text: bytes) -> Visible | None:
    """Return a text as it reads, None if it reads as it is."""
    data = np.frombuffer(text, np.uint8)
    if not reads_otherwise(data):
        return None
    seen, places = visible_bytes(data)
    return Visible(seen.tobytes(), places, text)
