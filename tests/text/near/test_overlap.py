"""Overlap: n-grams of a reference are found where a plain search finds them, and cut as slices cut them."""

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.near.overlap import grams_of, probe, table_of

TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=15), min_size=1, max_size=8)


def column(texts: list[list[str]]) -> pa.Array:
    """Texts of words, with more than one byte between them."""
    return pa.array([" - ".join(words) for words in texts], pa.large_string())


@given(reference=TEXTS, texts=TEXTS, least=st.integers(1, 3), more=st.integers(0, 3))
def test_hits_are_those_of_a_plain_search(
    reference: list[list[str]], texts: list[list[str]], least: int, more: int
) -> None:
    most = least + more
    wanted = {
        tuple(words[at : at + min(len(words), most)])
        for words in reference
        if len(words) >= least
        for at in range(max(len(words) - most, 0) + 1)
    }
    grams = grams_of(column(reference), least, most)
    lengths = sorted({len(gram) for gram in wanted})
    hits = probe(column(texts), table_of(grams.hashes, lengths))
    expected = [
        (row, at, 4 * at, 4 * at + 4 * length - 3)
        for row, words in enumerate(texts)
        for length in lengths
        for at in range(len(words) - length + 1)
        if tuple(words[at : at + length]) in wanted
    ]
    places = (hits.docs, hits.words, hits.starts, hits.ends)
    assert list(zip(*(place.tolist() for place in places), strict=True)) == expected


@given(texts=TEXTS, least=st.integers(1, 4), more=st.integers(0, 4))
def test_grams_are_the_slices_of_each_text(texts: list[list[str]], least: int, more: int) -> None:
    most = least + more
    grams = grams_of(column(texts), least, most)
    assert grams.words.tolist() == [len(words) for words in texts]
    expected = [max(len(words) - most, 0) + 1 if len(words) >= least else 0 for words in texts]
    bounds = [0, *grams.ends[1:].tolist()] if len(grams.ends) > len(texts) else [0, *grams.ends.tolist()]
    assert [end - start for start, end in itertools.pairwise(bounds)] == expected
    by_hash = dict(zip(grams.wholes.tolist(), map(tuple, texts), strict=True))
    assert [by_hash[whole] for whole in grams.wholes.tolist()] == list(map(tuple, texts))


def test_hits_are_more_than_the_first_room() -> None:
    grams = grams_of(column([["a"]]), 1, 1)
    assert len(probe(column([["a"] * 5000]), table_of(grams.hashes, [1])).docs) == 5000


def test_an_empty_reference_hits_nothing() -> None:
    grams = grams_of(column([[]]), 1, 3)
    assert len(probe(column([["a", "b"]]), table_of(grams.hashes, [])).docs) == 0
