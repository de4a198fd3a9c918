"""Sketches: every m-th n-gram of a text, and a sieve that sees in them what a plain search sees."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.near.overlap import grams_of
from pipeline_tasks.text.near.sketches import prints_of, sample, sieve_of, sift

WORDS = st.lists(st.sampled_from(["rain", "on", "the", "harbor", "naïve", "天"]), max_size=40)


@given(texts=st.lists(WORDS, max_size=6), gram=st.integers(1, 5), every=st.integers(1, 6))
def test_a_sketch_is_every_mth_ngram(texts: list[list[str]], gram: int, every: int) -> None:
    column = pa.array([" ".join(words) for words in texts], pa.large_string())
    expected = [prints_of(grams_of(column.slice(row, 1), gram, gram).hashes)[::every] for row in range(len(texts))]
    assert sample(column, gram, every).to_pylist() == [prints.tolist() for prints in expected]


PRINTS = st.lists(st.integers(0, 12) | st.integers(2**32 - 5, 2**32 - 1), max_size=15)


def is_hit(sketch: list[int], members: set[int], lone: set[int], near: int) -> bool:
    """Whether a sketch has a lone print, or two members at most `near` apart."""
    if lone & set(sketch):
        return True
    places = [at for at, value in enumerate(sketch) if value in members]
    return any(after - before <= near for before, after in itertools.pairwise(places))


@given(sketches=st.lists(PRINTS, max_size=6), members=PRINTS, lone=PRINTS, near=st.integers(1, 4))
def test_a_sieve_sees_what_a_plain_search_sees(
    sketches: list[list[int]], members: list[int], lone: list[int], near: int
) -> None:
    sieve = sieve_of(np.array(members, np.uint32), np.array(lone, np.uint32), near)
    column = pa.array(sketches, pa.list_(pa.uint32()))
    assert sift(column, sieve).tolist() == [is_hit(sketch, set(members), set(lone), near) for sketch in sketches]
