"""The fit finds the best of known functions of mixtures, in the shape of public swarms, and does not flatter itself."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_ablate.mixture import predictor
from refinery_ablate.mixture.predictor import FLOORS, Predictor, checked, fitted
from refinery_ablate.mixture.swarm import Shares, around_prior
from scipy.optimize import minimize

NOISE = 0.002
"""Bits per byte: a quarter of a percent."""

TOTAL = 2_000

Truth = Callable[[Shares], np.ndarray]


def power_law(groups: int, seed: int) -> Truth:
    """Each of as many domains falls by a power of what all groups give for it."""
    draws = np.random.default_rng(seed)
    weights, powers = draws.dirichlet(np.full(groups, 2.0)), draws.uniform(0.2, 0.5, groups)
    transfer = np.eye(groups) + draws.uniform(0, 0.15, (groups, groups))
    return lambda shares: 0.8 + 0.5 * ((shares @ transfer.T + 0.01) ** -powers) @ weights


def exponential(groups: int, seed: int) -> Truth:
    """Each of as many domains falls exponentially (data mixing laws, arXiv 2403.16952)."""
    draws = np.random.default_rng(seed)
    weights = draws.dirichlet(np.full(groups, 2.0))
    slopes = np.eye(groups) * draws.uniform(2, 6, groups) + draws.uniform(0, 0.5, (groups, groups))
    return lambda shares: 0.8 + 0.6 * np.exp(-(shares @ slopes.T)) @ weights


def swarm(truth: Truth, groups: int, rows: int, seed: int) -> tuple[Shares, np.ndarray, Shares]:
    """Return sampled mixtures, what they cost with noise, and the prior."""
    draws = np.random.default_rng(seed)
    prior = draws.dirichlet(np.full(groups, 2.0))
    sampled = around_prior(prior, np.full(groups, TOTAL), TOTAL, rows, seed)
    shares = np.array(list(sampled)) / TOTAL
    return shares, truth(shares) + draws.normal(0, NOISE, rows), prior


def best_of(truth: Truth, groups: int) -> Shares:
    limits, whole = [(0.0, 1.0)] * groups, {"type": "eq", "fun": lambda shares: shares.sum() - 1}
    start = np.full(groups, 1 / groups)
    found = minimize(truth, start, bounds=limits, constraints=whole, method="SLSQP")
    assert found.success
    return np.asarray(found.x)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("groups", "rows"), [(3, 32), (7, 64), (17, 512)])
@pytest.mark.parametrize("law", [power_law, exponential])
def test_the_best_of_a_known_function_is_found(
    law: Callable[[int, int], Truth], groups: int, rows: int, seed: int
) -> None:
    truth = law(groups, seed)
    shares, values, prior = swarm(truth, groups, rows, seed)
    found = fitted(shares, values).best(np.ones(groups), prior)
    best = best_of(truth, groups)
    assert np.abs(found - best).max() < 0.1
    assert truth(found) - truth(best) < 0.4 * (truth(prior) - truth(best)) + 2 * NOISE
    check = checked(shares, values)
    assert check.correlation > 0.9
    assert check.regret < 0.02
    assert abs(check.optimism) < 0.01


def test_pure_noise_is_not_predicted() -> None:
    """A fit of 17 slopes to 40 mixtures follows any noise; on mixtures left out that shows."""
    draws = np.random.default_rng(5)
    shares = draws.dirichlet(np.ones(17), 40)
    values = draws.normal(1, 0.01, 40)
    assert abs(checked(shares, values).correlation) < 0.4


def test_runs_of_one_mixture_are_left_out_together() -> None:
    """A repeated mixture with a shift of its own would else predict itself."""
    draws = np.random.default_rng(6)
    shares = np.repeat(draws.dirichlet(np.ones(3), 12), 4, axis=0)
    values = np.repeat(draws.normal(1, 0.1, 12), 4)
    for fold in predictor._folds(shares):
        assert not {*map(tuple, shares[fold].tolist())} & {*map(tuple, shares[~fold].tolist())}
    check = checked(shares, values)
    assert len(check.measured) == 12
    assert check.correlation < 0.7


slopes = st.lists(st.floats(0, 5), min_size=2, max_size=8)


@given(slopes, st.sampled_from(FLOORS), st.integers(0, 1 << 20))
def test_no_mixture_within_the_limits_is_expected_to_be_better(given: list[float], floor: float, seed: int) -> None:
    draws = np.random.default_rng(seed)
    groups = len(given)
    most = draws.uniform(1.1 / groups, 1.5, groups)
    prior = draws.dirichlet(np.ones(groups))
    fit = Predictor(3.0, np.array(given), floor)
    best = fit.best(most, prior)
    assert best.sum() == pytest.approx(1)
    assert (best <= most + 1e-9).all()
    assert (best >= 0).all()
    others = np.array(list(around_prior(prior, np.floor(most * TOTAL).astype(int), TOTAL, 20, seed))) / TOTAL
    assert fit(best) <= fit(others).min() + 1e-7


def test_where_no_share_matters_the_prior_is_best() -> None:
    prior = np.array([0.7, 0.2, 0.1])
    assert Predictor(1.0, np.zeros(3), 0.1).best(np.ones(3), prior).tolist() == pytest.approx(prior.tolist())
