"""Compiled signals equal a plain reading of their definitions, for any text."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_tasks.text.base import buffers
from pipeline_tasks.text.edits import c4
from pipeline_tasks.text.signals import lines, ngrams
from pipeline_tasks.text.words import cutting, outline
from tests.text import plain

STOPS = ("the", "be", "to", "of", "and", "that", "have", "with")
PIECES = (
    *STOPS, "a", "b", "Wort", "naïve", "1", "42", "...", "…", ". ", "!", "? ", "。", "؟", " ", " ", "  ", "\t", "\n", "\n",
    "\n\n", "\r\n", "\r", "\v", "\x1c", "\x85", "\u2028", "\xa0", "\u3000", "• ", "- ", "#", "_", "'", '"', ")", "{", "[1]",
    "[٣]", "[edit]", "[citation needed]", "[", "JavaScript ", "Lorem ipsum", "Terms of Use", "use cookies", "中文字", "の",
    "กา", "é", "e\u0301", "\U0001f600", "\x00", "x" * 1001,
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=80)
BATCHES = st.lists(TEXTS, max_size=4)
PROPERTY = settings(max_examples=150, deadline=None)


def views(texts: list[str]) -> tuple[buffers.Offsets, buffers.Bytes]:
    """The texts as a slice of a longer column, so that offsets do not begin at 0."""
    return buffers.views(pa.array(["before", *texts, "after"], pa.large_string()).slice(1, len(texts)))


def rules(texts: list[str], rule: int) -> np.ndarray:
    return np.full(len(texts), rule, np.uint8)


@PROPERTY
@given(BATCHES, st.sampled_from([cutting.SPLIT, cutting.UNICODE, cutting.PAIRS]))
def test_words(texts: list[str], rule: int) -> None:
    cut = plain.CUTS[rule]
    measured = cutting.word_signals(*views(texts), rules(texts, rule), cutting.hash_words(STOPS))
    assert measured.tolist() == [plain.word_signals(cut(text), STOPS) for text in texts]


@PROPERTY
@given(BATCHES, st.sampled_from([cutting.SPLIT, cutting.UNICODE, cutting.PAIRS]))
def test_ngrams(texts: list[str], rule: int) -> None:
    cut = plain.CUTS[rule]
    measured = ngrams.gopher_ngrams(*views(texts), rules(texts, rule))
    for row, text in zip(measured, texts, strict=True):
        spelled = cut(text)
        assert row[:3].tolist() == [plain.top_gram(spelled, n) for n in (2, 3, 4)]
        assert row[3:].tolist() == [plain.repeated_grams(spelled, n) for n in range(5, 11)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("ab"), max_size=200))
def test_ngrams_of_two_words_repeat_at_every_length(letters: list[str]) -> None:
    row = ngrams.gopher_ngrams(*views([" ".join(letters)]), rules([""], cutting.SPLIT))[0]
    assert row[:3].tolist() == [plain.top_gram(letters, n) for n in (2, 3, 4)]
    assert row[3:].tolist() == [plain.repeated_grams(letters, n) for n in range(5, 11)]


@PROPERTY
@given(BATCHES)
def test_line_shapes(texts: list[str]) -> None:
    assert lines.line_shapes(*views(texts)).tolist() == [plain.shapes(text) for text in texts]


@PROPERTY
@given(BATCHES)
def test_repeated_lines_and_paragraphs(texts: list[str]) -> None:
    assert lines.repeated_parts(*views(texts)).tolist() == [plain.repeats(text) for text in texts]


@PROPERTY
@given(BATCHES, st.sampled_from([0.0, 5.0, 30.0]))
def test_prose_lines(texts: list[str], short: float) -> None:
    measured = lines.prose_lines(*views(texts), np.full(len(texts), short))
    assert measured.tolist() == [plain.prose(text, short) for text in texts]


@PROPERTY
@given(BATCHES, st.booleans())
def test_c4_lines(texts: list[str], terminal: bool) -> None:
    limits = c4.LineRules(1000, 3, terminal, *[True] * 3)
    edited, counts = c4.edit(*views(texts), rules(texts, cutting.SPLIT), limits)
    edited.validate(full=True)
    expected = [plain.c4(text, terminal=terminal) for text in texts]
    assert list(zip(edited.to_pylist(), counts.tolist(), strict=True)) == expected


@PROPERTY
@given(BATCHES)
def test_what_c4_tells_of_its_texts_is_what_a_reading_of_them_finds(texts: list[str]) -> None:
    limits = c4.LineRules(1000, 2, *[False, True, True, True])
    edited, _ = c4.edit(*views(texts), rules(texts, cutting.SPLIT), limits)
    told, read = outline.outline_of(*buffers.views(edited)), outline.read_outline(*buffers.views(edited))
    for name in set(outline.Outline._fields) - {"traits"}:
        assert getattr(told, name).tolist() == getattr(read, name).tolist(), name
    assert ((told.traits & read.traits) == read.traits).all()


def test_texts_that_come_to_lie_where_others_lay_are_read_anew() -> None:
    for at in range(200):
        texts = [f"{'word ' * (at % 7)}{at}"]
        found = cutting.word_signals(*views(texts), rules(texts, cutting.SPLIT), cutting.hash_words(()))
        assert found[0, 1] == at % 7 + 1


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("One. Two? Three!", 3),
        ("Version 3.5 of e.g. this", 2),
        ('She said "No." He left.', 2),
        ("Wait... what?!", 2),
        ("今日は。明日は。", 2),
        ("no end", 1),
        ("...", 0),
        ("", 0),
    ],
)
def test_sentences(line: str, count: int) -> None:
    limits = c4.LineRules(1000, 0, *[False] * 4)
    _, counts = c4.edit(*views([line]), rules([line], cutting.SPLIT), limits)
    assert counts[0][c4.SENTENCES] == count


def test_unicode_words_by_hand() -> None:
    assert plain.unicode_words("Don't stop—now_1! 我们的网站 x") == [
        "Don", "'", "t", "stop", "—", "now_1", "!", "我们", "的网", "站", "x",
    ]  # fmt: skip


def test_pair_words_by_hand() -> None:
    assert plain.pair_words("「我们的网站。」 Unicode网 a-b") == ["「我", "们的", "网站。」", "Unicode", "网", "a-b"]


def test_nulls_count_as_empty_texts() -> None:
    offsets, data = buffers.views(pa.array([None, "a b", None], pa.large_string()))
    assert cutting.word_signals(offsets, data, np.zeros(3, np.uint8), cutting.hash_words(()))[:, 1].tolist() == [
        0,
        2,
        0,
    ]


def test_broken_utf8_does_not_read_past_the_end() -> None:
    data = np.frombuffer(b"ok \xf0\x9f", np.uint8)
    measured = cutting.word_signals(np.array([0, 5]), data, np.zeros(1, np.uint8), cutting.hash_words(()))
    assert measured[0].tolist() == [2, 2, 4, 1, 0]
