"""Texts that offend, and texts that have the words and must stay, by language and label."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Example(NamedTuple):
    """A text, its language, and its labels; of a harmless one none, and what it is about."""

    language: str
    labels: frozenset[str]
    text: str
    about: str = ""


def harmless() -> list[Example]:
    """Return the texts that must stay."""
    return [Example(language, frozenset(), text, about) for language, about, text in _lines("harmless.txt")]


def toxic() -> list[Example]:
    """Return the texts that offend."""
    return [Example(language, frozenset(labels.split()), text) for language, labels, text in _lines("toxic.txt")]


def held_out() -> list[Example]:
    """Return texts of both kinds that no lexicon or rule was changed for."""
    return [
        Example(language, frozenset(labels.split()) - {"-"}, text) for language, labels, text in _lines("held_out.txt")
    ]


def unspaced() -> list[Example]:
    """Return texts of both kinds in languages that are written without blanks."""
    rows = [(*line, "")[:4] for line in _lines("unspaced.txt")]
    return [Example(language, frozenset(labels.split()) - {"-"}, text, about) for language, labels, text, about in rows]


def _lines(name: str) -> Iterator[list[str]]:
    for line in (HERE / name).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")
