"""Gates: every suite refuses its planted bad sample and passes a good one; bounds, overrides and drift."""

import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html
from refinery_gates.validation import validate

from pipeline_tasks.ask.known import name_in
from pipeline_tasks.cards import stage_card
from pipeline_tasks.cli.main import parser_of
from pipeline_tasks.cli.reference.gates import gates_page
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.facts import FACTS, compute_facts
from pipeline_tasks.gate.facts.comparison import ks, psi
from pipeline_tasks.gate.facts.snapshots import SNAPSHOT_FACTS
from pipeline_tasks.gate.facts.spent import SPENT
from pipeline_tasks.gate.suites import load_suite
from pipeline_tasks.gate.verdicts import judge, read_verdict
from pipeline_tasks.manifest import Manifest, schema_pairs
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.profiles.removals import losses
from pipeline_tasks.recipe import EVERY, PUBLISH, VERDICT
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stages import NAMES
from pipeline_tasks.store.shards.file import ShardWriter
from tests.documents import documents as table_of
from tests.gate.samples import SUITES, bad, healthy, judged, kept, numbers, stored
from tests.refining import commit_parent, refined, rows

SORTED_BY_ID = [stage for stage in NAMES if (grouped := stage_card(stage).buckets) and grouped.by_id]
"""Stages whose documents come out by id: only there the rows of an id are neighbors."""

LOOKED_UP = {(EVERY, "duplicate_records"), *((stage, "duplicate_ids") for stage in SORTED_BY_ID)}
"""What stored rows say; broken by real rows in `test_rows_counted_twice_are_refused`."""

TRAILING = {("dedup_url", "site_rise_max"), ("dedup_exact", "site_rise_max")}
"""What several earlier snapshots say; broken by real rows in `test_learning.py`."""


WAITING = {(EVERY, name) for name in SPENT.meanings}
"""Bounds that wait for limits of a recipe, on what the ledger says; broken by real costs in `test_spent.py`."""


def test_every_stage_has_a_suite() -> None:
    assert set(SUITES) == {EVERY, *NAMES}


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_refuses_its_planted_bad_samples(suite: str, tmp_path: Path) -> None:
    """Every expectation with limits is broken by one of the samples, and each critical one refuses it.

    `test_learning.py` breaks those that are learned.
    """
    verdicts = [judged(tmp_path, manifest, previous) for manifest, previous in bad(suite)]
    failed = {(one.column, one.severity) for verdict in verdicts for one in verdict.failures}
    expected = {(one["kwargs"]["column"], one["severity"]) for one in load_suite(suite) if not one["learned"]}
    assert {one for one in expected if (suite, one[0]) not in LOOKED_UP | TRAILING | WAITING} <= failed
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


