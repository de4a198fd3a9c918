"""Gates that learn: bounds from trailing snapshots, planted faults with the message sent, and no false alarms."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.checks import bounded, suites_of
from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.gate.facts.amounts import amounts_of, earlier_amounts
from pipeline_tasks.gate.facts.sites import measure_coverages, measure_sites
from pipeline_tasks.gate.facts.subject import Subject
from pipeline_tasks.gate.learning import learn
from pipeline_tasks.gate.suites import ENOUGH, Expectation, load_suite
from pipeline_tasks.gate.verdicts import judge, read_verdict
from pipeline_tasks.inspect.report.judged_bounds import bounded_facts
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.removals import notable
from pipeline_tasks.profiles.sums import MOMENTS, SITE_COVERAGES
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import EVERY
from tests.chain import reply
from tests.examples import few_examples
from tests.gate.drifts import (
    USUAL,
    crawl_day,
    language_days,
    quality_days,
    scored_day,
    scored_languages,
    site_days,
)
from tests.gate.samples import SUITES, healthy, judged, kept, numbers, profiled, scored, stored, with_signals
from tests.refining import commit_parent, refined

LEARNED = [
    (suite, expectation["learned"]["from"], expectation["kwargs"]["column"])
    for suite in SUITES
    for expectation in load_suite(suite)
    if expectation["learned"]
]
"""Suite, source and fact of every learned bound."""


def drifted(good: Manifest, fact: str) -> Manifest:
    """Return a manifest of which one fact is far from that of the healthy one."""
    if fact == "rows_in":
        return healthy(good.stage, good.rows_in * 2)
    if fact in ("retention", "page_retention"):
        return kept(good, 0.8 * good.rows / good.rows_in, f"{good.stage}:other")
    if fact == "reason_share.*":
        return replace(kept(good, 0.9), rejected={f"{good.stage}:other": round(good.rows_in * 0.1)})
    if fact.endswith(".*"):
        return drifted_language(good, fact)
    name = fact.removesuffix("_mean")
    return profiled(good, **{name: [0.55] * 10_000 if name in ("score", "coverage") else [2] * 10_000})


def drifted_language(good: Manifest, fact: str) -> Manifest:
    """Return a manifest of which one fact of a language, or of a signal, is far from that of the healthy one."""
    if fact == "signal_p50.*":
        return with_signals(good, scale=1.6)
    if fact == "score_mean.*":
        return scored(good, {"en": 0.55, "de": 0.65})
    if fact == "topic_share.*":
        return profiled(good, topic=["t0001"] * 7000 + ["t0002", "t0003", "unknown"] * 1000)
    if fact == "document_type_share.*":
        return profiled(good, document_type=["article", "documentation", "unknown"] * 2500 + ["forum"] * 2500)
    if fact == "language_share.*":
        return profiled(good, language=["en"] * 10_000)
    return replace(good, metrics={"kept": good.metrics["kept"], "rejects": numbers(language=["de"] * 600)})


@pytest.mark.parametrize(("suite", "source", "fact"), LEARNED)
def test_every_learned_bound_is_broken_by_a_drifted_sample(suite: str, source: str, fact: str, tmp_path: Path) -> None:
    good = healthy("filter_url" if suite == EVERY else suite)
    trailing = [stored(tmp_path, good)] * ENOUGH
    verdict = judged(tmp_path, drifted(good, fact), trailing_paths=trailing)
    broken = {(failure.column.partition(".")[0], failure.snapshots) for failure in verdict.failures}
    assert (fact.partition(".")[0], 1 if source == "previous" else ENOUGH) in broken
    healthy_again = judged(tmp_path, good, trailing_paths=trailing)
    assert healthy_again.outcome == "pass"
    assert {bound.snapshots for bound in healthy_again.learned} >= {1 if source == "previous" else ENOUGH}


@pytest.mark.parametrize(
    ("bounds", "refusing"),
    [
        ({}, set()),
        ({"topic_share.*": {"trailing": {"severity": "critical"}}}, {"topic_share.t0001", "topic_share.t0009"}),
        ({"topic_share.t0009": {"trailing": {"severity": "critical"}}}, {"topic_share.t0009"}),
        ({"topic_psi": {"critical": {"max_value": 0.25}}}, {"topic_psi"}),
    ],
)
def test_topics_that_drift_warn_and_block_by_choice(
    bounds: Mapping[str, Any], refusing: set[str], tmp_path: Path
) -> None:
    """One topic vanished, and another one has all that it lost; the third moved no farther than chance."""
    usual = profiled(healthy("topics"), topic=["t0009", "t0002", "t0003", "unknown"] * 2500)
    now = profiled(usual, topic=["t0001"] * 2500 + ["t0002", "t0003", "unknown"] * 2500)
    paths = [stored(tmp_path, usual)] * ENOUGH
    verdict = judged(tmp_path, now, usual, trailing_paths=paths, bounds=bounds)
    assert verdict.outcome == ("refuse" if bounds else "warn")
    broken = {failure.column for failure in verdict.failures}
    assert broken >= {"topic_share.t0001", "topic_share.t0009", "topic_psi"}
    assert not broken & {"topic_share.t0002", "topic_share.t0003", "topic_share.unknown"}
    assert {failure.column for failure in verdict.failures if failure.severity == "critical"} == refusing


# --- Planted faults, by real stages -------------------------------------------------------------------------------


def sent(root: Path, days: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return the reply of the gate of the last day, whose lines Airflow sends."""
    return dict(reply("judge", root=str(root), manifest=days[-1], previous=days[-2], trailing=days[:-1], **more))


