"""Reads a text without its invisible characters, so that what is split by them is found, and says where it was."""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.pii.candidates import Span, pattern
from pipeline_tasks.text.pii.scanning import next_lead

INVISIBLE = r"[\x{ad}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{2066}-\x{2069}\x{feff}]+"
"""Soft hyphens, zero-width characters, marks of direction and byte order marks."""


@inlined
def _is_invisible(data, at):
    """Return whether an invisible character begins at `at`, of which the first byte is 0xC2, 0xE2 or 0xEF."""
    first, second, third = data[at], data[at + 1], data[at + 2] if at + 2 < len(data) else 0
    if first == 0xC2:
        return second == 0xAD
    if first == 0xEF:
        return second == 0xBB and third == 0xBF
    if second == 0x80:
        return 0x8B <= third <= 0x8F or 0xAA <= third <= 0xAE
    return second == 0x81 and (0xA0 <= third <= 0xA4 or 0xA6 <= third <= 0xA9)


@compiled
def has_invisible(data):
    """Return whether a text has any of these characters."""
    at = next_lead(data, 0)
    while at + 1 < len(data):
        if _is_invisible(data, at):
            return True
        at = next_lead(data, at + 1)
    return False


class Visible(NamedTuple):
    """A text without them: `places` are where in it some were left out, `shifts` how many bytes up to there."""

    text: bytes
    places: list[int]
    shifts: list[int]

    def original(self, span: Span) -> Span:
        """Return where a finding is in the text before."""
        start = self._shift(bisect_right(self.places, span.start))
        end = self._shift(bisect_left(self.places, span.end))
        return span._replace(start=span.start + start, end=span.end + end)

    def _shift(self, count: int) -> int:
        return self.shifts[count - 1] if count else 0


def visible(text: bytes) -> Visible | None:
    """Return a text without its invisible characters, None if it has none."""
    if not has_invisible(np.frombuffer(text, np.uint8)):
        return None
    pieces: list[bytes] = []
    places: list[int] = []
    shifts: list[int] = []
    at = shift = 0
    for left_out in pattern(INVISIBLE).finditer(text):
        pieces.append(text[at : left_out.start()])
        places.append(left_out.start() - shift)
        shift += left_out.end() - left_out.start()
        shifts.append(shift)
        at = left_out.end()
    return Visible(b"".join([*pieces, text[at:]]), places, shifts) if places else None
