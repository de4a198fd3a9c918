"""Cutting a shard into the pieces of buckets: every row once, in its bucket, in order, in bounded memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.run import shuffle
from pipeline_tasks.run.shuffle import bucket_of, scatter
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.stage import Shard

SHARDS, IO = (Shard("given/data", 0, 0, ""),), StageIO("root", "stage/f")


def table(keys: list[str]) -> pa.Table:
    return pa.table({"key": keys, "row": range(len(keys)), "words": [[key] * 3 for key in keys]})


def read(whole: pa.Table, batch_rows: int) -> Iterator[pa.RecordBatch]:
    yield from whole.to_batches(max_chunksize=batch_rows) or [pa.RecordBatch.from_pylist([], whole.schema)]


@given(
    keys=st.lists(st.text(max_size=3), max_size=80),
    buckets=st.sampled_from([1, 3, 8, 100]),
    batch_rows=st.sampled_from([1, 7, 1000]),
    bound=st.sampled_from([1, 200, 1 << 30]),
)
def test_every_row_is_in_one_piece_of_its_bucket(keys: list[str], buckets: int, batch_rows: int, bound: int) -> None:
    whole = table(keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffle, "SCATTER_BYTES", bound)
        patch.setattr(shuffle, "LEAST_PIECE", 1)
        patch.setattr(shuffle, "read_input", lambda *_: read(whole, batch_rows))
        pieces = list(scatter(IO, SHARDS, "key", buckets))
    assert {bucket for bucket, _, _ in pieces} == set(range(buckets))  # even an empty one has a schema
    found: list[dict[str, Any]] = []
    for bucket in range(buckets):
        mine = [pa.ipc.open_stream(body).read_all() for number, _, body in pieces if number == bucket]
        rows = pa.concat_tables(mine)
        assert rows.schema == whole.schema
        assert set(bucket_of(rows.column("key").combine_chunks(), buckets).tolist()) <= {bucket}
        assert rows.column("row").to_pylist() == sorted(rows.column("row").to_pylist())
        found += rows.to_pylist()
    assert sum(rows for _, rows, _ in pieces) == len(keys)
    assert sorted(found, key=lambda row: row["row"]) == whole.to_pylist()


STEP = 0x9E3779B97F4A7C15
"""What splitmix64 adds to its state before each number."""

SPLITMIX64 = (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC, 0x1B39896A51A8749B)
"""The first numbers of the published generator that starts at 0: the finalizer of 1, 2, 3, ... steps."""


def test_buckets_are_those_of_the_published_hashes() -> None:
    """A root in use would be refined again if one row came into another bucket."""
    whole = np.arange(1, 1 + len(SPLITMIX64), dtype=np.uint64) * np.uint64(STEP)
    numbers = pa.array([*whole.astype(np.int64), None])
    assert bucket_of(numbers, 1 << 32).tolist() == [*(number >> 32 for number in SPLITMIX64), 0]
    assert bucket_of(numbers, 10).tolist() == [8, 4, 0, 9, 1, 0]
    empty = 0x2D06800538D394C2  # XXH3-64 of no bytes
    assert bucket_of(pa.array(["", None, "a"]), 1 << 32).tolist() == [empty >> 32, empty >> 32, 0xE6C632B6]
    assert bucket_of(numbers, 1).tolist() == [0] * len(numbers)


def test_rows_of_many_buckets_do_not_wait_for_the_whole_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bucket waited for 32 MB of its own: with a thousand buckets, a whole shard was in memory."""
    whole, given_out = table([str(number) for number in range(1000)]), []

    def counted(*_: object) -> Iterator[pa.RecordBatch]:
        for batch in read(whole, 10):
            given_out.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(shuffle, "read_input", counted)
    monkeypatch.setattr(shuffle, "SCATTER_BYTES", 2000)
    monkeypatch.setattr(shuffle, "LEAST_PIECE", 1)
    next(scatter(IO, SHARDS, "key", 1000))
    assert sum(given_out) < 100


@given(
    keys=st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=80),
    buckets=st.sampled_from([1, 3, 8]),
    batch_rows=st.sampled_from([1, 7, 1000]),
)
def test_whole_numbers_travel_sorted_within_each_batch(keys: list[int], buckets: int, batch_rows: int) -> None:
    whole = pa.table({"key": pa.array(keys, pa.int64()), "row": pa.array(range(len(keys)), pa.int64())})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffle, "read_input", lambda *_: read(whole, batch_rows))
        pieces = list(scatter(IO, SHARDS, "key", buckets))
    found: list[dict[str, Any]] = []
    for bucket, _, body in pieces:
        rows = pa.ipc.open_stream(body).read_all()
        assert set(bucket_of(rows.column("key").combine_chunks(), buckets).tolist()) <= {bucket}
        order = [(row["row"] // batch_rows, row["key"], row["row"]) for row in rows.to_pylist()]
        assert order == sorted(order)
        found += rows.to_pylist()
    assert sorted(found, key=lambda row: row["row"]) == whole.to_pylist()


@pytest.mark.parametrize("keys", [pa.array([None, 0], pa.int64()), pa.array([None, ""], pa.string())])
def test_nulls_are_in_the_bucket_of_nothing(keys: pa.Array) -> None:
    null, nothing = bucket_of(keys, 1 << 20).tolist()
    assert null == nothing
