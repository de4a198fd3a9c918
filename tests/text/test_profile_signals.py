"""Compiled measures of the profiles equal a plain reading of their definitions, for any text."""

import re
import statistics

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline_tasks.text.base import buffers, character_traits, phrases
from pipeline_tasks.text.edits import dclm
from pipeline_tasks.text.signals import character_counts, line_parts, repeated_ngrams
from pipeline_tasks.text.words import word_counts
from tests.text import plain_profiles as plain

STOPS = ("the", "be", "to", "of", "and", "that", "have", "with")
MARKS = ("...", "[...]", "…", "-»")
PIECES = (
    *STOPS, "The", "a", "b", "B", "naïve", "1", "42", "¾", "...", "…", ". ", "!", "? ", "。", " ", " ", "  ", "\t", "\n",
    "\n", "\n\n", "\n\n\n", "\r\n", "\x1c", "\x85", "\u2028", "\xa0", "\u3000", "\0", "• ", "- ", "* ", "#", "##", "_", "'",
    '"', ")", "{", "don't", "3.14", "1,000", "中文字", "の", "カナ", "กา", "é", "e\u0301", "\U0001f600", "http://x.y/?a=~b",
    "https://", "%", "aF", ";", "]", "\u0663", "\uff13", "3 likes", "1.5K views", "12 items in cart", "Read more...", "read more →→", "Sign-in", "LOUD LINE",
    "[...]", "-»", ". . .", "Ünit", "\u017f", "x" * 40,
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=80)
BATCHES = st.lists(TEXTS, max_size=4)
PROPERTY = settings(max_examples=120, deadline=None)


def views(texts: list[str]) -> tuple[buffers.Offsets, buffers.Bytes]:
    """The texts as a slice of a longer column, so that offsets do not begin at 0."""
    return buffers.views(pa.array(["before", *texts, "after"], pa.large_string()).slice(1, len(texts)))


@PROPERTY
@given(BATCHES)
def test_words(texts: list[str]) -> None:
    found = word_counts.count_words(*views(texts), phrases.encode_phrases(STOPS), phrases.encode_phrases(MARKS))
    assert word_counts.count_fasttext_words(*views(texts)).tolist() == [plain.fasttext_words(text) for text in texts]
    for row, text in enumerate(texts):
        words = text.split()
        runs = [len(re.findall("#+", word)) for word in words]
        expected = {
            "words": len(words),
            "points": sum(map(len, words)),
            "alpha": sum(any(map(str.isalpha, word)) for word in words),
            "stops": sum(word in STOPS for word in words),
            "folded_stops": sum(word.lower() in STOPS for word in words),
            "longest": max(map(len, words), default=0),
            "median": statistics.median(map(len, words)) if words else 0,
            "marked": sum("#" in word or "…" in word for word in words),
            "mostly_marks": sum(word in MARKS or run / len(word) > 0.5 for word, run in zip(words, runs, strict=True)),
            "distinct": len(set(words)),
        }
        assert {name: values[row] for name, values in found.items()} == expected


@PROPERTY
@given(BATCHES)
def test_dolma_and_nemo_grams(texts: list[str]) -> None:
    dolma, nemo = (
        repeated_ngrams.ngram_shares(*views(texts), style) for style in (repeated_ngrams.DOLMA, repeated_ngrams.NEMO)
    )
    for row, text in enumerate(texts):
        assert dolma[row].tolist() == pytest.approx([plain.dolma_grams(text.split(), n) for n in repeated_ngrams.SIZES])
        assert nemo[row].tolist() == pytest.approx([plain.nemo_grams(text, n) for n in repeated_ngrams.SIZES])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["a", "bb", "ccc"]), max_size=80))
