"""Prefixes, suffixes and infixes are cut off by the rules of spaCy's `punctuation.py`, worked by hand."""

# ruff: noqa: RUF001 -- lists of signs

import numpy as np
import pytest

from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.words import spacy_affixes


def buffer(word: str) -> tuple[np.ndarray, int]:
    return np.frombuffer(word.encode(), np.uint8), len(word.encode())


@pytest.mark.parametrize(
    ("word", "prefix"),
    [
        ("(a", "("), ("“a", "“"), ("$5", "$"), ("US$5", "US$"), ("A$5", "A$"), ("C$", "C$"), ("B$5", ""), ("US", ""),
        ("+a", "+"), ("+5", ""), ("+", "+"), (".a", ""), ("..a", ".."), ("....", "...."), ("-a", ""), ("☺a", "☺"), ("a(", ""),
    ],
)  # fmt: skip
def test_prefixes(word: str, prefix: str) -> None:
    data, end = buffer(word)
    assert spacy_affixes.prefix_size(data, 0, end, *classes()) == len(prefix.encode())


@pytest.mark.parametrize(
    ("word", "suffix"),
    [
        ("a)", ")"), ("10km", "km"), ("10km²", "km²"), ("km", ""), ("5US$", "US$"), ("5kmx", ""), ("a.", "."), ("A.", ""),
        ("AB.", "."), (".", ""), ("a...", "..."), ("5.", "."), ("a's", "'s"), ("a’S", "’S"), ("as", ""), ("s", ""),
        ("a……", "……"), ("a…", "…"), ("a—", "—"), ("a☺", "☺"), ("a-", ""), ("", ""),
    ],
)  # fmt: skip
def test_suffixes(word: str, suffix: str) -> None:
    data, end = buffer(word)
    assert spacy_affixes.suffix_size(data, 0, end, *classes()) == len(suffix.encode())


@pytest.mark.parametrize(
    ("before", "infix", "after"),
    [
        ("a", "-", "b"), ("a", "--", "b"), ("a", "---", "b"), ("a", "—", "b"), ("a", "~", "b"), ("a", "", "-5"),
        ("5", "+", "6"), ("5", "*", "-6"), ("a", "", "*6"), ("5", "", "*a"), ("a", ".", "B"), ("a", "", ".b"), ("A", "", ".B"),
        ("a", "..", "b"), ("a", "…", "b"), ("a", ",", "b"), ("1", "", ",000"), ("a", ":", "b"), ("5", "/", "b"), ("a", "", "/5"),
        ("(", "", ":b"), ("a", "☺", "b"), ("", "☺", "b"), ("", "", "-b"), ("a", "", "bc"),
    ],
)  # fmt: skip
def test_infixes(before: str, infix: str, after: str) -> None:
    data, end = buffer(before + infix + after)
    at = len(before.encode())
    assert spacy_affixes.infix_size(data, 0, at, end, *classes()) == len(infix.encode())
