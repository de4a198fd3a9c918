"""Pieces of buckets under the root: few objects, little for the driver, and no changed byte that goes unseen."""

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import StorageBusy
from pipeline_tasks.run import scratch, shuffle
from pipeline_tasks.run.shuffle import scatter_inputs
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Shard, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.text.base.tables import unchanged
from tests.faulty_s3 import FaultyS3

Between = Callable[[list[Any]], None]


class Watched(LocalEngine):
    """The engine of this process, as one whose tasks and results travel; `between` is called after each step."""

    def __init__(self, root: str, between: Between | None = None) -> None:
        super().__init__(Tracker(StageIO(root, "stage/f")))
        self.traveled, self._between = 0, between

    def _each(self, tasks: Sequence[partial[Any]], weight: int) -> list[Any]:
        sent = [pickle.dumps(task) for task in tasks]
        results = list(super()._each([pickle.loads(body) for body in sent], weight))
        self.traveled += sum(map(len, sent)) + sum(len(pickle.dumps(result)) for result in results)
        if self._between:
            self._between(results)
        return results


def shards(root: str, count: int, rows: int = 20) -> Shards:
    """Store `count` shards of as many rows each, whose ids are all different."""
    stored = []
    for number in range(count):
        ids = [(number * rows + row) * 7919 % 100_003 for row in range(rows)]
        table = pa.table({"id": pa.array(ids, pa.int64()), "text": [f"text {id_}" for id_ in ids]})
        writer = ShardWriter(table.schema)
        for batch in table.to_batches():
            writer.write(batch)
        stored.append(writer.store(root, "given/data"))
    return tuple(stored)


def grouped(engine: LocalEngine, rows: Shards, buckets: int) -> list[str]:
    """Group by id; return the digests of the buckets."""
    return [shard.digest for shard in engine.group(unchanged, rows, by="id", order=("text",), buckets=buckets)]


def pieces(root: str) -> list[str]:
    return [entry.path for entry in storage.connect(root).list("stage") if "/scratch/" in entry.path]


@given(
    st.lists(st.integers(0, 2_000_000) | st.just(2_000_000_000), max_size=60), st.sampled_from([1, 8, 1024, 1 << 16])
)
def test_a_scatter_task_takes_shards_in_a_row_until_they_are_worth_it(weights: list[int], buckets: int) -> None:
    given_ = tuple(Shard(f"given/{rank}", 0, weight, "") for rank, weight in enumerate(weights))
    taken = scatter_inputs(given_, buckets)
    assert sum(taken, ()) == given_
    most = min(buckets * shuffle.PIECE_INPUT, shuffle.SCATTER_INPUT)
    sizes = [sum(shard.weight for shard in some) for some in taken]
    assert all(size <= most or len(some) == 1 for size, some in zip(sizes, taken, strict=True))
    assert all(before + after > most for before, after in pairwise(sizes))


def test_a_group_leaves_an_object_for_each_scatter_task_and_not_for_each_piece(tmp_path: Path) -> None:
    """Ten million objects were removed one by one after a group of 10,000 shards in 1,024 buckets."""
    seen: list[list[str]] = []
    engine = Watched(str(tmp_path), lambda _: seen.append(pieces(str(tmp_path))))
    grouped(engine, shards(str(tmp_path), 30), 16)
    assert [len(paths) for paths in seen] == [1, 2, 2]
    assert pieces(str(tmp_path)) == []


def traveled(root: Path, count: int, buckets: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(shuffle, "SCATTER_INPUT", 1)  # each shard is a scatter task of its own
    engine = Watched(str(root))
    grouped(engine, shards(str(root), count, rows=3), buckets)
    return engine.traveled


def test_the_drivers_bytes_grow_with_shards_and_with_buckets_and_not_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece was a `Shard` in the driver, and each bucket's task had all shards: 520 bytes for shard and bucket."""
    few, many = (20, 60), (8, 24)
    sizes = {
        (count, buckets): traveled(tmp_path / f"{count}-{buckets}", count, buckets, monkeypatch)
        for count in few
        for buckets in many
    }
    alone = sizes[few[1], many[0]] + sizes[few[0], many[1]] - sizes[few[0], many[0]]
    pairs = (few[1] - few[0]) * (many[1] - many[0])
    assert abs(sizes[few[1], many[1]] - alone) < pairs  # less than a byte for each
    assert sizes[few[1], many[1]] < 2500 * (few[1] + many[1])


@pytest.mark.parametrize(
    ("module", "bound", "value"),
    [
        (shuffle, "SCATTER_INPUT", 1),
        (shuffle, "SCATTER_BYTES", 300),
        (shuffle, "PIECE_BYTES", 1),
        (scratch, "INDEX_BYTES", 100),
        (scratch, "AHEAD", 1),
        (scratch, "CHUNK", 10),
    ],
)
def test_no_bound_changes_a_byte(
    module: Any, bound: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [str(tmp_path / name) for name in ("before", "after")]
    before = grouped(Watched(roots[0]), shards(roots[0], 12), 8)
    monkeypatch.setattr(module, bound, value)
    assert grouped(Watched(roots[1]), shards(roots[1], 12), 8) == before


def test_buckets_without_rows_are_stored_too(tmp_path: Path) -> None:
    digests = grouped(Watched(str(tmp_path)), shards(str(tmp_path), 3, rows=1), 64)
    assert len(digests) == 64
    assert max(map(digests.count, digests)) >= 61  # all empty ones are the same


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        *((".pieces", place) for place in (3, 10, 20, 40, -200)),  # of a frame: bucket, length, digest, and rows
        *((".pieces", place) for place in (-16, -8, -5)),  # where the pieces of each bucket end
        *((".index", place) for place in (0, 8, 16, -1)),
    ],
)
def test_a_changed_byte_is_seen_before_a_row_is_used(kind: str, place: int, tmp_path: Path) -> None:
    damaged: list[str] = []

    def damage(_: list[Any]) -> None:
        new = [path for path in pieces(str(tmp_path)) if path.endswith(kind) and not damaged]
        for path in new:
            body = bytearray((tmp_path / path).read_bytes())
            body[place] ^= 4
            (tmp_path / path).write_bytes(body)
            damaged.append(path)

    engine = Watched(str(tmp_path), damage)
    with pytest.raises(StorageBusy, match=r"/scratch/[0-9a-f]{32}/0\."):
        grouped(engine, shards(str(tmp_path), 3), 2)
    assert damaged
    assert engine.tracker.finished == []
    assert pieces(str(tmp_path)) == []


def test_a_bucket_asks_for_each_object_once(s3_root: str, faults: FaultyS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "SCATTER_INPUT", 1)
    given_ = shards(s3_root, 5, rows=100)
    grouped(Watched(s3_root), given_, 4)
    assert len(faults.ranges) == 5 + 4 * (1 + 5)  # the ends of each object, and for each bucket its index and pieces