def message(answer: Mapping[str, Any], fact: str) -> str:
    """Return the lines on one broken bound as one."""
    lines: list[str] = answer["lines"]
    first = next(at for at, line in enumerate(lines) if line.startswith(f"warning: {fact} "))
    rest = itertools.takewhile(lambda line: line.startswith(" "), lines[first + 1 :])
    return " ".join(" ".join([lines[first], *rest]).split())


def test_a_drift_of_mean_quality_is_caught_by_score_quality(tmp_path: Path) -> None:
    days, worse = quality_days(tmp_path)
    assert sent(tmp_path, days)["outcome"] == "pass"
    answer = sent(tmp_path, [*days, worse])
    verdict = read_verdict(str(tmp_path), answer["verdict"])
    bound = next(bound for bound in verdict.learned if bound.fact == "score_mean")
    assert round(bound.value / bound.median - 1, 2) == -0.06
    assert message(answer, "score_mean") == (
        f"warning: score_mean is {bound.value:.6g}, and must be at least {bound.min_value:.6g} and at most "
        f"{bound.max_value:.6g} learned from the last 4 published snapshots, whose median is {bound.median:.6g} "
        "bound of expectations/score_quality.json: The mean quality is more than 5 % from what is usual: the texts "
        "drift, or the model was exchanged. Read the worst kept texts; if the model is new, this ends after four "
        "snapshots."
    )


def test_a_language_that_gets_worse_while_another_gets_better_is_caught_by_score_quality(tmp_path: Path) -> None:
    """The mean of both moves by less than 5 %."""
    days = [scored_languages(tmp_path, seed, en=0.5, de=0.5) for seed in range(4)]
    assert sent(tmp_path, days)["outcome"] == "pass"
    answer = sent(tmp_path, [*days, scored_languages(tmp_path, 9, en=0.7, de=0.3)])
    verdict = read_verdict(str(tmp_path), answer["verdict"])
    means = {(failure.column, failure.snapshots) for failure in verdict.failures if "mean" in failure.column}
    assert means == {("score_mean.en", 1), ("score_mean.en", 4)}
    assert message(answer, "score_mean.en").endswith("if its model is new, this ends after four snapshots.")


