"""Matches: the parts that a plain search finds in a text, with the bytes that match."""

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.near.evaluation_index import Rules, Text, index
from pipeline_tasks.text.near.matches import Bounds, find, merged

WORDS = st.lists(st.sampled_from("abcd"), max_size=12)
RULES = Rules(ngram=3, min_words=2, gram=2, max_items=0)


@given(
    items=st.lists(WORDS, min_size=1, max_size=5),
    texts=st.lists(WORDS, max_size=6),
    overlap=st.sampled_from([0.0, 0.6]),
)
def test_runs_are_found_where_a_plain_search_finds_them(
    items: list[list[str]], texts: list[list[str]], overlap: float
) -> None:
    reference = index([Text("quiz", at, "question", "text", " ".join(words)) for at, words in enumerate(items)], RULES)
    matches = find(
        pa.array([" ".join(words) for words in texts], pa.large_string()), reference, Bounds(("ngram",), overlap)
    )
    distinct = list(dict.fromkeys(map(tuple, items)))
    expected: dict[int, list[tuple[Any, ...]]] = {}
    for row, words in enumerate(texts):
        for part, item in zip(reference.parts, distinct, strict=True):
            size = min(3, len(item))
            grams = {item[at : at + size] for at in range(len(item) - size + 1)} if len(item) >= 2 else set()
            places = [at for at in range(len(words) - size + 1) if tuple(words[at : at + size]) in grams]
            share = len({tuple(words[at : at + size]) for at in places}) / max(len(grams), 1)
            if places and share >= overlap:
                spans = merged((2 * at, 2 * (at + size) - 1) for at in places)
                expected.setdefault(row, []).append((part, "ngram", share, spans))
    found = {row: [tuple(match) for match in row_matches] for row, row_matches in matches.items() if row_matches}
    assert found == {row: sorted(row_matches) for row, row_matches in expected.items()}


def test_an_edited_question_scores_by_the_ngrams_that_are_left() -> None:
    words = [f"w{number}" for number in range(40)]
    reference = index([Text("quiz", 0, "question", "text", " ".join(words))], Rules(max_items=0))
    edited = " ".join("other" if at == 20 else word for at, word in enumerate(words))
    ((match,),) = find(pa.array([edited]), reference, Bounds(("sampled",))).values()
    assert match.part.item == 0
    assert match.score == pytest.approx(31 / 36)
    assert find(pa.array([edited]), reference, Bounds(("sampled",), score=0.9)) == {}


def test_a_passage_alone_is_no_match() -> None:
    passage = " ".join(f"w{number}" for number in range(40))
    reference = index([Text("quiz", 0, "passage", "context", passage)], Rules(max_items=0))
    assert find(pa.array([passage]), reference, Bounds(("sampled",))) == {}
    assert find(pa.array([passage]), reference, Bounds(("ngram",))) == {}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)), max_size=12))
def test_merged_spans_cover_the_same_bytes_apart(drawn: list[tuple[int, int]]) -> None:
    spans = [(start, start + size) for start, size in drawn]
    apart = merged(spans)
    assert {at for start, end in apart for at in range(start, end)} == {
        at for start, end in spans for at in range(start, end)
    }
    assert [pair for pair in itertools.pairwise(apart) if pair[0][1] >= pair[1][0]] == []
