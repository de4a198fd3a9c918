"""The gate before a snapshot is published: how much of what landed is left, and how many documents."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.checks import check_bounds, check_overrides, gate_names
from pipeline_tasks.gate.explaining import WIDTH, explain
from pipeline_tasks.gate.verdicts import Verdict, judge, judge_snapshot, read_verdict
from pipeline_tasks.inspect.lint import lint
from pipeline_tasks.ledger import Ledger
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.service.work.publication import publish_snapshot
from tests.gate.samples import KINDS, healthy, judged, kept, profiled, stored
from tests.refining import made_up_shard


def stage(name: str, rows_in: int, **rejected: int) -> Manifest:
    """Return a manifest that rejected rows, each reason written as `why` of the stage."""
    manifest = healthy(name, rows_in)
    reasons = {f"{name}:{why}": rows for why, rows in rejected.items() if rows}
    rows = rows_in - sum(rejected.values())
    return replace(
        manifest,
        shards=(made_up_shard("data", rows, 10**9),),
        rejects=(made_up_shard("rejects", rows_in - rows, 9),),
        rejected=reasons,
    )


def snapshot(root: Path, *manifests: Manifest, **kwargs: Any) -> Verdict:
    """Judge the snapshot of some manifests, each read by the next."""
    return judge_snapshot(str(root), {manifest.stage: stored(root, manifest) for manifest in manifests}, **kwargs)


@pytest.mark.parametrize("rows", [30, 99, 320, 20_000])
def test_a_snapshot_that_is_nearly_all_lost_is_refused(rows: int, tmp_path: Path) -> None:
    """All stages keep less each, and the whole is refused; half of it passes."""
    bad = snapshot(tmp_path, stage("ingest", rows), stage("extract", rows, too_short=rows))
    assert bad.outcome == "refuse"
    assert "documents" in {failure.column for failure in bad.failures}
    good = snapshot(tmp_path, stage("ingest", rows), stage("extract", rows, too_short=rows // 2))
    assert (good.outcome, good.stage) == ("pass", "publish")


def test_two_documents_of_three_hundred_are_refused(tmp_path: Path) -> None:
    verdict = snapshot(tmp_path, stage("ingest", 320), stage("extract", 320, too_short=318))
    assert {(failure.column, failure.severity) for failure in verdict.failures} == {
        ("documents", "warning"),
        ("retention", "critical"),
        ("retention", "warning"),
    }
    assert verdict.outcome == "refuse"


def committed(root: Path, *manifests: Manifest) -> dict[str, str]:
    """Commit manifests, each of the documents of the one before; return their paths."""
    paths: dict[str, str] = {}
    for manifest in manifests:
        parents = tuple(path.split("/")[1] for path in [*paths.values()][-1:])
        digests = ("0" * 64,) * len(parents)
        paths[manifest.stage] = stored(root, replace(manifest, parents=parents, parent_digests=digests))
    return paths


def day(*, short: int, words: int, known: int = 0) -> tuple[Manifest, ...]:
    """Return the manifests of a day of 4,000 records, with the rows that each stage rejects."""
    texts = 4_000 - short
    stages = stage("ingest", 4_000), stage("extract", 4_000, too_short=short)
    return *stages, stage("filter_quality", texts, words=words), stage("dedup_exact", texts - words, seen_before=known)


def test_stages_that_each_keep_a_little_less_are_caught_together(tmp_path: Path) -> None:
    """No stage moved by a tenth of what it keeps; what is left of the new pages did."""
    usual = [committed(tmp_path, *day(short=1_000 + 10 * number, words=1_000)) for number in range(4)]
    assert snapshot(tmp_path, *day(short=1_015, words=1_000), trailing=usual).outcome == "pass"
    verdict = snapshot(tmp_path, *day(short=1_240, words=1_060), trailing=usual)
    (failure,) = verdict.failures
    assert (failure.column, failure.snapshots, verdict.outcome) == ("retention", 4, "warn")
    assert verdict.trailing == tuple(paths["dedup_exact"] for paths in usual)
    assert {bound.fact for bound in verdict.learned} == {"retention", "record_retention"}
    assert read_verdict(str(tmp_path), verdict.path) == verdict


def test_more_copies_than_usual_are_no_loss_and_are_said(tmp_path: Path) -> None:
    usual = [committed(tmp_path, *day(short=1_000, words=1_000 + number, known=100)) for number in range(3)]
    verdict = snapshot(tmp_path, *day(short=1_000, words=1_000, known=1_000), trailing=usual)
    assert {failure.column for failure in verdict.failures} == {"record_retention"}


def spoken(*manifests: Manifest, **values: list[Any]) -> tuple[Manifest, ...]:
    """Return the manifests of a day, of which the last has these values of columns."""
    *before, last = manifests
    return *before, profiled(last, **values)


@pytest.mark.parametrize(("column", "outcome"), [("language", "refuse"), ("chars", "warn"), ("source", "warn")])
def test_what_would_be_published_is_compared_with_the_previous_snapshot(
    column: str, outcome: str, tmp_path: Path
) -> None:
    """No stage has lost anything more than before: another crawl landed."""
    stays, goes = KINDS[column]
    usual = committed(tmp_path, *spoken(*day(short=1_000, words=1_000), **{column: [stays, goes] * 6_000}))
    moved = spoken(*day(short=1_000, words=1_000), **{column: [stays] * 10_800 + [goes] * 1_200})
    verdict = snapshot(tmp_path, *moved, trailing=[usual])
    assert (verdict.outcome, {failure.column for failure in verdict.failures}) == (outcome, {f"{column}_psi"})
    same = spoken(*day(short=1_000, words=1_000), **{column: [stays, goes] * 6_000})
    assert snapshot(tmp_path, *same, trailing=[usual]).outcome == "pass"
    few = spoken(*day(short=3_500, words=100), **{column: [stays] * 10_800 + [goes] * 1_200})
    skipped = snapshot(tmp_path, *few, trailing=[usual]).skipped
    assert f"{column}_psi: needs compared_documents >= 1000" in skipped


def test_two_snapshots_are_too_few_to_learn_from(tmp_path: Path) -> None:
    usual = [committed(tmp_path, *day(short=1_000, words=1_000))] * 2
    verdict = snapshot(tmp_path, *day(short=2_000, words=1_000), trailing=usual)
    assert verdict.outcome == "pass"
    assert "trailing retention: not enough history, 2 of 3 snapshots" in verdict.skipped


def test_a_recipe_makes_the_learned_bound_of_a_snapshot_refuse(tmp_path: Path) -> None:
    usual = [committed(tmp_path, *day(short=1_000, words=1_000))] * 3
    bad = day(short=2_000, words=1_000)
    for rule, outcome in (({"severity": "critical"}, "refuse"), (None, "pass")):
        bounds = {name: {"trailing": rule} for name in ("retention", "record_retention")}
        assert snapshot(tmp_path, *bad, trailing=usual, bounds=bounds).outcome == outcome


def test_a_day_that_is_mostly_nonsense_is_refused(tmp_path: Path) -> None:
    """27 of 320 texts are left, as of a planted day with 288 texts of random letters; before, that was a warning."""
    found = stage("ingest", 400, status=60), stage("extract", 340, too_short=20)
    verdict = snapshot(tmp_path, *found, stage("filter_quality", 320, words=288), stage("score_quality", 32, low=5))
    assert (verdict.facts["texts"], verdict.facts["documents"]) == (320, 27)
    assert ("text_retention", "critical") in {(failure.column, failure.severity) for failure in verdict.failures}
    assert verdict.outcome == "refuse"


def test_a_crawl_of_many_languages_passes_a_recipe_for_one(tmp_path: Path) -> None:
    """English is 41 % of a crawl, and heuristics keep 48 % of that, whether or not most was published before.

    Before, copies were taken from what could be kept, and not from what was lost: 180 of 8,000 pages were refused.
    """
    found = stage("ingest", 9_000, status=900), stage("extract", 8_100, too_short=2_100)
    kept = stage("filter_language", 6_000, other=3_540), stage("filter_quality", 2_460, words=1_280)
    new = snapshot(tmp_path, *found, *kept)
    assert (new.facts["text_retention"], new.outcome) == (0.196667, "pass")
    again = snapshot(tmp_path, *found, *kept, stage("dedup_exact", 1_180, seen_before=1_000))
    assert (again.facts["documents"], again.facts["text_retention"], again.outcome) == (180, 0.196667, "pass")


def test_pages_that_are_known_already_are_no_loss(tmp_path: Path) -> None:
    """A recrawl: 950 pages unchanged, 40 texts published before, and 10 new ones."""
    verdict = snapshot(
        tmp_path,
        stage("ingest", 1000, unchanged=900, revisit=50),
        stage("dedup_exact", 50, seen_before=38),
        stage("dedup_minhash", 12, near_duplicate=2),
        stage("mix", 10, over_budget=4),
    )
    assert verdict.outcome == "pass"
    assert (verdict.facts["new_pages"], verdict.facts["documents"], verdict.facts["retention"]) == (50, 6, 1)
    assert verdict.facts["copies"] == 44
    assert verdict.facts["record_retention"] == 0.006


def test_nothing_new_is_published_by_a_person_alone(tmp_path: Path) -> None:
    unchanged = stage("ingest", 40, unchanged=40)
    refused = snapshot(tmp_path, unchanged)
    assert refused.outcome == "refuse"
    compared = ("trailing", *(f"{column}_psi: no previous snapshot" for column in KINDS))
    without = {skipped for skipped in refused.skipped if not skipped.startswith(compared)}
    assert without == {f"{fact}: nothing to compute it from" for fact in ("retention", "text_retention")}
    allowed = snapshot(tmp_path, unchanged, override="an empty day, for the calendar")
    assert (allowed.outcome, allowed.override) == ("warn", "an empty day, for the calendar")
    assert read_verdict(str(tmp_path), allowed.path) == allowed


def test_no_recipe_publishes_nothing(tmp_path: Path) -> None:
    for bounds in ({"documents": {"min_value": 0}}, {"documents": {"critical": {"min_value": None}}}):
        with pytest.raises(RecipeError, match=r"documents: min_value .*1"):
            snapshot(tmp_path, stage("ingest", 40, unchanged=40), bounds=bounds)


def test_a_recipe_has_its_own_bounds_on_a_snapshot(tmp_path: Path) -> None:
    manifests = stage("ingest", 320), stage("extract", 320, too_short=318)
    assert snapshot(tmp_path, *manifests, bounds={"retention": {"min_value": 0.001}}).outcome == "warn"
    assert snapshot(tmp_path, stage("ingest", 40), bounds={"documents": {"min_value": 50}}).outcome == "refuse"


def test_an_override_of_a_stage_does_not_reach_the_snapshot(tmp_path: Path) -> None:
    ingest, extract = stage("ingest", 320), stage("extract", 320, too_short=318)
    path = stored(tmp_path, extract)
    assert judge(str(tmp_path), path, override="known to be empty").outcome == "warn"
    assert snapshot(tmp_path, ingest, extract).outcome == "refuse"


def test_the_last_stage_and_the_snapshot_have_verdicts_of_their_own(tmp_path: Path) -> None:
    """Both are about one manifest, and the ledger shows both."""
    path = stored(tmp_path, stage("ingest", 320))
    verdicts = judge(str(tmp_path), path), judge_snapshot(str(tmp_path), {"ingest": path}, override="because")
    assert verdicts[0].path != verdicts[1].path
    with Ledger.open(str(tmp_path / "ledger.sqlite")) as ledger:
        ledger.record_stage(path, stage("ingest", 320), snapshot="s", recipe="web")
        for verdict in reversed(verdicts):
            ledger.record_verdict(verdict, snapshot="s", recipe="web")
        assert [row["stage"] for row in ledger.query("gates", recipe="web", snapshot="s")] == ["ingest", "publish"]
        assert [row["stage"] for row in ledger.query("retention_over_time", recipe="web")] == ["ingest"]
        assert [row["override_reason"] for row in ledger.query("overrides")] == ["because"]


# --- What a refusal says --------------------------------------------------------------------------------------------


def test_a_refusal_says_what_was_seen_and_whose_the_bound_is(tmp_path: Path) -> None:
    low = kept(healthy("extract", 60), 0.1)
    shipped = judged(tmp_path, low)
    lines = explain([failure for failure in shipped.failures if failure.severity == "critical"], ())
    assert lines == [
        "critical: retention is 0.1, and must be at least 0.25",
        "    60 rows leave 0.030588 to 0.225912 possible (99 % on each side)",
        "    bound of expectations/extract.json: Less than a quarter of the pages gave a text: the extractor",
        "    or the character sets are broken. Read a few rejected pages; check the extractor and the",
        "    character sets of the crawl.",
    ]
    own = judged(tmp_path, low, bounds={"retention": {"critical": {"min_value": 0.5}, "warning": {"min_value": 0}}})
    lines = explain(own.failures, own.undecided)
    assert lines[0] == "critical: retention is 0.1, and must be at least 0.5"
    assert lines[2:4] == [
        "    the recipe's bound: Read a few rejected pages; check the extractor and the character sets of the",
        "    crawl. Change it under `gates:` if it is wrong.",
    ]
    assert not any("quarter" in line for line in lines), "what the suite's limit means is not what the recipe's does"
    assert all(len(line) <= WIDTH and not line.endswith("..") for line in lines)


def test_undecided_bounds_share_a_line(tmp_path: Path) -> None:
    verdict = judged(tmp_path, kept(healthy("filter_quality", 12), 1 / 3))
    assert {failure.column for failure in verdict.undecided} == {"retention", "reason_share_max"}
    assert explain(verdict.failures, verdict.undecided) == [
        "undecided, as 12 rows are too few: retention 0.333333 (at least 0.35), reason_share_max 0.666667 (at most 0.5)"
    ]


# --- What a person writes -------------------------------------------------------------------------------------------


def recipe(folder: Path, gates: dict[str, Any]) -> str:
    path = folder / "own.yaml"
    path.write_text(json.dumps({"name": "own", "stages": {"ingest": {}, "extract": {}}, "gates": gates}))
    return str(path)


@pytest.mark.parametrize(
    ("gates", "named"),
    [
        ({"extract": {"retentoin": {"min_value": 0.1}}}, "'retentoin'.*'retention'"),
        (
            {"extract": {"reason_share.extract:tiemout": {"max_value": 0.1}}},
            "'reason_share.extract:tiemout'.*'reason_share.extract:timeout'",
        ),
        ({"extract": {"chars_p55": {"max_value": 9}}}, "'chars_p55'.*'chars_p95'"),
        ({"publish": {"document": {"min_value": 5}}}, "'document'.*'documents'"),
        ({"publish": {"documents": {"min_value": 0}}}, "documents: min_value .*1"),
        ({"extract": {"needs": {"rows_inn": 5}}}, "'rows_inn'.*'rows_in'"),
        ({"extract": {"needs": 100}}, "needs .*100"),
        ({"extract": {"retention": {"min_value": True}}}, "retention: min_value .*True"),
        ({"extract": {"retention": {"min_value": 7}}}, "retention: min_value .*0 .*1 .*7"),
        (
            {"extract": {"rejected_share": {"warning": {"max_value": 2}}}},
            "rejected_share: warning: max_value .*0 .*1 .*2",
        ),
        ({"extract": {"reason_share.error:charset": {"max_value": -1}}}, "reason_share.error:charset: max_value .*-1"),
        ({"extract": {"rows": {"min_value": -1}}}, "rows: min_value .* 0 .*-1"),
        ({"extract": {"rows_change": {"min_value": -2}}}, "rows_change: min_value .* -1 .*-2"),
        ({"extract": {"retention": {"critical": {}}}}, "retention: critical .*min_value .*max_value"),
        ({"extract": {"retention": {}}}, "retention .*min_value .*max_value"),
        ({"extract": {"retention": {"min_value": 0.9, "max_value": 0.1}}}, "retention: min_value 0.9 .*max_value 0.1"),
    ],
)
def test_bounds_are_checked_before_anything_runs(gates: dict[str, Any], named: str, tmp_path: Path) -> None:
    path, [gate] = recipe(tmp_path, gates), gates
    with pytest.raises(RecipeError, match=f"recipe own: gates: {gate}: (.* )?{named}"):
        check_bounds(load_recipe(path))
    assert [finding.fault for finding in lint(path)] == [True]


def test_bounds_on_facts_of_one_snapshot_are_legal_and_judge(tmp_path: Path) -> None:
    """An empty `needs` lifts the suite's own; facts of the damage of one snapshot are bounded before there is any."""
    gates: dict[str, Any] = {
        "extract": {"reason_share.error:charset": {"max_value": 0.1}, "chars_p95": {"min_value": 9}, "needs": {}},
        "publish": {"documents": {"critical": {"min_value": 1}, "warning": {"min_value": 100}}},
    }
    loaded = load_recipe(recipe(tmp_path, gates))
    check_bounds(loaded)
    assert loaded.gates == gates
    assert lint(recipe(tmp_path, gates)) == []
    damaged = kept(healthy("extract", 320), 0.7, "error:charset")
    verdict = judged(tmp_path, damaged, bounds=loaded.gates["extract"])
    assert ("reason_share.error:charset", 0.3) in {(failure.column, failure.observed) for failure in verdict.failures}
    small = snapshot(tmp_path, stage("ingest", 40), bounds=loaded.gates["publish"])
    assert [(failure.column, failure.severity) for failure in small.failures] == [("documents", "warning")]


