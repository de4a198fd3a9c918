"""Characters that libraries of different Unicode versions may see differently."""

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline_tasks.text.base.listed import Listed

SURROGATES = range(0xD800, 0xE000)
HANGUL = range(0xAC00, 0xD7A4)

EMPTY_PLANES = (range(0x40000, 0xE0000), range(0xE1000, 0xF0000))
"""Code points of which no version of Unicode has assigned any."""

MONGOLIAN_VOWEL_SEPARATOR = 0x180E
"""It was a space until Unicode 6.3, and still is for some of the libraries."""


@cache
def unsettled() -> "Listed":
    """Return the characters of which libraries may know different properties.

    Unicode's stability policy promises that a string of assigned characters has the same normal forms in all later
    versions. So libraries can only differ in characters that the older one does not know: those that this Python's
    Unicode has not assigned, and those whose normal form differs between `tokenizers`, whose tables are older, and
    this Python. Their general category, which decides where words are cut, is unknown to the older library as well.
    """
    from pipeline_tasks.text.base.listed import listed

    points = list(_points())
    unassigned = [point for point in points if unicodedata.category(chr(point)) == "Cn"]
    return listed(
        [MONGOLIAN_VOWEL_SEPARATOR, *unassigned, *chain(*EMPTY_PLANES), *filter(_is_normalized_otherwise, points)]
    )


def _points() -> Iterator[int]:
    """Yield the code points that may be assigned, without ASCII."""
    for point in chain(range(0x80, 0x40000), range(0xE0000, 0xE1000), range(0xF0000, 0x110000)):
        if point not in SURROGATES:
            yield point


def _is_normalized_otherwise(point: int) -> bool:
    """Return whether `tokenizers` composes or orders a character in another way than this Python."""
    from tokenizers import normalizers

    sign = chr(point)
    if point in HANGUL or not (unicodedata.combining(sign) or unicodedata.decomposition(sign)):
        return False
    composed = normalizers.NFC()
    return any(composed.normalize_str(text) != unicodedata.normalize("NFC", text) for text in _contexts(sign))


def _contexts(sign: str) -> tuple[str, ...]:
    """Return texts in which a sign meets marks that go above, below and through a letter."""
    above, below, through = "\u0301", "\u0323", "\u0334"
    return (
        above + sign,
        f"a{below}{sign}",
        sign + below,
        through + sign,
        sign + through,
        sign + above + below,
        f"a{sign}{above}",
    )
