"""Rows of keys, such as hashes, ids and places: Spark shuffles them as rows with named columns.

Before their columns are those of `FRAME`. A bucket's rows are sorted by our own code, as on every engine: Spark's sort
of them took most of the time (docs/decisions/0112), and orders other types in other ways.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.run.finished import Finished
from pipeline_tasks.run.shuffle import bucket_of
from pipeline_tasks.run.tasks.task import Outcome, StageIO, read_input
from pipeline_tasks.run.tracker import guarded
from pipeline_tasks.stage import Shards
from pipeline_tasks.store.shards.rows import Columns
from pipeline_tasks.text.base.tables import empty_batch, run_starts
from refinery_spark.task_batch import BucketTasks, TaskBatch, pickled, result, unpacked, unpickled

FRAME = pa.schema([("__bucket", pa.int32()), ("__turn", pa.int32()), ("__body", pa.binary())])
"""Columns of ours: rows of a bucket come by their turn, and those before `ROWS` have a body instead of keys."""

SCHEMA, ROWS = 0, 1
"""Turns: of the schema of a bucket, of its rows. Those below are of refusals, in the order of their scatter tasks."""

LAST_RANK = (1 << 31) - 1
"""No scatter task has this number: its turn, less this, is below 0."""

KEY_BYTES = 256
"""Stored bytes of a row of keys, at most. With larger rows Spark has as much work as we, and needs more memory."""

FILE_BYTES = 8 * 1024
"""Bytes of a shard that are not of its rows, at most: what its file says of some tens of columns."""


class Kind(NamedTuple):
    """How Spark has a type: its name there, and what it is in Arrow on the way."""

    name: str
    carried: pa.DataType


_WORDS = {
    "bool": Kind("boolean", pa.bool_()),
    "int8": Kind("tinyint", pa.int8()),
    "int16": Kind("smallint", pa.int16()),
    "int32": Kind("int", pa.int32()),
    "int64": Kind("bigint", pa.int64()),
    "uint8": Kind("smallint", pa.int16()),
    "uint16": Kind("int", pa.int32()),
    "uint32": Kind("bigint", pa.int64()),
    "float": Kind("float", pa.float32()),
    "double": Kind("double", pa.float64()),
    "string": Kind("string", pa.string()),
    "large_string": Kind("string", pa.string()),
    "binary": Kind("binary", pa.binary()),
    "large_binary": Kind("binary", pa.binary()),
    "timestamp[us]": Kind("bigint", pa.int64()),
}

_FIELD = r"(\w+): ([\w\[\]]+)"


def kind_of(written: str) -> Kind | None:
    """Return how Spark has a type that a manifest names: a plain one, or a struct of these; None for any other."""
    if re.fullmatch(r"fixed_size_binary\[\d+\]", written):
        return _WORDS["binary"]
    if not re.fullmatch(rf"struct<{_FIELD}(, {_FIELD})*>", written):
        return _WORDS.get(written)
    fields = [(name, kind_of(word)) for name, word in re.findall(_FIELD, written)]
    kinds = [(name, kind) for name, kind in fields if kind]
    if len(kinds) < len(fields):
        return None
    names = ", ".join(f"`{name}`: {kind.name}" for name, kind in kinds)
    return Kind(f"struct<{names}>", pa.struct([(name, kind.carried) for name, kind in kinds]))


def key_columns(finished: Sequence[Finished], rows: Shards) -> Columns:
    """Return the columns of rows that verbs of this stage made, if they are keys by types, names and bytes; else none.

    What comes from another stage are documents.
    """
    columns = next((done.schemas[0] for done in reversed(finished) if done.shards[:1] == rows[:1]), ())
    names = {name.casefold() for name in [*FRAME.names, *(name for name, _ in columns)]}  # Spark takes "A" for "a"
    is_plain = len(names) == len(FRAME) + len(columns) and all(name.isidentifier() for name in names)
    most = sum(FILE_BYTES + KEY_BYTES * shard.rows for shard in rows)
    is_light = sum(shard.weight for shard in rows) <= most
    return columns if is_plain and is_light and all(kind_of(kind) for _, kind in columns) else ()


def carried(columns: Columns) -> pa.Schema:
    """Return the schema of key rows on their way."""
    kinds = ((name, kind_of(kind)) for name, kind in columns)
    return pa.schema([*FRAME, *((name, kind.carried) for name, kind in kinds if kind)])


def frame_of(columns: Columns) -> str:
    """Return the schema of key rows in Spark's words."""
    own = [(field.name, str(field.type)) for field in FRAME]
    kinds = ((name, kind_of(kind)) for name, kind in [*own, *columns])
    return ", ".join(f"`{name}` {kind.name}" for name, kind in kinds if kind)


