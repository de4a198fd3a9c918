"""Gates: every suite refuses its planted bad sample and passes a good one; bounds, overrides and drift."""

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.comparison import psi
from pipeline_tasks.gate.facts import FACTS, compute_facts
from pipeline_tasks.gate.suites import EVERY, EXPECTATIONS, load_suite
from pipeline_tasks.gate.verdicts import Verdict, judge, read_verdict
from pipeline_tasks.manifest import Manifest, schema_pairs
from pipeline_tasks.profiles.columns import merge, profile
from pipeline_tasks.profiles.removals import losses
from pipeline_tasks.recipe import STAGES, stage_card
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.store.shard_file import ShardWriter
from tests.documents import documents as table_of
from tests.refining import commit_manifest, commit_parent, made_up_shard, refined

ROWS = 20_000

HUGE = 10**9
"""Bytes of a shard that is only named: more than a gate reads."""

SUITES = sorted(path.stem for path in EXPECTATIONS.glob("*.json"))


def numbers(**columns: list[int] | list[float] | list[str]) -> dict[str, Any]:
    """Return the profile of columns, as the runner writes it into a manifest."""
    return merge([profile(pa.table(values), [name]) for name, values in ((n, {n: v}) for n, v in columns.items())])


GOOD: dict[str, dict[str, Any]] = {
    "ingest": {},
    "extract": numbers(chars=[800, 1200, 2400] * 40),
    "filter_url": {},
    "filter_language": numbers(language=["en", "de"] * 60, language_score=[0.9, 0.95] * 60),
    "filter_quality": numbers(language=["en", "de"] * 60, chars=[800, 1200] * 60),
    "dedup_url": {},
    "dedup_exact": {},
    "dedup_minhash": numbers(unsettled_bands=[0] * 120, shingles=[80] * 120, origins=["source crawl"] * 16_000),
    "dedup_paragraphs": numbers(chars=[900] * 120, cut_chars=[0, 300] * 60),
    "score_quality": numbers(score=[0.5, 0.6, 0.7, 0.8] * 30),
    "scrub_pii": numbers(pii_email=[0, 1], pii_phone=[0, 1], pii_ip=[0, 0]),
    "decontaminate": numbers(chars=[1000] * 120),
    "tokenize": numbers(n_tokens=[200, 300] * 60),
    "mix": numbers(n_tokens=[200, 300] * 60),
    "shuffle": numbers(n_tokens=[200, 300] * 60),
    "pack": numbers(n_tokens=[250] * 120),
}
"""A healthy stage's profiles; the rows below go with them."""

LOST = {
    "dedup_minhash": numbers(
        similarity=[0.81, 0.9] * 2000, clusters=["w1", "w2", "w3", "w4"] * 20, origins=["source crawl"] * 4000
    )
}
"""Profiles of the rows that a healthy stage rejected."""

PARAMS = {"pack": {"length": 250}, "dedup_minhash": {"threshold": 0.8}}

KEPT = {
    "filter_language": 0.5,
    "filter_quality": 0.6,
    "dedup_url": 0.9,
    "dedup_exact": 0.8,
    "dedup_minhash": 0.8,
    "dedup_paragraphs": 0.98,
    "score_quality": 0.5,
}


def healthy(stage: str, rows_in: int = ROWS) -> Manifest:
    """Return a manifest of `stage` as a healthy run leaves it; its shards are named, not stored."""
    card = stage_card(stage)
    kept = round(rows_in * KEPT.get(stage, 1.0 if stage not in ("ingest", "extract") else 0.95))
    rejected = {card.reasons[0]: rows_in - kept} if rows_in > kept else {}
    return Manifest(
        stage=stage,
        version=card.version,
        fingerprint="",
        params=PARAMS.get(stage, {}),
        parents=(),
        covers=(),
        schema=schema_pairs(card.writes),
        shards=(made_up_shard("data", kept if stage != "pack" else 120, HUGE),),
        history={},
        rejects=(made_up_shard("rejects", rows_in - kept, 1000),),
        quarantine=(),
        rows_in=rows_in,
        bytes_in=0,
        rejected=rejected,
        quarantined={},
        metrics={"kept": GOOD[stage], "rejects": LOST.get(stage, {})},
    )


