"""Intervals hold: equal arms are rarely told apart, different ones are, and a second learning rate may object."""

import numpy as np
import pytest

from pipeline_tasks.ablate.statistics import (
    BETTER,
    SAME,
    UNDECIDED,
    WORSE,
    Difference,
    Floats,
    detectable,
    difference,
    outcome,
    seeds_for,
)

DOCUMENTS = 60


def arm(draws: np.random.Generator, seeds: int, level: float, noise: float, difficulty: Floats) -> Floats:
    """Return bits of seeds x documents: documents differ, seeds differ, and both together do."""
    by_seed = draws.normal(0, noise, (seeds, 1))
    by_place = draws.normal(0, noise, (seeds, DOCUMENTS))
    return (level + difficulty + by_seed + by_place) * 1_000.0


def compared(draws: np.random.Generator, shift: float, seeds: int = 3, noise: float = 0.01) -> Difference:
    difficulty = draws.normal(0, 0.2, DOCUMENTS)
    sizes = np.full(DOCUMENTS, 1_000.0)
    first = arm(draws, seeds, 1.0, noise, difficulty)
    second = arm(draws, seeds, 1.0 + shift, noise, difficulty)
    return difference(first, second, sizes)


def test_equal_arms_are_told_apart_in_at_most_one_of_twenty() -> None:
    draws = np.random.default_rng(1)
    wrong = sum(compared(draws, 0.0).excludes_zero for _ in range(600))
    assert 0 < wrong < 600 * 0.07


def test_the_smallest_detectable_difference_is_seen_four_times_of_five() -> None:
    draws = np.random.default_rng(2)
    least = detectable(0.01, 4)
    seen = sum(compared(draws, least, seeds=4).excludes_zero for _ in range(300))
    assert 300 * 0.65 < seen < 300 * 0.92


def test_a_recipe_beside_itself_is_no_difference_in_nineteen_of_twenty_comparisons() -> None:
    """By the outcome of two rates, either of which may see what is not there."""
    draws = np.random.default_rng(4)
    outcomes = []
    for _ in range(600):
        difficulty, sizes = draws.normal(0, 0.2, DOCUMENTS), np.full(DOCUMENTS, 1_000.0)
        arms = {rate: [arm(draws, 3, 1.0, 0.01, difficulty) for _ in range(2)] for rate in (4e-3, 2e-4)}
        outcomes.append(outcome({rate: difference(*pair, sizes, tests=2) for rate, pair in arms.items()}))
    assert outcomes.count(SAME) >= 0.94 * 600


def test_a_difference_is_that_of_all_bytes_and_has_its_sign() -> None:
    sizes = np.array([100.0, 300.0] * 20)
    first, second = np.tile(sizes, (3, 1)), np.tile(sizes * 1.5, (3, 1))
    assert difference(first, second, sizes).value == pytest.approx(0.5)
    assert difference(second, first, sizes).value == pytest.approx(-0.5)


def test_an_interval_of_several_tests_is_wider() -> None:
    draws = np.random.default_rng(3)
    sizes = np.full(DOCUMENTS, 1_000.0)
    arms = [arm(draws, 3, 1.0, 0.01, np.zeros(DOCUMENTS)) for _ in range(2)]
    one, ten = difference(*arms, sizes), difference(*arms, sizes, tests=10)
    assert (one.value, one.seeds) == (ten.value, ten.seeds)
    assert ten.low < one.low < one.high < ten.high


def of(value: float, half: float) -> Difference:
    return Difference(value, value - half, value + half, half / 3, half / 5)


@pytest.mark.parametrize(
    ("tuned", "small", "expected"),
    [
        (of(-0.05, 0.01), of(-0.01, 0.02), BETTER),
        (of(0.05, 0.01), of(0.01, 0.001), WORSE),
        (of(-0.05, 0.01), of(0.001, 0.02), UNDECIDED),
        (of(0.005, 0.01), of(-0.001, 0.02), SAME),
        (of(0.005, 0.01), of(0.03, 0.02), UNDECIDED),
    ],
)
def test_the_rate_that_trains_well_decides_and_the_small_one_may_object(
    tuned: Difference, small: Difference, expected: str
) -> None:
    assert outcome({4e-3: tuned, 2e-4: small}) == expected


def test_seeds_are_as_many_as_a_wanted_difference_needs() -> None:
    seeds = seeds_for(0.01, 0.005)
    assert detectable(0.01, seeds) <= 0.005 < detectable(0.01, seeds - 1)
    assert detectable(0.01, 1) == float("inf")
