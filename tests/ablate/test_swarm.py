"""Sampled mixtures have their sum, and no group above what it may give, to the sequence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_ablate.mixture.swarm import Shares, apportioned, around_best, around_prior, within, without

sizes = st.integers(2, 20)


@st.composite
def limited(draw: st.DrawFn) -> tuple[Shares, np.ndarray, int]:
    """Return a prior, the most sequences of each group, and a sum that they can give."""
    count = draw(sizes)
    parts = draw(st.lists(st.floats(0, 1e6), min_size=count, max_size=count).filter(any))
    most = np.array(draw(st.lists(st.integers(0, 500), min_size=count, max_size=count).filter(any)), np.int64)
    total = draw(st.integers(1, int(most.sum())))
    return np.array(parts) / sum(parts), most, total


@given(limited(), st.integers(0, 1 << 20))
def test_sampled_mixtures_respect_their_limits_exactly(case: tuple[Shares, np.ndarray, int], seed: int) -> None:
    prior, most, total = case
    mixtures = [*around_prior(prior, most, total, 3, seed), *around_best(prior, prior, most, total, 3, seed)]
    for mixture in mixtures:
        assert mixture.sum() == total
        assert (mixture >= 0).all()
        assert (mixture <= most).all()
    again = [*around_prior(prior, most, total, 3, seed), *around_best(prior, prior, most, total, 3, seed)]
    assert np.array_equal(mixtures, again)


@given(limited())
def test_shares_within_limits_keep_their_sum(case: tuple[Shares, np.ndarray, int]) -> None:
    prior, most, total = case
    shares = within(prior, most / total)
    assert shares.sum() == pytest.approx(1)
    assert (shares <= most / total + 1e-12).all()


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=10), st.integers(1, 10_000))
def test_whole_sequences_are_within_one_of_their_share(parts: list[float], total: int) -> None:
    shares = np.array(parts) / sum(parts)
    counts = apportioned(shares, total, np.full(len(parts), total))
    assert np.abs(counts - shares * total).max() < 1 + 1e-6


def test_what_is_above_a_limit_goes_to_the_others_in_their_proportion() -> None:
    shares = within(np.array([0.8, 0.15, 0.05]), np.array([0.2, 1.0, 1.0]))
    assert shares.tolist() == pytest.approx([0.2, 0.6, 0.2])


def test_the_prior_without_a_group_has_none_of_it() -> None:
    prior, most = np.array([0.5, 0.3, 0.2]), np.array([100, 60, 60])
    left = without(prior, most, 100, 0)
    assert left is not None
    assert left.tolist() == [0, 60, 40]
    assert without(prior, most, 150, 0) is None


def test_more_than_all_groups_give_is_refused() -> None:
    with pytest.raises(ValueError, match="3 sequences at most"):
        apportioned(np.array([0.5, 0.5]), 4, np.array([1, 2]))
