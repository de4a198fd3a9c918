"""Finds the known word that a person means who wrote another one: every hint of a refusal is made here."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

OR_INSTALL = ", or install the package that brings it"
"""The way out behind a name that a package may bring."""


def nearest(word: str, known: Iterable[str], least: float = 0.5) -> str:
    """Return a suggestion of the known word that is most like `word`, "" if none is."""
    return "".join(f" (did you mean {each!r}?)" for each in near(word, known, least=least))


def near(word: str, known: Iterable[str], most: int = 1, least: float = 0.0) -> list[str]:
    """Return the known words that are most like `word`, at least by `least` of 1, in any case and however joined."""
    words = [*known]
    plain, *folded = (re.sub(r"[\s_-]+", "", each).casefold() for each in (word[:80], *words))
    return [words[folded.index(each)] for each in get_close_matches(plain, dict.fromkeys(folded), most, least)]
