"""A version's distributions come with those of earlier versions, and its gates with the bounds that were judged."""

import shutil
from pathlib import Path

import pytest

from pipeline_tasks.gate import checks
from pipeline_tasks.gate.verdicts import Verdict, read_verdict
from pipeline_tasks.inspect.report.distributions import (
    EARLIER,
    PREVIOUS,
    THIS,
    distributions,
    is_measure,
    paired_distributions,
)
from pipeline_tasks.inspect.report.judged_bounds import bounded_facts
from pipeline_tasks.profiles.sums import SUMS
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest
from tests.small_root import DAYS, RECIPE, SmallRoot


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> str:
    return str(shutil.copytree(small_root.root, tmp_path / "root"))


def verdicts(root: str) -> dict[str, Verdict]:
    version = version_log.current(root, RECIPE, DAYS[0])
    return {gate: read_verdict(root, path) for gate, path in version.verdicts.items() if path}


def test_each_column_is_that_of_the_last_stage_that_has_it(root: str) -> None:
    first, second = version_log.latest_by_snapshot(root, RECIPE)
    shown = {column: (stage, profiles) for stage, column, profiles in distributions(root, second, [first, first])}
    stage, profiles = shown["chars"]
    assert stage == "dedup_minhash"
    assert list(profiles) == [THIS, PREVIOUS, EARLIER]
    stored = read_manifest(root, first.manifests["dedup_minhash"]).metrics["kept"]["chars"]
    assert profiles[PREVIOUS] == stored
    assert profiles[EARLIER]["count"] == 2 * stored["count"]
    assert {tuple(profiles) for _, _, profiles in distributions(root, second, [])} == {(THIS,)}
    assert all(len(profiles[THIS]["bins"]) > 1 for _, _, profiles in distributions(root, second, []))


def test_what_only_computes_another_number_is_no_distribution(root: str) -> None:
    """`Distinct shingles`, `N bytes` and `Language score squares` were among the plots."""
    first, second = version_log.latest_by_snapshot(root, RECIPE)
    profiled = read_manifest(root, second.manifests["dedup_minhash"]).metrics["kept"]
    assert len(profiled["shingles"]["bins"]) > 1
    shown = {column for _, column, _ in distributions(root, second, [first])}
    assert shown
    assert not shown & {"shingles", "similarity", "clusters", "origins"}
    assert all(map(is_measure, ("chars", "n_tokens", "language_score", "score", "language", "cut_chars", "score_edu")))
    assert not any(map(is_measure, (*SUMS, "shingles", "n_bytes", "lost_chars", "pii_email")))


def test_two_versions_have_the_columns_that_both_profiled_after_the_same_stage(root: str) -> None:
    first, second = version_log.latest_by_snapshot(root, RECIPE)
    pairs = {column: (stage, pair) for stage, column, pair in paired_distributions(root, first, second)}
    stored = [
        read_manifest(root, version.manifests["dedup_minhash"]).metrics["kept"]["chars"] for version in (first, second)
    ]
    assert pairs["chars"] == ("dedup_minhash", tuple(stored))
    assert all(len({*a["bins"], *b["bins"]}) > 1 for _, (a, b) in pairs.values())
    assert list(paired_distributions(root, first, first)) == []


def test_the_bounds_of_a_verdict_are_those_it_was_judged_by(root: str) -> None:
    judged = verdicts(root)
    facts = bounded_facts(RECIPE, judged)
    met = {(fact.gate, fact.fact) for fact in facts if fact.finding == "met"}
    assert ("extract", "retention") in met
    for fact in facts:
        assert fact.value == judged[fact.gate].facts[fact.fact] or fact.finding != "met"
        inside = (fact.least is None or fact.value >= fact.least) and (fact.most is None or fact.value <= fact.most)
        assert inside == (fact.finding == "met"), fact


def test_bounds_that_were_not_in_force_are_not_shown(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation with another suite knows only the bounds that the verdict names."""
    suite = checks.suites_of("extract")
    changed = [*suite, {**suite[0], "severity": "warning"}]
    original = checks.suites_of
    other = {"extract": changed}
    monkeypatch.setattr("pipeline_tasks.gate.verdicts.suites_of", lambda gate: other.get(gate, original(gate)))
    facts = bounded_facts(RECIPE, verdicts(root))
    assert not [fact for fact in facts if fact.gate == "extract" and fact.finding == "met"]
    assert [fact for fact in facts if fact.gate == "ingest" and fact.finding == "met"]
