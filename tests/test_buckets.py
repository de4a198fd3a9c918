"""How many buckets rows are brought into follows from the bytes that they come from, and from where their order is."""

import random
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.cards import stage_card
from pipeline_tasks.constraints import MOST_BUCKETS
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.run.shuffle import bucket_of, buckets_of
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import (
    BUCKET_BYTES,
    PARALLEL_BUCKETS,
    PARALLEL_BYTES,
    Shard,
    Shards,
    buckets_for,
)
from pipeline_tasks.stages import NAMES
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.text.near.vectors import packed
from tests import refining
from tests.documents import documents


def shards(*weights: int) -> tuple[Shard, ...]:
    return tuple(refining.made_up_shard("given/data", size=weight, number=rank) for rank, weight in enumerate(weights))


@given(st.lists(st.one_of(st.integers(0, 10**7), st.integers(0, 10**12)), max_size=20), st.sampled_from([1, 4]))
def test_buckets_are_powers_of_two_and_never_too_large(weights: list[int], least: int) -> None:
    count = buckets_for(shards(*weights), least)
    assert least <= count <= MOST_BUCKETS
    assert count.bit_count() == 1
    assert sum(weights) / count <= BUCKET_BYTES or count == MOST_BUCKETS
    is_small = count <= PARALLEL_BUCKETS
    assert sum(weights) / count > (PARALLEL_BYTES if is_small else BUCKET_BYTES) / 2 or count == least
    assert count >= PARALLEL_BUCKETS or sum(weights) / count <= PARALLEL_BYTES


@pytest.mark.parametrize(
    ("megabytes", "count"), [(0, 1), (4, 1), (5, 2), (15, 4), (17, 8), (1_024, 8), (1_025, 16), (10_000, 128)]
)
def test_small_inputs_have_buckets_that_are_worth_a_task(megabytes: int, count: int) -> None:
    assert buckets_for(shards(megabytes * 10**6)) == count


@pytest.mark.parametrize("stage", ["dedup_exact", "dedup_url"])
def test_a_small_input_has_one(stage: str, tmp_path: Path) -> None:
    parent = refining.commit_parent(tmp_path, [documents([f"text {n}" for n in range(40)])])
    counts: list[Any] = [{}, {"buckets": 0}, {"buckets": 1}]
    manifests = [refining.refined(tmp_path, stage, parent, params)[1] for params in counts]
    digests = [refining.row_digests(tmp_path, manifest.shards) for manifest in manifests]
    assert digests[0] == digests[1] == digests[2]
    assert len(manifests[0].shards) == 1


# --- Documents that are in buckets already --------------------------------------------------------------------

BY_DOCUMENT = [stage for stage in NAMES if (grouped := stage_card(stage).buckets) and grouped.keeps]
"""Stages that work by document, in the buckets of `dedup_exact`."""


def columns(count: int) -> dict[str, Any]:
    """Return what some stage reads of documents beside their texts: no two are near each other by it."""
    return {
        "n_tokens": pa.array([40] * count),
        "embedding": packed(np.eye(count)),
        "embedding_model": pa.array(["m"] * count),
    }


def origin(root: Path, rows: Shards) -> str:
    """Return the origin as an engine of a task at `root` sees it."""
    return LocalEngine(Tracker(StageIO(str(root), "any"))).origin(rows)


def texts() -> list[str]:
    """Forty texts of forty words, of which ten are another with a word more."""
    draws = random.Random(3)
    distinct = [" ".join(f"word{draws.randrange(400)}" for _ in range(40)) for _ in range(30)]
    return [*distinct, *(f"{text} more" for text in distinct[:10])]


def kept_ids(root: Path, manifest: Manifest) -> list[str]:
    return sorted(refining.rows(root, manifest)["id"].to_pylist())


@pytest.mark.parametrize("buckets", [1, 2, 16])
def test_stages_that_work_by_document_take_the_buckets_of_dedup_exact(buckets: int, tmp_path: Path) -> None:
    parent = refining.commit_parent(tmp_path, [documents([f"text {n}" for n in range(40)], **columns(40))])
    exact, _ = refining.refined(tmp_path, "dedup_exact", parent, {"buckets": buckets})
    between, _ = refining.refined(tmp_path, "scrub_pii", exact, {})
    for stage in BY_DOCUMENT:
        for before in (exact, between):
            _, manifest = refining.refined(tmp_path, stage, before, {})
            assert len(manifest.shards) == buckets
            assert origin(tmp_path, manifest.shards).startswith("dedup_exact/")  # text was not grouped again