def kept(manifest: Manifest, share: float, why: str = "") -> Manifest:
    """Return `manifest` with another share of its rows kept, the rest rejected for one reason."""
    rows_kept = round(manifest.rows_in * share)
    lost = manifest.rows_in - rows_kept
    reason = why or next(iter(stage_card(manifest.stage).reasons), f"{manifest.stage}:none")
    return replace(
        manifest,
        shards=(made_up_shard("data", rows_kept, HUGE),),
        rejects=(made_up_shard("rejects", lost, 1000),),
        rejected={reason: lost} if lost else {},
    )


def profiled(manifest: Manifest, **columns: list[int] | list[float] | list[str]) -> Manifest:
    """Return `manifest` with other profiles of some columns."""
    return replace(manifest, metrics={**manifest.metrics, "kept": {**manifest.metrics["kept"], **numbers(**columns)}})


Bad = Iterator[tuple[Manifest, Manifest | None]]


def bad(suite: str) -> Bad:
    """Yield bad manifests, some with the previous one, that together break every expectation of a suite."""
    good = healthy("filter_url" if suite == EVERY else suite)
    yield from PLANTED[suite](good)


def bad_every(good: Manifest) -> Bad:
    yield replace(good, rows_in=good.rows_in + 1), None
    yield replace(good, rejected={"filter_url:url": 5}, rows_in=good.rows_in + 5), None
    yield replace(good, schema=(("id", "int64"),), version=good.version - 1), None
    yield (
        replace(good, quarantined={"error:cut": 4000}, rows_in=24_000, quarantine=(made_up_shard("q", 4000, 9),)),
        None,
    )
    yield kept(good, 0.0), None
    yield kept(good, 0.5), good


def bad_ingest(good: Manifest) -> Bad:
    yield kept(good, 0.4, "ingest:too_large"), None
    yield healthy("ingest", 2_000), healthy("ingest", 20_000)
    yield healthy("ingest", 10_600), healthy("ingest", 10_600 * 25)


def bad_extract(good: Manifest) -> Bad:
    yield kept(good, 0.2, "extract:timeout"), None
    yield profiled(good, chars=[20] * 120), good


def bad_url(good: Manifest) -> Bad:
    yield kept(good, 0.4, "filter_url:bad_url"), None


def bad_language(good: Manifest) -> Bad:
    yield profiled(kept(good, 0.02), language_score=[0.5] * 100), None
    yield profiled(kept(good, 0.9), language=["fr"] * 20_000), profiled(good, language=["en"] * 20_000)


def bad_quality(good: Manifest) -> Bad:
    yield kept(good, 0.02), None
    yield kept(good, 1.0), None
    lost = numbers(language=["zh"] * 500)
    yield (
        replace(profiled(good, language=["zh"] * 5), metrics={"kept": numbers(language=["zh"]), "rejects": lost}),
        None,
    )
    yield healthy("filter_quality", 1_000_000), None


def wiped(manifest: Manifest) -> Manifest:
    """Return `manifest` after one source and one site lost 99 % to their own snapshot, all of it to one document."""
    origins = ["source feed", "site example.org"]
    lost = numbers(origins=[*origins, *(f"own {name}" for name in origins)] * 1980, clusters=["w"] * 1980)
    profiles = manifest.metrics["kept"] | numbers(origins=origins * 20)
    return replace(manifest, metrics={"kept": profiles, "rejects": manifest.metrics["rejects"] | lost})


def bad_copies(good: Manifest) -> Bad:
    yield kept(good, 0.01), None
    yield wiped(good), None


def bad_paragraphs(good: Manifest) -> Bad:
    yield kept(good, 0.3), None
    yield wiped(good), None


def bad_near_copies(good: Manifest) -> Bad:
    yield profiled(kept(good, 0.01), unsettled_bands=[3] * 10), None
    yield wiped(good), None
    yield replace(good, params={"threshold": 0.85}), None
    yield profiled(good, shingles=[0, 80] * 60), None


def bad_score(good: Manifest) -> Bad:
    yield kept(good, 0.01), None
    yield profiled(kept(good, 0.6), score=[0.9] * 12_000), profiled(kept(good, 0.6), score=[0.6] * 12_000)


