"""What two texts have in common: their words' stems, copied stretches; and how often a text repeats itself."""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from pipeline_tasks.text.faith.vocabulary import WORD, Vocabulary, bare


def stem(word: str) -> str:
    """Return the letters by which a plain word is compared: inflection and derivation change what is behind them."""
    return word.removesuffix("s")[:5] if len(word) > 4 else word


COPIED, REPEATED = 8, 4
"""Words of an n-gram that is copied from the source, and of one that a text repeats of itself."""

_SIGN = re.compile(r"[^\W\d_]|\d+")


def units_of(text: str, words: Vocabulary) -> list[str]:
    """Return the words of a text in plain form; of a language without blanks its characters."""
    if words.spaced:
        return [bare(found[0]) for found in WORD.finditer(text)]
    return [found[0].casefold() for found in _SIGN.finditer(text)]


def content(text: str, words: Vocabulary) -> set[str]:
    """Return the stems of the words of a text that say something; of a language without blanks its pairs of characters.

    Figures are content as they are written in digits.
    """
    if not words.spaced:
        text = _negation(words).sub(" ", text)
        signs = re.findall(r"[\u3040-\u30ff\u3400-\u9fff]+|[a-z]+|\d+", text.casefold())
        return {run[at : at + 2] for run in signs for at in range(max(1, len(run) - 1))}
    grammar = words.function | words.negations
    found = (bare(word[0]) for word in WORD.finditer(text))
    return {stem(word) for word in found if (len(word) > 2 or word.isdigit()) and word not in grammar}


@cache
def _patterns(negations: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(negations, key=len, reverse=True))) or "(?!)")


def _negation(words: Vocabulary) -> re.Pattern[str]:
    return _patterns(words.negations)


class Copies(NamedTuple):
    """Share of a text's n-grams that its source has, and the words of the longest stretch that they are in."""

    share: float
    longest: int


def copies(source: Sequence[str], written: Sequence[str]) -> Copies:
    """Return what a text copies of its source; a text of less than an n-gram copies nothing."""
    known = {tuple(source[at : at + COPIED]) for at in range(len(source) - COPIED + 1)}
    hits = [tuple(written[at : at + COPIED]) in known for at in range(len(written) - COPIED + 1)]
    longest = run = 0
    for hit in hits:
        run = run + 1 if hit else 0
        longest = max(longest, run)
    return Copies(sum(hits) / len(hits) if hits else 0.0, longest + COPIED - 1 if longest else 0)


def repeated(written: Sequence[str]) -> float:
    """Return the share of a text's n-grams that it has had before."""
    grams = [tuple(written[at : at + REPEATED]) for at in range(len(written) - REPEATED + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
