"""Gates bound the distributions of `filter_quality`'s signals, learned ones and a recipe's, and say what rows tell."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.gate.facts.signals import stored_quantile
from pipeline_tasks.gate.suites import ENOUGH
from pipeline_tasks.manifest import Manifest
from tests.gate.samples import healthy, judged, stored, with_signals

WORDS = "gopher_quality.words"


def facts_of(tmp_path: Path, manifest: Manifest) -> dict[str, Any]:
    return dict(compute_facts(str(tmp_path), manifest))


def test_quantiles_of_signals_are_facts_of_all_documents_and_medians_of_languages(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, healthy("filter_quality"))
    assert [facts[f"signal_{at}.{WORDS}"].value for at in ("p05", "p50", "p95")] == [573.44, 4915.2, 9175.04]
    assert facts[f"language_signal_p50.{WORDS}.de"].value == 4915.2
    ratio = facts["signal_p50.gopher_quality.alpha_word_ratio"]
    assert (ratio.value, ratio.bin) == (0.89, (0.89, 0.9))
    assert facts["signal_p50.fineweb.short_line_ratio"] is None


def test_a_median_that_moved_by_half_refuses_and_by_a_quarter_warns(tmp_path: Path) -> None:
    good = healthy("filter_quality")
    trailing = [stored(tmp_path, good)] * ENOUGH
    for scale, outcome in ((1.0, "pass"), (1.3, "warn"), (1.7, "refuse"), (0.3, "refuse")):
        verdict = judged(tmp_path, with_signals(good, scale), trailing_paths=trailing)
        assert verdict.outcome == outcome, scale
        assert {failure.column for failure in verdict.failures} == ({f"signal_p50.{WORDS}"} if scale != 1.0 else set())


@pytest.mark.parametrize(
    ("fact", "limits", "outcome"),
    [
        (f"signal_p05.{WORDS}", {"min_value": 600}, "pass"),  # within the bin of the value
        (f"signal_p05.{WORDS}", {"min_value": 800}, "refuse"),
        (f"signal_p95.{WORDS}", {"max_value": 5000}, "refuse"),
        (f"language_signal_p50.{WORDS}.de", {"max_value": 1000}, "refuse"),
        (f"language_signal_p50.{WORDS}.th", {"max_value": 1}, "pass"),  # no document is Thai
    ],
)
def test_a_recipe_bounds_a_signal(fact: str, limits: dict[str, float], outcome: str, tmp_path: Path) -> None:
    assert judged(tmp_path, healthy("filter_quality"), bounds={fact: limits}).outcome == outcome


def test_a_signal_that_no_profile_has_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"signal_p50\.gopher_quality\.words"):
        judged(tmp_path, healthy("filter_quality"), bounds={"signal_p50.gopher_quality.wrods": {"min_value": 1}})


def test_few_rows_leave_a_median_open_and_many_do_not() -> None:
    few, many = (stored_quantile([rows, rows, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 0.5) for rows in (12, 5000))
    assert (few.low < 0.3, few.high > 0.5) == (True, True)
    assert (many.low, many.value, many.high) == (0.4, 0.4, 0.4)
    one = stored_quantile([1, 1, *[0.5] * 9], 0.5)
    assert (one.low, one.high) == (float("-inf"), float("inf"))


def test_manifests_without_signals_are_judged(tmp_path: Path) -> None:
    """Those of earlier versions of Refinery have none."""
    good = healthy("filter_quality")
    old = replace(good, metrics={rows: good.metrics[rows] for rows in ("kept", "rejects")})
    verdict = judged(tmp_path, good, trailing_paths=[stored(tmp_path, old)] * ENOUGH)
    assert verdict.outcome == "pass"
    assert "trailing signal_p50.*: nothing to compute it from" in verdict.skipped
    assert judged(tmp_path, old, trailing_paths=[stored(tmp_path, good)] * ENOUGH).outcome == "pass"
