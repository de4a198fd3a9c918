"""How many partitions a stage is mapped over follows from the bytes that it reads, and a fixed number goes first."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.cards import stage_card
from pipeline_tasks.facets import DEAREST
from pipeline_tasks.landing import listing
from pipeline_tasks.recipe import MAX_PARTITIONS, load_recipe, parse_recipe, recipe_names
from pipeline_tasks.run.partitions import partition_bytes, partitions_for, spans
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stage import Shard, Shards
from pipeline_tasks.stages import NAMES
from tests.chain import reply

SPLITTING = [stage for stage in NAMES if stage_card(stage).splits]


def files(*weights: int) -> Shards:
    return tuple(
        Shard(f"landing:{rank}.warc.gz", 0, weight, sha256(str(rank).encode())) for rank, weight in enumerate(weights)
    )


def test_every_stage_has_a_cost() -> None:
    assert [stage for stage in NAMES if stage_card(stage).cost is DEAREST] == []


@pytest.mark.parametrize("stage", SPLITTING)
def test_partitions_grow_with_the_bytes_up_to_what_airflow_maps(stage: str) -> None:
    size = partition_bytes(stage)
    assert partitions_for(stage, ()) == 1
    assert partitions_for(stage, files(1, 2, 3)) == 1
    assert partitions_for(stage, files(*[size // 2] * 10)) == 5
    assert partitions_for(stage, files(size * 100)) == 1  # one file is one partition
    assert partitions_for(stage, files(*[size] * 3000)) == MAX_PARTITIONS


def test_a_dearer_stage_has_more_partitions() -> None:
    landed = files(*[1_000_000_000] * 50)
    assert partitions_for("ingest", landed) < partitions_for("extract", landed)


@given(st.lists(st.integers(0, 10**10), max_size=60), st.sampled_from(SPLITTING))
def test_partitions_cover_the_shards_once_and_are_about_equal(weights: list[int], stage: str) -> None:
    shards = files(*weights)
    count = partitions_for(stage, shards)
    cut = spans(shards, count)
    assert [rank for start, stop in cut for rank in range(start, stop)] == list(range(len(shards)))
    largest = max((sum(shard.weight for shard in shards[start:stop]) for start, stop in cut), default=0)
    assert largest <= partition_bytes(stage) + max(weights, default=0)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 15))
def test_there_are_as_many_spans_as_are_asked_for_and_none_is_empty(weights: list[int], partitions: int) -> None:
    cut = spans(files(*weights), partitions)
    assert len(cut) == max(1, min(partitions, len(weights)))
    assert all(start < stop for start, stop in cut)
    assert spans((), partitions) == [(0, 0)]


def test_a_fixed_number_goes_before_the_bytes(tmp_path: Path) -> None:
    crawl, root = tmp_path / "2026-11-20", str(tmp_path / "root")
    crawl.mkdir()
    for rank in range(5):
        (crawl / f"{rank}.jsonl").write_text('{"text": "some text"}\n')
    path, _, _ = listing.land(root, str(crawl))

    def cut(**fixed: int) -> list[Any]:
        return list(reply("spans", root=root, parent=path, stage="ingest", **fixed)["spans"])

    assert cut() == cut(partitions=0) == [[0, 5]]
    assert len(cut(partitions=3)) == 3
    assert len(cut(partitions=50)) == 5


def test_recipes_fix_no_number_but_may() -> None:
    assert {load_recipe(name).partitions for name in recipe_names() if name != "demo"} == {0}
    assert parse_recipe({"stages": {"ingest": {}}, "run": {"partitions": 7}}, "ours").partitions == 7
