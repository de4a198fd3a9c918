"""Vacuum removes files that no manifest names, and no others; an attempt that it fenced cannot commit any more."""

import contextlib
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from refinery_rights.erasing.documents import Documents
from refinery_rights.erasing.survey import survey

from pipeline_tasks.cli.main import main
from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import ContractError, JobLost, RecipeError
from pipeline_tasks.manifest import ABANDONED
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine, seal
from pipeline_tasks.stage import Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.local_store import LocalStore
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.s3.client import s3_client
from pipeline_tasks.text.urls.takedown import of_rows
from pipeline_tasks.upkeep import vacuum
from tests.refining import commit_parent, refined, rows
from tests.toys import table

pytestmark = pytest.mark.usefixtures("toys")

EVERYTHING = -3600.0
"""A grace by which a file that was just written is old."""


@pytest.fixture
def parent(tmp_path: Path) -> str:
    return commit_parent(tmp_path, [table(0, 120), table(120, 80)])


def paths(orphans: vacuum.Orphans) -> list[str]:
    return [entry.path for entry, _ in orphans.files]


def test_committed_files_stay(tmp_path: Path, parent: str) -> None:
    _, manifest = refined(tmp_path, "toy_map", parent)
    before = rows(tmp_path, manifest)
    orphans = vacuum.find_orphans(str(tmp_path), EVERYTHING)
    vacuum.remove(str(tmp_path), orphans, limit=1.0)
    assert not orphans.files
    assert rows(tmp_path, manifest).equals(before)


def test_a_losers_shard_goes_and_the_winners_stay(tmp_path: Path, parent: str) -> None:
    _, manifest = refined(tmp_path, "toy_map", parent)
    loser = f"{Path(manifest.shards[0].path).parent}/{'0' * 32}.parquet"
    storage.connect(str(tmp_path)).create(loser, b"other bytes")
    orphans = vacuum.find_orphans(str(tmp_path), EVERYTHING)
    assert paths(orphans) == [loser]
    vacuum.remove(str(tmp_path), orphans)
    assert not (tmp_path / loser).exists()
    assert rows(tmp_path, manifest).num_rows == manifest.rows


def test_young_files_stay(tmp_path: Path, parent: str) -> None:
    refined(tmp_path, "toy_map", parent)
    store = storage.connect(str(tmp_path))
    store.create("toy_group/abandoned/data/one.parquet", b"half a day's work")
    (tmp_path / "toy_group/abandoned/data/.tmp-half").write_bytes(b"half")
    assert not vacuum.find_orphans(str(tmp_path)).files
    long_ago = time.time() - 8 * vacuum.DAY
    for name in ("one.parquet", ".tmp-half"):
        os.utime(tmp_path / "toy_group/abandoned/data" / name, (long_ago, long_ago))
    assert {Path(path).name for path in paths(vacuum.find_orphans(str(tmp_path)))} == {"one.parquet", ".tmp-half"}


def test_removing_too_much_is_refused(tmp_path: Path) -> None:
    storage.connect(str(tmp_path)).create("toy_map/abandoned/data/one.parquet", bytes(1000))
    orphans = vacuum.find_orphans(str(tmp_path), EVERYTHING)
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path}: ") + ".* 1,000 .*--limit"):
        vacuum.remove(str(tmp_path), orphans)
    assert (tmp_path / "toy_map/abandoned/data/one.parquet").exists()


def test_intermediate_shards_are_no_loss(tmp_path: Path, parent: str) -> None:
    _, manifest = refined(tmp_path, "toy_map", parent)
    intermediate = f"{Path(manifest.shards[0].path).parent}/{'0' * 32}.parquet"
    storage.connect(str(tmp_path)).create(intermediate, bytes(10 * manifest.bytes))
    orphans = vacuum.find_orphans(str(tmp_path), EVERYTHING)
    assert (orphans.lost, orphans.bytes) == (0, 10 * manifest.bytes)
    vacuum.remove(str(tmp_path), orphans)
    assert not (tmp_path / intermediate).exists()


def test_damaged_partitions_of_abandoned_work_go_with_it(tmp_path: Path, parent: str) -> None:
    path, _, _ = refine(RefineRequest(str(tmp_path), "toy_map", {}, parent, span=(0, 1)), LocalEngine)
    (tmp_path / path).write_bytes(b"cut")
    orphans = vacuum.find_orphans(str(tmp_path), EVERYTHING)
    assert path in paths(orphans)
    vacuum.remove(str(tmp_path), orphans, limit=1.0)
    assert not (tmp_path / path).exists()


