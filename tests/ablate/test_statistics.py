"""Intervals hold: equal arms are rarely told apart, different ones are, and a second learning rate may object."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_ablate.held_out import HeldOut, halves
from refinery_ablate.mixture.predictor import fitted
from refinery_ablate.statistics import (
    BETTER,
    SAME,
    UNDECIDED,
    WORSE,
    Difference,
    Floats,
    bits_per_byte,
    detectable,
    difference,
    outcome,
    seeds_for,
)

from pipeline_tasks.inspect.recipe.recipe_verdicts import why_not

DOCUMENTS = 60

NONE = np.zeros(0, np.int32)


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


class Comparison(NamedTuple):
    """What two arms of documents of unlike sizes say, of which the second is worse by a shift of all documents."""

    outcome: str
    decisive: Difference


def unlike(draws: np.random.Generator, shift: float, seeds: int, documents: int, spread: float) -> Comparison:
    """Compare arms whose documents differ by a `spread` around the shift, at two rates."""
    sizes = draws.lognormal(7, 1, documents)
    own = shift + draws.normal(0, spread, documents)

    def bits(level: Floats | float) -> Floats:
        noise = draws.normal(0, 0.01, (seeds, 1)) + draws.normal(0, 0.01, (seeds, documents))
        return np.asarray((1.0 + level + noise) * sizes)

    differences = {rate: difference(bits(0.0), bits(own), sizes, tests=2) for rate in (4e-3, 2e-4)}
    return Comparison(outcome(differences), differences[4e-3])


@pytest.mark.parametrize(("seeds", "documents"), [(2, 20), (20, 20), (3, 60)])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_an_interval_holds_with_few_seeds_and_with_few_documents(seeds: int, documents: int, spread: float) -> None:
    draws = np.random.default_rng(seeds + documents)
    held = 0
    for _ in range(400):
        sizes = draws.lognormal(7, 1, documents)
        own = draws.normal(0.05, spread, documents) if spread else np.full(documents, 0.05)
        first, second = (draws.normal(0, 0.01, (seeds, 1)) + draws.normal(0, 0.01, (seeds, documents)) for _ in "ab")
        compared = difference((1 + first) * sizes, (1 + own + second) * sizes, sizes)
        held += compared.low <= 0.05 <= compared.high
    assert held >= 0.94 * 400


@pytest.mark.parametrize(("seeds", "documents"), [(2, 20), (3, 60), (12, 200)])
def test_what_is_worse_by_the_margin_rarely_passes(seeds: int, documents: int) -> None:
    draws = np.random.default_rng(seeds)
    compared = [unlike(draws, 0.01, seeds, documents, 0.02) for _ in range(100)]
    assert sum(not why_not(each, 0.01) for each in compared) <= 0.05 * 100
    if seeds == 2:
        assert sum(each.outcome in (BETTER, SAME) for each in compared) > 0.9 * 100, "what was not measured is no worse"
        assert sum("cannot see a margin" in why_not(each, 0.01) for each in compared) > 0.9 * 100


def test_what_is_no_worse_passes_with_seeds_and_documents_that_show_it() -> None:
    draws = np.random.default_rng(5)
    passed = sum(not why_not(unlike(draws, 0.0, 40, 600, 0.02), 0.01) for _ in range(40))
    assert passed > 0.8 * 40


@pytest.mark.parametrize(
    ("said", "low", "high", "why"),
    [
        (SAME, -0.02, 0.0099, ""),
        (WORSE, 0.001, 0.009, ""),
        (BETTER, -0.04, -0.01, ""),
        (UNDECIDED, -0.02, 0.0, "contradict"),
        (SAME, -0.02, 0.01, "cannot see a margin of 0.01"),
        (SAME, -0.001, 0.015, "may be worse by 0.0150"),
        (WORSE, 0.002, 0.03, "is worse by 0.0020 to 0.0300"),
    ],
)
def test_a_margin_is_passed_by_what_is_below_it(said: str, low: float, high: float, why: str) -> None:
    refused = why_not(Comparison(said, Difference((low + high) / 2, low, high, 0, 0)), 0.01)
    assert why in refused
    assert bool(why) == bool(refused)


def chosen_by_fit(draws: np.random.Generator, documents: int) -> tuple[bool, bool]:
    """Return whether the mixture that a fit takes for the best seems better than the prior, where none is.

    Each document is helped by some group, and all together by none: by the documents that chose it, and by others.
    """
    prior = np.full(6, 1 / 6)
    shares = draws.dirichlet(np.ones(6), 40)
    slopes, sizes = draws.normal(0, 0.2, (documents, 6)), np.full(documents, 1_000.0)

    def bits(mixtures: Floats) -> Floats:
        return np.asarray((1 + mixtures @ slopes.T + draws.normal(0, 0.002, (len(mixtures), documents))) * 1_000.0)

    held_out = HeldOut(NONE, NONE, NONE, sizes, ("web",) * documents, ("en",) * documents)
    seen = []
    chose, judges = halves(held_out)
    for other in (chose, judges):
        best = fitted(shares, bits_per_byte(bits(shares)[:, chose], sizes[chose])).best(np.ones(6), prior)
        first, second = (bits(np.tile(mixture, (12, 1)))[:, other] for mixture in (prior, best))
        seen.append(difference(first, second, sizes[other]).high < 0)
    return seen[0], seen[1]


def test_a_mixture_is_no_better_for_documents_that_did_not_choose_it() -> None:
    draws = np.random.default_rng(6)
    found = np.array([chosen_by_fit(draws, 40) for _ in range(60)])
    assert found[:, 0].mean() > 0.1, "it is the best for the documents that chose it"
    assert found[:, 1].mean() <= 0.05


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_both_halves_have_documents_of_each_domain(domains: list[str]) -> None:
    held_out = HeldOut(NONE, NONE, NONE, np.ones(len(domains)), tuple(domains), ("en",) * len(domains))
    chose, judges = halves(held_out)
    assert (chose ^ judges).all()
    for domain in set(domains):
        own = np.array(domains) == domain
        assert abs(int((chose & own).sum()) - int((judges & own).sum())) <= 1


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
