"""A suite that a team brings is judged beside ours: on facts, rows and histograms, with what it misspells refused."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate import suites, validating
from pipeline_tasks.gate.batch_expectations import FOLDER
from pipeline_tasks.gate.batches import SAMPLE_ROWS, STEPS, histograms, sampled_rows
from pipeline_tasks.gate.checks import check_suites
from pipeline_tasks.gate.explaining import explain
from pipeline_tasks.gate.verdicts import judge, judged_again, read_verdict
from pipeline_tasks.inspect.lint import lint
from pipeline_tasks.manifest import schema_pairs
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.store.reading import read_manifest
from tests.documents import documents
from tests.gate.samples import healthy, judged, kept
from tests.refining import commit_parent, refined

MAIL = "write to somebody@example.org"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a team's suites."""
    place = tmp_path / "team"
    place.mkdir()
    monkeypatch.setenv(FOLDER, str(place))
    return place


def bring(folder: Path, *expectations: Mapping[str, Any], name: str = "filter_url", **meta: Any) -> None:
    """Write a suite as Great Expectations has it."""
    suite = {"name": name, "expectations": expectations, "meta": {"great_expectations_version": "1.24.1", **meta}}
    (folder / f"{name}.json").write_text(json.dumps(suite))


def on_rows(kind: str, severity: str = "critical", **kwargs: Any) -> dict[str, Any]:
    """Return an expectation over the sample of rows."""
    return {"type": kind, "kwargs": kwargs, "severity": severity, "meta": {"batch": "rows"}}


NO_MAIL = on_rows("expect_column_values_to_not_match_regex", column="text", regex=r"\S@\S")