def test_what_was_abandoned_is_fenced_once(tmp_path: Path) -> None:
    """Every vacuum took the next commit slot of it, for good."""
    store = storage.connect(str(tmp_path))
    for number in range(2):
        store.create(f"toy_map/abandoned/data/{number}.parquet", b"work")
        for _ in range(3):
            vacuum.remove(str(tmp_path), vacuum.find_orphans(str(tmp_path), EVERYTHING), limit=1.0)
    slots = [entry.path for entry in store.list("toy_map/abandoned")]
    assert slots == ["toy_map/abandoned/manifest.1.json", "toy_map/abandoned/manifest.json"]


class FencedEngine(LocalEngine):
    """An engine whose attempt is fenced between its last shard and its commit."""

    def map(self, *inputs: Any, **options: Any) -> Shards:
        shards = super().map(*inputs, **options)
        root = self.tracker.io.root
        vacuum.remove(root, vacuum.find_orphans(root, EVERYTHING), limit=1.0)
        return shards


def test_a_fenced_attempt_cannot_commit_and_the_next_one_can(any_root: str, tmp_path: Path) -> None:
    del tmp_path
    root = any_root
    path = commit_parent(Path(root), [table(0, 50)]) if not is_bucket(root) else _parent_on(root)
    work = RefineRequest(root, "toy_map", {}, path)
    with pytest.raises(JobLost, match=re.escape(f"{root}/toy_map/")):
        refine(work, FencedEngine)
    slot, manifest, cost = refine(work, LocalEngine)
    assert slot.endswith("/manifest.1.json")
    assert cost.ran == 1
    assert storage.connect(root).read(slot.replace("manifest.1", "manifest")) == ABANDONED
    assert read_manifest(root, slot) == manifest
    orphans = vacuum.find_orphans(root, EVERYTHING)
    assert not [entry for entry in paths(orphans) if "/data/" in entry]


class SharedEngine(LocalEngine):
    """An engine whose tasks are shared by all runs of a stage."""

    def map(self, *inputs: Any, **options: Any) -> Shards:
        return super().map(*inputs, **options, shared=True)


def refine_during(remove: Callable[[], None], work: RefineRequest, engine: type[LocalEngine]) -> None:
    """Refine while a vacuum removes: behind the last task, and before the commit."""

    class Interleaved(engine):  # type: ignore[misc, valid-type]  # a class that is chosen
        def map(self, *inputs: Any, **options: Any) -> Shards:
            shards: Shards = super().map(*inputs, **options)
            remove()
            return shards

    refine(work, Interleaved)


def refine_before(remove: Callable[[], None], work: RefineRequest, engine: type[LocalEngine]) -> None:
    """Refine whole while a vacuum, which has looked for a commit, is about to remove."""
    del remove
    refine(work, engine)


def seal_before(remove: Callable[[], None], work: RefineRequest, engine: type[LocalEngine]) -> None:
    """Seal partitions while a vacuum, which has looked for a commit, is about to remove."""
    del remove, engine
    seal(work, [(0, 1), (1, 2)])


def attempted(root: Path, work: RefineRequest, engine: type[LocalEngine], *, committed: bool) -> pa.Table:
    """Leave what an attempt leaves, which died before its commit unless it is `committed`; return the rows it had."""
    for span in ((0, 1), (1, 2)):
        refine(replace(work, span=span), engine)
    path, manifest, _ = refine(work, engine)
    kept = rows(root, manifest)
    if not committed:
        (root / path).unlink()
    return kept


