"""What `test_stranger` runs in a process that has the package: each part, used as one of ours."""

import json
from argparse import ArgumentParser
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks import api
from pipeline_tasks.cli.commands.export import add_arguments
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.trainers.formats import format_of
from pipeline_tasks.recipe import parse_recipe, stage_card
from pipeline_tasks.sources.recipe import form_of, parse_source
from tests.documents import documents
from tests.exported_dataset import exported
from tests.refining import commit_parent, refined, rows
from tests.sources.pulling import promise_of, pull_source, records_of
from tests.training_dataset import write_dataset

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
    assert BROUGHT in with_it.libraries.items()
    assert BROUGHT not in without.libraries.items()


def test_an_unknown_filter_is_told_the_nearest_one() -> None:
    with pytest.raises(RecipeError, match="the nearest is 'calm'"):
        parse_recipe({"stages": {"ingest": {}, "filter_quality": {"profiles": ["calmer"]}}}, "mine.yaml")


def test_an_export_has_every_sequence_and_its_borders(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [5, 4])
    listed = exported(packed, str(tmp_path / "to"), "id-lines", 90, workers=2)
    files = sorted((tmp_path / "to" / "data").iterdir())
    read = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [row["ids"] for row in read] == [packed.ids(index) for index in range(9)]
    assert [row["borders"] for row in read] == [packed.borders(index) for index in range(9)]
    assert len(listed["shards"]) == len(files) > 1


def test_recipes_and_the_command_know_an_export() -> None:
    build = {"versions": {"recipe": "web"}, "stages": {"tokenize": {}, "select": {}, "shuffle": {}, "pack": {}}}
    recipe = parse_recipe({**build, "exports": ["id-lines", "mds"]}, "mine.yaml")
    assert recipe.exports == {"id-lines": 0, "mds": 0}
    with pytest.raises(RecipeError, match="did you mean 'id-lines'"):
        parse_recipe({**build, "exports": ["id_lines"]}, "mine.yaml")
    parser = ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args(["root", "--format", "id-lines", "--to", "place"]).format == "id-lines"


def test_a_recipe_may_name_an_export_by_its_place() -> None:
    build = {"versions": {"recipe": "web"}, "stages": {"tokenize": {}, "select": {}, "shuffle": {}, "pack": {}}}
    recipe = parse_recipe({**build, "exports": ["stranger.lines:EXPORT"]}, "mine.yaml")
    assert format_of(next(iter(recipe.exports))) is format_of("id-lines")


@pytest.mark.parametrize("kind", ["diary", "stranger.diary:Diary"])
def test_a_source_is_pulled(kind: str, tmp_path: Path) -> None:
    place, landed = pull_source({kind: {"days": 3}}, tmp_path / "landings", name="mine")
    assert (place.name, landed.files) == ("mine-0003", 3)
    assert [row["url"][-5:] for row in records_of(place)] == ["jsonl"] * 3
    assert promise_of(place)["source"]["query"]["source"] == "diary"
    assert form_of(kind) == {"days": {"title": "Days"}}


def test_a_wrong_source_is_told_by_its_key_and_the_nearest_kind() -> None:
    with pytest.raises(RecipeError, match="did you mean 'diary'"):
        parse_source({"source": {"dairy": {"days": 3}}}, "mine.yaml", {})
    with pytest.raises(RecipeError, match="days must be a whole number"):
        parse_source({"source": {"diary": {"days": "three"}}}, "mine.yaml", {})
