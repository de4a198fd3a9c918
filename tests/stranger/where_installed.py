"""What `test_stranger` runs in a process that has the package: each part, used as one of ours."""

import gzip
import importlib
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from refinery_exports.export import add_arguments
from refinery_exports.formats import format_of
from refinery_sources.recipe import form_of, parse_source

from pipeline_tasks import api
from pipeline_tasks.cards import stage_card
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.inspect.versions.outdated import _reasons
from pipeline_tasks.landing.listing import land
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.run.tasks.landed_files import LandedFiles
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.testing.training_dataset import write_dataset
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.yaml_file import read_yaml
from tests.chain import reply
from tests.documents import documents
from tests.refining import commit_parent, refined, rows
from tests.sources.pulling import promise_of, pull_source, records_of

BROUGHT = ("refinery-stranger", "1.0")

TEXTS = ["A calm text about a garden and its soil.", "Buy now!!! Only today!!!"]


def judged(root: Path, **params: object) -> Manifest:
    parent = commit_parent(root, [documents(TEXTS, language=pa.array(["en"] * len(TEXTS)))])
    return refined(root, "filter_quality", parent, {"packs": "none", **params})[1]


def test_a_filter_rejects_by_its_bound_and_stores_its_signals(tmp_path: Path) -> None:
    manifest = judged(tmp_path, profiles=["calm"])
    assert manifest.rejected == {"calm:shouts": 1}
    assert rows(tmp_path, manifest)["signals_calm"].to_pylist() == [{"shouted": 0.0}]
    assert set(manifest.rejected) < {*stage_card("filter_quality").reasons}
    loose = judged(tmp_path, profiles=["calm"], calm={"max_shouted": 0.5})
    assert loose.rejected == {}


def test_the_library_judges_by_a_filter() -> None:
    kept, rejected = api.filter("calm", pa.table({"text": TEXTS}))
    assert kept.column("text").to_pylist() == TEXTS[:1]
    assert rejected.column("reason").to_pylist() == ["calm:shouts"]
    assert api.filter("calm", pa.table({"text": TEXTS}), max_shouted=0.5).rejected.num_rows == 0


def test_the_distribution_of_a_filter_is_identity_where_a_recipe_names_it(tmp_path: Path) -> None:
    with_it, without = judged(tmp_path, profiles=["calm"]), judged(tmp_path, profiles=["c4"])
    assert ("refinery-calm", "1.0") in with_it.libraries.items()
    assert "refinery-calm" not in without.libraries


def test_an_unknown_filter_is_told_the_nearest_one() -> None:
    with pytest.raises(RecipeError, match="the nearest is 'calm'"):
        parse_recipe({"stages": {"ingest": {}, "filter_quality": {"profiles": ["calmer"]}}}, "mine.yaml")


def test_recipes_and_the_command_know_an_export() -> None:
    build = {"versions": {"recipe": "web"}, "stages": {"tokenize": {}, "select": {}, "shuffle": {}, "pack": {}}}
    recipe = parse_recipe({**build, "exports": ["id_lines", "mds"]}, "mine.yaml")
    assert recipe.exports == {"id_lines": 0, "mds": 0}
    with pytest.raises(RecipeError, match="did you mean 'id_lines'"):
        parse_recipe({**build, "exports": ["id-lines"]}, "mine.yaml")
    parser = ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args(["root", "--format", "id_lines", "--to", "place"]).format == "id_lines"


def test_a_recipe_may_name_an_export_by_its_place() -> None:
    build = {"versions": {"recipe": "web"}, "stages": {"tokenize": {}, "select": {}, "shuffle": {}, "pack": {}}}
    recipe = parse_recipe({**build, "exports": ["id_lines:EXPORT"]}, "mine.yaml")
    assert format_of(next(iter(recipe.exports))) is format_of("id_lines")


@pytest.mark.parametrize("kind", ["diary", "diary:SOURCE"])
def test_a_source_is_pulled(kind: str, tmp_path: Path) -> None:
    place, landed = pull_source({kind: {"days": 3}}, tmp_path / "landings", name="mine")
    assert (place.name, landed.files) == ("mine-0003", 3)
    assert [row["url"][-5:] for row in records_of(place)] == ["jsonl"] * 3
    assert promise_of(place)["source"]["query"]["source"] == "diary"
    assert form_of(kind) == {"days": {"title": "Days"}}


