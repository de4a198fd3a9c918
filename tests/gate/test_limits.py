"""Intervals of facts: they contain the truth as often as they say, and depend on nothing but the rows."""

from collections.abc import Iterator
from itertools import product
from math import comb, factorial, inf, isclose

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.gate import limits
from pipeline_tasks.gate.checks import suites_of
from pipeline_tasks.gate.estimates import (
    ALONE,
    COMPARED,
    Estimate,
    Precision,
    change,
    count,
    difference,
    distance,
    exact,
    fraction_mean,
    largest_share,
    mean_of,
    quantile_of,
    share,
    total,
)
from pipeline_tasks.gate.facts.comparison import psi
from pipeline_tasks.gate.suites import EXPECTATIONS, apply_bounds
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.recipe import EVERY

SHARES = [step / 40 for step in range(1, 40)]


def chance(part: int, whole: int, truth: float) -> float:
    return comb(whole, part) * truth**part * (1 - truth) ** (whole - part)


@pytest.mark.parametrize("whole", [1, 2, 3, 5, 8, 13, 21])
@pytest.mark.parametrize("tail", [0.01, 0.005])
def test_the_interval_of_a_share_misses_the_truth_as_rarely_as_it_says(whole: int, tail: float) -> None:
    """All outcomes are counted: no simulation."""
    intervals = [limits.share_limits(part, whole, tail) for part in range(whole + 1)]
    for truth in SHARES:
        above = sum(chance(part, whole, truth) for part, (low, _) in enumerate(intervals) if low > truth)
        below = sum(chance(part, whole, truth) for part, (_, high) in enumerate(intervals) if high < truth)
        assert max(above, below) <= tail + 1e-12


@given(st.integers(1, 9999).flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole))))
def test_the_limits_are_quantiles_of_beta_distributions(pair: tuple[int, int]) -> None:
    from scipy import stats

    part, whole = pair
    low, high = limits.share_limits(part, whole, 0.01)
    assert low == pytest.approx(stats.beta.ppf(0.01, part, whole - part + 1) if part else 0, rel=1e-7)
    assert high == pytest.approx(stats.beta.ppf(0.99, part + 1, whole - part) if part < whole else 1, rel=1e-7)


@pytest.mark.parametrize("number", [0, 1, 2, 7, 100, 9999])
def test_limits_of_counts_are_quantiles_of_chi_squared_distributions(number: int) -> None:
    from scipy import stats

    low, high = limits.count_limits(number, 0.005)
    assert low == pytest.approx(stats.chi2.ppf(0.005, 2 * number) / 2 if number else 0, rel=1e-7)
    assert high == pytest.approx(stats.chi2.ppf(0.995, 2 * number + 2) / 2, rel=1e-7)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 10, 29, 30, 999])
def test_quantiles_of_students_t(degrees: int) -> None:
    from scipy import stats

    assert isclose(limits.t_quantile(degrees, 0.01), stats.t.ppf(0.99, degrees), rel_tol=1e-9)


@pytest.mark.parametrize(("part", "whole"), [(0, 5), (1, 7), (20, 100), (50, 100), (83, 100), (7, 7)])
def test_the_margin_of_a_share_ends_where_its_score_is_the_normal_quantile(part: int, whole: int) -> None:
    """Wilson's interval is of the shares that differ from what was seen by so many of their own deviations."""
    from scipy import stats

    share_, margin = part / whole, limits.score_margin(part, whole, 0.01)
    end = share_ + margin if share_ <= 0.5 else share_ - margin
    assert 0 < end < 1
    assert margin / (end * (1 - end) / whole) ** 0.5 == pytest.approx(stats.norm.isf(0.01))
    assert limits.normal_quantile(0.01) == pytest.approx(stats.norm.isf(0.01))


def test_the_floor_of_a_distance_is_above_the_quantile_that_it_bounds() -> None:
    from scipy import stats

    for bins in range(2, 60):
        assert limits.distance_floor(bins, 400, 400, 0.01) * 200 >= stats.chi2.ppf(0.99, bins - 1)