def refined_pages(root: Path, texts: list[str], parts: int = 1) -> str:
    """Refine documents of so many shards; return the path of the manifest."""
    table = documents(texts)
    size = -(-table.num_rows // parts)
    shards = [table.slice(at, size) for at in range(0, table.num_rows, size)]
    return refined(root, "filter_url", commit_parent(root, shards))[0]


def test_rows_that_break_an_expectation_are_refused_and_named_by_their_ids_alone(tmp_path: Path, folder: Path) -> None:
    root = str(tmp_path / "root")
    path = refined_pages(Path(root), [*(f"text {number}" for number in range(120)), MAIL])
    before = judge(root, path)
    known = on_rows("expect_column_distinct_values_to_be_in_set", "info", column="text", value_set=["a"])
    bring(
        folder,
        NO_MAIL,
        known,
        on_rows("expect_table_row_count_to_be_between", min_value=5),
        name="ours",
        gate="filter_url",
    )
    verdict = judge(root, path)
    (mail,) = [row["id"] for row in sampled_rows(root, read_manifest(root, path)).to_pylist() if row["text"] == MAIL]
    failure, distinct = verdict.failures
    assert (before.outcome, verdict.outcome, verdict.evaluated) == ("pass", "refuse", before.evaluated + 3)
    assert (distinct.severity, distinct.observed, distinct.bound, distinct.rows) == ("info", None, {}, 0)
    assert (failure.batch, failure.examples, failure.rows, failure.bound) == ("rows", (mail,), 121, {"max_value": 0.0})
    said = "\n".join(explain(verdict.failures, ()))
    assert (
        f"text is not met by 1 of 121 rows; a share of 0 may\n    such as {mail}\n    bound of team/ours.json" in said
    )
    page = (tmp_path / "root" / verdict.docs).read_text()
    assert "rows: 121 rows" in page
    assert mail not in page.partition("<section>")[2]
    assert "somebody" not in page + (tmp_path / "root" / verdict.path).read_text()
    assert judge(root, path) == verdict == read_verdict(root, verdict.path) == judged_again(root, verdict)
    assert judge(root, path, override="known").outcome == "warn"
    (folder / "ours.json").unlink()
    assert judge(root, path) == before


def test_the_sample_is_of_ids_and_of_nothing_else(tmp_path: Path) -> None:
    """Neither shards nor the order of rows count; it is bounded, and a later stage has what is left of it."""
    texts = [f"text {number}" for number in range(SAMPLE_ROWS + 500)]
    paths = {parts: refined_pages(tmp_path / str(parts), texts[:: 1 if parts < 7 else -1], parts) for parts in (1, 7)}
    one, many = (
        sampled_rows(str(tmp_path / str(parts)), read_manifest(str(tmp_path / str(parts)), path))
        for parts, path in paths.items()
    )
    assert one.num_rows == SAMPLE_ROWS
    assert one.select(["id", "text"]) == many.select(["id", "text"])
    halves = [each[16:] for each in one["id"].to_pylist()]
    assert halves == sorted(halves)
    fewer = refined_pages(tmp_path / "1", texts[: SAMPLE_ROWS + 400])
    left = sampled_rows(str(tmp_path / "1"), read_manifest(str(tmp_path / "1"), fewer))
    kept = {*documents(texts[: SAMPLE_ROWS + 400])["id"].to_pylist()}
    assert {*one["id"].to_pylist()} & kept <= {*left["id"].to_pylist()}


def test_the_texts_of_a_sample_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_tasks.gate.batches.SAMPLE_CHARS", 100)
    path = refined_pages(tmp_path, [f"{number:040}" for number in range(9)])
    assert sampled_rows(str(tmp_path), read_manifest(str(tmp_path), path)).num_rows == 2
    path = refined_pages(tmp_path, ["x" * 200])
    assert sampled_rows(str(tmp_path), read_manifest(str(tmp_path), path)).num_rows == 1


def test_histograms_are_columns_of_quantiles_at_equal_steps(tmp_path: Path, folder: Path) -> None:
    manifest = healthy("filter_quality")
    table = histograms(manifest)
    assert {"chars", "gopher_quality.words", "gopher_quality.alpha_word_ratio"} <= {*table.column_names}
    assert table.num_rows == STEPS
    assert (table["chars"][0].as_py(), table["chars"][-1].as_py()) == (768.0, 1152.0)  # starts of their bins
    between = {"column": "gopher_quality.words", "min_value": 9_000, "max_value": 10_000}
    bring(
        folder,
        {"type": "expect_column_median_to_be_between", "kwargs": between, "severity": "warning"},
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "chars", "max_value": 1000, "mostly": 0.4}},
        name="filter_quality",
        batch="signals",
    )
    verdict = judged(tmp_path, manifest)
    assert verdict.outcome == "warn"
    (failure,) = verdict.failures
    assert failure.column == "signals: expect_column_median_to_be_between gopher_quality.words"
    assert failure.observed == pytest.approx(5000, rel=0.1)


def test_facts_are_bounded_beside_ours_and_read_by_any_other_type(tmp_path: Path, folder: Path) -> None:
    """A bound stays one that intervals judge; other types see the values."""
    bring(
        folder,
        {"type": "expect_column_max_to_be_between", "kwargs": {"column": "retention", "min_value": 1}},
        {
            "type": "expect_column_pair_values_a_to_be_greater_than_b",
            "kwargs": {"column_A": "rejected", "column_B": "rows"},
            "severity": "info",
        },
        {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "rows_change", "value_set": [0]}},
    )
    verdict = judged(tmp_path, kept(healthy("filter_url"), 0.97))
    assert [(failure.column, failure.severity) for failure in verdict.failures] == [
        ("retention", "critical"),
        ("facts: expect_column_pair_values_a_to_be_greater_than_b rejected rows", "info"),
    ]
    unknown = "facts: expect_column_values_to_be_in_set rows_change: nothing to compute rows_change from"
    assert unknown in verdict.skipped