# --- Scattering -------------------------------------------------------------------------------------------------------


def key_rows(stage_io: StageIO, shards: Shards) -> Iterator[pa.RecordBatch]:
    """Yield the rows of shards."""
    return itertools.chain.from_iterable(read_input(stage_io, shard) for shard in shards)


@dataclass(frozen=True, slots=True)
class Scatter:
    """What scatter tasks share: the columns of the rows, where their buckets follow from, and the buckets that run."""

    columns: Columns
    by: str
    buckets: int
    wanted: frozenset[int]

    def run(self, sent: TaskBatch, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the rows of the shards that this Spark task was given; yield those of the wanted buckets."""
        for rank, task in unpacked(sent, batches):
            rows, number = task(), 0
            while not isinstance(batch := guarded(partial(next, rows, None)), RefineryError | None):
                if rank == number == 0:  # a bucket without rows has a schema, too
                    yield self._told(SCHEMA, batch.schema.serialize().to_pybytes())
                yield self._of_buckets(batch)
                number += 1
            if isinstance(batch, RefineryError):  # it goes to every bucket: none may run on a part of its rows
                yield self._told(rank - LAST_RANK, pickled(batch))

    def _of_buckets(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        chosen = bucket_of(batch.column(self.by), self.buckets).astype(np.int32)
        turns, schema = np.full(batch.num_rows, ROWS, np.int32), carried(self.columns)
        own = [pa.array(chosen), pa.array(turns), pa.nulls(batch.num_rows, pa.binary())]
        rows = pa.RecordBatch.from_arrays([*own, *batch.columns], names=[*FRAME.names, *batch.schema.names])
        whole = rows.cast(schema)
        return whole if len(self.wanted) == self.buckets else whole.filter(pa.array(np.isin(chosen, self._places())))

    def _told(self, turn: int, body: bytes) -> pa.RecordBatch:
        """Return a row without keys for each bucket."""
        places, schema = self._places(), carried(self.columns)
        own = [pa.array(places), pa.array(np.full(len(places), turn, np.int32)), pa.array([body] * len(places))]
        keys = (pa.nulls(len(places), field.type) for field in list(schema)[len(own) :])
        return pa.RecordBatch.from_arrays([*own, *keys], schema=schema)

    def _places(self) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
        return np.array(sorted(self.wanted), np.int32)


# --- Gathering --------------------------------------------------------------------------------------------------------


def gather_keys(tasks: BucketTasks, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the kernel of each bucket whose rows these are: they come sorted by bucket and turn."""
    for bucket, parts in itertools.groupby(_parts(batches), key=lambda part: part[0]):
        yield result(bucket, _gathered(tasks, bucket, (rows for _, rows in parts)))


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each bucket and turn that a batch has."""
    for batch in batches:
        starts = run_starts(batch.column(0), batch.column(1)).tolist()
        for start, stop in itertools.pairwise([*starts, batch.num_rows]):
            yield batch.column(0)[start].as_py(), batch.slice(start, stop - start)


def _gathered(tasks: BucketTasks, bucket: int, parts: Iterator[pa.RecordBatch]) -> Outcome | RefineryError:
    """Run the kernel of a bucket over its rows; the first of them has a refusal, or their schema."""
    first = next(parts)
    turn, body = (first.column(place)[0].as_py() for place in (1, 2))
    if turn < SCHEMA:
        refusal: RefineryError = unpickled(body)
        return refusal
    schema = pa.ipc.read_schema(pa.py_buffer(body))
    rows = (pa.RecordBatch.from_arrays(part.columns[len(FRAME) :], schema.names).cast(schema) for part in parts)
    return tasks.run(bucket, itertools.chain([empty_batch(schema)], rows))
