"""Gates judge quantiles and means by the bins that they are read from: a bound within a bin is met."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_tasks.gate.verdicts import Verdict
from pipeline_tasks.manifest import Manifest
from tests.gate.samples import healthy, judged, numbers, profiled

Bound = dict[str, dict[str, float]]


def failures(verdict: Verdict) -> set[tuple[str, str]]:
    return {(failure.column, failure.severity) for failure in verdict.failures}


@pytest.mark.parametrize("rows", [1, 30, 999, 2_000])
def test_texts_above_a_bound_are_not_refused_for_their_bins_start(rows: int, tmp_path: Path) -> None:
    """102 characters are in the bin from 96 to 103; the suite's bound is 100."""
    verdict = judged(tmp_path, profiled(healthy("extract"), chars=[102] * rows))
    assert verdict.outcome == "pass"
    assert verdict.undecided == ()


@pytest.mark.parametrize("rows", [30, 2_000])
def test_texts_below_the_bounds_bin_are_refused(rows: int, tmp_path: Path) -> None:
    verdict = judged(tmp_path, profiled(healthy("extract"), chars=[95] * rows))
    assert ("chars_p50", "critical") in failures(verdict)


def of_chars(value: float) -> Manifest:
    return profiled(healthy("extract"), chars=[int(value)] * 2_000)


def of_score(value: float) -> Manifest:
    good = healthy("score_quality")
    return replace(good, metrics={**good.metrics, "kept": {**good.metrics["kept"], **numbers(score=[value] * 2_000)}})


@pytest.mark.parametrize(
    ("sample", "fact", "inside", "outside"),
    [
        (of_chars, "chars_p95", {"max_value": 100, "min_value": 100}, {"max_value": 95}),
        (of_chars, "chars_p05", {"min_value": 103}, {"min_value": 104}),
        (of_score, "score_p50", {"min_value": 1.024}, {"min_value": 1.04}),
        (of_score, "score_mean", {"min_value": 1.023}, {"min_value": 1.04}),
    ],
)
def test_a_recipes_bound_is_judged_by_the_bin(
    sample: Callable[[float], Manifest], fact: str, inside: dict[str, float], outside: dict[str, float], tmp_path: Path
) -> None:
    manifest = sample(102 if sample is of_chars else 1.0242)
    met = judged(tmp_path, manifest, bounds={fact: {"critical": inside}})
    assert (fact, "critical") not in failures(met)
    assert fact not in {failure.column for failure in met.undecided}
    broken = judged(tmp_path, manifest, bounds={fact: {"critical": outside}})
    assert (fact, "critical") in failures(broken)


def languages(kept: dict[str, int], rejected: dict[str, int], stage: str = "filter_quality") -> Manifest:
    """Return a manifest with so many kept and rejected documents of each language."""
    profiles = {
        part: numbers(language=[code for code, rows in counts.items() for _ in range(rows)])
        for part, counts in (("kept", kept), ("rejects", rejected))
    }
    good = healthy(stage)
    merged = {part: {**good.metrics.get(part, {}), **profile} for part, profile in profiles.items()}
    return replace(good, metrics=merged)


@pytest.mark.parametrize("left", [0, 1, 5])
def test_a_language_that_is_wholly_gone_warns_as_one_that_is_nearly_gone(left: int, tmp_path: Path) -> None:
    verdict = judged(tmp_path, languages({"en": 5_000, "th": left}, {"en": 5_000, "th": 1_000 - left}))
    assert ("language_retention_min", "warning") in failures(verdict)
    assert verdict.facts["language_retention.th"] == left / 1_000


def test_the_surest_loss_decides_and_not_the_smallest_share(tmp_path: Path) -> None:
    """Two of 100 leave 8 % possible; 400 of 10,000 are 4 %, whatever the other is."""
    verdict = judged(tmp_path, languages({"en": 5_000, "th": 2, "lo": 400}, {"en": 5_000, "th": 98, "lo": 9_600}))
    assert ("language_retention_min", "warning") in failures(verdict)
    few = judged(tmp_path, languages({"en": 5_000, "th": 2, "lo": 600}, {"en": 5_000, "th": 98, "lo": 9_400}))
    assert ("language_retention_min", "warning") not in failures(few)
    assert "language_retention_min" in {failure.column for failure in few.undecided}


def test_a_language_that_was_not_to_be_kept_is_not_missed(tmp_path: Path) -> None:
    manifest = languages({"en": 5_000}, {"fr": 5_000, "de": 600}, "filter_language")
    verdict = judged(tmp_path, replace(manifest, params={"keep": ["en", "deu_Latn"]}))
    assert verdict.facts["language_retention.de"] == verdict.facts["language_retention_min"] == 0
    assert "language_retention.fr" not in verdict.facts


@pytest.mark.parametrize("rows", [1, 12, 999])
def test_few_documents_that_are_all_kept_are_no_warning(rows: int, tmp_path: Path) -> None:
    good = healthy("filter_quality", rows)
    all_kept = replace(good, shards=(replace(good.shards[0], rows=rows),), rejects=(), rejected={})
    verdict = judged(tmp_path, all_kept)
    assert (verdict.outcome, verdict.undecided) == ("pass", ())


def test_a_recipes_limits_replace_a_bound_that_two_expectations_share_once(tmp_path: Path) -> None:
    manifest = replace(healthy("filter_quality"), rejected={"filter_quality:none": 8_000})
    bounds = {"retention": {"critical": {"min_value": 0.9, "max_value": 0.95}}}
    verdict = judged(tmp_path, manifest, bounds=bounds)
    critical = [failure.bound for failure in verdict.failures if failure.severity == "critical"]
    assert critical == [{"min_value": 0.9}]
