"""Cuts a long text into windows that a model can read, spread from its first to its last part."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BYTES_PER_TOKEN = 8
"""Characters per token beyond which text is skipped unread: tokens have 3 to 5 in the languages of vocabularies."""

_BLANK = re.compile(r"\s")


class Span(NamedTuple):
    """A part of a text, in characters."""

    start: int
    stop: int


def chosen(count: int, most: int) -> list[int]:
    """Return which of `count` windows are read: all if they are at most `most` (0: all), else evenly, both ends first.

    One window is the first, two are the first and the last.
    """
    if not most or count <= most:
        return list(range(count))
    return [round(rank) for rank in np.linspace(0, count - 1, most)]


def spans(text: str, length: int, most: int) -> list[Span]:
    """Return the parts of a text that are to be tokenized, for windows of `length` tokens, at most `most` (0: all).

    A text is one part unless it is too long for its tokens to matter: then each window has a part of its own, which
    begins behind a blank. The cost of a text is bounded, and its last part is read like its first.
    """
    reach = length * BYTES_PER_TOKEN
    if not most or len(text) <= reach * most:
        return [Span(0, len(text))]
    starts = [round(start) for start in np.linspace(0, len(text) - reach, most)]
    return [_behind_blank(text, start, reach) for start in starts]


def _behind_blank(text: str, start: int, reach: int) -> Span:
    """Return a part that begins behind the first blank at `start` or later, at `start` itself if there is none near."""
    blank = _BLANK.search(text, max(start - 1, 0), start + reach // 2) if start else None
    return Span(blank.end() if blank else start, min(start + reach, len(text)))


def pooled(values: Sequence[float], tokens: Sequence[int], pool: str) -> float:
    """Return one score of the windows of a text: `mean` by their tokens, `max` or `min`; NaN without a window."""
    if not values:
        return float("nan")
    if pool == "mean":
        return float(np.dot(np.asarray(values, np.float64), np.asarray(tokens, np.float64)) / sum(tokens))
    return float(max(values) if pool == "max" else min(values))