@pytest.mark.parametrize("suite", [*SUITES, PUBLISH, VERDICT])
def test_each_bound_says_what_a_violation_means_and_what_to_do(suite: str) -> None:
    """In the row of the bound, on the page of gates; commands and params that they name are there."""
    expectations = load_suite(suite)
    section = gates_page().partition(f"\n## {suite}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.strip().splitlines()[2:]]
    shown = [(row[0].strip("`"), row[4], *row[-2:]) for row in rows]
    said = [
        (bound["kwargs"]["column"], *(bound[key] for key in ("severity", "notes", "remedy"))) for bound in expectations
    ]
    assert shown == said
    assert "critical" in {severity for _, severity, _, _ in said}
    assert [notes for _, _, notes, remedy in said if not notes or not remedy or notes == remedy] == []
    named = {code for *_, notes, remedy in said for code in re.findall("`([^`]+)`", f"{notes} {remedy}")}
    assert [code for code in sorted(named) if not is_known(code)] == []


def is_known(code: str) -> bool:
    """Whether the text of a bound names a command with its options, a stage, a param of one, or bounds of a recipe."""
    if code.startswith("refinery "):
        command, count = name_in(code.split()[1:3])
        options = code.split()[1 + count :]
        if not command or command not in code:
            return False
        (commands,) = (action.choices for action in parser_of(command)._actions if action.dest == "command")
        return set(options) <= set(commands[command]._option_string_actions)  # type: ignore[call-overload, index]
    params = {entry.name for stage in NAMES for entry in fields(stage_card(stage).params)}
    key, *_, last = code.split(": ") * 2
    return key in params | {*NAMES} or (key == "gates" and last in {*FACTS, *SNAPSHOT_FACTS})


@pytest.mark.parametrize("suite", [*SUITES, PUBLISH, VERDICT])
def test_a_bound_has_limits_or_is_learned_or_waits_for_those_of_a_recipe(suite: str) -> None:
    listed = [one for one in load_suite(suite) if (suite, one["kwargs"]["column"]) not in WAITING]
    bounds = [(set(one["kwargs"]) - {"column"}, bool(one["learned"])) for one in listed]
    assert bounds
    assert [bound for bound in bounds if bound[0] - {"min_value", "max_value"} or bool(bound[0]) == bound[1]] == []


def test_facts_and_their_meanings_are_the_same_names(tmp_path: Path) -> None:
    facts = {name for stage in NAMES for name in compute_facts(str(tmp_path), healthy(stage), healthy(stage))}
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
    """A real stage over real rows; `refinery look funnel` names the site, the gate has numbers only."""
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


@pytest.mark.parametrize("threshold", [0.8, 0])
def test_removals_without_proof_are_refused(threshold: float, tmp_path: Path) -> None:
    """At a threshold of 0 a shared band is proof, and a removal that shows none is refused as at any other.

    Documents too short to be compared are counted as bypassed.
    """
    text = " ".join(f"word{n}" for n in range(200))
    table = table_of([*(text.replace("word7 ", f"w{n} ") for n in range(120)), *("short" for _ in range(30))])
    table = table.set_column(table.schema.get_field_index("id"), "id", pa.array([f"{n:032x}" for n in range(150)]))
    parent = commit_parent(tmp_path, [table])
    path, manifest = refined(tmp_path, "dedup_minhash", parent, {"threshold": threshold})
    lenient = {"retention": {"min_value": 0}, "bypassed": {"max_value": None}, "cluster_share_max": {"max_value": 1}}
    proven = judge(str(tmp_path), path, bounds=lenient)
    assert proven.outcome == "pass"
    assert (proven.facts["unverified_edges"], proven.facts["unsigned"], proven.facts["bypassed"]) == (0, 30, 30)
    assert proven.facts["similarity_p05"] >= 0.8
    assert proven.facts["cluster_share_max"] == round((sum(manifest.rejected.values()) + 1) / 150, 6)
    assert judge(str(tmp_path), path, bounds=lenient | {"bypassed": {"max_value": 0}}).outcome == "refuse"
    removed = rows(tmp_path, manifest, "rejects")
    for false, guesses in ((r'"bands":\d+', '"bands":0'), (r'"jaccard":[\d.]+', '"guessed":1')):
        planted = [re.sub(false, guesses, proof) for proof in removed["evidence"].to_pylist()]
        bad = removed.set_column(removed.schema.get_field_index("evidence"), "evidence", pa.array(planted))
        verdict = judge(str(tmp_path), stored(tmp_path, _with_similarities(manifest, bad)), bounds=lenient)
        failed = {failure.column: failure.observed for failure in verdict.failures}
        assert (verdict.outcome, failed) == ("refuse", {"unverified_edges": removed.num_rows})


def _with_similarities(manifest: Manifest, removed: pa.Table) -> Manifest:
    """Return a manifest as a stage leaves it that removed rows with this evidence, under a name of its own."""
    lost = dict(manifest.metrics["rejects"]) | merge([profile(removed, ["similarity"])])
    params = {**manifest.params, "planted": removed["evidence"][0].as_py()}
    return replace(manifest, params=params, metrics={**manifest.metrics, "rejects": lost})


def test_short_documents_that_were_compared_as_whole_texts_are_not_bypassed(tmp_path: Path) -> None:
    table = table_of([f"short text {n}" for n in range(120)])
    exact, _ = refined(tmp_path, "dedup_exact", commit_parent(tmp_path, [table]))
    path, _ = refined(tmp_path, "dedup_minhash", exact)
    verdict = judge(str(tmp_path), path)
    assert (verdict.outcome, verdict.facts["unsigned"], verdict.facts["bypassed"]) == ("pass", 120, 0)


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
        ({"retentoin": {"min_value": 1}}, "'retentoin'.*'retention'"),
        ({"retention": {"minimum": 1}}, "gates: retention .*min_value, max_value.*{'minimum': 1}"),
        ({"retention": 0.5}, "gates: retention .*0.5"),
        ({"retention": {"critical": {"min_value": "much"}}}, "retention: critical: min_value .*'much'"),
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


def test_data_docs_list_each_bound_with_its_note_the_broken_ones_first(tmp_path: Path) -> None:
    verdict = judged(tmp_path, kept(healthy("extract", 60), 0.1), bounds={"chars_p50": {"min_value": 200}})
    page = html.fromstring((tmp_path / verdict.docs).read_text())
    assert page.xpath("string(//h4)") == "Gate of extract: refuse"
    table = [
        [cell.text_content() for cell in row.xpath("td")] for row in page.xpath("//table[@class='bounds']//tr")[1:]
    ]
    assert len(table) == verdict.evaluated
    findings = [row[0] for row in table]
    assert findings == sorted(findings, key=["violated", "undecided", "met"].index)
    refusing = next(
        expectation for expectation in load_suite("extract") if expectation["kwargs"]["column"] == "retention"
    )
    assert table[0][:4] == ["violated", "critical", "retention", "0.1"]
    assert table[0][4:] == ["at least 0.25", f"{refusing['notes']} {refusing['remedy']}"]
    assert all(row[5] for row in table)


def test_the_pads_of_one_sequence_do_not_count_as_a_lack_of_fill(tmp_path: Path) -> None:
    """So the fact is above the share of tokens in positions, which counts every pad."""
    for tokens, fill in ((250, 1.0), (248, 1.0), (247, 1 - (360 - 249) / 30_000)):
        packed = replace(healthy("pack"), metrics={"kept": numbers(n_tokens=[tokens] * 120), "rejects": {}})
        fact = compute_facts(str(tmp_path), packed)["fill"]
        assert fact is not None
        assert fact.value == pytest.approx(fill)
        assert fact.value >= tokens / 250


def test_data_docs_show_a_number_of_any_precision(caplog: pytest.LogCaptureFixture) -> None:
    """Great Expectations hands numbers of numpy to its renderer, which knows none of more than a few digits."""
    kwargs = {"column": "retention", "min_value": 0.25, "max_value": 0.9}
    bounds: list[Any] = [
        {"type": f"expect_column_{end}_to_be_between", "kwargs": kwargs, "severity": "critical", "notes": "kept"}
        for end in ("min", "max")
    ]
    met, page = validate("extract", "a run", {"retention": 0.6940608182584452}, bounds)
    assert met == [True, True]
    assert page.count("0.6940608183") == len(bounds)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_the_title_of_a_page_shows_a_name_and_no_markup() -> None:
    bound: Any = {
        "type": "expect_column_min_to_be_between",
        "kwargs": {"column": "retention", "min_value": 0.25, "max_value": 0.9},
        "severity": "critical",
        "notes": "kept",
    }
    name = "a & </title><script>b</script>"
    _, page = validate(name, "a run", {"retention": 0.5}, [bound])
    shown = html.fromstring(page)
    assert shown.xpath("string(//title)") == f"Gate of {name}"
    assert not shown.xpath("//script")


def test_gates_may_be_judged_at_once(tmp_path: Path) -> None:
    manifests = [kept(healthy("filter_url"), share, "filter_url:domain") for share in (0.3, 0.6, 0.95, 1.0)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda manifest: judged(tmp_path, manifest).outcome, manifests))
    assert outcomes == ["refuse", "warn", "pass", "pass"]


