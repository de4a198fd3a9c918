"""Words of GPT-2's byte-level pre-tokenizer: cut and counted as the library cuts them, in any batches."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from unicodedata import category

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from pipeline_tasks.text.words.byte_level import FEW_BYTES, FEW_WORDS, SURROGATES, alphabet, count_byte_level_words

PROSE = Path(__file__).parents[3] / "docs"
CUTTER = pre_tokenizers.ByteLevel(add_prefix_space=False)

SPACES = " \t\n\v\f\r\x1c\x1f\x85\xa0\u1680\u180e\u2000\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
OTHERS = (
    "'\u2019aZ\u00df\u4f60\U00010400\u1c89\u0301\u0903\u20dd\u200d1\u0664\u00bd\u2167\U00010d40!_\U0001f9a6\0\uffff"
)
TRICKY = st.text("'sdmtrevl S" + SPACES + OTHERS, max_size=40)
TEXTS = st.lists(st.none() | st.text(max_size=20) | TRICKY, max_size=8)


def of_library(texts: Iterable[str | None]) -> dict[str, int]:
    return Counter(word for text in texts if text for word, _ in CUTTER.pre_tokenize_str(text))


def strings(texts: Sequence[str | None]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def counted(*columns: pa.Array) -> dict[str, int]:
    words, counts = count_byte_level_words(columns)
    assert words.to_pylist() == sorted(set(words.to_pylist()))
    return dict(zip(words.to_pylist(), counts.to_pylist(), strict=True))


@given(texts=TEXTS, cut=st.integers(0, 8), skipped=st.integers(0, 3))
@example(texts=["it's I'M we'll they've 'tis ''s  's'd'", "'", "x'r", "'re've'l"], cut=2, skipped=0)
@example(texts=["a  b \n\n c\t\td \u3000e\u00a0f   ", " ", "  ", "\n", " \n", "a "], cut=3, skipped=0)
@example(texts=["e\u0301 \u0301e 1\u00bd2 a1 1a !a a!", "", None, " \u4f60\u597d"], cut=1, skipped=1)
def test_any_texts_have_the_words_of_the_library(texts: list[str | None], cut: int, skipped: int) -> None:
    column = strings(texts)
    assert counted(column[skipped:cut], column[max(skipped, cut) :]) == of_library(texts[skipped:])


IDEOGRAPHS = frozenset([*range(0x3400, 0xA000), *range(0xAC00, 0xD7A4), *range(0x17000, 0x18D00)])


def of_many(point: int) -> bool:
    """Whether a character is an ideograph or a syllable, for private use, or in a plane that has no character."""
    return point in IDEOGRAPHS or 0xE000 <= point < 0xF900 or 0x20000 <= point < 0xE0000 or point >= 0xE1000


@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_character_is_what_it_is_to_the_library(step: int) -> None:
    """Of the characters of which there are many, one in `step`, and those beside a character of another category."""
    kinds = [category(chr(point)) for point in range(0x110000)]
    borders = {point for point in range(0x10FFFF) if kinds[point] != kinds[point + 1]}
    points = [point for point in range(0x110000) if not SURROGATES[0] <= point <= SURROGATES[1]]
    points = [
        point for point in points if point % step == 0 or point in borders or point - 1 in borders or not of_many(point)
    ]
    parts = [points[first : first + (1 << 17)] for first in range(0, len(points), 1 << 17)]
    assert len(points) > 80_000
    for part in parts:
        texts = [f"a{sign}1{sign}!{sign} {sign}" for sign in map(chr, part)]
        assert counted(strings(texts)) == of_library(texts)


def test_prose_has_the_words_of_the_library() -> None:
    texts = [page.read_text() for page in sorted(PROSE.rglob("*.md"))]
    assert len(texts) > 50
    assert counted(*(strings([text]) for text in texts)) == of_library(texts)


def test_many_words_and_long_ones_are_counted() -> None:
    texts = [f"w{number:x} " * 2 for number in range(FEW_WORDS)]
    texts += ["a" * 5 * FEW_BYTES, f"b{'a' * 5 * FEW_BYTES}!", f"b{'a' * 5 * FEW_BYTES} c"]
    assert counted(strings(texts[:9]), strings(texts[9:])) == of_library(texts)


def test_no_texts_have_no_words() -> None:
    assert counted() == counted(strings([])) == counted(strings(["", None])) == {}


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    broken = pa.array([b"fine", b"\xff"], pa.large_binary())
    with pytest.raises(pa.ArrowInvalid):
        count_byte_level_words([pa.Array.from_buffers(pa.large_string(), 2, broken.buffers())])


def test_the_alphabet_is_that_of_the_library() -> None:
    letters = [chr(point) for point in alphabet()]
    assert sorted(letters) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert letters[ord(" ")] == "\u0120"
