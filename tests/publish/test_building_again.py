"""A published training dataset is built again from its `build.json`: the same bytes, or a reason why not."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.again import How, build_again
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.publish.datasets import building, origin
from pipeline_tasks.publish.datasets.origin import parse_origin, read_origin
from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.sealed import SEAL, path_of, seal
from pipeline_tasks.training.index import read_index
from tests.small_build import BUILT, DATASET, build, copied, recipe
from tests.small_root import DAYS, RECIPE, SmallRoot, refine

pytestmark = pytest.mark.slow

STAGES = ("compose", "tokenize", "select", "mix", "shuffle", "pack")

LOCALLY = How("local", {})


@pytest.fixture(scope="module")
def built(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    """A root with two versions of a dataset."""
    small = copied(small_root, tmp_path_factory.mktemp("built"))
    build(small, judged=True)
    build(small, recipe(pack={"method": "best_fit", "length": 32}), judged=True)
    return small


@pytest.fixture
def small(built: SmallRoot, tmp_path: Path) -> SmallRoot:
    return copied(built, tmp_path)


def files(small: SmallRoot, number: int) -> dict[str, bytes]:
    """The published files of a version that are there."""
    version = version_log.versions(small.root, DATASET)[number - 1]
    paths = [Path(small.root, file.path) for file in named_files(small.root, version)]
    return {path.name: path.read_bytes() for path in paths if path.exists()}


def again(small: SmallRoot, name: str) -> dict[str, Any]:
    return build_again(small.root, DATASET, name, LOCALLY)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("gone", [STAGES[1:], STAGES])
def test_a_version_is_built_again_from_nothing_but_its_file(
    small: SmallRoot, number: int, gone: tuple[str, ...]
) -> None:
    before, log = files(small, number), sorted(Path(small.root, "datasets").rglob("*"))
    for folder in (*gone, "publish/shards"):
        shutil.rmtree(Path(small.root, folder))
    facts = again(small, str(number))
    assert files(small, number) == before
    assert facts["version"] == number
    assert sorted(Path(small.root, "datasets").rglob("*")) == log
    again(small, str(3 - number))
    problems = verify(small.root, Scope(recipe=DATASET)).findings.problems  # the days' own `pack` is gone
    assert all("/gate/" in problem.object for problem in problems), problems  # so are verdicts


def test_a_superseded_version_gets_back_its_index(small: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    """A build writes only the newest version, so nothing brought those of an older one back."""
    before = files(small, 1)
    version = version_log.versions(small.root, DATASET)[0]
    for name in ("dataset.json", "build.json", "README.md"):
        Path(small.root, version.file(name).path).unlink()
    assert main(["build", "--output", small.root, "--again", "1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["sha256"] == version.file("dataset.json").digest
    assert files(small, 1) == before


def test_a_version_whose_index_has_no_seal_stays_and_is_built_again(
    small_root: SmallRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Releases before the seal published `dataset.json` without one, at the path where it would be now."""
    small = copied(small_root, tmp_path)
    with monkeypatch.context() as earlier:
        earlier.setattr(building, "index_bytes", building.unsealed_bytes)
        build(small)
    before = files(small, 1)
    assert SEAL not in json.loads(before["dataset.json"])
    assert build(small)["version"] == 1
    Path(small.root, version_log.current(small.root, DATASET).file("dataset.json").path).unlink()
    again(small, "1")
    assert files(small, 1) == before
    assert verify(small.root, Scope(recipe=DATASET)).findings.problems == []
    build(small, recipe(pack={"method": "best_fit", "length": 32}))
    index = files(small, 2)["dataset.json"]
    assert read_index(index, "dataset.json").length == 32
    assert SEAL in json.loads(index)


def test_the_same_snapshots_in_another_root_give_the_same_dataset(small: SmallRoot, tmp_path: Path) -> None:
    """The third day, which was retracted in the first root, is there: what is superseded follows from the log."""
    other = replace(small, root=str(tmp_path / "other"))
    for day in DAYS[:2]:
        refine(other, day)
    published = Path(small.root, version_log.versions(small.root, DATASET)[0].prefix)
    carried = shutil.copy(published / "build.json", tmp_path)
    with pytest.raises(ContractError, match=re.escape(f"{other.root}/tokenizers/{DATASET}/")):
        again(other, str(carried))
    shutil.copy(published / "tokenizer.json", tmp_path)
    facts = again(other, str(carried))
    assert facts["version"] == 1
    assert files(other, 1) == files(small, 1)
    assert verify(other.root).findings.problems == []
    assert again(other, str(carried)) == facts


