"""Gates judge few rows: each refuses a planted bad sample of 30 and of 99 rows, and passes a good one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline_tasks.gate.facts.comparison import psi
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import EVERY
from tests.gate.samples import SUITES, healthy, judged, kept, merged_into_one, profiled
from tests.refining import made_up_shard

FEW, MORE = 30, 99


def cut_records(good: Manifest) -> Manifest:
    """Return a manifest of which a quarter is damaged."""
    lost = good.rows_in // 3
    damaged = replace(good, rows_in=good.rows_in + lost, quarantined={"error:truncated": lost})
    return replace(damaged, quarantine=(made_up_shard("quarantine", lost, 9),))


def none_kept(good: Manifest) -> Manifest:
    return kept(good, 0.0)


def half_kept(good: Manifest) -> Manifest:
    return kept(good, 0.5)


def badly_served(good: Manifest) -> Manifest:
    return kept(good, 0.1, "ingest:status")


def mostly_closed(good: Manifest) -> Manifest:
    return kept(good, 0.1, "check_rights:robots_txt")


def tenth_kept(good: Manifest) -> Manifest:
    return kept(good, 0.1)


def untyped(good: Manifest) -> Manifest:
    return profiled(good, document_type=["unknown"] * good.rows)


def unread(good: Manifest) -> Manifest:
    return profiled(good, images_read=[0.0] * good.rows)


def unwritten(good: Manifest) -> Manifest:
    return profiled(good, generated_failed=[1.0] * good.rows)


def without_topics(good: Manifest) -> Manifest:
    return profiled(good, topic=["unknown"] * good.rows)


def half_empty(good: Manifest) -> Manifest:
    few = replace(good, shards=(made_up_shard("data", good.rows_in, 10**9),))
    return profiled(few, n_tokens=[125] * good.rows_in)


BAD: dict[str, Callable[[Manifest], Manifest]] = {
    EVERY: cut_records,
    "ingest": badly_served,
    "extract": none_kept,
    "check_rights": mostly_closed,
    "read_images": unread,
    "filter_url": tenth_kept,
    "filter_language": none_kept,
    "filter_quality": none_kept,
    "dedup_url": merged_into_one,
    "dedup_exact": merged_into_one,
    "dedup_minhash": merged_into_one,
    "cut_templates": tenth_kept,
    "dedup_paragraphs": tenth_kept,
    "dedup_substrings": tenth_kept,
    "score_quality": none_kept,
    "filter_toxicity": tenth_kept,
    "scrub_pii": half_kept,
    "decontaminate": half_kept,
    "rephrase": unwritten,
    "filter_generated": none_kept,
    "scrub_generated": half_kept,
    "decontaminate_generated": half_kept,
    "enrich": untyped,
    "embed": half_kept,
    "dedup_semantic": merged_into_one,
    "topics": without_topics,
    "tokenize": half_kept,
    "select": none_kept,
    "mix": none_kept,
    "shuffle": half_kept,
    "takedown": none_kept,
    "pack": half_empty,
}


@pytest.mark.parametrize("suite", SUITES)
def test_few_rows_are_judged(suite: str, tmp_path: Path) -> None:
    for rows in (FEW, MORE):
        good = healthy("filter_url" if suite == EVERY else suite, rows)
        assert judged(tmp_path, good).outcome == "pass"
        verdict = judged(tmp_path, BAD[suite](good))
        assert verdict.outcome == "refuse", rows


def test_a_language_that_is_nearly_gone_is_refused_from_ninety_rows_on(tmp_path: Path) -> None:
    """None of 99 rows is evidence against a share of 5 %; one of 40 is none, and is called undecided."""
    few = judged(tmp_path, kept(healthy("filter_language", 40), 0.025))
    assert few.outcome == "warn"
    critical = next(failure for failure in few.undecided if failure.severity == "critical")
    assert (critical.column, critical.observed, critical.rows) == ("retention", 0.025, 40)
    assert (critical.low, critical.high) == (0.000251, 0.154733)
    assert few.intervals["retention"] == (critical.low, critical.high, 40)
    refused = judged(tmp_path, kept(healthy("filter_language", MORE), 0.0))
    assert ("retention", "critical") in {(failure.column, failure.severity) for failure in refused.failures}


@pytest.mark.parametrize("rows", [12, MORE])
def test_random_letters_are_refused_whatever_language_they_are_taken_for(rows: int, tmp_path: Path) -> None:
    """A tenth is kept; the model calls the rest by many names, at a tenth of certainty."""
    good = kept(healthy("filter_language", rows), 0.1)
    scores = {"kept": [0.95] * (rows // 10), "rejects": [0.1] * (rows - rows // 10)}
    metrics = {part: profiled(good, language_score=values).metrics["kept"] for part, values in scores.items()}
    verdict = judged(tmp_path, replace(good, metrics=metrics))
    assert ("language_score_read_p50", "critical") in {
        (failure.column, failure.severity) for failure in verdict.failures
    }
    assert verdict.outcome == "refuse"


def test_a_good_value_of_few_rows_passes(tmp_path: Path) -> None:
    """One page of one is within every bound of a retention; that it proves little is in the interval."""
    verdict = judged(tmp_path, healthy("filter_url", 1))
    assert (verdict.outcome, verdict.undecided) == ("pass", ())
    assert verdict.intervals["retention"] == (0.01, 1, 1)


def test_a_large_crawl_that_nearly_all_is_missing_of_is_refused(tmp_path: Path) -> None:
    """The fewer pages are left, the surer is the loss; before, 500 pages were too few to compare with a million."""
    verdict = judged(tmp_path, healthy("ingest", 500), healthy("ingest", 1_000_000))
    assert ("rows_in_change", "critical") in {(failure.column, failure.severity) for failure in verdict.failures}
    assert verdict.outcome == "refuse"


def test_small_snapshots_may_differ_by_chance(tmp_path: Path) -> None:
    verdict = judged(tmp_path, healthy("filter_language", 40), kept(healthy("filter_language", 40), 0.8))
    assert verdict.outcome == "warn"
    assert "retention_change" in {failure.column for failure in verdict.undecided}
    assert "retention_change" not in {failure.column for failure in verdict.failures}


def test_another_language_is_seen_in_thirty_rows(tmp_path: Path) -> None:
    good = healthy("filter_language", FEW)
    english, french = (profiled(good, language=[code] * 15, language_score=[0.9] * 15) for code in ("en", "fr"))
    verdict = judged(tmp_path, french, english)
    assert ("language_psi", "critical") in {(failure.column, failure.severity) for failure in verdict.failures}


def test_the_page_shows_what_was_judged(tmp_path: Path) -> None:
    verdict = judged(tmp_path, kept(healthy("filter_language", 40), 0.025))
    page = (tmp_path / verdict.docs).read_text()
    assert "retention, at most" in page
    assert "undecided, as 40 rows are too few: retention 0.025 (at least" in page


@pytest.mark.parametrize(("names", "rows"), [(20, 500), (200, 3_000), (1_000, 20_000)])
def test_samples_of_one_population_have_the_same_names(names: int, rows: int) -> None:
    """Not one of a hundred pairs is at the bound of a warning, however many names there are to differ."""
    draws = np.random.default_rng(8)
    population = draws.dirichlet(np.ones(names))
    keys = list(map(str, range(names)))

    def sample() -> dict[str, object]:
        counts = map(int, draws.multinomial(rows, population))
        return {
            "kind": "name",
            "count": rows,
            "bins": {key: rows for key, rows in zip(keys, counts, strict=True) if rows},
        }

    estimates = [psi(sample(), sample()) for _ in range(100)]
    assert not [estimate for estimate in estimates if estimate is None or estimate.value > 0.1]