def test_grams_of_few_words(words: list[str]) -> None:
    text = " ".join(words)
    for style, plainly in ((repeated_ngrams.DCLM, plain.dclm_grams), (repeated_ngrams.DOLMA, plain.dolma_grams)):
        found = repeated_ngrams.ngram_shares(*views([text]), style)[0]
        assert found.tolist() == pytest.approx([plainly(words, n) for n in repeated_ngrams.SIZES])
    found = repeated_ngrams.ngram_shares(*views([text]), repeated_ngrams.NEMO)[0]
    assert found.tolist() == pytest.approx([plain.nemo_grams(text, n) for n in repeated_ngrams.SIZES])


def unicode_words(text: str) -> list[str]:
    offsets, data = views([text])
    words, at = [], offsets[0]
    while True:
        begin, at, points = word_counts.next_unicode_word(data, at, offsets[1], *character_traits.traits())
        if begin == at:
            return words
        words.append(bytes(data[begin:at]).decode())
        assert len(words[-1]) == points


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "The quick (“brown”) fox can\u2019t jump 32.3 feet, right?",
            "The quick brown fox can\u2019t jump 32.3 feet right",
        ),
        ("a.b c. d 1,5 1, x1y _z z_1 3a", "a.b c d 1,5 1 x1y z_1 3a"),
        ("naïve e\u0301t\u0301e ½ m²", "naïve e\u0301t\u0301e ½ m ²"),
        ("カタカナ ひら 中文", "カタカナ ひ ら 中 文"),
        ("don't 'tis rock'n'roll a''b", "don't tis rock'n'roll a b"),
        ("", ""),
    ],
)
def test_words_break_as_unicode_says(text: str, words: str) -> None:
    assert unicode_words(text) == words.split()


@PROPERTY
@given(BATCHES, st.sampled_from([1, 2]), st.sampled_from([0, 1, 2]))
def test_parts(texts: list[str], newlines: int, cut: int) -> None:
    found = line_parts.count_parts(*views(texts), newlines, cut)
    for row, text in enumerate(texts):
        assert [values[row] for values in found.values()] == plain.parts(text, newlines, cut)


@PROPERTY
@given(BATCHES, st.booleans())
def test_edges(texts: list[str], bare: bool) -> None:
    starts, finishes = ("•", "*", "the"), ("...", "…", ". . .", "read more")
    cut = line_parts.RAW if bare else line_parts.FILLED
    found = line_parts.count_edges(*views(texts), cut, phrases.encode_phrases(starts), phrases.encode_phrases(finishes))
    assert found.tolist() == [plain.edges(text, starts, finishes, bare=bare) for text in texts]


@PROPERTY
@given(BATCHES)
def test_signs_and_phrases(texts: list[str]) -> None:
    found = character_counts.count_characters(*views(texts))
    for row, text in enumerate(texts):
        assert {name: values[row] for name, values in found.items()} == plain.signs(text)
    sought = ("#", "...", ". . .", "…")
    counted = phrases.count(*views(texts), phrases.encode_phrases(sought))
    assert counted.tolist() == [sum(map(text.count, sought)) for text in texts]
    inside = line_parts.count_containing(*views(texts), 2, phrases.encode_phrases(("read more", "http")))
    assert inside.tolist() == [
        sum("read more" in part.lower() or "http" in part.lower() for part in text.split("\n\n")) for text in texts
    ]


@settings(max_examples=300, deadline=None)
@given(BATCHES)
@example(["A b\n3 likes\n12.5K Followers!\n\n\n\n\nok then\nadd 3 items in cart now\nSign-in here\nRead more..."])
def test_modifiers(texts: list[str]) -> None:
    modified, changed = dclm.modify(*views(texts), (0.5, 0.999999, 2, 10))
    assert modified.to_pylist() == [plain.modified(text) for text in texts]
    assert np.isfinite(changed).all()


@PROPERTY
@given(BATCHES)
def test_listed_words(texts: list[str]) -> None:
    listed = ("the", "x1", "B")
    found = word_counts.count_listed_words(*views(texts), listed)
    for row, text in enumerate(texts):
        words = re.findall(r"\w+", text)
        hits = [word for word in words if word in listed]
        assert found[row].tolist() == [len(words), len(hits), len(set(hits))]
