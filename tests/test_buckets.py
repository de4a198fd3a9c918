"""How many buckets rows are brought into follows from the bytes that they come from."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.constraints import MOST_BUCKETS
from pipeline_tasks.stage import BUCKET_BYTES, LEAST_BUCKETS, Shard, buckets_for, buckets_of
from tests import refining
from tests.documents import documents


def shards(*weights: int) -> tuple[Shard, ...]:
    return tuple(refining.made_up_shard("given/data", size=weight, number=rank) for rank, weight in enumerate(weights))


@given(st.lists(st.integers(0, 10**12), max_size=20))
def test_buckets_are_powers_of_two_and_never_too_large(weights: list[int]) -> None:
    count = buckets_for(shards(*weights))
    assert LEAST_BUCKETS <= count <= MOST_BUCKETS
    assert count.bit_count() == 1
    assert sum(weights) / count <= BUCKET_BYTES or count == MOST_BUCKETS
    assert sum(weights) / count > BUCKET_BYTES / 2 or count == LEAST_BUCKETS


def test_documents_stay_in_the_buckets_that_they_come_in() -> None:
    assert buckets_of(shards(*[1] * 32)) == 32
    assert buckets_of(shards(*[1] * 3)) == LEAST_BUCKETS
    assert buckets_of(shards(*[40 * BUCKET_BYTES] * 3)) == 128


@pytest.mark.parametrize("stage", ["dedup_exact", "dedup_url"])
def test_a_small_input_has_the_fewest(stage: str, tmp_path: Path) -> None:
    parent = refining.commit_parent(tmp_path, [documents([f"text {n}" for n in range(40)])])
    counts: list[Any] = [{}, {"buckets": 0}, {"buckets": LEAST_BUCKETS}]
    manifests = [refining.refined(tmp_path, stage, parent, params)[1] for params in counts]
    digests = [refining.row_digests(tmp_path, manifest.shards) for manifest in manifests]
    assert digests[0] == digests[1] == digests[2]
    assert len(manifests[0].shards) == LEAST_BUCKETS


def test_stages_that_work_by_document_take_the_buckets_of_dedup_exact(tmp_path: Path) -> None:
    parent = refining.commit_parent(tmp_path, [documents([f"text {n}" for n in range(40)])])
    exact, _ = refining.refined(tmp_path, "dedup_exact", parent, {"buckets": 16})
    for stage in ("dedup_minhash", "dedup_paragraphs"):
        assert len(refining.refined(tmp_path, stage, exact, {})[1].shards) == 16
