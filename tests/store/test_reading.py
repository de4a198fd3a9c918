"""What is committed is read by its path or reference, and only if it is what that says."""

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.errors import DigestMismatch, RecipeError
from pipeline_tasks.manifest import ABANDONED, Manifest, dump, identified, manifest_path, reference_of
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import (
    commit_slot,
    parent_of,
    read_committed,
    read_history,
    read_manifest,
    read_shards,
    sampled,
)
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.store.storage import connect
from tests.refining import commit_manifest, made_up_shard

EMPTY = Manifest("extract", 1, "", {}, (), (), (("id", "string"),), (), {}, (), (), 0, 0, {}, {})


def stored(root: Path, ids: list[str]) -> Shard:
    writer = ShardWriter(pa.schema([("id", pa.string())]))
    writer.write(pa.record_batch({"id": ids}))
    return writer.store(str(root), "extract/data")


def test_a_manifest_is_read_by_its_path_and_by_its_reference(tmp_path: Path) -> None:
    path = commit_manifest(tmp_path, EMPTY)
    manifest = read_manifest(str(tmp_path), path)
    assert manifest == identified(EMPTY)
    body = (tmp_path / path).read_bytes()
    assert read_committed(str(tmp_path), reference_of(path, manifest)) == (manifest, sha256(body))
    assert read_committed(str(tmp_path), path) == (manifest, sha256(body))


def test_a_manifest_with_another_digest_than_its_reference_is_refused(tmp_path: Path) -> None:
    path = commit_manifest(tmp_path, EMPTY)
    with pytest.raises(DigestMismatch, match=re.escape(f"{tmp_path}/{path}")):
        read_manifest(str(tmp_path), f"{path}@sha256:{'0' * 64}")


def test_a_manifest_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = manifest_path("extract", "0" * 24)
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path}/{path}: ")):
        read_manifest(str(tmp_path), path)


def test_a_part_of_a_snapshot_is_read_where_no_fingerprint_is_in_its_path(tmp_path: Path) -> None:
    path = "extract/f00/partitions/0001.json"
    connect(str(tmp_path)).create(path, dump(identified(EMPTY)))
    assert read_manifest(str(tmp_path), path) == identified(EMPTY)


def test_a_stage_commits_past_the_slots_that_a_vacuum_has_fenced_off(tmp_path: Path) -> None:
    store = connect(str(tmp_path))
    taken = []
    for body in (ABANDONED, ABANDONED, b"a manifest of a stage"):
        taken.append(commit_slot(store, "extract", "f00"))
        store.create(taken[-1], body)
    assert len(set(taken)) == 3
    assert commit_slot(store, "extract", "f00") == taken[-1], "a manifest stays where it is"


def test_the_rows_of_shards_and_of_a_section_of_history_are_read_in_their_order(tmp_path: Path) -> None:
    first, second = stored(tmp_path, ["a", "b"]), stored(tmp_path, ["c"])
    manifest = replace(EMPTY, history={"urls": (second, first), "none": ()})
    root = str(tmp_path)
    assert [batch.column("id").to_pylist() for batch in read_shards(root, (first, second))] == [["a", "b"], ["c"]]
    assert [batch.column("id").to_pylist() for batch in read_history(root, manifest, "urls")] == [["c"], ["a", "b"]]
    assert [batch.schema.names for batch in read_history(root, manifest, "urls", ["text"])] == [[], []]
    assert list(read_history(root, manifest, "none")) == list(read_history(root, manifest, "other")) == []


def of(stage: str, *parents: str) -> Manifest:
    """Return the manifest of a stage that refined others."""
    return identified(replace(EMPTY, stage=stage, parents=parents, parent_digests=("0" * 64,) * len(parents)))


def test_the_parent_of_a_manifest_is_that_of_the_nearest_stage_that_has_it(tmp_path: Path) -> None:
    landed = commit_manifest(tmp_path, replace(EMPTY, stage="land"))
    parent = read_manifest(str(tmp_path), landed)
    child = of("ingest", parent.fingerprint, "of history")
    assert parent_of(str(tmp_path), child) == parent
    commit_manifest(tmp_path, child)
    grandchild = of("extract", child.fingerprint)
    assert parent_of(str(tmp_path), grandchild) == child
    assert parent_of(str(tmp_path), replace(grandchild, stage="toy")) == child
    assert parent_of(str(tmp_path), replace(grandchild, parents=("0" * 24,))) is None
    assert parent_of(str(tmp_path), replace(grandchild, parents=())) is None
    commit_manifest(tmp_path, grandchild)
    assert parent_of(str(tmp_path), of("ingest", grandchild.fingerprint)) == grandchild, "a recipe of another order"


def test_shards_are_sampled_up_to_the_bytes_that_may_be_read() -> None:
    shards = [made_up_shard("data", 1, 100, number) for number in range(6)]
    layer = replace(shards[0], below=50)
    by_digest = sorted([layer, *shards[1:]], key=lambda shard: shard.digest)
    assert list(sampled(shards, 300)) == sorted(shards, key=lambda shard: shard.digest)[:3]
    assert list(sampled(reversed(shards), 399)) == sorted(shards, key=lambda shard: shard.digest)[:3]
    assert list(sampled([layer], 149)) == []
    assert list(sampled(by_digest, 650)) == by_digest


def test_shards_have_all_rows_of_a_schema_with_null_for_what_they_lack(tmp_path: Path) -> None:
    shards = [stored(tmp_path, ["a", "b"]), stored(tmp_path, ["c"])]
    wanted = pa.schema([("score", pa.float64()), ("id", pa.large_string())])
    read = pa.Table.from_batches(read_shards(str(tmp_path), shards, wanted))
    assert read.schema == wanted
    assert read.to_pylist() == [{"score": None, "id": id_} for id_ in "abc"]
    for without in (["score"], pa.schema([])):
        assert sum(batch.num_rows for batch in read_shards(str(tmp_path), shards, without)) == 3
