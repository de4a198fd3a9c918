"""The files of a training dataset's shards are named by its index, and not by its log."""

import importlib
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipeline_tasks.errors import ContractError
from pipeline_tasks.publish.datasets import building
from pipeline_tasks.publish.datasets.building import SHARDS, export_shard, restore_build
from pipeline_tasks.publish.datasets.published_shards import named_files
from pipeline_tasks.publish.exports.shards import is_named
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store import storage
from pipeline_tasks.store.committing import LISTED, sizes_of
from pipeline_tasks.upkeep.vacuum import find_orphans
from tests.chain import reply
from tests.small_build import DATASET, build, copied
from tests.small_root import SmallRoot


@pytest.fixture(scope="module")
def built(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    small = copied(small_root, tmp_path_factory.mktemp("named"))
    build(small)
    return small


@pytest.fixture
def version(built: SmallRoot) -> Version:
    return version_log.current(built.root, DATASET)


def test_an_entry_of_the_log_has_one_size_for_any_number_of_shards(built: SmallRoot, version: Version) -> None:
    """It named three files of each: 30 MB for 65,536 shards, which whoever read the log read for each version."""
    shards = {file.path for file in named_files(built.root, version)} - {file.path for file in version.files}
    stored = {entry.path for entry in storage.connect(built.root).list(SHARDS)}
    assert shards == stored
    assert all(file.path.startswith(f"{version.prefix}/") for file in version.files)


def test_an_entry_of_an_earlier_release_is_the_same_version(built: SmallRoot, version: Version) -> None:
    earlier = replace(version, files=tuple(named_files(built.root, version)))
    fields = {name: value for name, value in asdict(version).items() if name not in ("number", "at")}
    assert version_log.unchanged(built.root, fields | {"files": version.files}, [earlier]) == earlier


@pytest.mark.parametrize("by_names", [True, False], ids=["of this release", "of an earlier release"])
def test_shards_that_are_gone_are_written_again_with_or_without_the_names_of_their_documents(
    by_names: bool, built: SmallRoot, version: Version, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lineages of earlier releases have no filter over the names of their rows."""
    root = str(shutil.copytree(built.root, tmp_path / "root"))
    if not by_names:
        version = published_without_names(root, version, monkeypatch)
    before = {file.path: Path(root, file.path).read_bytes() for file in named_files(root, version)}
    assert {is_named(pq.ParquetFile(Path(root, path))) for path in before if path.endswith(".parquet")} == {by_names}
    for path in before:
        if path.startswith(SHARDS):
            Path(root, path).unlink()
    restored = restore_build(root, version, partial(map, export_shard))
    assert {file.path for file in restored} == set(before)
    assert {path: Path(root, path).read_bytes() for path in before} == before


def published_without_names(root: str, version: Version, monkeypatch: pytest.MonkeyPatch) -> Version:
    """Publish what a version has as the first of its log, as an earlier release did."""
    shutil.rmtree(Path(root, "publish"))
    shutil.rmtree(Path(root, "datasets", DATASET))
    with monkeypatch.context() as earlier:
        packed = building.packed_shards
        earlier.setattr(building, "packed_shards", lambda *of: [replace(shard, named=False) for shard in packed(*of)])
        named = {"root": root, "recipe": DATASET, "snapshot": "build"}
        reply("publish", **named, manifests=dict(version.manifests))
    return version_log.current(root, DATASET)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"{}")], ids=["gone", "changed"])
def test_no_shard_is_an_orphan_while_the_index_that_names_it_is_damaged(
    damage: Callable[[Path], object], built: SmallRoot, version: Version, tmp_path: Path
) -> None:
    shutil.copytree(built.root, tmp_path / "root")
    damage(tmp_path / "root" / version.prefix / "dataset.json")
    with pytest.raises(ContractError, match=f"refinery build --again {version.number} --recipe {DATASET}"):
        find_orphans(str(tmp_path / "root"), grace=0.0)


@pytest.mark.parametrize("others", [0, 25_000], ids=["alone", "among others"])
def test_objects_are_looked_up_by_a_list_for_as_many_requests_as_one_by_one(
    others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    counting = importlib.import_module("counting")
    (tmp_path / SHARDS).mkdir(parents=True)
    wanted = [f"{SHARDS}/{at * 7919:08d}.bin" for at in range(LISTED)]
    for at, path in enumerate(wanted[1:], 1):
        (tmp_path / path).write_bytes(b"." * at)
    for at in range(others):
        (tmp_path / SHARDS / f"{at:08d}.ends").touch()
    asked = counting.Requests()
    with counting.counted(asked):
        found = sizes_of(storage.connect(str(tmp_path)), wanted, SHARDS)
    assert found == {path: at for at, path in enumerate(wanted) if at}
    assert asked.total <= (2 * LISTED if others else 1)
