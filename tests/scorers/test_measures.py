"""Areas, ranks, sources and calibrations are those of their definitions, on columns small enough to count by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_models.measures import (
    LEAST_CALIBRATED,
    area,
    by_source,
    calibrated,
    joined,
    joined_correlation,
    rank_correlation,
    share,
    source_area,
    variance_between,
)

from pipeline_tasks.scorers.calibration import values_at

Values = st.lists(st.integers(0, 6), min_size=2, max_size=20)


def column(values: list[int] | list[float]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(values, np.float64)


@given(Values, Values)
def test_an_area_is_the_share_of_pairs(higher: list[int], lower: list[int]) -> None:
    found = area(column(higher), column(lower))
    assert found is not None
    pairs = [(one > other) + (one == other) / 2 for one in higher for other in lower]
    assert found.value == pytest.approx(sum(pairs) / len(pairs))
    measure = joined([found])
    assert measure is not None
    assert 0 <= measure.low <= measure.value <= measure.high <= 1
    assert measure.size == len(pairs)


def test_the_variance_of_an_area_is_that_of_placements() -> None:
    """By hand: placements of 1, 3 among 0, 2 are 1/2, 1; of 0, 2 among 1, 3 they are 1, 1/2 (DeLong's V10 and V01)."""
    found = area(column([1, 3]), column([0, 2]))
    assert found is not None
    assert found.value == 0.75
    assert found.variance == pytest.approx(0.125 / 2 + 0.125 / 2)


def test_an_area_of_1_has_an_interval_that_more_documents_narrow() -> None:
    few, many = (joined([area(column([9] * count), column([1] * count))]) for count in (5, 500))
    assert few is not None
    assert many is not None
    assert few.low < 0.6
    assert 0.98 < many.low < 1.0 == many.high == few.high
    assert joined([area(column([]), column([1]))]) is None


def test_groups_count_by_their_documents() -> None:
    whole = joined([area(column([2] * 30), column([1] * 30)), area(column([1] * 10), column([2] * 10))])
    assert whole is not None
    assert whole.value == pytest.approx(0.75)


def test_ranks_agree_whatever_the_numbers_are() -> None:
    scores = column(list(range(20)))
    assert rank_correlation(scores, np.exp(scores)) == pytest.approx(1.0)
    assert rank_correlation(scores, -scores) == pytest.approx(-1.0)
    assert rank_correlation(column([1, 1, 2, 2] * 5), column([1, 2, 1, 2] * 5)) == pytest.approx(0.0)
    assert rank_correlation(scores, np.ones(20)) is None
    assert rank_correlation(scores[:9], scores[:9]) is None


def test_correlations_of_groups_are_joined() -> None:
    measure = joined_correlation([(0.5, 103), (0.5, 103)])
    assert measure is not None
    assert measure.value == pytest.approx(0.5)
    assert measure.low == pytest.approx(np.tanh(np.arctanh(0.5) - 2.326 * np.sqrt(1.06 / 200)))
    assert joined_correlation([]) is None


def sources_of(count: int) -> tuple[list[str], list[str], np.ndarray]:  # type: ignore[type-arg]
    """Return groups, sources and halves of ten sources of as many documents."""
    names = [f"site{at % 10}" for at in range(10 * count)]
    halves = np.array([at // 10 % 2 == 0 for at in range(10 * count)])
    return ["/en"] * (10 * count), names, halves


def test_a_scorer_that_sorts_by_source_is_predicted_by_it() -> None:
    groups, sources, halves = sources_of(40)
    own = column([int(name[4:]) for name in sources]) + np.arange(400) % 7 / 100
    found = source_area(own, groups, sources, halves)
    assert found is not None
    assert found.low > 0.95
    assert variance_between(own, groups, sources) == pytest.approx(1.0, abs=0.01)


def test_a_scorer_that_knows_no_source_is_not_predicted_by_it() -> None:
    groups, sources, halves = sources_of(40)
    noise = column([(at * 2654435761 % 2**32) / 2**32 for at in range(1, 401)])
    found = source_area(noise, groups, sources, halves)
    assert found is not None
    assert found.low < 0.5 < found.high
    between = variance_between(noise, groups, sources)
    assert between is not None
    assert between < 0.05


def test_a_source_predicts_no_document_by_itself() -> None:
    """A site of a few documents would have told each of them: its own score was in the mean."""
    groups, sources, halves = sources_of(8)
    noise = column([(at * 2654435761 % 2**32) / 2**32 for at in range(1, 81)])
    found = source_area(noise, groups, sources, halves)
    assert found is not None
    assert found.low < 0.5 < found.high
    assert source_area(noise, groups, ["a"] * 80, halves) is None
    assert source_area(noise, groups, [""] * 80, halves) is None


def test_sources_of_few_documents_have_no_spread_of_their_own() -> None:
    found = by_source(column([1] * 8 + [2, 3] * 3), ["/en"] * 14, ["flat"] * 8 + ["few"] * 6)
    assert [(source.name, source.deviation, source.distinct) for source in found] == [("flat", 0.0, 1)]


def test_a_share_of_nothing_is_none() -> None:
    assert share(0, 0) is None
    half = share(50, 100)
    assert half is not None
    assert half.low == pytest.approx(1 - half.high)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1)), min_size=LEAST_CALIBRATED, max_size=90))
def test_a_calibration_ascends_and_keeps_the_mean(pairs: list[tuple[int, int]]) -> None:
    scores, labels = (column([pair[at] for pair in pairs]) for at in (0, 1))
    steps = calibrated(scores, labels)
    assert steps is not None
    assert list(steps.values) == sorted(set(steps.values))
    fitted = values_at(steps, scores)
    assert fitted.mean() == pytest.approx(labels.mean(), abs=1e-5)
    lines = [np.clip(slope * scores + start, 0, 1) for slope in (0, 0.05, 0.1) for start in (0.0, 0.25, 0.5)]
    assert ((fitted - labels) ** 2).sum() <= min(((line - labels) ** 2).sum() for line in lines) + 1e-4


def test_few_labels_are_not_calibrated() -> None:
    assert calibrated(column([1] * 49), column([1] * 49)) is None
