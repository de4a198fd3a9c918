"""The index of evaluation sets: distinct parts, their n-grams with weights, and which parts belong together."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.near.evaluation_index import Rules, Text, index

ITEMS = st.lists(st.tuples(st.sampled_from("xy"), st.lists(st.sampled_from("abc"), max_size=6)), min_size=1, max_size=8)


@given(items=ITEMS, max_items=st.integers(0, 3))
def test_postings_are_those_of_a_plain_index(items: list[tuple[str, list[str]]], max_items: int) -> None:
    texts = [Text(name, item, "question", "text", " ".join(words)) for item, (name, words) in enumerate(items)]
    reference = index(texts, Rules(ngram=2, min_words=2, gram=2, max_items=max_items))
    distinct = list(dict.fromkeys((name, tuple(words)) for name, words in items))
    assert [(part.benchmark, part.words) for part in reference.parts] == [
        (name, len(words)) for name, words in distinct
    ]
    grams = [(name, {words[at : at + 2] for at in range(len(words) - 1)}) for name, words in distinct]
    holders = Counter((name, gram) for name, part in grams for gram in part)
    parts = Counter(name for name, part in grams if part)
    most = max_items or len(distinct)
    kept = [[gram for gram in part if holders[name, gram] <= most] for name, part in grams]
    assert reference.runs.sizes.tolist() == [len(part) for part in kept]
    totals = [
        sum(math.log1p(parts[name] / holders[name, gram]) for gram in part)
        for (name, _), part in zip(grams, kept, strict=True)
    ]
    assert reference.runs.totals.tolist() == pytest.approx(totals)


def test_a_question_knows_the_answers_and_passages_of_its_items() -> None:
    texts = [
        Text("quiz", 0, "question", "question", "who was it"),
        Text("quiz", 0, "answer", "answer", "nobody"),
        Text("quiz", 1, "question", "question", "Who WAS it?"),
        Text("quiz", 1, "passage", "context", "a long story"),
        Text("other", 0, "answer", "answer", "nobody"),
    ]
    reference = index(texts, Rules())
    assert [(part.benchmark, part.item, part.part) for part in reference.parts] == [
        ("quiz", 0, "question"),
        ("quiz", 0, "answer"),
        ("quiz", 1, "passage"),
        ("other", 0, "answer"),
    ]
    assert reference.companions == {0: (1, 2)}
