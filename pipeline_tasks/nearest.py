"""Finds the known word that a person means who wrote another one: every hint of a refusal is made here."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 80
"""Characters of a word that are compared."""

_JOINTS = re.compile(r"[\s_-]+")


def nearest(word: str, known: Iterable[str], least: float = 0.5) -> str:
    """Return a suggestion of the known word that is most like `word`, "" if none is."""
    close = near(word, known, least=least)
    return f" (did you mean {close[0]!r}?)" if close else ""


def near(word: str, known: Iterable[str], most: int = 1, least: float = 0.0) -> list[str]:
    """Return the known words that are most like `word`, the best first, in any case and however their parts are joined.

    `least` is the likeness that each has, of `difflib`: from 0 to 1.
    """
    folded = {_folded(each): each for each in reversed([*known])}
    return [folded[each] for each in get_close_matches(_folded(word[:LONGEST]), folded, most, least)]


def _folded(word: str) -> str:
    return _JOINTS.sub("", word).casefold()