def test_manifests_without_scores_by_language_are_read(tmp_path: Path) -> None:
    """Those of earlier versions of Refinery have the scores of all languages together."""
    good = healthy("score_quality")
    profiles = {name: column for name, column in good.metrics["kept"].items() if name not in MOMENTS}
    old = stored(tmp_path, replace(good, metrics={"kept": profiles, "rejects": {}}))
    verdict = judged(tmp_path, good, trailing_paths=[old] * ENOUGH)
    assert verdict.outcome == "pass"
    assert "trailing score_mean.*: nothing to compute it from" in verdict.skipped
    assert verdict.facts["score_mean.de"] == 0.65
    assert "score_mean.de" not in judge(str(tmp_path), old).facts


def test_a_slow_drift_that_no_two_days_show_is_caught(tmp_path: Path) -> None:
    """Each day is 1 to 2 % worse than the one before: the median of the trailing days tells, and the last one does not."""
    days = [scored_day(tmp_path, seed, 0.5) for seed in range(4)]
    days += [scored_day(tmp_path, 10, clutter) for clutter in (0.58, 0.64, 0.69, 0.73)]
    verdict = read_verdict(str(tmp_path), sent(tmp_path, days)["verdict"])
    change = verdict.facts["score_mean_change"]
    assert change is not None
    assert -0.03 < change < 0
    assert "score_mean" in {failure.column for failure in verdict.failures}


def test_a_language_that_vanishes_is_caught_by_filter_language(tmp_path: Path) -> None:
    days, vanished = language_days(tmp_path)
    answer = sent(tmp_path, [*days, vanished])
    assert message(answer, "language_share.fr").startswith(
        "warning: language_share.fr is 0, and must be at least 0.166667 and at most 0.5 learned from the last 3 published "
        "snapshots, whose median is 0.333333 bound of expectations/filter_language.json: A language has half as much "
        "again as usual, half of it, or vanished:"
    )
    verdict = read_verdict(str(tmp_path), answer["verdict"])
    assert verdict.facts["language_share.fr"] == 0


def test_a_site_that_floods_is_caught_by_dedup_exact(tmp_path: Path) -> None:
    days, flooded = site_days(tmp_path)
    assert sent(tmp_path, days)["outcome"] == "pass"
    answer = sent(tmp_path, [*days, flooded])
    rise = read_verdict(str(tmp_path), answer["verdict"]).facts["site_rise_max"]
    assert rise is not None
    assert 0.1 < rise < 300 / (sum(USUAL.values()) + 300)
    assert answer["outcome"] == "warn"
    assert message(answer, "site_rise_max") == (
        f"warning: site_rise_max is {rise:.6g}, and must be at most 0.05 bound of expectations/dedup_exact.json: "
        "A site floods the snapshot: it has 5 % more of all documents than usual. A crawler got stuck in it, its URLs "
        "have a session or a calendar, or it landed twice. `refinery look funnel` names the largest sites; block it by "
        "`filter_url`, or give it a budget in `mix`."
    )


def test_a_known_site_that_grows_and_a_site_below_the_largest_are_told_apart(tmp_path: Path) -> None:
    """A manifest names the sixteen largest sites; one that was not among them had at most what the last of them had."""

    def rise(*days: Mapping[str, int]) -> float | None:
        paths = [
            refined(tmp_path, "dedup_url", commit_parent(tmp_path, [crawl_day(number, **sites)]))[0]
            for number, sites in enumerate(days)
        ]
        return judge(str(tmp_path), paths[-1], trailing_paths=paths[:-1]).facts["site_rise_max"]

    even = {f"site{rank:02d}": 50 for rank in range(17)}
    others = {f"other{rank:02d}": 50 for rank in range(17)}
    assert rise(even, even, even, {**even, "site00": 40}) == 0
    assert rise(even, even, even, others) == 0
    grown = rise(USUAL, USUAL, USUAL, {**USUAL, "site00": 400})
    assert grown is not None
    assert grown > 0.2
    assert rise(USUAL, USUAL, {**USUAL, "site00": 400}) is None


# --- History and identity ---------------------------------------------------------------------------------------------