def test_a_suite_of_every_stage_is_judged_where_its_columns_are(tmp_path: Path, folder: Path) -> None:
    bring(folder, on_rows("expect_column_values_to_be_in_set", column="language", value_set=["en"]), name="every_stage")
    check_suites(load_recipe("web"))
    verdict = judge(str(tmp_path), refined_pages(tmp_path, ["a text"] * 9))
    assert "rows: expect_column_values_to_be_in_set language: it has no language" in verdict.skipped


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (NO_MAIL | {"type": "expect_column_values_to_not_match_regexp"}, "'expect_column_values_to_not_match_regex'"),
        (NO_MAIL | {"type": "expect_column_values_to_match_like_pattern"}, "there is no expectation type"),
        (NO_MAIL | {"meta": {"batch": "row"}}, "'rows'"),
        (NO_MAIL | {"sevrity": "warning"}, "'severity'"),
        (NO_MAIL | {"severity": "warn"}, "'warning'"),
        (NO_MAIL | {"kwargs": {"column": "txt", "regex": "@"}}, "'text'"),
        (NO_MAIL | {"kwargs": {"column": "text", "regx": "@"}}, "'regex'"),
        (NO_MAIL | {"kwargs": {"column": "text"}}, "its argument 'regex' is missing"),
        (NO_MAIL | {"kwargs": {"column": "text", "regex": "(x["}}, "'(x[' is no regular expression"),
        (NO_MAIL | {"kwargs": {"column": "text", "regex": "@", "mostly": 99}}, "`mostly` is a share of the rows"),
        (
            {"type": "expect_column_max_to_be_between", "kwargs": {"column": "retenton", "min_value": 0.5}},
            "'retention'",
        ),
        ({"type": "expect_column_max_to_be_between", "kwargs": {"column": "retention", "min_value": 5}}, "from 0 to 1"),
        ({"type": "expect_column_max_to_be_between", "kwargs": {"column": "retention"}}, "names no limit"),
        (NO_MAIL | {"meta": {"batch": "signals"}, "kwargs": {"column": "char", "regex": "@"}}, "'chars'"),
    ],
)
def test_what_a_suite_misspells_is_refused_with_the_nearest(
    written: Mapping[str, Any], said: str, folder: Path
) -> None:
    bring(folder, written)
    with pytest.raises(RecipeError) as refused:
        check_suites(load_recipe("web"))
    assert said in str(refused.value)


def test_a_suite_of_no_gate_and_a_folder_that_is_not_there_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(folder, NO_MAIL, name="filter_urls")
    with pytest.raises(RecipeError, match=r"team/filter_urls.json is for no gate.*'filter_url'"):
        check_suites(load_recipe("web"))
    monkeypatch.setenv(FOLDER, str(folder / "gone"))
    with pytest.raises(RecipeError, match="there is no such folder"):
        check_suites(load_recipe("web"))


def test_a_value_of_another_type_is_refused_when_it_is_judged(tmp_path: Path, folder: Path) -> None:
    path = refined_pages(tmp_path / "root", ["a text"])
    bring(folder, on_rows("expect_column_values_to_be_between", column="chars", min_value=[1]))
    with pytest.raises(RecipeError, match=r"team/filter_url.json: Great Expectations does not read it"):
        judge(str(tmp_path / "root"), path)
    bring(folder, on_rows("expect_column_mean_to_be_between", column="text", min_value=1))
    with pytest.raises(RecipeError, match="cannot be evaluated"):
        judge(str(tmp_path / "root"), path)


