"""`refinery export --format hub` of real roots: every row once in its config, with what the head of the card promises."""

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import mlcroissant
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from refinery_exports.described import Target
from refinery_exports.exporting import processes, run
from refinery_exports.hub import tables
from refinery_exports.hub.features import features
from refinery_exports.hub.tables import File
from refinery_exports.versions import export_of

from pipeline_tasks.cli.main import main
from pipeline_tasks.engines.each import HERE, On
from pipeline_tasks.errors import ContractError, JobLost, RecipeError, RowsVanished
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import LOCAL, engine_names
from pipeline_tasks.store.reading import read_in_order
from pipeline_tasks.upkeep import vacuum
from tests import erased_root
from tests.chain import reply
from tests.erased_root import DATASET, DAYS, RECIPE, URLS, ErasedRoot, address

pytestmark = pytest.mark.slow

WHY = ("--reason", "a letter", "--override", "takedown=a test")

SMALL = "30kB"
"""Bytes of the files of an export with several of them."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ErasedRoot:
    """Two refined days with near duplicates and a damaged line each, and a dataset of them."""
    return erased_root.make(tmp_path_factory.mktemp("hub"))


def export(root: str, to: Path, *arguments: str) -> int:
    return main(["export", root, "--format", "hub", "--to", str(to), *arguments])


def head(folder: Path) -> dict[str, Any]:
    """The YAML at the head of a card."""
    _, front, _ = (folder / "README.md").read_text().split("---\n", 2)
    return dict(yaml.safe_load(front))


def paths(folder: Path, config: str) -> list[Path]:
    """The files of a config, as the head of the card names them."""
    [named] = [each for each in head(folder)["configs"] if each["config_name"] == config]
    [files] = named["data_files"]
    assert files["split"] == "train"
    return sorted(folder.glob(files["path"]))


def rows(folder: Path, config: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.concat_tables(map(pq.read_table, paths(folder, config))).to_pylist()
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def manifests_of(root: str, versions: Sequence[Version]) -> list[tuple[str, Manifest]]:
    return [item for each in versions for item in read_in_order(root, each.manifests).items()]


def not_kept(root: str, versions: Sequence[Version]) -> Counter[tuple[str, str, str]]:
    """Rows that stages of versions did not keep, by stage, outcome and reason, as manifests count them."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for stage, manifest in manifests_of(root, versions):
        counts.update({(stage, "rejected", reason): rows for reason, rows in manifest.rejected.items()})
        counts.update({(stage, "quarantined", reason): rows for reason, rows in manifest.quarantined.items()})
    return counts


def verdicts(folder: Path) -> Counter[tuple[str, str, str]]:
    return Counter((row["stage"], row["outcome"], row["reason"]) for row in rows(folder, "rejects"))


def snapshots(root: str) -> list[Version]:
    return version_log.latest_by_snapshot(root, RECIPE)


# --- Rows -------------------------------------------------------------------------------------------------------------


def test_a_dataset_has_the_documents_of_text_parquet_and_what_was_not_kept(made: ErasedRoot, tmp_path: Path) -> None:
    assert export(made.root, tmp_path / "hub") == 0
    assert main(["export", made.root, "--format", "text-parquet", "--to", str(tmp_path / "texts")]) == 0
    texts = pa.concat_tables(map(pq.read_table, sorted((tmp_path / "texts" / "data").iterdir())))
    assert rows(tmp_path / "hub", "kept") == texts.to_pylist()
    versions = [version_log.current(made.root, DATASET), *snapshots(made.root)]
    assert verdicts(tmp_path / "hub") == not_kept(made.root, versions)
    assert {stage for stage, *_ in verdicts(tmp_path / "hub")} >= {"dedup_minhash", "ingest"}
    assert {outcome for _, outcome, _ in verdicts(tmp_path / "hub")} == {"rejected", "quarantined"}


