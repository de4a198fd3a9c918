"""Counts of the score equal a plain reading of their definitions; function words equal RE2's, whatever their case."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.signals import prose_signs
from pipeline_tasks.text.signals.prose_signs import LONGEST, NO_LIST
from tests.text.texts import PROFILE_BATCHES, views

LISTS = (("the", "of", "and", "to", "have", "sixteen8"), ("für", "auf", "groß"), ("в", "или", "что"), ())
PIECES = (
    "the", "The", "THE", "of", "OF", "and", "have", "sixteen8", "sixteen89", "Sixteen8", "x", "the1", "für", "FÜR", "Auf",
    "groß", "GROẞ", "gross", "в", "\u0412", "ИЛИ", "что", "\u1c80", "\u017fixteen8", "\u212a", "e\u0301", "the\u0301", "é", "中文",
    " ", " ", " ", "\n", ".", ", ", "-", "'", "_", "\xa0", "\u2019", "¾", "\U0001f600", "\0", "#", "%%",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60)


def occurrences(text: str, words: tuple[str, ...]) -> int:
    """Return how often RE2 finds a word of the list between what is no letter and no digit."""
    if not words:
        return 0
    pattern = r"(?i)(?:^|[^\pL\pN])(?:" + "|".join(words) + r")(?:[^\pL\pN]|$)"
    count: int = pc.count_substring_regex(pa.array([text]), pattern)[0].as_py()
    return count


@given(st.lists(st.tuples(TEXTS, st.sampled_from([NO_LIST, *range(len(LISTS))])), max_size=5))
def test_function_words(rows: list[tuple[str, int]]) -> None:
    texts, lists = [text for text, _ in rows], np.array([number for _, number in rows], np.int64)
    counts = prose_signs.prose_signs(*views(texts), lists, LISTS)
    expected = [0 if number == NO_LIST else occurrences(text, LISTS[number]) for text, number in rows]
    assert counts["stops"].tolist() == expected


@given(PROFILE_BATCHES)
def test_bytes_and_words(texts: list[str]) -> None:
    counts = prose_signs.prose_signs(*views(texts), np.full(len(texts), NO_LIST), LISTS)
    patterns = {
        "letters": rb"[A-Za-z\x80-\xff]",
        "visible": rb"[^\x00-\x20\x7f]",
        "punctuation": rb"[!-/:-@\[-`{-~]",
        "words": rb"[^\x00-\x20\x7f]+",
    }
    expected = {name: [len(re.findall(pattern, text.encode())) for text in texts] for name, pattern in patterns.items()}
    assert {name: counts[name].tolist() for name in patterns} == expected


def test_a_word_that_is_too_long_for_a_list_is_refused() -> None:
    with pytest.raises(ValueError, match="'understand'"):
        prose_signs.prose_signs(*views(["understand"]), np.zeros(1, np.int64), (("understand",),))
    assert LONGEST == 8
