"""Word counts of the profiles equal a plain reading of their definitions, for any text."""

import re
import statistics

import pytest
from hypothesis import given

from pipeline_tasks.text.base import character_traits, phrases
from pipeline_tasks.text.words import word_counts
from tests.text import plain_profiles
from tests.text.texts import PROFILE_BATCHES, STOPS, views

MARKS = ("...", "[...]", "…", "-»")


@given(PROFILE_BATCHES)
def test_words(texts: list[str]) -> None:
    counts = word_counts.count_words(*views(texts), phrases.encode_phrases(STOPS), phrases.encode_phrases(MARKS))
    assert word_counts.count_fasttext_words(*views(texts)).tolist() == [
        plain_profiles.fasttext_words(text) for text in texts
    ]
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
        assert {name: values[row] for name, values in counts.items()} == expected


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


@given(PROFILE_BATCHES)
def test_listed_words(texts: list[str]) -> None:
    listed = ("the", "x1", "B")
    counts = word_counts.count_listed_words(*views(texts), listed)
    words = [re.findall(r"\w+", text) for text in texts]
    hits = [[word for word in own if word in listed] for own in words]
    assert counts.tolist() == [[len(own), len(hit), len(set(hit))] for own, hit in zip(words, hits, strict=True)]