def test_a_wrong_source_is_told_by_its_key_and_the_nearest_kind() -> None:
    with pytest.raises(RecipeError, match="did you mean 'diary'"):
        parse_source({"source": {"dairy": {"days": 3}}}, "mine.yaml", {})
    with pytest.raises(RecipeError, match=r"id_lines:EXPORT of the package refinery-id-lines 1.0, which is a Format"):
        parse_source({"source": {"id_lines:EXPORT": {}}}, "mine.yaml", {})
    with pytest.raises(RecipeError, match="is no dataclass"):
        parse_source({"source": {"stranger.shelf:Shelf": {}}}, "mine.yaml", {})
    with pytest.raises(RecipeError, match="days must be a whole number"):
        parse_source({"source": {"diary": {"days": "three"}}}, "mine.yaml", {})


@pytest.mark.parametrize("name", ["brief", "calm", "id_lines"])
def test_nothing_is_wrong_in_a_recipe_that_was_written(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(str(importlib.import_module(name).__file__)).parents[1] / f"{name}.yaml"
    assert main(["lint", str(path)]) == 0
    assert "nothing found" in capsys.readouterr().out


def test_a_source_recipe_that_was_written_names_its_part() -> None:
    path = Path(str(importlib.import_module("diary").__file__)).parents[1] / "diary.yaml"
    assert parse_source(read_yaml(path), str(path), {}).kind == "diary"


def landed(tmp_path: Path, **files: bytes) -> tuple[Path, str]:
    folder = tmp_path / "landing"
    folder.mkdir()
    for name, body in files.items():
        (folder / name.replace("_", ".")).write_bytes(body)
    return folder, land(str(tmp_path / "root"), str(folder))[0]


def test_a_format_is_landed_and_read_and_its_distribution_is_identity(tmp_path: Path) -> None:
    folder, path = landed(
        tmp_path, a_notes=b"One note.\nAnother one.\n", b_notes_gz=gzip.compress(b"A third.\n"), c_txt=b"?"
    )
    root = tmp_path / "root"
    manifest = read_manifest(str(root), path)
    assert manifest.libraries == dict([BROUGHT])
    assert [shard.library for shard in manifest.shards] == ["refinery-stranger==1.0"] * 2
    _, pages = refined(root, "ingest", path, landing=str(folder))
    assert rows(root, pages, landing=str(folder))["text"].to_pylist() == ["One note.", "Another one.", "A third."]


def test_another_version_of_a_format_makes_a_landing_outdated(tmp_path: Path) -> None:
    _, path = landed(tmp_path, a_notes=b"One note.\n")
    manifest = read_manifest(str(tmp_path / "root"), path)
    assert list(_reasons(manifest)) == []
    assert list(_reasons(replace(manifest, libraries={"refinery-stranger": "0.9"}))) == ["refinery-stranger 0.9 → 1.0"]


def test_a_machine_with_another_version_of_a_format_reads_nothing(tmp_path: Path) -> None:
    folder, path = landed(tmp_path, a_notes=b"One note.\n")
    [shard] = read_manifest(str(tmp_path / "root"), path).shards
    files = LandedFiles(str(folder), "s", 10)
    for library, named in (("refinery-stranger==0.9", "0.9 → 1.0"), ("", "none → 1.0")):
        with pytest.raises(JobLost, match=named):
            list(files.read(replace(shard, library=library), ["text"]))


def test_our_formats_go_before_and_have_no_library(tmp_path: Path) -> None:
    _, path = landed(tmp_path, a_notes=b"One note.\n", b_jsonl=b'{"text": "ours"}\n')
    manifest = read_manifest(str(tmp_path / "root"), path)
    assert ([shard.path for shard in manifest.shards], manifest.libraries) == (["landing:b.jsonl"], {})


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRANGER_SHELF", str(tmp_path))
    return tmp_path


def test_a_root_and_a_landing_may_be_in_a_store(shelf: Path) -> None:
    (shelf / "landing").mkdir()
    (shelf / "landing" / "a.jsonl").write_bytes(b'{"text": "on a shelf"}\n')
    path = reply("land", root="shelf://root", input="shelf://landing")["manifest"]
    _, pages = refined("shelf://root", "ingest", path, landing="shelf://landing")
    assert rows("shelf://root", pages, landing="shelf://landing")["text"].to_pylist() == ["on a shelf"]
    assert (shelf / "root" / "ingest").is_dir()


def test_a_store_is_asked_as_a_bucket_is_and_others_are_told_of_it(shelf: Path) -> None:
    packed = write_dataset(shelf / "root", [5])
    dataset = TokenDataset(f"shelf://{packed.folder.relative_to(shelf)}")
    assert sorted(item["index"] for item in dataset) == [0, 1, 2, 3, 4]
    storage.require_usable("shelf://root")
    for ask in (storage.options_of_other_clients, lambda uri: storage.connect(uri.replace("shelf", "self"))):
        with pytest.raises(RecipeError, match="shelf://"):
            ask("shelf://root")