def test_later_snapshots_change_nothing(small_root: SmallRoot, tmp_path: Path) -> None:
    """A day that is published after a build may name other winners; the build again has those that it had."""
    small = replace(small_root, root=str(tmp_path / "root"))
    for day in DAYS[:2]:
        refine(small, day)
    build(small, judged=True)
    before = files(small, 1)
    refine(small, DAYS[2])
    for folder in (*STAGES, "publish/shards"):
        shutil.rmtree(Path(small.root, folder))
    for day in DAYS:
        refine(small, day)  # `shuffle` and `pack` of the days were removed with those of the build
    again(small, "1")
    assert files(small, 1) == before


def test_sizes_of_clusters_are_counted_again(small: SmallRoot) -> None:
    sized = parse_recipe({**BUILT, "versions": {"recipe": RECIPE, "cluster_sizes": True}}, "corpus.yaml")
    number = int(build(small, sized)["version"])
    before = files(small, number)
    for folder in (*STAGES, "publish/shards"):
        shutil.rmtree(Path(small.root, folder))
    again(small, str(number))
    assert files(small, number) == before


def test_snapshots_that_are_not_there_are_listed(small: SmallRoot, tmp_path: Path) -> None:
    other = replace(small, root=str(tmp_path / "other"))
    refine(other, DAYS[0])
    carried = Path(small.root, version_log.versions(small.root, DATASET)[0].prefix, "build.json")
    with pytest.raises(RecipeError, match=rf"corpus .*: {DAYS[1]} of recipe small"):
        again(other, str(carried))


def test_other_code_is_named(small: SmallRoot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = Path(small.root, version_log.versions(small.root, DATASET)[0].prefix, "build.json")
    raw = json.loads(path.read_bytes())
    del raw[SEAL]
    raw["steps"][-1]["version"] += 1
    edited = tmp_path / "build.json"
    edited.write_bytes(seal(raw))
    now = raw["steps"][-1]["version"] - 1
    with pytest.raises(ContractError, match=rf"pack {now + 1} \(here {now}\)"):
        again(small, str(edited))
    monkeypatch.setattr(origin, "WRITER", "pyarrow-99 zstandard-9")
    with pytest.raises(ContractError, match=r"pyarrow-.* \(here pyarrow-99 zstandard-9\)"):
        again(small, "1")


def test_other_params_are_named(small: SmallRoot, tmp_path: Path) -> None:
    path = Path(small.root, version_log.versions(small.root, DATASET)[0].prefix, "build.json")
    raw = json.loads(path.read_bytes())
    del raw[SEAL]
    raw["steps"][-3]["params"]["seed"] = 4
    edited = tmp_path / "build.json"
    edited.write_bytes(seal(raw))
    with pytest.raises(ContractError, match=re.escape(small.root) + ".*: shuffle "):
        again(small, str(edited))


def test_a_damaged_file_is_no_origin(small: SmallRoot, tmp_path: Path) -> None:
    body = Path(small.root, version_log.versions(small.root, DATASET)[0].prefix, "build.json").read_bytes()
    with pytest.raises(DigestMismatch, match=r"^build\.json "):
        parse_origin(body.replace(b'"corpus"', b'"corpse"'), "build.json")
    with pytest.raises(ContractError, match=r"^build\.json "):
        parse_origin(seal({"format": 1}), "build.json")
    with pytest.raises(RecipeError, match=re.escape(str(tmp_path / "nothing.json"))):
        again(small, str(tmp_path / "nothing.json"))
    with pytest.raises(RecipeError, match="'9'"):
        again(small, "9")


def test_what_is_built_again_is_named_by_its_recipe_and_has_no_plan(
    small: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    """A version of a recipe that has published nothing was a snapshot; beside `--dry-run`, `--again` was ignored."""
    with pytest.raises(RecipeError, match=r"recipe other .*: .*corpus"):
        build_again(small.root, "other", "1", LOCALLY)
    with pytest.raises(SystemExit, match="2"):
        main(["build", "--output", small.root, "--plan", "--again", "1"])
    assert "--again: not allowed with argument --dry-run" in capsys.readouterr().err


def test_a_retracted_version_stays_away(small: SmallRoot) -> None:
    assert main(["retract", "build", small.root, "--recipe", DATASET, "--reason", "a leak"]) == 0
    with pytest.raises(RecipeError, match=r"version 1 of corpus .*: a leak"):
        again(small, "1")
    assert main(["retract", "build", small.root, "--recipe", DATASET, "--undo"]) == 0
    again(small, "2")


def test_the_origin_of_a_version_is_in_its_manifests_too(small: SmallRoot) -> None:
    version = version_log.versions(small.root, DATASET)[0]
    stored = read_origin(small.root, version)
    Path(small.root, version.file("build.json").path).unlink()
    assert read_origin(small.root, version) == stored
    Path(small.root, path_of(version.manifests["mix"])).unlink()
    with pytest.raises(ContractError, match=re.escape(version.file("build.json").path)):
        read_origin(small.root, version)
