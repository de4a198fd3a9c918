"""Sentences of a line, by hand and by two ways that have to agree."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.edits.c4_sentences import count_outlined_sentences, count_sentences
from pipeline_tasks.text.words.outline import read_outline


@compiled
def _count(data: Any, index: Any, flags: Any) -> Any:
    return count_sentences(data, 0, len(data), index, flags)


@compiled
def _count_outlined(kinds: Any) -> Any:
    return count_outlined_sentences(kinds, 0, len(kinds))


def sentences(text: str) -> int:
    return int(_count(np.frombuffer(text.encode(), np.uint8), *classes()))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("   ", 0),
        ("One", 1),
        ("One. Two", 2),
        ("One.Two", 1),
        ("One.) Two! Three?", 3),
        ('He said "no." Yes', 2),
        ("One... two", 2),
        ("... !", 0),
        ("一。二。", 2),
        ("一。二", 2),
    ],
)
def test_sentences_by_hand(text: str, count: int) -> None:
    assert sentences(text) == count


@given(st.lists(st.sampled_from(["a", "B1", ".", "!", "?", " ", "\n", ")", '"', "'", "]", ",", "-"]), max_size=20))
def test_words_of_ascii_give_the_same(pieces: list[str]) -> None:
    text = "".join(pieces)
    data = np.frombuffer(text.encode(), np.uint8)
    outlined = read_outline(np.array([0, len(data)], np.int64), data)
    assert int(_count_outlined(outlined.kinds)) == sentences(text)