def test_overrides_of_unknown_gates_and_without_a_reason_are_refused(tmp_path: Path) -> None:
    gates = gate_names(load_recipe(recipe(tmp_path, {})))
    check_overrides({"extract": "why", "publish": "why"}, gates)
    with pytest.raises(RecipeError, match=r"'nosuch'.*ingest, extract, publish"):
        check_overrides({"nosuch": "why"}, gates)
    with pytest.raises(RecipeError, match=r"'pack'.*ingest, extract, publish"):
        check_overrides({"pack": "a stage that this recipe does not have"}, gates)
    with pytest.raises(RecipeError, match="override of extract"):
        check_overrides({"extract": "  "}, gates)
    with pytest.raises(RecipeError, match="override of extract"):
        judge(str(tmp_path), stored(tmp_path, healthy("extract", 30)), override=" ")


@pytest.mark.parametrize("stages", [("land",), ("pack",), ()])
def test_a_snapshot_without_documents_to_count_is_no_request(stages: tuple[str, ...], tmp_path: Path) -> None:
    """Before, that was an IndexError; so it was when such a snapshot was published."""
    manifests = dict.fromkeys(stages, "ingest/0/manifest.json")
    with pytest.raises(RecipeError, match=f": {'.'.join(stages) or 'none'}$"):
        judge_snapshot(str(tmp_path), manifests)
    with (
        Ledger.open(str(tmp_path / "ledger.sqlite")) as ledger,
        pytest.raises(RecipeError, match=f": {'.'.join(stages) or 'none'}$"),
    ):
        publish_snapshot(
            str(tmp_path), recipe="r", snapshot="s", landing="", manifests=manifests, verdicts={}, ledger=ledger
        )