def bad_pii(good: Manifest) -> Bad:
    yield profiled(kept(good, 0.5), pii_email=[50] * 9, pii_phone=[50] * 9, pii_ip=[50] * 9), None


def bad_benchmarks(good: Manifest) -> Bad:
    yield kept(good, 0.5), None


def bad_tokens(good: Manifest) -> Bad:
    yield profiled(kept(good, 0.99), n_tokens=[1] * 120), good


def bad_mixture(good: Manifest) -> Bad:
    yield kept(good, 0.0, "mix:unlisted"), None
    yield profiled(good, n_tokens=[1] * 120), good


def bad_shuffle(good: Manifest) -> Bad:
    yield profiled(kept(good, 0.5), n_tokens=[200] * 60), None


def bad_pack(good: Manifest) -> Bad:
    yield profiled(good, n_tokens=[125] * 120), None


PLANTED = {
    EVERY: bad_every,
    "ingest": bad_ingest,
    "extract": bad_extract,
    "filter_url": bad_url,
    "filter_language": bad_language,
    "filter_quality": bad_quality,
    "dedup_url": bad_copies,
    "dedup_exact": bad_copies,
    "dedup_minhash": bad_near_copies,
    "dedup_paragraphs": bad_paragraphs,
    "score_quality": bad_score,
    "scrub_pii": bad_pii,
    "decontaminate": bad_benchmarks,
    "tokenize": bad_tokens,
    "mix": bad_mixture,
    "shuffle": bad_shuffle,
    "pack": bad_pack,
}

SORTED_BY_ID = ("dedup_exact", "dedup_minhash", "dedup_paragraphs")

LOOKED_UP = {(EVERY, "duplicate_records"), *((stage, "duplicate_ids") for stage in SORTED_BY_ID)}
"""What stored rows say; broken by real rows in `test_rows_counted_twice_are_refused`."""


def stored(root: Path, manifest: Manifest) -> str:
    """Commit a manifest under the fingerprint of its content; return its path."""
    return commit_manifest(root, replace(manifest, resources={"content": digest_of(manifest)}))


def judged(root: Path, manifest: Manifest, previous: Manifest | None = None, **kwargs: Any) -> Verdict:
    """Store a manifest (its parent too, where tokens are counted) and judge it."""
    if manifest.stage in ("tokenize", "shuffle", "pack"):
        before = STAGES[STAGES.index(manifest.stage) - 1]
        parent = stored(root, healthy(before))
        manifest = replace(manifest, parents=(parent.split("/")[1],), parent_digests=("0" * 64,))
    return judge(str(root), stored(root, manifest), stored(root, previous) if previous else "", **kwargs)


def test_every_stage_has_a_suite() -> None:
    assert set(SUITES) == {EVERY, *STAGES}


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_refuses_its_planted_bad_samples(suite: str, tmp_path: Path) -> None:
    """Every expectation of the suite is broken by one of the samples, and each critical one refuses it."""
    verdicts = [judged(tmp_path, manifest, previous) for manifest, previous in bad(suite)]
    failed = {(one.column, one.severity) for verdict in verdicts for one in verdict.failures}
    expected = {(one["kwargs"]["column"], one["severity"]) for one in load_suite(suite)}
    assert {one for one in expected if (suite, one[0]) not in LOOKED_UP} <= failed
    for verdict in verdicts:
        critical = any(one.severity == "critical" for one in verdict.failures)
        assert verdict.outcome == ("refuse" if critical else "warn")
    assert "refuse" in {verdict.outcome for verdict in verdicts}


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_passes_a_good_sample(suite: str, tmp_path: Path) -> None:
    good = healthy("filter_url" if suite == EVERY else suite)
    verdict = judged(tmp_path, good, good)
    assert (verdict.outcome, verdict.failures) == ("pass", ())
    assert verdict.evaluated > 3


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_has_a_reason_for_each_expectation(suite: str) -> None:
    expectations = load_suite(suite)
    assert any(expectation["severity"] == "critical" for expectation in expectations)
    for expectation in expectations:
        assert expectation["notes"].endswith(".")
        assert set(expectation["kwargs"]) <= {"column", "min_value", "max_value"}
        assert len(expectation["kwargs"]) > 1, "an expectation without a bound cannot refuse"


