"""Normal form: composed, without controls, blanks tidy, line ends kept, in linear time."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_tasks.text.normal import MARKS
from pipeline_tasks.text.normal import normal as normalize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b\t c", "a b c"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("code:\n    x  = 1  \n", "code:\n    x = 1"),
        ("a\0b\x1bc\x7f\ufeff", "abc"),
        ("u\u0308", "\u00fc"),
        ("a\u00a0\u3000b", "a b"),
        ("\n\n a", " a"),
        ("zero\u200cwidth\u200djoiners", "zero\u200cwidth\u200djoiners"),
        (" \n \n ", ""),
    ],
)
def test_examples(text: str, expected: str) -> None:
    assert normalize(text) == expected


def test_a_unicode_bomb_is_cut() -> None:
    marked = normalize("a" + "\u0301\u0316" * 100_000 + "b")
    assert sum(map(bool, map(unicodedata.combining, marked))) <= MARKS
    assert marked.endswith("b")


@pytest.mark.parametrize("evil", [" ", "\n", "a \n", "\t", "\u0301", "  \n", "<", "\u00a0x"])
def test_evil_strings_take_no_time(evil: str) -> None:
    assert len(normalize(evil * 400_000)) <= 400_000 * len(evil)


@given(st.text(st.sampled_from("ab \n\t\r\u00a0\u0301\u0316é\u3000\0\u2028")))
@settings(max_examples=200, deadline=None)
def test_normal_text_stays_as_it_is(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert once.split("\n") == [line.rstrip(" ") for line in once.split("\n")]