def test_without_a_validator_a_suite_over_rows_is_not_passed_in_silence(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = refined_pages(tmp_path / "root", ["a text"])
    bring(folder, NO_MAIL)
    verdict = judge(str(tmp_path / "root"), path)
    monkeypatch.setattr(validating.seams, "all_parts", lambda *_: {})
    with pytest.raises(RecipeError, match=r"team/filter_url.json: Great Expectations judges batches"):
        judge(str(tmp_path / "root"), path)
    assert judged_again(str(tmp_path / "root"), verdict) is None


def test_lint_says_what_a_suite_misspells(folder: Path) -> None:
    assert [finding.fault for finding in lint("web") if finding.where == FOLDER] == [False], "the folder is empty"
    bring(folder, NO_MAIL | {"kwargs": {"column": "txt", "regex": "@"}})
    (finding,) = [finding for finding in lint("web") if finding.where == FOLDER]
    assert finding.fault
    assert "(did you mean 'text'?)" in finding.message


def test_a_folder_without_a_suite_says_what_is_read_and_that_nothing_was(tmp_path: Path, folder: Path) -> None:
    path = refined_pages(tmp_path / "root", ["a text"])
    assert judge(str(tmp_path / "root"), path).outcome == "pass", "an empty folder brings nothing"
    (folder / ".gitkeep").touch()
    (note,) = [finding for finding in lint("web") if finding.where == FOLDER]
    assert (note.fault, "is empty: *.json would be read" in note.message) == (False, True)
    (folder / "filter_url.yaml").write_text("expectations: []")
    (folder / "old").mkdir()
    bring(folder / "old", NO_MAIL)
    for ask in (lambda: check_suites(load_recipe("web")), lambda: judge(str(tmp_path / "root"), path)):
        with pytest.raises(
            RecipeError, match=r"\*\.json is read, and nothing was: .* filter_url.yaml, old/filter_url.json;"
        ):
            ask()
    (fault,) = [finding for finding in lint("web") if finding.where == FOLDER]
    assert fault.fault
    bring(folder, NO_MAIL, name="ours", gate="filter_url")
    (note,) = [finding for finding in lint("web") if finding.where == FOLDER]
    assert (note.fault, note.message) == (
        False,
        f"of {folder} ours.json is read, and not filter_url.yaml, old/filter_url.json",
    )
    for number in range(7):
        (folder / f"{number}.yml").touch()
    (note,) = [finding for finding in lint("web") if finding.where == FOLDER]
    assert "4.yml and 4 more" in note.message


def test_a_suite_is_read_once_until_it_changes(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = refined_pages(tmp_path / "root", ["a text", MAIL])
    bring(folder, NO_MAIL, name="ours", gate="filter_url")
    bring(folder, NO_MAIL, name="theirs", gate="filter_quality")
    read: list[str] = []
    text = Path.read_text

    def counted(self: Path, *how: Any, **named: Any) -> str:
        read.append(self.name)
        return text(self, *how, **named)

    monkeypatch.setattr(Path, "read_text", counted)
    suites._read_suite.cache_clear()
    assert judge(str(tmp_path / "root"), path).outcome == "refuse"
    once = ["every_stage.json", "filter_url.json", "ours.json", "theirs.json"]
    assert sorted(name for name in read if name in once) == once
    bring(folder, NO_MAIL | {"severity": "warning"}, name="ours", gate="filter_url")
    assert judge(str(tmp_path / "root"), path).outcome == "warn"
    assert sorted(name for name in read if name in once) == sorted([*once, "ours.json"])


def test_the_suite_of_the_docs_says_what_the_docs_show(tmp_path: Path, folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/operate/handle-a-refused-gate.md").read_text("utf-8")
    section = page.partition("## A suite of your own")[2]
    suite, shown = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("json", "text"))
    (folder / "no_addresses.json").write_text(suite)
    check_suites(load_recipe("web"))
    table = documents([*(f"text {number}" for number in range(196)), *(f"{at}@example.org" for at in range(4))])
    manifest = healthy("filter_quality")
    shard = read_manifest(str(tmp_path), commit_parent(tmp_path, [table])).shards
    manifest = replace(manifest, shards=shard, rows_in=200, rejected={}, rejects=(), schema=schema_pairs(table.schema))
    failures = [failure for failure in judged(tmp_path, manifest).failures if failure.batch]
    assert shown == "".join(f"{line}\n" for line in explain(failures, ()))