@given(st.integers(0, 30), st.integers(1, 30), st.integers(2, 30))
def test_more_rows_of_the_same_kind_narrow_the_interval(part: int, whole: int, times: int) -> None:
    """So a decision can go from undecided to decided, and never from refused to passed."""
    part = min(part, whole)
    low, high = limits.share_limits(part, whole, 0.01)
    narrow_low, narrow_high = limits.share_limits(part * times, whole * times, 0.01)
    assert low - 1e-12 <= narrow_low <= part / whole <= narrow_high <= high + 1e-12


@pytest.mark.parametrize("at", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("rows", [7, 20, 45])
def test_ranks_miss_a_quantile_as_rarely_as_they_say(rows: int, at: float) -> None:
    """The k-th smallest value is above the quantile if fewer than k values are below it: a binomial count."""
    low, high = limits.rank_limits(rows, at, 0.01)
    assert sum(chance(below, rows, at) for below in range(low)) <= 0.01
    assert sum(chance(below, rows, at) for below in range(high, rows + 1)) <= 0.01
    assert 0 <= low < high <= rows + 1


def outcomes(rows: int, truth: tuple[float, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield every way in which rows can fall into bins, with its probability."""
    for counts in product(range(rows + 1), repeat=len(truth)):
        if sum(counts) == rows:
            ways = factorial(rows)
            for number in counts:
                ways //= factorial(number)
            probability = float(ways)
            for number, share_ in zip(counts, truth, strict=True):
                probability *= share_**number
            yield counts, probability


@pytest.mark.parametrize("truth", [(0.5, 0.5), (0.9, 0.1), (0.98, 0.02), (0.4, 0.3, 0.3), (0.8, 0.15, 0.05)])
def test_two_samples_of_one_population_are_rarely_apart(truth: tuple[float, ...]) -> None:
    """All pairs of samples are counted; the share with a distance above nothing at all is below 1 %."""
    names = "abc"[: len(truth)]
    samples = [
        ({"kind": "name", "count": 9, "bins": dict(zip(names, counts, strict=True))}, probability)
        for counts, probability in outcomes(9, truth)
    ]
    missed = 0.0
    for (now, one), (before, other) in product(samples, samples):
        distance = psi(now, before)
        assert distance
        missed += one * other * (distance.low > 0)
    assert missed < 0.01


def test_ratios_have_an_interval_without_an_assumption_on_their_distribution() -> None:
    """Scores of 0 or 1 are the widest that there are: all outcomes of 12 rows are counted."""
    for truth in (0.1, 0.5, 0.8):
        missed = 0.0
        for part in range(13):
            column = profile(pa.table({"score": [1.0] * part + [0.0] * (12 - part)}), ["score"])["score"]
            estimate = mean_of(column)
            assert estimate
            missed += chance(part, 12, truth) * (not estimate.low <= truth <= estimate.high)
        assert missed <= 0.02


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.randoms())
def test_order_and_partitions_change_no_estimate(values: list[int], random: object) -> None:
    shuffled = values.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    cut = len(values) // 3
    whole = profile(pa.table({"chars": values}), ["chars"])
    parts = [profile(pa.table({"chars": part}), ["chars"]) for part in (shuffled[:cut], shuffled[cut:]) if part]
    left, right = whole["chars"], merge(parts)["chars"]
    for at in (0.05, 0.5, 0.95):
        assert quantile_of(left, at) == quantile_of(right, at)
    assert mean_of(left) == mean_of(right)
    assert total(left) == total(right)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.integers(1, 40))
def test_an_interval_contains_its_value(values: list[float], earlier: int) -> None:
    column = profile(pa.table({"score": values}), ["score"])["score"]
    estimates = [mean_of(column), *(quantile_of(column, at) for at in (0.05, 0.5, 0.95))]
    estimates += [change(count(len(values)), count(earlier)), change(mean_of(column, COMPARED), mean_of(column))]
    found = [estimate for estimate in estimates if estimate is not None]
    assert len(found) >= 4
    assert [estimate for estimate in found if not estimate.low <= estimate.value <= estimate.high] == []


def test_many_rows_are_judged_by_the_value_itself() -> None:
    assert not share(999 // 2, 999).exact  # type: ignore[union-attr]
    assert share(500, ALONE.large).exact  # type: ignore[union-attr]
    assert count(COMPARED.large).exact
    assert change(count(10_600), count(265_000)).exact  # type: ignore[union-attr]


def test_a_value_of_one_row_says_nothing_about_a_mean() -> None:
    estimate = mean_of(profile(pa.table({"chars": [5000]}), ["chars"])["chars"])
    assert estimate
    assert (estimate.low, estimate.value, estimate.high) == (-inf, 5000, inf)


def test_shares_at_the_ends_have_an_interval_on_one_side() -> None:
    none, every = share(0, 20), share(20, 20)
    assert none is not None
    assert every is not None
    assert (none.value, none.low, every.value, every.high) == (0.0, 0.0, 1.0, 1.0)
    assert isclose(none.high, 1 - ALONE.tail ** (1 / 20))
    assert isclose(every.low, ALONE.tail ** (1 / 20))


def test_a_count_that_is_no_part_is_exact() -> None:
    over = share(21, 20)
    assert over is not None
    assert over.exact


@pytest.mark.parametrize(("part", "chance"), [(0.0, 1.0), (1.0, 0.0)])
def test_a_share_of_nothing_or_all_is_certain(part: float, chance: float) -> None:
    assert limits.binomial_cdf(3, 5, part) == chance
    assert limits.binomial_cdf(5, 5, part) == 1.0


def test_the_sum_of_no_rows_is_exactly_nothing() -> None:
    nothing = total({"kind": "whole", "count": 0, "sum": 0, "bins": {}})
    assert nothing is not None
    assert (nothing.low, nothing.value, nothing.high) == (0, 0, 0)


def test_the_change_between_two_exact_amounts_is_exact() -> None:
    doubled = change(exact(20), exact(10))
    assert doubled is not None
    assert (doubled.low, doubled.value, doubled.high) == (1.0, 1.0, 1.0)


def test_a_distance_is_judged_by_its_value_from_so_many_rows_on() -> None:
    large = COMPARED.large
    assert distance(0.3, 5, (large, large)).exact
    assert not distance(0.3, 5, (large - 1, large)).exact


@pytest.mark.parametrize("kind", ["ratio", "whole"])
@pytest.mark.parametrize("scale", [1, 30, 4000])
def test_a_mean_of_unbounded_values_is_as_unsure_as_students_t_says_of_their_bins(kind: str, scale: int) -> None:
    """The values of a bin may lie at its farther end; no value may lie beyond it."""
    from scipy import stats

    values = [scale * number for number in (-1.5, 0.25, 2, 3.75, 1, 1.25, 4)]
    if kind == "whole":
        values = [round(abs(value)) + 20 for value in values]
    estimate = mean_of(profile(pa.table({"score": values}), ["score"])["score"])
    assert estimate
    width = 0.01 if kind == "ratio" else max(values) / 8
    rows, mean = len(values), sum(values) / len(values)

    def margin(beyond: float) -> float:
        squares = sum((abs(value - mean) + beyond) ** 2 for value in values)
        return float(stats.t.ppf(1 - ALONE.tail, rows - 1)) * (squares / (rows - 1) / rows) ** 0.5

    assert margin(0) * 0.999 <= estimate.high - estimate.value <= margin(2 * width)
    assert margin(0) * 0.999 <= estimate.value - estimate.low <= margin(2 * width)


def test_the_change_of_a_share_has_an_end_on_both_sides() -> None:
    """A share is below 1, and what it was before is known to be above 0."""
    grown = change(share(80, 100), share(40, 100))
    assert grown is not None
    assert grown.value == 1.0
    assert 0 < grown.low < 1 < grown.high < 3
    nothing_sure = change(share(80, 100), share(1, 5))
    assert nothing_sure is not None
    assert nothing_sure.high < inf
    unknown = change(share(80, 100), fraction_mean(0.2, 3))
    assert unknown is not None
    assert unknown.high == inf


def test_what_was_nothing_before_or_is_unknown_has_no_change() -> None:
    assert change(exact(3), exact(0)) is None
    assert change(None, exact(3)) is None
    assert change(exact(3), None) is None


@pytest.mark.parametrize("precision", [ALONE, COMPARED])
def test_every_kind_of_estimate_is_exact_from_the_same_number_of_rows_on(precision: Precision) -> None:
    def of(rows: int) -> list[Estimate | None]:
        column = {"kind": "ratio", "count": rows, "bins": {"20": 1, "70": rows - 1}}
        whole = {"kind": "whole", "count": rows, "sum": 3 * rows, "bins": {"2": 1, "3": rows - 1}}
        return [
            share(rows // 2, rows, precision),
            count(rows, precision),
            quantile_of(column, 0.5, precision),
            mean_of(column, precision),
            total(whole, precision),
            fraction_mean(0.5, rows, precision),
            difference(0.5, (rows, rows + 1), precision),
            distance(0.5, 4, (rows + 1, rows), precision),
        ]

    for rows, is_exact in ((precision.large - 1, False), (precision.large, True)):
        found = [estimate for estimate in of(rows) if estimate is not None]
        assert [(at, estimate.exact) for at, estimate in enumerate(found)] == [(at, is_exact) for at in range(8)]


def test_the_largest_share_is_as_unsure_as_all_that_could_have_been_it() -> None:
    alone, largest = share(10, 40), largest_share([10, 5, 0], 40)
    assert alone is not None
    assert largest is not None
    assert largest.value == alone.value
    assert largest.low < alone.low < alone.high < largest.high
    assert largest == share(10, 40, ALONE.narrowed(4))
    none = largest_share([], 40)
    assert none == share(0, 40)


def test_a_difference_of_distributions_stays_between_none_and_all() -> None:
    near, far = difference(0.1, (20, 30)), difference(0.95, (20, 30))
    assert (near.low, far.high) == (0.0, 1.0)
    margin = sum(limits.distribution_margin(rows, COMPARED.tail) for rows in (20, 30))
    assert isclose(near.high, 0.1 + margin)
    assert isclose(far.low, 0.95 - margin)


@pytest.mark.parametrize(("rows", "at"), [(7, 0.5), (20, 0.5), (45, 0.05), (45, 0.95), (300, 0.95)])
def test_a_quantile_lies_between_the_values_of_its_ranks(rows: int, at: float) -> None:
    """Whole numbers below 16 have bins of their own, so that a bin is a value."""
    values = sorted(15 * row // rows for row in range(rows))
    estimate = quantile_of(profile(pa.table({"chars": values}), ["chars"])["chars"], at)
    low, high = limits.rank_limits(rows, at, ALONE.tail)
    assert estimate
    assert estimate.low == (values[low - 1] if low else -inf)
    assert estimate.high == (values[high - 1] if high <= rows else inf)


def test_a_quantile_has_an_end_where_its_last_rank_is_that_of_the_largest_value() -> None:
    rows = next(rows for rows in range(2, 1_000) if limits.rank_limits(rows, 0.5, ALONE.tail)[1] == rows)
    estimate = quantile_of(profile(pa.table({"chars": [7] * rows}), ["chars"])["chars"], 0.5)
    assert estimate
    assert estimate.high == 7


def test_a_mean_of_ratios_is_known_to_half_a_bin_and_one_of_whole_numbers_exactly() -> None:
    ratio = mean_of(profile(pa.table({"score": [3.004] * 7}), ["score"])["score"])
    whole = mean_of(profile(pa.table({"chars": [301] * 7}), ["chars"])["chars"])
    assert ratio is not None
    assert whole is not None
    assert (whole.value, whole.least, whole.most) == (301, 301, 301)
    assert (ratio.value, ratio.least, ratio.most) == (pytest.approx(3.005), pytest.approx(3.0), pytest.approx(3.01))
    assert ratio.high - ratio.value == pytest.approx(limits.mean_margin(7 * 0.005**2 / 6, 7, ALONE.tail))


def test_a_sum_is_as_unsure_as_its_rows_and_their_mean_together() -> None:
    column = profile(pa.table({"n_tokens": [3, 5, 9, 11]}), ["n_tokens"])["n_tokens"]
    found, half = total(column), COMPARED.narrowed(2)
    rows, mean = count(4, half), mean_of(column, half)
    assert found is not None
    assert mean is not None
    assert (found.value, found.low, found.high) == (28, max(rows.low * mean.low, 0), rows.high * mean.high)


def test_a_distance_is_less_what_chance_gives_and_unsure_by_its_root() -> None:
    found, floor = distance(0.5, 5, (100, 200)), limits.distance_floor(5, 100, 200, COMPARED.tail)
    assert found.value == pytest.approx(0.5 - 4 * (1 / 100 + 1 / 200))
    assert found.low == pytest.approx((0.5**0.5 - floor**0.5) ** 2)
    assert found.high == pytest.approx((0.5**0.5 + floor**0.5) ** 2)
    assert distance(0.01, 5, (100, 200)).value == distance(0.01, 5, (100, 200)).low == 0


def test_bounds_of_one_severity_are_no_limits_of_another() -> None:
    facts = {"retention": exact(0.5)}
    changed = apply_bounds([], {"retention": {"critical": {"min_value": 0.2}, "warning": {"min_value": 0.4}}}, facts)
    assert sorted((bound["severity"], sorted(bound["kwargs"].items())) for bound in changed) == [
        ("critical", [("column", "retention"), ("min_value", 0.2)]),
        ("warning", [("column", "retention"), ("min_value", 0.4)]),
    ]


def expectation(learned: dict[str, object], **limits: float) -> dict[str, object]:
    kwargs = {"column": "retention", **limits}
    meaning = {"notes": "", "remedy": "", "needs": {}, "origin": "a suite"}
    return {"type": "t", "kwargs": kwargs, "severity": "warning", "learned": learned, **meaning}


def test_limits_without_a_severity_replace_those_of_a_suite_and_are_critical_where_it_has_none() -> None:
    facts, change = {"retention": exact(0.5)}, {"retention": {"min_value": 0.4}}
    learned, limited = expectation({"from": "trailing", "floor": 0.9}), expectation({}, min_value=0.2)

    def limits(*suite: dict[str, object]) -> list[tuple[str, float | None]]:
        return [(one["severity"], one["kwargs"].get("min_value")) for one in apply_bounds(suite, change, facts)]

    assert limits(limited) == [("warning", 0.4)]
    assert limits(learned) == [("warning", None), ("critical", 0.4)]
    assert limits(limited, learned) == [("warning", 0.4), ("warning", None)]
    assert limits() == [("critical", 0.4)]


def test_a_bound_of_a_severity_that_the_suite_does_not_have_is_one_of_its_own() -> None:
    """A recipe's critical bound was dropped without a word where the suite only warns: 37 of 107 facts of stages."""
    missed = []
    for gate in sorted({path.stem for path in EXPECTATIONS.glob("*.json")} - {EVERY}):
        suites = suites_of(gate)
        for fact in sorted({bound["kwargs"]["column"] for bound in suites if not bound["learned"]}):
            for severity in ("critical", "warning"):
                changed = apply_bounds(suites, {fact: {severity: {"min_value": 0.125}}}, {fact: exact(0.5)})
                own = [bound for bound in changed if bound["kwargs"].get("min_value") == 0.125]
                if {(bound["kwargs"]["column"], bound["severity"]) for bound in own} != {(fact, severity)}:
                    missed.append((gate, fact, severity))
    assert missed == []


def test_a_limit_without_a_severity_replaces_and_adds_none() -> None:
    suites = [bound for bound in suites_of("extract") if not bound["learned"]]
    fact, severity = suites[0]["kwargs"]["column"], suites[0]["severity"]
    changed = apply_bounds(suites, {fact: {"min_value": 0.125}}, {fact: exact(0.5)})
    assert len(changed) == len(suites)
    assert severity in {bound["severity"] for bound in changed if bound["kwargs"].get("min_value") == 0.125}