def test_facts_and_their_meanings_are_the_same_names(tmp_path: Path) -> None:
    facts = {name for stage in STAGES for name in compute_facts(str(tmp_path), healthy(stage), healthy(stage))}
    patterns = [re.sub("<[a-z]+>", ".+", name) for names in FACTS for name in names.split(", ")]
    assert sorted(fact for fact in facts if not any(re.fullmatch(pattern, fact) for pattern in patterns)) == []
    assert [pattern for pattern in patterns if not any(re.fullmatch(pattern, fact) for fact in facts)] == []


def documents(rows: int, record: int | None = None) -> pa.Table:
    """Return documents, all from one record if `record` names it."""
    columns: dict[str, Any] = {field.name: pa.array(["x"] * rows, pa.string()) for field in LOCATOR}
    columns |= {"offset": pa.array([record if record is not None else row for row in range(rows)], pa.int64())}
    columns |= {"length": pa.array([9] * rows, pa.int64())}
    columns |= {
        "url": [f"https://example.org/{row}" for row in range(rows)],
        "id": [f"{row:032x}" for row in range(rows)],
    }
    columns |= {"text": pa.array(["a canary@example.org text"] * rows, pa.large_string()), "title": ["t"] * rows}
    return pa.table({**columns, "chars": pa.array([25] * rows, pa.int64())})


def test_a_real_stage_passes_and_its_verdict_is_read_again(tmp_path: Path) -> None:
    path, manifest = refined(tmp_path, "filter_url", commit_parent(tmp_path, [documents(120)]))
    verdict = judge(str(tmp_path), path)
    assert verdict.outcome == "pass"
    assert verdict.facts["duplicate_records"] == 0
    assert verdict.facts["retention"] == 1
    assert judge(str(tmp_path), path) == verdict == read_verdict(str(tmp_path), verdict.path)
    assert verdict.path.startswith(f"filter_url/{manifest.fingerprint}/gate/")


def test_rows_counted_twice_are_refused(tmp_path: Path) -> None:
    path, _ = refined(tmp_path, "filter_url", commit_parent(tmp_path, [documents(120, record=7)]))
    verdict = judge(str(tmp_path), path)
    assert verdict.outcome == "refuse"
    assert [failure.column for failure in verdict.failures] == ["duplicate_records"]
    assert verdict.failures[0].observed == 119


@pytest.mark.parametrize("stage", SORTED_BY_ID)
def test_a_text_that_occurs_twice_is_refused(stage: str, tmp_path: Path) -> None:
    table = documents(120).set_column(9, "id", pa.array(["0" * 32] * 120))
    writer = ShardWriter(table.schema)
    writer.write(table.combine_chunks().to_batches()[0])
    manifest = replace(kept(healthy(stage, 120), 1.0), shards=(writer.store(str(tmp_path), "made"),))
    manifest = replace(manifest, schema=tuple({**dict(schema_pairs(LOCATOR)), **dict(manifest.schema)}.items()))
    verdict = judge(str(tmp_path), stored(tmp_path, manifest))
    assert ("duplicate_ids", 119) in {(failure.column, failure.observed) for failure in verdict.failures}
    assert verdict.outcome == "refuse"


def pages(**sites: tuple[int, str]) -> pa.Table:
    """Return documents by site: how many, and the text of each, with its URL where that has `{}`."""
    addresses = [
        (f"https://www.{site}.co.uk/{page}", text) for site, (count, text) in sites.items() for page in range(count)
    ]
    return table_of([text.format(url) for url, text in addresses], [url for url, _ in addresses])


def test_a_site_that_loses_nearly_all_to_one_document_is_refused(tmp_path: Path) -> None:
    """A real stage over real rows; `refinery funnel` names the site, the gate has numbers only."""
    table = pages(bad=(1100, "soft 404"), good=(1500, "page {}"))
    path, manifest = refined(tmp_path, "dedup_exact", commit_parent(tmp_path, [table]))
    verdict = judge(str(tmp_path), path)
    assert verdict.outcome == "refuse"
    assert {(failure.column, failure.severity, failure.observed) for failure in verdict.failures} == {
        ("site_own_loss_max", "critical", 0.999091),
        ("site_loss_max", "warning", 0.999091),
    }
    assert verdict.facts["source_loss_max"] == round(1099 / 2600, 6)
    assert losses(manifest.metrics, "site", own=True) == {"bad.co.uk": 1099 / 1100, "good.co.uk": 0}
    assert judge(str(tmp_path), path, bounds={"site_own_loss_max": {"max_value": 1}}).outcome == "warn"


