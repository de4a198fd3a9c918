"""Rows that are moved for their bytes, such as documents: Spark shuffles Arrow streams of up to 32 MiB.

Each is a row of `PIECE`: what one shard has of one bucket. No column of it is Spark's to see.
"""

import itertools
from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.run.shuffle import piece_batches
from pipeline_tasks.run.tasks.task import Outcome
from pipeline_tasks.run.tracker import guarded
from refinery_spark.task_batch import BucketTasks, TaskBatch, pickled, result, unpacked, unpickled

PIECE = "bucket int, shard int, piece int, body binary"
PIECES_IN_ORDER = ("bucket", "shard", "piece")

REFUSED = -1
"""Shard number of a piece that holds a refusal instead of rows; it sorts before every piece of its bucket."""


def scatter_pieces(
    sent: TaskBatch, wanted: frozenset[int], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Run `shuffle.scatter` for the shards that this Spark task was given; yield rows of `PIECE`."""
    for rank, task in unpacked(sent, batches):
        pieces = enumerate(task())
        while not isinstance(cut := guarded(partial(next, pieces, None)), RefineryError | None):
            number, (bucket, rows, body) = cut
            if bucket in wanted and (rows or rank == 0):  # an empty piece of the first is enough for a schema
                yield _piece(bucket, rank, number, body)
        if isinstance(cut, RefineryError):  # it goes to every bucket: none may run on a part of its rows
            for bucket in sorted(wanted):
                yield _piece(bucket, REFUSED, rank, pickled(cut))


def _piece(bucket: int, shard: int, number: int, body: bytes) -> pa.RecordBatch:
    whole = [pa.array([value], pa.int32()) for value in (bucket, shard, number)]
    return pa.RecordBatch.from_arrays([*whole, pa.array([body], pa.binary())], ["bucket", "shard", "piece", "body"])


def gather_pieces(tasks: BucketTasks, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the kernel of each bucket whose pieces these are: they come sorted by bucket, shard and piece."""
    for bucket, rows in itertools.groupby(_rows(batches), key=lambda row: row[0]):
        yield result(bucket, _gathered(tasks, bucket, rows))


def _gathered(tasks: BucketTasks, bucket: int, rows: Iterator[tuple[int, int, pa.Buffer]]) -> Outcome | RefineryError:
    """Run the kernel of a bucket over its pieces, as they come; a refusal of a scatter task is the first of them."""
    _, shard, body = next(rows)
    if shard == REFUSED:
        refusal: RefineryError = unpickled(body)
        return refusal
    bodies = itertools.chain([body], (body for _, _, body in rows))
    return tasks.run(bucket, itertools.chain.from_iterable(map(piece_batches, bodies)))


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.Buffer]]:
    for batch in batches:
        for row in range(batch.num_rows):
            yield batch.column(0)[row].as_py(), batch.column(1)[row].as_py(), batch.column(3)[row].as_buffer()
