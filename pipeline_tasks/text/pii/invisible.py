"""Reads a text without its invisible characters, so that what is split by them is found, and says where it was."""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from pipeline_tasks.text.pii.candidates import Span, pattern

INVISIBLE = r"[\x{ad}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{2066}-\x{2069}\x{feff}]+"
"""Soft hyphens, zero-width characters, marks of direction and byte order marks."""

_SIGNS = (b"\xc2\xad", b"\xe2\x80", b"\xe2\x81", b"\xef\xbb\xbf")
"""How their UTF-8 begins: a text without any has none of them."""


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
    if not any(sign in text for sign in _SIGNS):
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