def test_a_site_that_earlier_snapshots_have_is_no_loss_of_its_own(tmp_path: Path) -> None:
    first, _ = refined(tmp_path, "dedup_exact", commit_parent(tmp_path, [pages(old=(1100, "page {}"))]))
    table = pages(old=(1100, "page {}"), new=(1500, "page {}"))
    at = table.schema.get_field_index("snapshot")
    table = table.set_column(at, "snapshot", pa.array(["2026-11-21"] * table.num_rows))
    path, _ = refined(tmp_path, "dedup_exact", commit_parent(tmp_path, [table]), history=[first])
    verdict = judge(str(tmp_path), path)
    assert verdict.outcome == "warn"
    assert [failure.column for failure in verdict.failures] == ["site_loss_max"]
    assert verdict.facts["site_own_loss_max"] == 0


def test_removals_without_proof_are_refused(tmp_path: Path) -> None:
    """Verification off: every edge is a guess. Documents too short to be compared are counted as bypassed."""
    text = " ".join(f"word{n}" for n in range(200))
    table = table_of([*(text.replace("word7 ", f"w{n} ") for n in range(120)), *("short" for _ in range(30))])
    table = table.set_column(table.schema.get_field_index("id"), "id", pa.array([f"{n:032x}" for n in range(150)]))
    parent = commit_parent(tmp_path, [table])
    path, manifest = refined(tmp_path, "dedup_minhash", parent)
    proven = judge(str(tmp_path), path, bounds={"retention": {"min_value": 0}, "bypassed": {"max_value": None}})
    assert proven.outcome == "pass"
    assert (proven.facts["unverified_edges"], proven.facts["unsigned"], proven.facts["bypassed"]) == (0, 30, 30)
    assert proven.facts["similarity_p05"] >= 0.8
    assert proven.facts["cluster_share_max"] == round((sum(manifest.rejected.values()) + 1) / 150, 6)
    path, manifest = refined(tmp_path, "dedup_minhash", parent, {"threshold": 0})
    verdict = judge(str(tmp_path), path, bounds={"retention": {"min_value": 0}})
    failed = {failure.column: failure.observed for failure in verdict.failures}
    assert failed == {"unverified_edges": sum(manifest.rejected.values()), "bypassed": 30}
    assert verdict.outcome == "refuse"


def test_short_documents_that_were_compared_as_whole_texts_are_not_bypassed(tmp_path: Path) -> None:
    table = table_of([f"short text {n}" for n in range(120)])
    exact, _ = refined(tmp_path, "dedup_exact", commit_parent(tmp_path, [table]))
    path, _ = refined(tmp_path, "dedup_minhash", exact)
    verdict = judge(str(tmp_path), path)
    assert (verdict.outcome, verdict.facts["unsigned"], verdict.facts["bypassed"]) == ("pass", 120, 0)


def test_few_rows_are_judged_by_conservation_alone(tmp_path: Path) -> None:
    tiny = kept(healthy("filter_language", 40), 0.025)
    verdict = judged(tmp_path, tiny)
    assert verdict.outcome == "pass"
    assert any(line.startswith("retention: needs rows_in >= 100") for line in verdict.skipped)
    assert judged(tmp_path, replace(tiny, rows_in=41)).outcome == "refuse"


