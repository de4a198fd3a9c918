"""Vectors are stored so that similarities and sides of planes are exact, whatever the processor."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.near.vectors import KIND, band_keys, cosine, curve, packed, planes, rows_for, unpacked

DRAWN = np.random.default_rng(3).normal(size=(200, 96))


def fractions(vector: np.ndarray) -> list[Fraction]:
    return [Fraction(float(value)) for value in vector]


def test_a_vector_has_length_one_and_little_is_lost() -> None:
    stored = packed(DRAWN)
    units = DRAWN / np.linalg.norm(DRAWN, axis=1, keepdims=True)
    assert {len(body) for body in stored.to_pylist()} == {96 * KIND.itemsize}
    assert np.abs(unpacked(stored) - units).max() < 2**-12
    exact = (units * np.roll(units, 1, axis=0)).sum(axis=1)
    assert np.abs(cosine(stored, stored.take(pa.array(np.roll(np.arange(200), 1)))) - exact).max() < 1e-3


def test_a_row_without_a_vector_is_empty_and_others_keep_their_places() -> None:
    rows = DRAWN[:4].copy()
    rows[1], rows[3] = np.nan, 0.0
    stored = packed(rows)
    assert [len(body) > 0 for body in stored.to_pylist()] == [True, False, True, False]
    assert unpacked(stored.take(pa.array([0, 2]))).tolist() == unpacked(packed(DRAWN[[0, 2]])).tolist()
    assert unpacked(stored.slice(2, 1)).tolist() == unpacked(packed(DRAWN[[2]])).tolist()


def test_vectors_of_other_lengths_are_not_compared() -> None:
    with pytest.raises(ValueError, match="8 and 96"):
        unpacked(pa.array([*packed(DRAWN[:1]).to_pylist(), *packed(DRAWN[:1, :8]).to_pylist()], pa.large_binary()))


@given(st.integers(0, 199), st.integers(0, 199), st.permutations(range(96)))
def test_products_and_sides_are_exact_in_any_order(left: int, right: int, order: list[int]) -> None:
    """Neither the order of a sum nor fused operations of a processor may move a similarity."""
    ours, theirs = unpacked(packed(DRAWN[[left]]))[0], unpacked(packed(DRAWN[[right]]))[0]
    exact = sum((a * b for a, b in zip(fractions(ours), fractions(theirs), strict=True)), Fraction(0))
    assert Fraction(float((ours[order] * theirs[order]).sum())) == exact
    side = planes(4, 96, 1)[:, 2]
    assert Fraction(float(ours[order] @ side[order])) == sum(
        (a * int(b) for a, b in zip(fractions(ours), side, strict=True)), Fraction(0)
    )


def test_planes_follow_from_the_seed() -> None:
    """Frozen: history has keys of them."""
    assert planes(2, 4, 1).T.tolist() == planes(70, 4, 1).T[:2].tolist()
    assert np.abs(planes(64, 96, 1)).min() == 1.0
    assert abs(planes(64, 96, 1).mean()) < 0.05
    assert planes(64, 96, 1).tolist() != planes(64, 96, 2).tolist()
    assert band_keys(unpacked(packed(DRAWN[:1])), 2, 12, 1).tolist() == [[599, 281474976713217]]


@pytest.mark.parametrize("threshold", [0.8, 0.9, 0.95, 0.99])
def test_pairs_at_the_threshold_are_candidates_as_often_as_the_curve_says(threshold: float) -> None:
    bands = 16
    rows = rows_for(threshold, bands, 0.9)
    assert curve(threshold, bands, rows) >= 0.9 > curve(threshold, bands, rows + 1)
    draws = np.random.default_rng(11)
    first = draws.normal(size=(3000, 64))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    away = draws.normal(size=first.shape)
    away -= (away * first).sum(axis=1, keepdims=True) * first
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    second = threshold * first + np.sqrt(1 - threshold**2) * away
    ours, theirs = (band_keys(unpacked(packed(side)), bands, rows, 1) for side in (first, second))
    found = (ours == theirs).any(axis=1).mean()
    assert abs(found - curve(threshold, bands, rows)) < 0.03
