"""Shuffling: one permutation for a seed, whatever the sharding."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.schema import LOCATOR
from tests.examples import fewest_examples
from tests.refining import commit_parent, refined, rows


def table(ids: list[str]) -> pa.Table:
    schema = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("n_tokens", pa.int64())])
    located = [
        {**dict.fromkeys(LOCATOR.names), "snapshot": "s", "file": "f", "offset": rank, "length": 1}
        | {"id": id_, "n_tokens": len(id_)}
        for rank, id_ in enumerate(ids)
    ]
    return pa.Table.from_pylist(located, schema=schema)


def shuffled(root: Path, shards: list[pa.Table], seed: int = 0, batch_rows: int = 4096) -> Manifest:
    parent = commit_parent(root, shards)
    return refined(root, "shuffle", parent, {"seed": seed, "buckets": 3}, batch_rows=batch_rows)[1]


def order(root: Path, manifest: Manifest) -> list[str]:
    ids: list[str] = rows(root, manifest)["id"].to_pylist()
    return ids


IDS = [f"{rank:032x}" for rank in range(60)]


def test_is_a_permutation_that_the_seed_decides(tmp_path: Path) -> None:
    zero, first = (order(tmp_path, shuffled(tmp_path, [table(IDS)], seed)) for seed in (0, 1))
    assert sorted(zero) == sorted(first) == IDS
    assert len({tuple(zero), tuple(first), tuple(IDS)}) == 3


def test_keeps_columns_and_fills_every_bucket(tmp_path: Path) -> None:
    manifest = shuffled(tmp_path, [table(IDS)])
    assert rows(tmp_path, manifest).schema.equals(table(IDS).schema)
    assert [shard.rows > 0 for shard in manifest.shards] == [True] * 3


@fewest_examples
@given(cut=st.integers(0, 60), batch=st.integers(1, 70))
def test_any_sharding_gives_the_same_bytes(tmp_path_factory: pytest.TempPathFactory, cut: int, batch: int) -> None:
    apart, whole = tmp_path_factory.mktemp("apart"), tmp_path_factory.mktemp("whole")
    full = table(IDS)
    split = shuffled(apart, [full.slice(cut), full.slice(0, cut)], batch_rows=batch)
    assert [shard.digest for shard in split.shards] == [shard.digest for shard in shuffled(whole, [full]).shards]


def test_buckets_are_as_many_as_the_bytes_ask_for(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [table(IDS)])
    default, four = (refined(tmp_path, "shuffle", parent, params)[1] for params in ({}, {"buckets": 4}))
    assert [shard.digest for shard in default.shards] == [shard.digest for shard in four.shards]


def test_the_order_does_not_follow_what_a_mixture_kept(tmp_path: Path) -> None:
    """Both draw by id under a seed; by equal draws, a group of which a part is kept came first in every shard."""
    grouped = table([f"{rank:032x}" for rank in range(3000)]).append_column("language", pa.array(["en", "de"] * 1500))
    mixed, _ = refined(tmp_path, "mix", commit_parent(tmp_path, [grouped]), {"weights": {"en": 0.2, "de": 0.8}})
    manifest = refined(tmp_path, "shuffle", mixed, {"buckets": 1})[1]
    languages = rows(tmp_path, manifest)["language"].to_pylist()
    quarter, english = len(languages) // 4, languages.count("en")
    assert 0.15 < languages[:quarter].count("en") / english < 0.35
    assert 0.15 < languages[-quarter:].count("en") / english < 0.35