def test_a_recipe_changes_bounds_by_fact_and_severity(tmp_path: Path) -> None:
    low = kept(healthy("filter_language"), 0.1)
    assert judged(tmp_path, low).outcome == "warn"
    assert judged(tmp_path, low, bounds={"retention": {"min_value": 0.05}}).outcome == "pass"
    assert judged(tmp_path, low, bounds={"retention": {"min_value": None}}).outcome == "pass"
    assert judged(tmp_path, low, bounds={"retention": {"critical": {"min_value": 0.2}}}).outcome == "refuse"
    assert judged(tmp_path, low, bounds={"retention": {"warning": {"min_value": 0.05}}}).outcome == "pass"
    added = judged(
        tmp_path,
        low,
        bounds={
            "retention": {"min_value": 0},
            "chars_p50": {"min_value": 9},
            "language_share.xx": {"min_value": 1},
            "rows": {"min_value": 9**9},
        },
    )
    assert {failure.column for failure in added.failures} == {"rows"}


def test_a_recipe_bounds_a_fact_that_no_suite_names(tmp_path: Path) -> None:
    good = healthy("filter_url")
    assert judged(tmp_path, good, bounds={"bytes_per_row": {"max_value": 10}}).outcome == "refuse"
    assert judged(tmp_path, good, bounds={"bytes_per_row": {"warning": {"max_value": 10}}}).outcome == "warn"


@pytest.mark.parametrize(
    ("bounds", "named"),
    [
        ({"retentoin": {"min_value": 1}}, "'retention'"),
        ({"retention": {"minimum": 1}}, "min_value, max_value"),
        ({"retention": 0.5}, "must be a mapping"),
        ({"retention": {"critical": {"min_value": "much"}}}, "must be a number"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bounds: Mapping[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=named):
        judged(tmp_path, healthy("filter_url"), bounds=bounds)


def test_a_person_lets_refused_data_pass_and_is_recorded(tmp_path: Path) -> None:
    low = kept(healthy("filter_language"), 0.01)
    refused = judged(tmp_path, low)
    allowed = judged(tmp_path, low, override="one-off crawl of a French site, agreed with the team")
    assert (refused.outcome, allowed.outcome) == ("refuse", "warn")
    assert allowed.failures == refused.failures
    assert read_verdict(str(tmp_path), allowed.path).override.startswith("one-off crawl")
    assert read_verdict(str(tmp_path), refused.path).outcome == "refuse"


def test_data_docs_stand_alone_and_show_no_text(tmp_path: Path) -> None:
    path, _ = refined(tmp_path, "filter_url", commit_parent(tmp_path, [documents(120)]))
    verdict = judge(str(tmp_path), path)
    page = (tmp_path / verdict.docs).read_text()
    assert "retention" in page
    assert "default-src 'none'" in page
    for word in ("http://", "https://", "src=", "href=", "<script", "canary"):
        assert word not in page
    assert "canary" not in json.dumps((tmp_path / verdict.path).read_text())


def test_gates_may_be_judged_at_once(tmp_path: Path) -> None:
    manifests = [kept(healthy("filter_url"), share, "filter_url:domain") for share in (0.3, 0.6, 0.95, 1.0)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda manifest: judged(tmp_path, manifest).outcome, manifests))
    assert outcomes == ["refuse", "warn", "pass", "pass"]


def test_a_missing_verdict_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no such verdict"):
        read_verdict(str(tmp_path), "filter_url/0/gate/0/verdict.json")


def test_psi_is_zero_for_equal_and_grows_with_the_difference() -> None:
    before = numbers(chars=list(range(1, 2000)), language=["en"] * 900 + ["de"] * 100)
    near = numbers(chars=list(range(50, 2050)), language=["en"] * 880 + ["de"] * 120)
    far = numbers(chars=[5000] * 2000, language=["fr"] * 1000)
    for name in ("chars", "language"):
        values = [psi(profiles[name], before[name]) for profiles in (before, near, far)]
        assert values[0] == 0
        assert values[1] is not None
        assert values[2] is not None
        assert 0 < values[1] < 0.1
        assert values[2] > 1


def test_silent_rules_are_those_of_enabled_profiles(tmp_path: Path) -> None:
    good = healthy("filter_quality")
    all_rules = compute_facts(str(tmp_path), good)["silent_reasons"]
    one_profile = compute_facts(str(tmp_path), replace(good, params={"profiles": ["gopher_quality"]}))["silent_reasons"]
    fires = stage_card("filter_quality").reasons
    assert all_rules == len(fires) - 1
    assert one_profile == sum(why.startswith("gopher_quality:") and why not in good.rejected for why in fires)
