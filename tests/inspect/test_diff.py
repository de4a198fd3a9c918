"""`refinery diff` says what differs between two versions, exactly, whatever their stages are."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.diff import compare, diff_lines, document_sets
from pipeline_tasks.inspect.diff.document_sets import Amount, Comparison, Side, compare_documents
from pipeline_tasks.inspect.diff.stages import UNDECIDED, Difference, Shift, shifts, stage_differences
from pipeline_tasks.manifest import Manifest, dump
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import reference, sha256
from pipeline_tasks.store.reading import read_history, read_manifest, read_shards
from tests import refining
from tests.examples import few_examples
from tests.small_root import DAYS, RECIPE, STAGES, SmallRoot


def ids_of(root: str, manifest: Manifest) -> set[str]:
    return {id_ for batch in read_shards(root, manifest.shards, ["id"]) for id_ in batch.column("id").to_pylist()}


def table(ids: Sequence[str], **columns: Any) -> pa.Table:
    """Documents of these ids."""
    default = {"n_tokens": [3] * len(ids), "source": ["crawl"] * len(ids), "url": ["https://a.org/"] * len(ids)}
    return pa.table({"id": pa.array(ids, pa.string()), **default, **columns})


def committed(root: Path, *parts: Sequence[str], **columns: Any) -> Manifest:
    return read_manifest(str(root), refining.commit_parent(root, [table(ids, **columns) for ids in parts]))


# --- Documents by id ------------------------------------------------------------------------------------------------


def test_documents_of_two_days_are_compared_by_id(small_root: SmallRoot, tmp_path: Path) -> None:
    root = small_root.root
    a, b = version_log.versions(root, RECIPE)[:2]
    diff = compare(root, a, b, documents=True, to=str(tmp_path / "ids"))
    before, now = (ids_of(root, ordered_manifests(root, version)[STAGES[-1]]) for version in (a, b))
    listed = {
        name: (tmp_path / "ids" / f"{name}.txt").read_text().split() for name in ("added", "removed", "superseded")
    }
    assert listed["added"] == sorted(now - before)
    assert listed["removed"] == sorted(before - now)
    manifest = ordered_manifests(root, b)["dedup_minhash"]
    losers = {id_ for batch in read_history(root, manifest, "superseded") for id_ in batch.column("id").to_pylist()}
    assert listed["superseded"] == sorted(losers & (before - now))
    assert diff.documents == Comparison(len(before & now), *map(len, listed.values()))
    assert diff.documents.superseded == b.superseded == 3
    assert diff.groups["source"] == {"crawl": (Amount(10, 0), Amount(6, 0))}


NIBBLE = st.sampled_from("0f")
IDS = st.lists(st.builds(lambda first, last: first * 2 + "0" * 28 + last * 2, NIBBLE, NIBBLE) | st.uuids().map(lambda u: u.hex), max_size=30)  # fmt: skip


@few_examples
@given(IDS, IDS, st.sampled_from([16, 64, 1 << 20]))
def test_sets_of_ids_are_those_of_python(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], now: list[str], part: int
) -> None:
    """Ids that end with zero bytes, that occur several times, in shards of any order, and in any number of parts."""
    root = tmp_path_factory.mktemp("sets")
    half = len(before) // 2
    first, second = committed(root, before[half:], before[:half]), committed(root, now)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_sets, "PART_BYTES", part)
        sides = [Side(str(root), manifest, (manifest,)) for manifest in (first, second)]
        comparison, *groups = compare_documents(*sides, to=str(root / "ids"))
    assert (root / "ids" / "added.txt").read_text().split() == sorted({*now} - {*before})
    assert (root / "ids" / "removed.txt").read_text().split() == sorted({*before} - {*now})
    assert comparison.common == len({*before} & {*now})
    counted = [part["source"].get("crawl", Amount(0, 0)) for part in groups]
    assert counted == [Amount(len(ids), 3 * len(ids)) for ids in (before, now)]


def test_documents_without_a_value_are_a_group(tmp_path: Path) -> None:
    ids = ["a" * 32, "b" * 32]
    side = Side(str(tmp_path), committed(tmp_path, ids, language=["en", None], n_tokens=[5, 7]), ())
    assert compare_documents(side, side)[1]["language"] == {"-": Amount(1, 7), "en": Amount(1, 5)}


@pytest.mark.parametrize("wrong", ["a" * 31, "g" * 32])
def test_an_id_that_is_no_hash_is_refused(tmp_path: Path, wrong: str) -> None:
    side = Side(str(tmp_path), committed(tmp_path, [wrong]), ())
    with pytest.raises(ContractError, match="32"):
        compare_documents(side, side)


# --- Stages ---------------------------------------------------------------------------------------------------------


def test_stages_come_in_the_order_in_which_they_were_made(small_root: SmallRoot) -> None:
    version = version_log.versions(small_root.root, RECIPE)[1]
    assert list(ordered_manifests(small_root.root, version)) == ["land", *STAGES]


def test_settings_that_differ_are_found(small_root: SmallRoot) -> None:
    a = ordered_manifests(small_root.root, version_log.versions(small_root.root, RECIPE)[0])
    extract, exact, mix = a["extract"], a["dedup_exact"], a["dedup_minhash"]
    b = {name: manifest for name, manifest in a.items() if name != "dedup_minhash"} | {
        "extract": replace(extract, params={**extract.params, "min_chars": 7, "nested": {"x": [1, 2]}}, version=99),
        "dedup_exact": replace(exact, resources={**exact.resources, "model": "f" * 64}, writer="another"),
        "mix": mix,
    }
    differences = {stage.stage: stage for stage in stage_differences(a, b)}
    assert list(differences) == ["land", "ingest", "extract", "dedup_exact", "dedup_minhash", "mix"]
    assert differences["extract"].differences == (
        Difference("params.min_chars", 100, 7),
        Difference("params.nested.x", None, [1, 2]),
        Difference("version", extract.version, 99),
    )
    assert [part.setting for part in differences["dedup_exact"].differences] == ["resources.model", "writer"]
    assert (differences["dedup_minhash"].rows, differences["mix"].rows) == ((10, None), (None, 10))
    assert all(not stage.differences for name, stage in differences.items() if name not in ("extract", "dedup_exact"))


def profiled(column: str, bins: dict[str, int], kind: str = "whole") -> Manifest:
    profile = {column: {"kind": kind, "count": sum(bins.values()), "bins": bins}}
    schema = (("url", "string"), (column, "int64"))
    return replace(EMPTY, schema=schema, metrics={"kept": profile, "rejects": {}})


def test_a_column_that_shifts_comes_first_with_its_medians() -> None:
    a = {"x": profiled("score", {"16": 90_000, "64": 10_000}), "y": profiled("language", {"en": 50_000}, "name")}
    b = {"x": profiled("score", {"16": 10_000, "64": 90_000}), "y": profiled("language", {"en": 50_001}, "name")}
    shifted = shifts(a, b)
    assert [(shift.column, shift.size, shift.a, shift.b) for shift in shifted] == [
        ("score", "large", 16, 64),
        ("language", "", None, None),
    ]
    few = {"x": profiled("score", {"16": 9})}, {"x": profiled("score", {"16": 6, "64": 3})}
    assert [shift.size for shift in shifts(*few)] == ["too few rows to tell"]


@pytest.mark.parametrize(
    ("a", "b", "size"),
    [
        ({"en": 30}, {"en": 1, "de": 29}, UNDECIDED),
        ({"en": 10, "de": 2}, {"en": 15, "de": 3}, UNDECIDED),
        ({"en": 99}, {"de": 100_000}, UNDECIDED),
        ({"en": 3}, {"en": 4}, ""),
        ({"en": 100}, {"de": 100_000}, "large"),
        ({"en": 60, "de": 60}, {"en": 35, "de": 85}, UNDECIDED),
        ({"en": 600, "de": 600}, {"en": 590, "de": 610}, ""),
        ({"en": 300, "de": 700}, {"en": 600, "de": 400}, "moderate"),
    ],
)
def test_few_rows_are_called_no_shift_and_no_rest(a: dict[str, int], b: dict[str, int], size: str) -> None:
    [shift] = shifts({"x": profiled("language", a, "name")}, {"x": profiled("language", b, "name")})
    assert (shift.size, shift.is_sure) == (size, size in ("moderate", "large"))
    assert (shift.known_psi is None) == (size == UNDECIDED)


def test_columns_of_too_few_rows_come_last() -> None:
    few, many = profiled("score", {"16": 9}), profiled("language", {"en": 10_000}, "name")
    other, same = profiled("score", {"64": 9}), profiled("language", {"en": 10_001}, "name")
    found = shifts({"x": few, "y": many}, {"x": other, "y": same})
    assert [(shift.column, shift.known_psi) for shift in found] == [("language", 0), ("score", None)]


def test_a_long_name_of_a_column_does_not_run_into_that_of_its_stage(small_root: SmallRoot) -> None:
    version = version_log.versions(small_root.root, RECIPE)[0]
    shift = Shift("unsettled_semantic_bands", "dedup_semantic", 0.5, 0.4, 0.6, 10_000, 0, 8)
    lines = diff_lines(replace(compare(small_root.root, version, version), shifts=(shift,)))
    assert ["unsettled_semantic_bands", "dedup_semantic", "0.500"] in [line.split()[:3] for line in lines]


EMPTY = Manifest("x", 1, "", {}, (), (), (), (), {}, (), (), 0, 0, {}, {})


# --- The command ----------------------------------------------------------------------------------------------------


def published(root: str, **named: Manifest) -> version_log.Version:
    """Publish manifests as a version of a build, as far as `diff` reads it."""
    version = version_log.versions(root, RECIPE)[0]
    known = {field.name: getattr(version, field.name) for field in fields(version) if field.name != "number"}
    manifests = {}
    for stage, manifest in named.items():
        path = refining.commit_manifest(Path(root), manifest)
        manifests[stage] = reference(path, sha256(dump(read_manifest(root, path))))
    documents = [*named.values()][-1].rows
    build = {"recipe": "corpus", "snapshot": "build", "manifests": manifests, "verdicts": {}, "documents": documents}
    return version_log.append(root, known | build)


def test_builds_are_compared_though_their_stages_are_of_another_kind(
    small_root: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "root")
    shutil.copytree(small_root.root, root)
    ids = [f"{number:032x}" for number in range(8)]
    superseded = committed(Path(root), ids[:2])
    for rank, chosen in enumerate((ids[:5], ids[2:])):
        select = replace(committed(Path(root), chosen), stage="select", params={"weights": {"en": rank}})
        compose = replace(select, stage="compose", history={"superseded": superseded.shards} if rank else {})
        published(root, compose=compose, select=select)
    assert main(["diff", "1", "build", root, "--recipe", "corpus", "--documents", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["a"]["number"], facts["b"]["number"]) == (1, 2)
    assert facts["documents"] == {"common": 3, "added": 3, "removed": 2, "superseded": 2}
    assert [stage["stage"] for stage in facts["stages"]] == ["compose", "select"]
    assert facts["stages"][1]["differences"] == [{"setting": "params.weights.en", "a": 0, "b": 1}]
    assert facts["groups"]["source"]["crawl"] == {
        "a": {"documents": 5, "tokens": 15},
        "b": {"documents": 6, "tokens": 18},
    }


def test_a_stage_that_one_version_lacks_has_no_rows_there_and_no_zeros(
    small_root: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`0` said that a stage had rejected nothing, of a version in which it never ran."""
    root = str(tmp_path / "root")
    shutil.copytree(small_root.root, root)
    compose = replace(committed(Path(root), [f"{number:032x}" for number in range(8)]), stage="compose")
    select = replace(compose, stage="select", rows_in=11, rejected={"select:filtered": 3})
    published(root, compose=compose)
    published(root, compose=compose, select=select)
    assert main(["diff", "1", "2", root, "--recipe", "corpus"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("select"))
    assert lines[at].split() == ["select", "-", "->", "11", "-", "->", "8", "only", "in", "B"]
    assert lines[at + 1] == "    select:filtered: - -> 3 rows"
    assert not any("only in" in line for line in lines if line.startswith("compose"))
    assert main(["diff", "2", "1", root, "--recipe", "corpus", "--json"]) == 0
    stage = json.loads(capsys.readouterr().out)["stages"][1]
    assert (stage["rows"], stage["reasons"], stage["present"]) == (
        [8, None],
        {"select:filtered": [3, None]},
        [True, False],
    )


def test_the_table_names_what_differs_and_what_was_not_read(
    small_root: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", DAYS[0], "3", small_root.root]) == 0
    out = capsys.readouterr().out
    assert f"B: small version 3, snapshot {DAYS[2]}" in out
    assert f'params.snapshot: "{DAYS[0]}" -> "{DAYS[2]}"' in out
    assert "not read; --documents reads them" in out
    assert main(["diff", "1", "1", small_root.root, "--documents"]) == 0
    assert "only in B (added)                      0" in capsys.readouterr().out


def test_a_version_that_is_not_there_is_refused_with_those_that_are(
    small_root: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "1", "7", small_root.root]) == 78
    assert f"has no version or snapshot '7'; the newest are 1 ({DAYS[0]}), 2 ({DAYS[1]}), 3" in capsys.readouterr().err
    assert main(["diff", DAYS[2], "1", small_root.root]) == 78
    assert "was retracted on" in capsys.readouterr().err