@pytest.mark.parametrize("size", ["1", SMALL, "100MB"])
def test_snapshots_have_every_row_of_their_manifests_in_files_of_any_size(
    size: str, made: ErasedRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(made.root, tmp_path, "--recipe", RECIPE, "--shard-size", size, "--rejects", "texts", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    kept, rejects = rows(tmp_path, "kept"), rows(tmp_path, "rejects")
    assert len(kept) == sum(version.documents for version in snapshots(made.root)) == listed["documents"]
    assert {row["snapshot"] for row in kept} == set(DAYS)
    assert verdicts(tmp_path) == not_kept(made.root, snapshots(made.root))
    assert listed["rejects"] == len(rejects)
    assert listed["taken_down"] == 0
    near = next(row for row in rejects if row["stage"] == "dedup_minhash")
    assert near["text"], "a row that was not kept has its text"
    assert json.loads(near["evidence"])
    assert all(isinstance(row["redactions"], list) for row in kept), "nested columns stay"
    many = {"1": 20, SMALL: 3, "100MB": 1}[size]
    assert many <= len(paths(tmp_path, "kept")) <= 20 * many
    for config in ("kept", "rejects"):
        names = [path.name for path in paths(tmp_path, config)]
        assert names == [f"{config}-{number:05}-of-{len(names):05}.parquet" for number in range(len(names))]


def test_what_pages_said_that_were_not_kept_is_published_by_choice_alone(made: ErasedRoot, tmp_path: Path) -> None:
    """Personal data is still in texts that were rejected before the stage that replaces it."""
    assert export(made.root, tmp_path / "reasons", "--recipe", RECIPE) == 0
    assert export(made.root, tmp_path / "texts", "--recipe", RECIPE, "--rejects", "texts") == 0
    said = {"text", "title", "metadata"}
    reasons, texts = (rows(tmp_path / name, "rejects") for name in ("reasons", "texts"))
    assert not said & {*reasons[0]}
    assert said <= {*texts[0]}
    assert [{key: row[key] for key in row if key not in said} for row in texts] == reasons


def test_one_snapshot_one_version_and_no_rejects_are_chosen(made: ErasedRoot, tmp_path: Path) -> None:
    for name, chosen in {
        "snapshot": ["--recipe", RECIPE, "--snapshot", DAYS[1]],
        "number": ["--recipe", f"{RECIPE}@2"],
    }.items():
        assert export(made.root, tmp_path / name, *chosen, "--rejects", "none") == 0
        assert {row["snapshot"] for row in rows(tmp_path / name, "kept")} == {DAYS[1]}
        assert [each["config_name"] for each in head(tmp_path / name)["configs"]] == ["kept"]
        assert not list((tmp_path / name / "data").glob("rejects-*"))
    assert files(tmp_path / "snapshot") == files(tmp_path / "number")


# --- What is said of them ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [DATASET, RECIPE])
def test_the_head_of_the_card_says_what_the_files_have(name: str, made: ErasedRoot, tmp_path: Path) -> None:
    assert export(made.root, tmp_path, "--recipe", name, "--shard-size", SMALL) == 0
    front = head(tmp_path)
    assert (front["pretty_name"], front["license"], front["size_categories"]) == (name, "unknown", ["n<1K"])
    assert [(each["config_name"], each.get("default")) for each in front["configs"]] == [
        ("kept", True),
        ("rejects", None),
    ]
    for info in front["dataset_info"]:
        own = paths(tmp_path, info["config_name"])
        schemas = {pq.read_schema(path).remove_metadata() for path in own}
        [schema] = schemas
        assert info["features"] == features(schema)
        read = [pq.read_table(path) for path in own]
        [split] = info["splits"]
        assert (split["name"], split["num_examples"]) == ("train", sum(table.num_rows for table in read))
        assert split["num_bytes"] == info["dataset_size"]
        assert split["num_bytes"] == pytest.approx(sum(table.nbytes for table in read), rel=0.05)
        assert info["download_size"] == sum(path.stat().st_size for path in own)
        assert schema.names[:2] == (["id", "text"] if info["config_name"] == "kept" else ["stage", "reason"])


@pytest.mark.parametrize("name", [DATASET, RECIPE])
def test_croissant_is_valid_has_every_file_and_reads_every_row(name: str, made: ErasedRoot, tmp_path: Path) -> None:
    assert export(made.root, tmp_path, "--recipe", name, "--shard-size", SMALL) == 0
    dataset = mlcroissant.Dataset(jsonld=str(tmp_path / "croissant.json"))
    assert dataset.metadata.ctx.issues.errors == set()
    assert dataset.metadata.ctx.issues.warnings == set()
    described = json.loads((tmp_path / "croissant.json").read_text())
    objects = {each["@id"]: each["sha256"] for each in described["distribution"] if each["@type"] == "cr:FileObject"}
    assert objects == {
        f"data/{path.name}": sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "data").iterdir()
    }
    for config in ("kept", "rejects"):
        found = [record[f"{config}-records/record_id"] for record in dataset.records(record_set=f"{config}-records")]
        named = [name.decode() if isinstance(name, bytes) else None for name in found]
        assert Counter(named) == Counter(row["record_id"] for row in rows(tmp_path, config))


def test_every_file_is_listed_with_its_digest(made: ErasedRoot, tmp_path: Path) -> None:
    assert export(made.root, tmp_path, "--recipe", RECIPE) == 0
    there = files(tmp_path)
    listed = json.loads(there.pop("files.json"))["files"]
    assert {each["path"]: each["sha256"] for each in listed} == {
        path: sha256(body).hexdigest() for path, body in there.items()
    }


# --- Engines, kills and damage ----------------------------------------------------------------------------------------


@pytest.fixture(params=engine_names())
def any_on(request: pytest.FixtureRequest) -> On:
    """Every engine, at the address of its one cluster of this test session."""
    return On(request.param, "" if request.param == LOCAL else request.getfixturevalue(request.param))


def test_the_bytes_are_the_same_on_every_engine(any_on: On, made: ErasedRoot, tmp_path: Path) -> None:
    target = Target("hub", 30_000)
    run(export_of(made.root, snapshots(made.root), target), str(tmp_path / "alone"), HERE)
    run(export_of(made.root, snapshots(made.root), target), str(tmp_path / "there"), any_on)
    assert files(tmp_path / "there") == files(tmp_path / "alone")


def killed(write: Callable[[File, Path], Mapping[str, int]], file: File, folder: Path) -> Mapping[str, int]:
    """Write a file, but for the last one of `rejects`, whose process is killed, as by a kernel without memory."""
    if file.config == "rejects" and file.number == file.of - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(file, folder)


def test_an_export_whose_process_is_killed_has_no_card_and_goes_on(made: ErasedRoot, tmp_path: Path) -> None:
    whole = export_of(made.root, snapshots(made.root), Target("hub", 30_000))
    dying = replace(whole, shards=replace(whole.shards, write=partial(killed, whole.shards.write)))
    with pytest.raises(JobLost):
        run(dying, str(tmp_path / "to"), On(workers=processes(2)))
    assert not {"README.md", "files.json"} & {path.name for path in (tmp_path / "to").iterdir()}
    run(whole, str(tmp_path / "to"), HERE)
    run(whole, str(tmp_path / "again"), HERE)
    assert files(tmp_path / "to") == files(tmp_path / "again")


def test_rows_that_are_lost_are_counted(made: ErasedRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tables.Selection.read

    def some(self: tables.Selection, *arguments: Any) -> Iterator[pa.Table]:
        yield from (table.slice(1) for table in whole(self, *arguments))

    monkeypatch.setattr(tables.Selection, "read", some)
    with pytest.raises(RowsVanished, match="rows"):
        run(export_of(made.root, [version_log.current(made.root, DATASET)], Target("hub")), str(tmp_path), HERE)
    assert not (tmp_path / "files.json").exists()


def test_a_shard_of_rejects_that_was_changed_is_named(
    made: ErasedRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(shutil.copytree(made.root, tmp_path / "root"))
    shard = next(each for _, each in manifests_of(str(root), snapshots(str(root))) if each.rejects).rejects[0]
    body = (root / shard.path).read_bytes()
    (root / shard.path).write_bytes(body[:99] + bytes([body[99] ^ 1]) + body[100:])
    assert export(str(root), tmp_path / "to", "--recipe", RECIPE) == ContractError.exit_code
    assert shard.path in capsys.readouterr().err
    assert not (tmp_path / "to" / "files.json").exists()


# --- Takedowns, and more snapshots ------------------------------------------------------------------------------------


def test_what_is_taken_down_is_in_no_config_and_counted(
    made: ErasedRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(shutil.copytree(made.root, tmp_path / "root"))
    assert export(root, tmp_path / "before", "--recipe", RECIPE, "--rejects", "texts") == 0
    gone = [*URLS[:3], address(0, 13)]
    id_ = erased_root.ids(made)[URLS[2]]
    assert main(["takedown", root, *(word for url in gone for word in ("--url", url)), *WHY]) == 0
    capsys.readouterr()
    assert export(root, tmp_path / "before", "--recipe", RECIPE, "--rejects", "texts") == RecipeError.exit_code
    assert "has another export" in capsys.readouterr().err
    for erased in (False, True):
        to = tmp_path / f"after-{erased}"
        if erased:
            assert main(["erase", root]) == 0
            capsys.readouterr()
        assert export(root, to, "--recipe", RECIPE, "--rejects", "texts", "--json") == 0
        listed = json.loads(capsys.readouterr().out)
        whole = [row for config in ("kept", "rejects") for row in rows(to, config)]
        assert not [row for row in whole if row["url"] in gone or row["id"] == id_]
        texts = {made.texts[url] for url in gone}
        assert not [row for row in whole if row["text"] in texts]
        committed = sum(map(len, (rows(tmp_path / "before", config) for config in ("kept", "rejects"))))
        assert len(whole) == listed["documents"] + listed["rejects"] == committed - listed["taken_down"]
        assert listed["taken_down"] >= len(gone)


def test_no_snapshot_is_exported_where_takedowns_were_lost(
    made: ErasedRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(shutil.copytree(made.root, tmp_path / "root"))
    assert main(["takedown", root, "--url", address(0, 9), *WHY]) == 0
    shutil.rmtree(Path(root, "takedowns"))
    assert export(root, tmp_path / "to", "--recipe", RECIPE) == ContractError.exit_code
    assert "takedowns" in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


def test_a_dataset_is_exported_from_after_its_takedowns(
    made: ErasedRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(shutil.copytree(made.root, tmp_path / "root"))
    assert main(["takedown", root, "--url", address(0, 9), *WHY]) == 0
    assert export(root, tmp_path / "old", "--recipe", f"{DATASET}@1") == RecipeError.exit_code
    assert "which was taken down; export one without it" in capsys.readouterr().err
    assert export(root, tmp_path / "new") == 0
    assert not [
        row for config in ("kept", "rejects") for row in rows(tmp_path / "new", config) if row["url"] == address(0, 9)
    ]


def test_a_file_whose_rows_are_all_taken_down_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = erased_root.land(tmp_path / "small")
    erased_root.refine(small, DAYS[0])
    assert main(["takedown", small.root, "--url", address(0, 9), "--url", address(0, 10), *WHY]) == 0
    assert export(small.root, tmp_path / "to", "--recipe", RECIPE, "--shard-size", "1") == 0
    found = paths(tmp_path / "to", "kept")
    assert all(pq.read_metadata(path).num_rows for path in found), "`datasets` reads no file without rows"
    assert 0 < len(found) < int(found[0].stem.rpartition("-")[2])
    sites = [
        "example.org",
        "b\u00fccher.example",
        "mail.example",
        "plain.example",
        *(f"site{at}.example" for at in range(3)),
    ]
    assert main(["takedown", small.root, *(word for site in sites for word in ("--site", site)), *WHY]) == 0
    capsys.readouterr()
    assert export(small.root, tmp_path / "none", "--recipe", RECIPE) == RecipeError.exit_code
    assert f"all documents of {RECIPE} were taken down" in capsys.readouterr().err
    assert not (tmp_path / "none" / "files.json").exists()


def test_a_root_that_grew_is_another_export_of_more_snapshots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grown = erased_root.land(tmp_path / "grown")
    erased_root.refine(grown, DAYS[0])
    assert export(grown.root, tmp_path / "first", "--recipe", RECIPE) == 0
    before = files(tmp_path / "first")
    erased_root.refine(grown, DAYS[1])
    assert export(grown.root, tmp_path / "first", "--recipe", RECIPE) == RecipeError.exit_code
    assert "name another place with --to" in capsys.readouterr().err
    assert files(tmp_path / "first") == before
    assert export(grown.root, tmp_path / "both", "--recipe", RECIPE) == 0
    old, new = (rows(tmp_path / name, "kept") for name in ("first", "both"))
    assert [row for row in new if row["snapshot"] == DAYS[0]] == old
    assert export(grown.root, tmp_path / "again", "--recipe", RECIPE, "--snapshot", DAYS[0]) == 0
    assert files(tmp_path / "again") == before


# --- In the root, and refusals ----------------------------------------------------------------------------------------


def test_a_build_keeps_the_documents_alone_in_the_root(made: ErasedRoot, tmp_path: Path) -> None:
    root = str(shutil.copytree(made.root, tmp_path / "root"))
    version = version_log.current(root, DATASET)
    reply("export", root=root, recipe=DATASET, version=version.number, exports={"hub": 0})
    folder = Path(root, version.prefix, "exports", "hub")
    assert [each["config_name"] for each in head(folder)["configs"]] == ["kept"]
    assert export(root, tmp_path / "outside") == 0
    assert rows(folder, "kept") == rows(tmp_path / "outside", "kept")
    assert verify(root, Scope()).findings.problems == []
    assert not [entry for entry, _ in vacuum.find_orphans(root, 0, 0).files if "/exports/" in entry.path]
    gone = rows(folder, "kept")[0]["url"]
    assert main(["takedown", root, "--url", gone, *WHY]) == 0
    assert main(["erase", root]) == 0
    assert files(folder) == {}, "an erasure removes an export that has the document"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--recipe", f"{RECIPE}@9"], f"recipe {RECIPE} has no version or snapshot '9'"),
        (["--recipe", RECIPE, "--snapshot", "2026-01-01"], "has no version or snapshot '2026-01-01'"),
        (["--recipe", DATASET, "--snapshot", DAYS[0]], f"--snapshot {DAYS[0]} is of a recipe that refines"),
        (["--recipe", f"{RECIPE}@2", "--snapshot", DAYS[0]], f"--recipe {RECIPE}@2 names a version by itself"),
        (["--recipe", "other"], "no training dataset 'other'"),
    ],
)
def test_what_cannot_be_exported_is_named(
    arguments: list[str], words: str, made: ErasedRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(made.root, tmp_path, *arguments) == RecipeError.exit_code
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