def test_without_enough_history_nothing_is_learned_and_the_verdict_says_so(tmp_path: Path) -> None:
    good = healthy("score_quality")
    drift = drifted(good, "score_mean")
    verdict = judged(tmp_path, drift, trailing_paths=[stored(tmp_path, good)] * (ENOUGH - 1))
    assert "trailing score_mean: not enough history, 2 of 3 snapshots" in verdict.skipped
    assert "score_mean" not in {failure.column for failure in verdict.failures}
    alone = judged(tmp_path, drift)
    assert "previous retention: no previous snapshot to compare with" in alone.skipped
    assert alone.outcome == "pass"


def test_the_verdict_depends_on_its_baseline_and_stores_it(tmp_path: Path) -> None:
    good, other = healthy("score_quality"), profiled(healthy("score_quality"), score=[0.64, 0.66] * 60)
    path, usual, moved = stored(tmp_path, good), stored(tmp_path, good), stored(tmp_path, other)
    first = judge(str(tmp_path), path, trailing_paths=[usual] * 3)
    again = judge(str(tmp_path), path, trailing_paths=[usual] * 3)
    later = judge(str(tmp_path), path, trailing_paths=[usual, usual, usual, moved])
    assert first == again == read_verdict(str(tmp_path), first.path)
    assert later.path != first.path
    assert first.trailing == (usual,) * 3
    assert {(bound.fact, bound.snapshots) for bound in first.learned} == {
        ("retention", 1),
        ("retention", 3),
        ("score_mean", 3),
        *((f"score_mean.{language}", snapshots) for language in ("de", "en") for snapshots in (1, 3)),
        ("reason_share.score_quality:low_quality", 3),
    }


def test_learned_bounds_are_plotted_with_their_limits(tmp_path: Path) -> None:
    good = healthy("score_quality")
    trailing = [stored(tmp_path, good)] * ENOUGH
    verdict = judged(tmp_path, drifted(good, "score_mean"), trailing_paths=trailing)
    shown = {(fact.fact, fact.finding) for fact in bounded_facts("", {"score_quality": verdict})}
    assert {
        ("score_mean", "violated"),
        ("retention", "met"),
        ("reason_share.score_quality:low_quality", "met"),
    } <= shown
    without = judged(tmp_path, good)
    limited = {fact.fact for fact in bounded_facts("", {"score_quality": without})}
    assert "retention" in limited, "a bound with limits is shown, though the learned one has no history"


def test_one_bad_day_among_the_trailing_ones_does_not_move_the_bound(tmp_path: Path) -> None:
    good = healthy("score_quality")
    bad = stored(tmp_path, drifted(good, "score_mean"))
    usual = stored(tmp_path, good)
    verdict = judged(tmp_path, drifted(good, "score_mean"), trailing_paths=[usual, usual, usual, bad])
    assert "score_mean" in {failure.column for failure in verdict.failures}


def test_history_names_the_last_seven_snapshots(tmp_path: Path) -> None:
    root = str(tmp_path)
    paths = [stored(tmp_path, healthy("filter_url", 100 + day)) for day in range(9)]
    for day, path in enumerate(paths):
        fields = {"recipe": "r", "snapshot": f"2026-11-{day + 10}", "landing": "", "verdicts": {}, "prefix": "p"}
        counts = {"documents": 1, "tokens": 0, "sequences": 0}
        version_log.append(root, {**fields, **counts, "manifests": {"filter_url": path}})
    version_log.retract(root, "r", "2026-11-12", "a test")
    named = {"root": root, "recipe": "r"}
    history = reply("history", **named, snapshot="2026-11-19")
    assert history["trailing"] == {"filter_url": [paths[1], *paths[3:]]}
    assert history["snapshots"] == [{"filter_url": path} for path in [paths[1], *paths[3:]]]
    assert reply("history", **named, snapshot="2026-11-13")["trailing"] == {"filter_url": paths[:2]}


# --- Recipes ----------------------------------------------------------------------------------------------------------


def score_bounds(bounds: dict[str, Any]) -> list[Expectation]:
    facts = dict.fromkeys(("score_mean", "retention", "score_p50", "language_share.de"))
    return [one for one in bounded("score_quality", bounds, facts) if one["kwargs"]["column"] in bounds]


