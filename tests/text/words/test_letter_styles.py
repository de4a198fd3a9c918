"""Capitals and mathematical letters are recognized, and read as plain small letters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.words.letter_styles import plain, styled


def styles(*texts: str) -> list[bool]:
    parts = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, parts)])
    bounds = np.column_stack((ends[:-1], ends[1:]))
    return [bool(mark) for mark in styled(np.frombuffer(b"".join(parts), np.uint8), bounds)]


@pytest.mark.parametrize(
    ("text", "is_styled", "read"),
    [
        ("THE TIDE", True, "the tide"),
        ("ПРИЛИВ И ОТЛИВ", True, "прилив и отлив"),
        ("\U0001d413\U0001d421\U0001d41e \U0001d42d\U0001d422\U0001d41d\U0001d41e", True, "the tide"),
        ("Ｔｈｅ　ｔｉｄｅ", True, "the tide"),  # noqa: RUF001 -- fullwidth letters
        ("The Tide", False, "the tide"),
        ("THe", True, "the"),
        ("潮の満ち干", False, "潮の満ち干"),
        ("1234 !", False, "1234 !"),
        ("", False, ""),
    ],
)
def test_a_style_is_seen_and_undone(text: str, is_styled: bool, read: str) -> None:
    assert styles(text) == [is_styled]
    assert plain(text.encode()).decode() == read


@given(st.lists(st.text(max_size=20), max_size=5))
def test_texts_do_not_depend_on_each_other(texts: list[str]) -> None:
    assert styles(*texts) == [mark for text in texts for mark in styles(text)]


def test_a_window_that_is_not_read_has_no_style() -> None:
    assert styled(np.frombuffer(b"ABC", np.uint8), np.array([[-1, -1], [0, 3]])).tolist() == [False, True]