def test_psi_is_zero_for_equal_and_grows_with_the_difference() -> None:
    before = numbers(chars=list(range(1, 2000)), language=["en"] * 900 + ["de"] * 100)
    near = numbers(chars=list(range(50, 2050)), language=["en"] * 880 + ["de"] * 120)
    far = numbers(chars=[5000] * 2000, language=["fr"] * 1000)
    for name in ("chars", "language"):
        same, close, other = [psi(profiles[name], before[name]) for profiles in (before, near, far)]
        assert same
        assert close
        assert other
        assert same.value == 0
        assert 0 < close.value < 0.1
        assert other.low > 0.25


def test_ks_is_the_largest_difference_of_two_distributions() -> None:
    before = numbers(chars=[1, 2, 3, 4], score=[0.1, 0.2, 0.3, 0.4])
    after = numbers(chars=[3, 4, 5, 6], score=[0.2, 0.3, 0.4, 0.5])
    many = numbers(chars=[1] * 6000 + [9] * 4000), numbers(chars=[1] * 4000 + [9] * 6000)
    length, score, large = (
        ks(now[name], old[name])
        for now, old, name in ((after, before, "chars"), (after, before, "score"), (many[1], many[0], "chars"))
    )
    assert length
    assert score
    assert large
    assert (length.value, score.value, length.low, length.high) == (0.5, 0.25, 0, 1)
    assert (large.value, large.low) == (pytest.approx(0.2), large.high)
    assert ks(numbers(chars=[1])["chars"], {"kind": "whole", "count": 0, "bins": {}}) is None


