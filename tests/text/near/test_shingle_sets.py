"""Packed sets of shingles give back the leading 40 bits of their hashes, in half of the bytes."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.near.shingle_sets import pack, sizes, unpack

HASHES = st.integers(0, 2**64 - 1) | st.integers(0, 2**26) | st.integers(2**64 - 2**26, 2**64 - 1)


def packed(sets: list[set[int]]) -> pa.LargeBinaryArray:
    hashes = [value for each in sets for value in sorted(each)]
    return pack(np.array(hashes, np.uint64), np.cumsum([0, *map(len, sets)]))


def leading(values: set[int]) -> list[int]:
    return sorted({value >> 24 for value in values})


@given(st.lists(st.sets(HASHES, max_size=80), max_size=6), st.integers(0, 6))
def test_sets_come_back(sets: list[set[int]], start: int) -> None:
    column = packed(sets).slice(start)
    values, ends = unpack(column)
    expected = [leading(each) for each in sets[start:]]
    assert [values[a:b].tolist() for a, b in pairwise(ends)] == expected
    assert sizes(column).tolist() == [len(each) for each in expected]


@given(st.lists(st.sets(HASHES, max_size=80), min_size=1, max_size=6))
def test_equal_sets_have_equal_bytes_wherever_they_are(sets: list[set[int]]) -> None:
    assert packed(sets).to_pylist() == [packed([each])[0].as_py() for each in sets]
    column = pa.array(packed(sets).to_pylist()[::-1], pa.large_binary())  # in other buffers
    assert sizes(column).tolist() == sizes(packed(sets)).tolist()[::-1]


@pytest.mark.parametrize(("count", "most"), [(500, 4.3), (5000, 4.2), (100_000, 4.2)])
def test_a_hash_takes_little_more_than_four_bytes(count: int, most: float) -> None:
    hashes = np.unique(np.random.default_rng(1).integers(0, 2**64, count, np.uint64))
    [size] = pa.compute.binary_length(pack(hashes, np.array([0, count]))).to_pylist()
    assert size / count < most


def test_an_empty_set_has_no_bytes() -> None:
    assert packed([set(), {1}, set()]).to_pylist()[::2] == [b"", b""]