def split(table: pa.Table, count: int) -> Sequence[pa.Table]:
    return [table.slice(rank * table.num_rows // count, -(-table.num_rows // count)) for rank in range(count)]


@pytest.mark.parametrize("stage", BY_DOCUMENT)
@pytest.mark.parametrize("count", [1, 2, 8])
def test_documents_of_any_other_stage_are_grouped(stage: str, count: int, tmp_path: Path) -> None:
    """Eight shards were taken for eight buckets, whoever had written them: their documents were refused."""
    table = documents(texts(), **columns(len(texts()))).sort_by([("url", "descending")])
    short = {"min_chars": 20, "min_left": 20}
    params = {"dedup_paragraphs": short, "dedup_substrings": {**short, "action": "cut"}}.get(stage, {})
    given_ = refining.commit_parent(tmp_path, split(table, count))
    exact, _ = refining.refined(tmp_path, "dedup_exact", given_, {})
    for before in (given_, refining.refined(tmp_path, "scrub_pii", given_, {})[0]):
        _, manifest = refining.refined(tmp_path, stage, before, params)
        assert origin(tmp_path, manifest.shards).startswith(stage)
        assert kept_ids(tmp_path, manifest) == kept_ids(tmp_path, refining.refined(tmp_path, stage, exact, params)[1])


def test_shards_of_two_snapshots_are_in_no_buckets(tmp_path: Path) -> None:
    days = [
        refining.refined(tmp_path, "dedup_exact", refining.commit_parent(tmp_path, [documents([text])]), {})[1]
        for text in ("one text", "another text")
    ]
    both = days[0].shards + days[1].shards
    assert origin(tmp_path, both) == ""
    assert origin(tmp_path, ()) == ""
    assert buckets_of(both, origin(tmp_path, both)) == 0


def test_some_of_the_buckets_of_a_stage_are_none(tmp_path: Path) -> None:
    """Where a partition was quarantined, two of four buckets are left: documents taken for those of two were refused."""
    parent = refining.commit_parent(tmp_path, [documents(texts())])
    _, manifest = refining.refined(tmp_path, "dedup_exact", parent, {"buckets": 4})
    assert buckets_of(manifest.shards, origin(tmp_path, manifest.shards)) == 4
    for left in (manifest.shards[:2], manifest.shards[2:], manifest.shards[:1]):
        assert origin(tmp_path, left) == ""
        assert buckets_of(left, origin(tmp_path, left)) == 0


def test_missing_buckets_are_seen_by_their_number() -> None:
    assert buckets_of(shards(1, 1, 1), "dedup_exact/abc") == 0
    assert buckets_of(shards(1, 1), "dedup_exact/abc") == 2


# --- What cards say -------------------------------------------------------------------------------------------

GROUPING = [stage for stage in NAMES if "buckets" in {field.name for field in fields(stage_card(stage).params)}]


def test_each_stage_with_a_number_of_buckets_says_how_its_documents_come_out() -> None:
    assert [stage for stage in NAMES if stage_card(stage).buckets] == GROUPING


@pytest.mark.parametrize("stage", GROUPING)
def test_documents_come_out_in_the_buckets_that_a_card_says(stage: str, tmp_path: Path) -> None:
    count, how = 40, stage_card(stage).buckets
    given_ = refining.commit_parent(tmp_path, [documents([f"text {n}" for n in range(count)], **columns(count))])
    by_id, _ = refining.refined(tmp_path, "dedup_exact", given_, {"buckets": 8})
    assert how is not None
    for parent, expected in ((given_, how.least), (by_id, 8 if how.keeps else how.least)):
        _, manifest = refining.refined(tmp_path, stage, parent, {})
        ids = [next(read_shards(str(tmp_path), [shard], ["id"]))["id"] for shard in manifest.shards]
        placed = all(set(bucket_of(own, expected)) <= {at} for at, own in enumerate(ids))
        in_order = all(own.to_pylist() == sorted(own.to_pylist()) for own in ids)
        assert (len(ids), placed and in_order) == (expected, how.by_id)
