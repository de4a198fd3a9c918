"""Brings equal keys into one bucket: cuts shards into pieces by bucket, and sorts the pieces of a bucket."""

import io
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import xxhash

from pipeline_tasks.cards import is_by_id
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.run.tasks.sorted_runs import Rows, in_order, whole_numbers
from pipeline_tasks.run.tasks.task import Outcome, StageIO, Task, read_input, run_stream
from pipeline_tasks.stage import Shard, Shards

PIECE_BYTES = 4 * 1024 * 1024
"""A bucket's rows of one shard travel in Arrow streams of about this many bytes."""

SCATTER_BYTES = 32 * 1024 * 1024
"""Bytes of rows that may wait for their bucket's stream to fill; then all travel."""

LEAST_PIECE = 4096
"""Bytes of rows that may wait for each bucket, where there are so many buckets that these are more."""

PIECE_INPUT = 128 * 1024
"""Bytes of stored input that a scatter task takes for each bucket, where shards have less: no piece becomes tiny.

A bucket has `stage.BUCKET_BYTES` of input, so some thousand requests read it, however many shards there are.
"""

SCATTER_INPUT = 1024 * 1024 * 1024
"""Bytes of stored input that a scatter task takes at most, unless one shard has more: it is what a retry repeats."""


def buckets_of(documents: Shards, origin: str) -> int:
    """Return in how many buckets by `id` documents come, 0 if they are in none.

    `origin` begins with the stage that brought them into their order (`LocalEngine.origin`).
    """
    count = len(documents)
    return count if is_by_id(origin.partition("/")[0]) and count.bit_count() == 1 else 0


def scatter_inputs(shards: Shards, buckets: int) -> list[Shards]:
    """Return the shards that each scatter task takes: as many in a row as have `PIECE_INPUT` for each bucket."""
    most = min(buckets * PIECE_INPUT, SCATTER_INPUT)
    taken: list[list[Shard]] = []
    weight = 0
    for shard in shards:
        if not taken or weight + shard.weight > most:
            taken.append([])
            weight = 0
        taken[-1].append(shard)
        weight += shard.weight
    return [tuple(some) for some in taken]


def shards_with(manifest: Manifest, ids: Collection[str] | None) -> Shards:
    """Return the kept shards that can have `ids` (None: any): of stages with buckets by id it is the shard's number."""
    if ids is None or not is_by_id(manifest.stage):
        return manifest.shards
    numbers = bucket_of(pa.array(sorted(ids), pa.string()), len(manifest.shards))
    return tuple(manifest.shards[number] for number in sorted(set(numbers.tolist())))


def bucket_of(values: pa.Array, buckets: int) -> Rows:
    """Return each value's bucket in [0, buckets): ours, so that every engine agrees.

    Text and bytes hash by XXH3-64 of these (of text, in UTF-8), whole numbers by the splitmix64 finalizer; a bucket
    is a range of the hash, so buckets in order are ranges in order. Nulls go where "" and 0 go.
    """
    if buckets == 1:
        return np.zeros(len(values), np.int64)
    if pa.types.is_integer(values.type):
        whole = values.fill_null(0).to_numpy(zero_copy_only=False)
        hashes = _mix(whole.astype(np.uint64, copy=False))
    else:
        digests = (xxhash.xxh3_64_intdigest(value or b"") for value in _as_bytes(values).to_pylist())
        hashes = np.fromiter(digests, dtype=np.uint64, count=len(values))
    return ((hashes >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)).astype(np.int64)


def _as_bytes(values: pa.Array) -> pa.Array:
    """Return texts as their UTF-8 bytes, and bytes as they are."""
    return values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary())


def _mix(values: "np.ndarray[Any, np.dtype[np.uint64]]") -> "np.ndarray[Any, np.dtype[np.uint64]]":
    # Steele, Lea, Flood 2014, the finalizer of splitmix64.
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def scatter(stage_io: StageIO, shards: Shards, by: str, buckets: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (bucket, rows, Arrow stream) pieces of shards; each bucket gets at least one, so none lacks a schema."""
    waiting: list[list[pa.RecordBatch]] = [[] for _ in range(buckets)]
    weight = [0] * buckets
    schema, most = None, max(SCATTER_BYTES, buckets * LEAST_PIECE)
    for batch in itertools.chain.from_iterable(read_input(stage_io, shard) for shard in shards):
        schema = batch.schema
        for bucket, rows in _by_bucket(batch, by, buckets):
            waiting[bucket].append(rows)
            weight[bucket] += rows.nbytes
        is_full = sum(weight) >= most
        for bucket in [bucket for bucket in range(buckets) if weight[bucket] >= (1 if is_full else PIECE_BYTES)]:
            yield _piece(bucket, waiting[bucket], schema)
            waiting[bucket], weight[bucket] = [], 0
    for bucket in range(buckets):
        yield _piece(bucket, waiting[bucket], cast("pa.Schema", schema))


def _by_bucket(batch: pa.RecordBatch, by: str, buckets: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each bucket that a batch has, in their order; copies, which do not keep the batch.

    Rows of whole numbers come sorted by them: `gather` then reads each batch from front to back, and not at random.
    """
    chosen, numbers = bucket_of(batch.column(by), buckets), whole_numbers(batch.column(by))
    order = np.argsort(chosen, kind="stable")
    present, starts = np.unique(chosen[order], return_index=True)
    for bucket, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=False):
        placed = rows if numbers is None else rows[np.argsort(numbers[rows], kind="stable")]
        yield bucket, batch.take(pa.array(placed))


def _piece(bucket: int, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> tuple[int, int, bytes]:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bucket, sum(batch.num_rows for batch in batches), sink.getvalue()


def gather(task: Task, batches: Iterable[pa.RecordBatch], by: str, order: Sequence[str]) -> Outcome:
    """Sort one bucket's rows by `by`, then `order`, and run the kernel over them."""
    # Ties are broken by nothing, so the keys must order the rows totally; nulls come last on every engine.
    return run_stream(task, in_order(batches, (by, *order), task.io.batch_rows, task.io.run_bytes))


def piece_batches(body: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a piece; an empty one, which has the schema, if it has no rows."""
    reader = pa.ipc.open_stream(body)
    first = next(iter(reader), None)
    yield pa.RecordBatch.from_pylist([], schema=reader.schema) if first is None else first
    yield from reader
