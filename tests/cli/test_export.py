"""`refinery export` of a real build: files, card and tokenizer; wrong versions, places and sizes are named."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_exports.text.text_files import cut_tables

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, LookRefused, RecipeError
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import Versions, export_names, parse_recipe
from pipeline_tasks.store.access_log import PURPOSES, SETTING, looks
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.upkeep import vacuum
from tests.chain import reply
from tests.own_formats import FORMATS, TABLE_FORMATS, TEXT_FORMATS
from tests.publish.test_building import (
    BUILDS,
    built,
    recipe_of,
    root,  # noqa: F401 -- a fixture: a root with two versions to build of
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset(root: str) -> str:  # noqa: F811 -- a fixture
    """A root with a training dataset of two versions."""
    built(root, recipe_of())
    concat = recipe_of(pack={"method": "concat", "length": 32})
    built(root, replace(concat, versions=Versions("tiny", cluster_sizes=True)))
    return root


def export(root: str, to: Path, *arguments: str, name: str = "parquet") -> int:  # noqa: F811 -- no fixture here
    return main(["export", root, "--format", name, "--to", str(to), *arguments])


@pytest.mark.parametrize("name", FORMATS)
def test_a_version_is_exported_with_its_card_and_tokenizer(
    name: str, dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        export(dataset, tmp_path, "--recipe", "corpus@1", "--shard-size", "4kB", "--workers", "2", "--json", name=name)
        == 0
    )
    listed = json.loads(capsys.readouterr().out)
    facts = json.loads(next(Path(dataset, "publish").glob("*/dataset.json")).read_text())
    assert (listed["recipe"], listed["version"]) == ("corpus", 1)
    assert listed["tokens"] == sum(
        sum(pq.read_table(path)["length"].to_pylist()) for path in (tmp_path / "lineage").iterdir()
    )
    assert len(listed["shards"]) > 3
    assert (tmp_path / "tokenizer.json").read_bytes() == next(
        Path(dataset, "publish").glob("*/tokenizer.json")
    ).read_bytes()
    card = (tmp_path / "README.md").read_text()
    assert f"{listed['tokens']:,} tokens in {listed['sequences']:,} packed sequences of 64" in card
    assert f"Ids are little-endian {'int32' if name == 'parquet' else facts['dtype']};" in card
    assert "Version 1 of the training dataset `corpus`" in card
    assert "snapshot `2026-11-20` of recipe `tiny`" in card
    assert "{" not in FORMATS[name].reading.format(dtype=facts["dtype"], length=64)


def test_the_newest_version_is_exported_if_none_is_named(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(dataset, tmp_path) == 0
    assert f"{tmp_path}/data/shard-00000." in capsys.readouterr().out
    assert json.loads((tmp_path / "files.json").read_text())["version"] == 2


# --- Texts ------------------------------------------------------------------------------------------------------------


def read_texts(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in sorted((folder / "data").iterdir()):
        if path.suffix == ".parquet":
            rows += pq.read_table(path).to_pylist()
        else:
            with pa.OSFile(str(path)) as file, pa.CompressedInputStream(file, "zstd") as stream:
                rows += [json.loads(line) for line in stream.read().splitlines()]
    return rows


def texts_by_id(root: str) -> dict[str, str]:  # noqa: F811 -- no fixture here
    manifests = [
        read_manifest(root, version.manifests["dedup_exact"])
        for version in version_log.latest_by_snapshot(root, "tiny")
    ]
    rows = [row for manifest in manifests for row in rows_of(root, manifest, ["id", "text"])]
    return {row["id"]: row["text"] for row in rows}


def rows_of(root: str, manifest: Manifest, columns: list[str]) -> list[dict[str, Any]]:  # noqa: F811 -- no fixture here
    return [row for batch in read_shards(root, manifest.shards, columns) for row in batch.to_pylist()]


@pytest.mark.parametrize("size", ["1", "5kB", "100MB"])
@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_documents_are_there_once_in_the_order_of_the_selection(
    name: str, size: str, dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(dataset, tmp_path / "one", "--shard-size", size, "--workers", "1", "--json", name=name) == 0
    listed = json.loads(capsys.readouterr().out)
    version = version_log.current(dataset, "corpus")
    chosen = rows_of(
        dataset,
        read_manifest(dataset, version.manifests["mix"]),
        ["id", "copies", "n_tokens", "language", "cluster_size"],
    )
    rows, texts = read_texts(tmp_path / "one"), texts_by_id(dataset)
    assert [{name: row[name] for name in chosen[0]} for row in rows] == chosen
    assert all(row["text"] == texts[row["id"]] and row["url"].startswith("http") for row in rows)
    assert max(row["cluster_size"] for row in rows) > 1, "a column that the selection added"
    assert max(row["copies"] for row in rows) == 3
    assert all(row["language_score"] > 0.5 for row in rows), "scores that the tokenized documents have no more"
    assert listed["documents"] == len(rows)
    assert listed["uses"] == sum(row["copies"] for row in rows)
    files = [file for file in listed["files"] if file["path"].startswith("data/")]
    assert len(files) == {"1": len(rows), "100MB": 1}.get(size, len(files))
    assert export(dataset, tmp_path / "many", "--shard-size", size, "--workers", "3", name=name) == 0
    for path in (path for path in (tmp_path / "one").rglob("*") if path.is_file()):
        assert (tmp_path / "many" / path.relative_to(tmp_path / "one")).read_bytes() == path.read_bytes()


@given(st.lists(st.lists(st.text(max_size=9), max_size=6), max_size=6), st.integers(1, 40))
def test_files_of_texts_end_at_the_document_that_fills_them(texts: list[list[str]], most: int) -> None:
    parts = list(cut_tables((pa.table({"text": pa.array(own, pa.large_string())}) for own in texts), most))
    found = [[text for table in part for text in table["text"].to_pylist()] for part in parts]
    assert [text for part in found for text in part] == [text for own in texts for text in own]
    sizes = [[len(text.encode()) for text in part] for part in found]
    assert all(sum(part) >= most > sum(part[:-1]) for part in sizes[:-1])
    assert all(most > sum(part[:-1]) for part in sizes)


def test_texts_that_are_damaged_or_gone_are_named(
    dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = str(shutil.copytree(dataset, tmp_path / "root"))
    manifest = next(Path(copy, "dedup_exact").glob("*/manifest.json"))
    shard = next(path for path in (manifest.parent / "data").iterdir() if path.stat().st_size > 20_000)
    body = shard.read_bytes()
    shard.write_bytes(body[:9000] + bytes([body[9000] ^ 1]) + body[9001:])
    assert export(copy, tmp_path / "damaged", name="text-parquet") == ContractError.exit_code
    assert shard.name in capsys.readouterr().err
    assert not (tmp_path / "damaged" / "files.json").exists()
    manifest.unlink()
    assert export(copy, tmp_path / "gone", name="text-parquet") == ContractError.exit_code
    assert str(manifest.relative_to(copy)) in capsys.readouterr().err
    assert not (tmp_path / "gone").exists()


# --- Exports of a recipe ----------------------------------------------------------------------------------------------


def test_the_exports_of_a_recipe_are_kept_in_the_root_found_again_and_verified(dataset: str, tmp_path: Path) -> None:
    copy = str(shutil.copytree(dataset, tmp_path / "root"))
    version = version_log.current(copy, "corpus")
    request = {"root": copy, "recipe": "corpus", "version": version.number}
    request |= {"exports": {"parquet": 0, "mds": 4096, "text-jsonl": 0}}
    answered = reply("export", **request)
    folder = Path(copy, version.prefix, "exports")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert {path.name for path in folder.iterdir()} == {"parquet", "mds-4096", "text-jsonl"}
    assert json.loads((folder / "parquet" / "files.json").read_text())["tokens"] == version.tokens
    assert reply("export", **request) == answered
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert version_log.current(copy, "corpus") == version
    assert verify(copy, Scope()).findings.problems == []
    assert vacuum.find_orphans(copy, 0, 0).files == ()
    for name in ("mds-4096/data/shard-00001.mds", "text-jsonl/files.json"):
        path, body = folder / name, (folder / name).read_bytes()
        path.write_bytes(body[:99] + bytes([body[99] ^ 1]) + body[100:])
        (problem,) = verify(copy, Scope()).findings.problems
        assert problem.object == str(path)
        assert f"remove the folder {folder / name.split('/')[0]} and build again" in problem.heal
        path.unlink()
        assert reply("export", **request) == answered
        assert path.read_bytes() == body


@pytest.mark.parametrize(
    ("exports", "expected"),
    [
        (["parquet", "mds"], {"parquet": 0, "mds": 0}),
        ({"numpy": {"shard_bytes": 1000}, "text-jsonl": None}, {"numpy": 1000, "text-jsonl": 0}),
        (None, {}),
    ],
)
def test_a_recipe_names_exports_as_a_list_or_with_settings(exports: object, expected: dict[str, int]) -> None:
    assert parse_recipe({**BUILDS, "exports": exports}, "corpus.yaml").exports == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exports": ["parket"]}, "exports: unknown key 'parket' (did you mean 'parquet'?)"),
        ({"exports": {"mds": {"shard_bytes": 3 << 30}}}, "exports: mds: shard_bytes"),
        ({"exports": {"mds": {"workers": 3}}}, "exports: mds: unknown key 'workers'"),
        ({"exports": "mds"}, "exports"),
        (
            {"exports": ["mds"], "versions": None, "stages": {"ingest": {}}},
            "refines snapshots, and `exports` are of a training dataset",
        ),
    ],
)
def test_exports_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as refused:
        parse_recipe(BUILDS | changes, "corpus.yaml")
    assert message in str(refused.value)


def test_recipes_know_the_formats_that_there_are() -> None:
    assert {*FORMATS, *TEXT_FORMATS, *TABLE_FORMATS} == {*export_names()}


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--recipe", "corpus@9"], "recipe corpus has no version or snapshot '9'; the newest are 1 (build), 2 (build)"),
        (["--recipe", "other"], "no training dataset 'other'"),
        (["--recipe", "tiny"], "no training dataset 'tiny'"),
    ],
)
def test_a_version_that_is_no_training_dataset_is_named(
    arguments: list[str], words: str, dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(dataset, tmp_path, *arguments) == RecipeError.exit_code
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_place_in_the_root_is_refused(dataset: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(dataset, Path(dataset) / "exports") == RecipeError.exit_code
    assert "is in the root" in capsys.readouterr().err
    assert not Path(dataset, "exports").exists()


@pytest.mark.parametrize("size", ["0", "3GiB", "big", "-1", "5TB", ""])
def test_a_wrong_size_is_refused(size: str, dataset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        export(dataset, tmp_path, f"--shard-size={size}")
    assert "is no size from 1 to 2GiB" in capsys.readouterr().err


def test_an_export_is_a_look_that_is_logged_before_a_file_is_written(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = str(shutil.copytree(dataset, tmp_path / "root"))
    monkeypatch.setenv(SETTING, PURPOSES)
    assert export(shared, tmp_path / "none") == LookRefused.exit_code
    assert not (tmp_path / "none").exists()
    for name in ("parquet", "text-jsonl"):
        assert export(shared, tmp_path / name, "--recipe", "corpus@1", "--purpose", "a trainer", name=name) == 0
        *_, look = looks(shared)
        assert (look.through, look.what, look.purpose) == ("command", "export", "a trainer")
        assert look.of | {"recipe": "corpus", "version": "1", "format": name} == look.of
        assert look.rows > 0
        assert str(tmp_path) not in json.dumps(look.of)
    assert len(list(looks(shared))) == 2
