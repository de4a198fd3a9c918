"""Capitals, letters in a style and single letters are recognized, and read as plain small letters in words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.words.letter_styles import NO_LETTERS, ODD, PLAIN, plain
from pipeline_tasks.text.words.letter_styles import styles as styles_of


def styles(*texts: str) -> list[int]:
    parts = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, parts)])
    bounds = np.column_stack((ends[:-1], ends[1:]))
    return styles_of(np.frombuffer(b"".join(parts), np.uint8), bounds).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "style", "read"),
    [
        ("THE TIDE", ODD, "the tide"),
        ("ПРИЛИВ И ОТЛИВ", ODD, "прилив и отлив"),
        ("\U0001d413\U0001d421\U0001d41e \U0001d42d\U0001d422\U0001d41d\U0001d41e", ODD, "the tide"),
        ("Ｔｈｅ　ｔｉｄｅ", ODD, "the tide"),  # noqa: RUF001 -- fullwidth letters
        ("ⓣⓗⓔ ⓣⓘⓓⓔ", ODD, "the tide"),
        ("t h e   t i d e", ODD, "the   tide"),
        ("п р и л и в   и   о т л и в", ODD, "прилив   и   отлив"),  # noqa: RUF001 -- Russian
        ("t h e tide of a year", PLAIN, "the tide of a year"),
        ("a b c are letters", PLAIN, "abc are letters"),
        ("The Tide", PLAIN, "the tide"),
        ("THe", ODD, "the"),
        ("潮の満ち干", PLAIN, "潮の満ち干"),
        ("潮 の 満 ち 干", PLAIN, "潮の満ち干"),
        ("1234 !", NO_LETTERS, "1234 !"),
        ("★☆ ♫♪ ✓✓ ►► ●●", NO_LETTERS, "★☆ ♫♪ ✓✓ ►► ●●"),
        ("", PLAIN, ""),
    ],
)
def test_a_style_is_seen_and_undone(text: str, style: int, read: str) -> None:
    assert styles(text) == [style]
    assert plain(text.encode()).decode() == read


@given(st.lists(st.text(max_size=20), max_size=5))
def test_texts_do_not_depend_on_each_other(texts: list[str]) -> None:
    assert styles(*texts) == [mark for text in texts for mark in styles(text)]


def test_a_window_that_is_not_read_has_no_style() -> None:
    assert styles_of(np.frombuffer(b"ABC", np.uint8), np.array([[-1, -1], [0, 3]])).tolist() == [PLAIN, ODD]