@pytest.mark.parametrize(
    ("run", "engine", "expire"),
    [
        *product((refine_during, refine_before, seal_before), (LocalEngine,), (0.0, EVERYTHING)),
        *product((refine_during, refine_before), (SharedEngine,), (0.0,)),
    ],
)
def test_no_manifest_names_what_a_vacuum_removed_beside_its_run(
    run: Callable[[Callable[[], None], RefineRequest, type[LocalEngine]], None],
    engine: type[LocalEngine],
    expire: float,
    tmp_path: Path,
    parent: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = str(tmp_path)
    work = RefineRequest(root, "toy_map", {"every": 10**9}, parent)
    kept = attempted(tmp_path, work, engine, committed=bool(expire))
    if engine is SharedEngine:
        for partition in tmp_path.glob("toy_map/*/partitions/*.json"):
            partition.unlink()  # it would name the shards, and keep them
    orphans = vacuum.find_orphans(root, EVERYTHING, expire)
    delete_many, met = LocalStore.delete_many, []

    def interleaved(store: LocalStore, paths: Sequence[str]) -> None:
        if any("/data/" in path for path in paths) and not met:
            met.append(paths)
            with contextlib.suppress(JobLost, RecipeError):  # a partition that is gone is asked for
                run(lambda: delete_many(store, paths), work, engine)
        delete_many(store, paths)

    monkeypatch.setattr(LocalStore, "delete_many", interleaved)
    vacuum.remove(root, orphans, limit=1.0)
    assert met
    for slot in tmp_path.glob("toy_map/*/manifest*.json"):
        if slot.read_bytes() != ABANDONED:
            assert rows(tmp_path, read_manifest(root, slot.relative_to(tmp_path).as_posix())).equals(kept)
    assert rows(tmp_path, refine(work, engine).manifest).equals(kept)


def test_an_upload_of_a_killed_writer_is_vacuumed_and_named_by_erase(s3_root: str) -> None:
    bucket = s3_root.removeprefix("s3://").removesuffix("/root")
    begun = s3_client().create_multipart_upload(Bucket=bucket, Key="root/toy_map/a/data/large")
    which = {"Bucket": bucket, "Key": begun["Key"], "UploadId": begun["UploadId"]}
    s3_client().upload_part(**which, PartNumber=1, Body=bytes(70))
    storage.connect(s3_root).create("publish/one", bytes(1000))
    name = f"toy_map/a/data/large?uploadId={begun['UploadId']}"
    assert not [path for path in paths(vacuum.find_orphans(s3_root)) if path == name], "it may be under way"
    nobody = Documents(of_rows([]))
    assert "half-written" in survey(s3_root, nobody).left[name]
    orphans = vacuum.find_orphans(s3_root, EVERYTHING)
    assert [(entry.bytes, reason) for entry, reason in orphans.files if entry.path == name] == [(70, "half-written")]
    assert (orphans.kept, orphans.lost) == (1000 - (orphans.bytes - 70), orphans.bytes - 70)
    vacuum.remove(s3_root, orphans, limit=1.0)
    assert "Uploads" not in s3_client().list_multipart_uploads(Bucket=bucket)
    s3_client().create_multipart_upload(Bucket=bucket, Key=begun["Key"])
    (removed,) = survey(s3_root, nobody, alone=True).unfinished
    assert removed.startswith("toy_map/a/data/large?uploadId=")
    assert survey(s3_root, nobody).left == {}


def _parent_on(root: str) -> str:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = commit_parent(Path(folder), [table(0, 50)])
        source, target = storage.connect(folder), storage.connect(root)
        for entry in source.list(""):
            target.create(entry.path, source.read(entry.path))
    return path


def test_a_cache_goes_only_with_expire_and_is_not_missed(tmp_path: Path, parent: str) -> None:
    refined(tmp_path, "toy_map", parent)
    store, long_ago = storage.connect(str(tmp_path)), time.time() - 40 * vacuum.DAY
    for name in ("old", "young"):
        store.create(f"cache/score_quality/edu-1/{name}.json", b"{}" * 100_000)
    os.utime(tmp_path / "cache/score_quality/edu-1/old.json", (long_ago, long_ago))
    assert not vacuum.find_orphans(str(tmp_path)).files
    orphans = vacuum.find_orphans(str(tmp_path), expire=30 * vacuum.DAY)
    assert paths(orphans) == ["cache/score_quality/edu-1/old.json"]
    vacuum.remove(str(tmp_path), orphans)
    assert [entry.path for entry in store.list("cache")] == ["cache/score_quality/edu-1/young.json"]


@pytest.mark.parametrize("arguments", [["--grace", "-1"], ["--expire", "soon"], ["--limit", "7"], ["--limit", "nan"]])
def test_invalid_numbers_are_refused(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["keep", "vacuum", str(tmp_path), "--delete", *arguments])
    assert f"{arguments[1]!r} is no number of 0" in capsys.readouterr().err


def test_an_unpublished_stage_expires_only_with_expire(tmp_path: Path, parent: str) -> None:
    _, manifest = refined(tmp_path, "toy_map", parent)
    assert not vacuum.find_orphans(str(tmp_path), EVERYTHING).files
    orphans = vacuum.find_orphans(str(tmp_path), EVERYTHING, expire=0.000001)
    assert not orphans.files or {reason for _, reason in orphans.files} == {"no version names this stage"}
    long_ago = time.time() - 40 * vacuum.DAY
    for path in (tmp_path / "toy_map").rglob("*"):
        os.utime(path, (long_ago, long_ago))
    orphans = vacuum.find_orphans(str(tmp_path), expire=30 * vacuum.DAY)
    assert paths(orphans)[0].endswith("manifest.json")
    assert {shard.path for shard in manifest.shards} <= set(paths(orphans))