def test_a_recipe_lets_a_learned_bound_refuse_widens_it_or_switches_it_off(tmp_path: Path) -> None:
    good = profiled(healthy("score_quality"), score=[0.5, 0.6, 0.7, 0.8] * 3000)
    trailing = [stored(tmp_path, good)] * ENOUGH
    moved = profiled(good, score=[0.54, 0.64, 0.74] * 4000)

    def outcome(**rule: Any) -> str:
        bounds = {"score_mean": {"trailing": rule or None}}
        return judged(tmp_path, moved, bounds=bounds, trailing_paths=trailing).outcome

    refuses = {"score_mean": {"trailing": {"severity": "critical", "floor": 0.01}}}
    assert judged(tmp_path, moved, bounds=refuses, trailing_paths=trailing).outcome == "refuse"
    assert outcome(floor=0.01) == "warn"
    assert outcome(floor=0.5) == "pass"
    assert outcome() == "pass"


def test_limits_and_learned_bounds_of_one_fact_are_changed_apart() -> None:
    limits = score_bounds({"retention": {"critical": {"min_value": 0.5}}})
    assert {one["severity"] for one in limits if one["learned"]} == {"warning"}
    assert {one["learned"].get("from") for one in limits} == {None, "previous", "trailing"}
    learned = score_bounds({"retention": {"previous": {"severity": "critical"}}})
    assert [one["severity"] for one in learned if one["learned"].get("from") == "previous"] == ["critical"]
    assert [one["kwargs"] for one in learned if not one["learned"]] == [
        one["kwargs"]
        for one in suites_of("score_quality")
        if one["kwargs"]["column"] == "retention" and not one["learned"]
    ]
    (added,) = score_bounds({"language_share.de": {"trailing": {"floor": 0.2}}})
    assert (added["severity"], added["learned"]) == ("warning", {"from": "trailing", "floor": 0.2})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"trailing": {"band": 3}}, "score_mean: trailing .*floor, least, severity.*{'band': 3}"),
        ({"trailing": {}}, "score_mean: trailing .*floor, least, severity.*{}"),
        ({"trailing": {"floor": -1}}, "score_mean: trailing: floor .*0.*-1"),
        ({"previous": {"severity": "fatal"}}, "score_mean: previous: severity .*critical.*warning.*'fatal'"),
        ({"previous": 0.05}, "score_mean: previous .*0.05"),
    ],
)
def test_rules_that_make_no_sense_are_refused(change: dict[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        score_bounds({"score_mean": change})


# --- No false alarms --------------------------------------------------------------------------------------------------


def random_day(stage: str, draws: np.random.Generator, rows: int) -> Manifest:
    """Return the manifest of a day whose rows are drawn from one population, whatever the day."""
    rows_kept = int(draws.binomial(rows, 0.4))
    codes = draws.choice(["en", "de", "fr", "sw"], size=rows_kept, p=[0.6, 0.3, 0.08, 0.02]).tolist()
    day = kept(healthy(stage, rows), rows_kept / rows)
    reasons = dict(zip(("a", "b", "c"), draws.multinomial(rows - rows_kept, [0.7, 0.25, 0.05]).tolist(), strict=True))
    chars = np.maximum(draws.lognormal(7, 1.3, rows_kept), 1).astype(int).tolist()
    columns = {"chars": chars, "n_tokens": chars, "language": codes, "score": draws.beta(5, 3, rows_kept).tolist()}
    named = {f"{stage}:{reason}": count for reason, count in reasons.items() if count}
    lost = numbers(
        language=draws.choice(["en", "de", "fr", "sw"], size=rows - rows_kept, p=[0.6, 0.3, 0.08, 0.02]).tolist()
    )
    return replace(profiled(day, **columns), rejected=named, metrics={"kept": numbers(**columns), "rejects": lost})


@given(
    seed=st.integers(0, 2**32),
    stage=st.sampled_from(["extract", "filter_language", "filter_quality", "score_quality", "tokenize"]),
    days=st.integers(2, 8),
    rows=st.sampled_from([12, 100, 1000, 4000]),
)
def test_days_of_one_population_are_within_what_is_learned(seed: int, stage: str, days: int, rows: int) -> None:
    draws = np.random.default_rng(seed)
    *before, now = (random_day(stage, draws, rows) for _ in range(days))
    subject = Subject("", now, before[-1], tuple(before))
    lesson = learn(suites_of(stage), amounts_of(subject), earlier_amounts(subject))
    for expectation in lesson.expectations:
        limits = expectation["kwargs"]
        estimate = lesson.facts[limits["column"]]
        assert estimate is not None
        assert (limits["min_value"] or 0) <= estimate.value <= limits["max_value"], (limits, estimate.value)
    assert lesson.expectations or days == 2


@few_examples
@given(seed=st.integers(0, 2**32), stage=st.sampled_from(["extract", "score_quality", "tokenize"]))
def test_distributions_of_one_population_are_within_their_bounds(seed: int, stage: str) -> None:
    draws = np.random.default_rng(seed)
    before, now = (random_day(stage, draws, 4000) for _ in range(2))
    facts = compute_facts("", now, before)
    bounds = [one["kwargs"] for one in load_suite(stage) if "compared_rows" in one["needs"]]
    assert bounds
    for bound in bounds:
        estimate = facts[bound["column"]]
        assert estimate is not None
        assert estimate.value <= bound["max_value"]


@given(
    seed=st.integers(0, 2**32),
    sites=st.integers(1, 60),
    slope=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    rows=st.sampled_from([1, 12, 100, 1000, 50_000]),
)
def test_days_of_the_same_sites_have_no_flood(seed: int, sites: int, slope: float, rows: int) -> None:
    draws = np.random.default_rng(seed)
    weights = np.arange(1, sites + 1) ** -slope

    def day() -> Manifest:
        counts = draws.multinomial(rows, weights / weights.sum()).tolist()
        bins = {f"site {rank}": count for rank, count in enumerate(counts) if count}
        kept_rows = {"origins": {"kind": "name", "count": rows, "bins": bins}}
        return replace(healthy("dedup_exact", rows), metrics=notable({"kept": kept_rows, "rejects": {}}))

    *before, now = (day() for _ in range(5))
    rise = measure_sites(Subject("", now, before[-1], tuple(before)))["site_rise_max"]
    assert rise is not None
    assert rise.value < 0.02


def covered_site(pages: int, *shares: float, rejected: int = 0) -> Manifest:
    """Return a day of `extract` with a site's pages, of which texts have these shares, and some have no text."""
    rows = {"url": ["https://example.org/"] * pages, "coverage": [*itertools.islice(itertools.cycle(shares), pages)]}
    lost = {"url": ["https://example.org/"] * rejected, "coverage": [0.0] * rejected}
    profiles = {
        name: profile(pa.table(columns), SITE_COVERAGES) for name, columns in (("kept", rows), ("rejects", lost))
    }
    return replace(healthy("extract"), metrics=notable(profiles))


def fall(now: Manifest, before: Manifest | None) -> float | None:
    estimate = measure_coverages(Subject("", now, before))["site_coverage_fall_max"]
    return estimate and estimate.value


def test_a_site_whose_texts_have_less_of_their_pages_is_seen() -> None:
    usual = covered_site(200, 1.0, 0.9, 0.95)
    worse = fall(covered_site(200, 0.5, 0.6, 0.7), usual)
    assert worse is not None
    assert 0.25 < worse < 0.35
    assert fall(usual, covered_site(200, 0.5, 0.6, 0.7)) == 0
    lost = fall(covered_site(200, 1.0, 0.9, 0.95, rejected=200), usual)
    assert lost is not None
    assert 0.3 < lost < 0.475
    assert fall(usual, None) is fall(covered_site(29, 0.1), usual) is None


@given(st.integers(0, 2**32), st.integers(30, 400))
def test_days_of_one_site_have_no_fall(seed: int, pages: int) -> None:
    draws = np.random.default_rng(seed)
    before, now = (covered_site(pages, *draws.beta(8, 1, pages).tolist()) for _ in range(2))
    seen = fall(now, before)
    assert seen is not None
    assert seen < 0.02