@given(
    now=st.lists(st.integers(0, 15), min_size=1, max_size=60),
    before=st.lists(st.integers(0, 15), min_size=1, max_size=60),
)
def test_ks_is_what_its_definition_says_of_any_small_numbers(now: list[int], before: list[int]) -> None:
    estimate = ks(numbers(chars=now)["chars"], numbers(chars=before)["chars"])
    below = [[sum(value <= end for value in values) / len(values) for end in range(16)] for values in (now, before)]
    assert estimate
    assert estimate.value == pytest.approx(max(abs(a - b) for a, b in zip(*below, strict=True)))
    assert estimate.low <= estimate.value <= estimate.high


@pytest.mark.parametrize(
    ("histories", "compared"),
    [((0, 0), True), ((0, 1), False), ((1, 0), False), ((1, 3), True)],
    ids=["without history", "the second snapshot", "refined anew without history", "both with history"],
)
def test_reasons_are_compared_of_snapshots_that_both_have_earlier_ones_or_none(
    histories: tuple[int, int], compared: bool, tmp_path: Path
) -> None:
    good = healthy("ingest")
    before, now = (
        replace(manifest, parents=("a" * 24,) * (1 + earlier), parent_digests=("b" * 64,) * (1 + earlier))
        for manifest, earlier in zip((good, kept(good, 0.5, "ingest:not_html")), histories, strict=True)
    )
    assert (compute_facts(str(tmp_path), now, before)["reasons_psi"] is not None) == compared
    verdict = judged(tmp_path, now, before)
    assert ("reasons_psi" in {failure.column for failure in verdict.failures}) == compared


@pytest.mark.parametrize(("lists", "compared"), [(("", "a"), False), (("a", ""), False), (("a", "b"), True)])
def test_reasons_of_a_build_are_compared_where_both_leave_out_what_others_supersede(
    lists: tuple[str, str], compared: bool, tmp_path: Path
) -> None:
    good = healthy("select")
    before, now = (
        replace(manifest, params={**manifest.params, "superseded": listed})
        for manifest, listed in zip((good, kept(good, 0.8, "select:superseded")), lists, strict=True)
    )
    assert (compute_facts(str(tmp_path), now, before)["reasons_psi"] is not None) == compared


def test_pages_that_an_earlier_snapshot_has_are_no_drift(tmp_path: Path) -> None:
    """The third day repeats more of the second than that of the first."""
    good = healthy("ingest")
    before, now = (
        replace(manifest, parents=("a" * 24,) * 2, parent_digests=("b" * 64,) * 2)
        for manifest in (good, kept(good, 0.5, "ingest:unchanged"))
    )
    found = compute_facts(str(tmp_path), now, before)["reasons_psi"]
    assert found
    assert found.value == pytest.approx(0, abs=0.01)


def test_silent_rules_are_those_of_enabled_profiles(tmp_path: Path) -> None:
    good = healthy("filter_quality")
    one_profile_only = replace(good, params={"profiles": ["gopher_quality"]})
    counts = [compute_facts(str(tmp_path), manifest)["silent_reasons"] for manifest in (good, one_profile_only)]
    all_rules, one_profile = (count.value for count in counts if count)
    fires = stage_card("filter_quality").reasons
    assert all_rules == len(fires) - 1
    assert one_profile == sum(why.startswith("gopher_quality:") and why not in good.rejected for why in fires)
