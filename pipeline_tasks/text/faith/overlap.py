"""What two texts have in common: their words' stems, copied stretches; and how often a text repeats itself."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from pipeline_tasks.text.faith.vocabulary import WINDOWS, WORD, WORDS, Vocabulary, bare


def stem(word: str) -> str:
    """Return the letters by which a plain word is compared: inflection and derivation change what is behind them."""
    return word.removesuffix("s")[:5] if len(word) > 4 else word


COPIED, REPEATED = 8, 4
"""Words of an n-gram that is copied from the source, and of one that a text repeats of itself."""

_SIGN = re.compile(r"[^\W\d_]|\d+")


@lru_cache(16 * WINDOWS)
def units_of(text: str, words: Vocabulary) -> tuple[str, ...]:
    """Return the words of a text in plain form; of a language without blanks its characters."""
    if words.spaced:
        return tuple(map(bare, WORD.findall(text)))
    return tuple(found.casefold() for found in _SIGN.findall(text))


@lru_cache(WORDS)
def root_of(word: str, words: Vocabulary) -> str:
    """Return the stem of a word that says something, "" for one of grammar."""
    plain = bare(word)
    says = (len(plain) > 2 or plain.isdigit()) and plain not in words.function and plain not in words.negations
    return stem(plain) if says else ""


@lru_cache(16 * WINDOWS)
def content(text: str, words: Vocabulary) -> frozenset[str]:
    """Return the stems of the words of a text that say something; of a language without blanks its pairs of characters.

    Figures are content as they are written in digits.
    """
    if not words.spaced:
        text = _negation(words).sub(" ", text)
        signs = re.findall(r"[\u3040-\u30ff\u3400-\u9fff]+|[a-z]+|\d+", text.casefold())
        return frozenset(run[at : at + 2] for run in signs for at in range(max(1, len(run) - 1)))
    return frozenset(root_of(word, words) for word in WORD.findall(text)) - {""}


@cache
def _patterns(negations: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(negations, key=len, reverse=True))) or "(?!)")


def _negation(words: Vocabulary) -> re.Pattern[str]:
    return _patterns(words.negations)


def ngrams(units: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    """Yield the n-grams of words in their order."""
    return zip(*(units[at:] for at in range(size)), strict=False)


class Unit(NamedTuple):
    """A word in plain form, or a character of a language without blanks, and its bounds in the text."""

    said: str
    start: int
    end: int


def places_of(text: str, words: Vocabulary) -> list[Unit]:
    """Return `units_of` a text with their bounds."""
    pattern = WORD if words.spaced else _SIGN
    return [
        Unit(unit, *found.span()) for unit, found in zip(units_of(text, words), pattern.finditer(text), strict=True)
    ]


class Copies(NamedTuple):
    """Share of a text's n-grams that its source has, and the words of the longest stretch that they are in."""

    share: float
    longest: int


def copies(source: Sequence[str], written: Sequence[str]) -> Copies:
    """Return what a text copies of its source; a text of less than an n-gram copies nothing."""
    known = set(ngrams(source, COPIED))
    hits = [gram in known for gram in ngrams(written, COPIED)]
    longest = run = 0
    for hit in hits:
        run = run + 1 if hit else 0
        longest = max(longest, run)
    return Copies(sum(hits) / len(hits) if hits else 0.0, longest + COPIED - 1 if longest else 0)


def repeated(written: Sequence[str]) -> float:
    """Return the share of a text's n-grams that it has had before."""
    grams = [*ngrams(written, REPEATED)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
