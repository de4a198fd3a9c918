"""Reads the rows of a shard: of a segment, of a file with all of its columns, or of a layer over the shard below it.

A layer is a file that has columns of its own, and in `ROW` the row of the shard below that each of its rows is. In its
metadata are that shard, and all columns of its rows in order. A column that it has anew for some rows only is a struct
of one field, null where the row below has the value; of texts and payloads it has what differs (`delta`). So a layer's
digest covers everything that its rows are read from.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError
from pipeline_tasks.manifest import schema_pairs, shard_of
from pipeline_tasks.schema import RECORD
from pipeline_tasks.sealed import canonical
from pipeline_tasks.stage import LANDING, Batches, Shard
from pipeline_tasks.store.segment import Segment
from pipeline_tasks.store.shard_file import GROUP_ROWS, checked
from pipeline_tasks.text.base import delta
from pipeline_tasks.text.base.buffers import is_long, take_rows

ROW = "__row"
"""Column of a layer: the row of the shard below, counted from 0; it ascends."""

CHANGED = "__changed_"
"""Prefix of the columns of a layer that have a value for some rows only, in a struct of one field, `VALUE`."""

VALUE = "value"
METADATA = "refinery.layer"
"""Key of a file's metadata: the shard below and the columns of the rows, as JSON."""

Columns = tuple[tuple[str, str], ...]
"""Names and types of columns, in order."""

Landed = Callable[[Shard, Sequence[str]], Batches]
"""Reads columns of the records of a landed file, which are some of `schema.RECORD`."""

pc: Any = pyarrow.compute


class Facts(NamedTuple):
    """The shard below a layer, and all columns of the layer's rows."""

    below: Shard
    columns: Columns


def metadata_of(facts: Facts) -> Mapping[str, str]:
    """Return the metadata of a layer's file."""
    values = [(declared, getattr(facts.below, declared.name)) for declared in fields(facts.below)]
    below = {declared.name: value for declared, value in values if value != declared.default}
    return {METADATA: canonical({"below": below, "columns": facts.columns}).decode()}


def facts_of(schema: pa.Schema) -> Facts | None:
    """Return the facts of a layer from the schema of its file; None for a file that has all of its columns."""
    said = (schema.metadata or {}).get(METADATA.encode())
    if said is None:
        return None
    facts = json.loads(said)
    return Facts(shard_of(facts["below"]), tuple((name, kind) for name, kind in facts["columns"]))


def lowest(root: str, shard: Shard) -> Shard:
    """Return the shard below all layers of a shard, whose rows it has in their order; itself if it is no layer."""
    while shard.below:
        with checked(root, shard) as source:
            facts = facts_of(pq.read_schema(source))
        if facts is None:
            break
        shard = facts.below
    return shard


def read_shard(
    root: str,
    shard: Shard,
    *,
    batch_rows: int = GROUP_ROWS,
    columns: Sequence[str] | None = None,
    landed: Landed | None = None,
) -> Batches:
    """Yield a committed shard's batches after checking its digest; at least one batch, empty if it has no rows.

    See `ShardRows`.
    """
    return iter(ShardRows(root, shard, batch_rows=batch_rows, columns=columns, landed=landed))


class ShardRows:
    """The rows of a shard, or `columns` of them: those that it has of the names that are given.

    `all_columns` has every column of the rows, read or not, from the first batch on. `landed` reads the records of a
    landed file; without it, what a layer leaves there cannot be read.
    """

    def __init__(
        self,
        root: str,
        shard: Shard,
        *,
        batch_rows: int = GROUP_ROWS,
        columns: Sequence[str] | None = None,
        landed: Landed | None = None,
    ) -> None:
        self.all_columns: Columns = ()
        self._root, self._shard, self._batch_rows = root, shard, batch_rows
        self._picked = None if columns is None else frozenset(columns)
        self._landed = landed

    def __iter__(self) -> Batches:
        """Yield the rows in batches of at most `batch_rows`; at least one, empty if there are none."""
        if self._shard.is_landed:
            yield from self._of_landed()
        elif self._shard.index_digest:
            for batch in Segment(self._root, self._shard, self._batch_rows):
                self.all_columns = schema_pairs(batch.schema)
                yield batch.select(self._picks(batch.schema.names))
        else:
            with checked(self._root, self._shard) as source:
                on_disk = not isinstance(source, pa.BufferReader)  # bytes in memory are those whose digest was checked
                yield from self._of_file(pq.ParquetFile(source, page_checksum_verification=on_disk, pre_buffer=False))

    def _picks(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if self._picked is None or name in self._picked]

    def _of_landed(self) -> Batches:
        if self._landed is None:
            message = (
                f"{self._root}: payloads are not stored but read from {self._shard.path.removeprefix(LANDING)} as it "
                "landed, which only a task of a run does; read the stage `extract` instead"
            )
            raise ContractError(message)
        self.all_columns = schema_pairs(RECORD)
        yield from self._landed(self._shard, self._picks(RECORD.names))

    def _of_file(self, file: pq.ParquetFile) -> Batches:
        schema = file.schema_arrow  # pyarrow converts it at each use, which takes as long as reading a small column
        facts = facts_of(schema)
        if facts is None:
            self.all_columns = schema_pairs(schema)
            yield from _file_rows(file, schema, self._picks(schema.names), self._batch_rows)
            return
        self.all_columns = facts.columns
        names = self._picks([name for name, _ in facts.columns])
        lower = [name for name in names if name not in schema.names]
        if not lower:
            yield from _file_rows(file, schema, names, self._batch_rows)
            return
        below = read_shard(self._root, facts.below, batch_rows=self._batch_rows, columns=lower, landed=self._landed)
        rows = _LayerRows(file, schema, names)
        try:
            yield from rows.over(below)
        except _RowsMissing as error:
            message = (
                f"{self._root}/{self._shard.path} has row {error} of {facts.below.path}, which has fewer; "
                "remove the layer's folder and run again"
            )
            raise ContractError(message) from error


def _file_rows(file: pq.ParquetFile, columns: pa.Schema, names: Sequence[str], batch_rows: int) -> Batches:
    """Yield those of a file's columns in the order of `names`, a row group at a time in memory."""
    schema = pa.schema([columns.field(name) for name in names])
    if file.metadata.num_rows == 0:
        yield pa.RecordBatch.from_pylist([], schema=schema)
    for rank in range(file.metadata.num_row_groups):
        table = file.read_row_group(rank, columns=names, use_threads=False).select(names)
        for batch in table.combine_chunks().to_batches(max_chunksize=batch_rows):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


class _RowsMissing(ValueError):
    """A layer has a row that the shard below does not have."""


class _LayerRows:
    """The rows of a layer, put together from its own columns and the batches of the shard below."""

    def __init__(self, file: pq.ParquetFile, columns: pa.Schema, names: Sequence[str]) -> None:
        self._names = names
        own = columns.names
        self._plain = [name for name in names if name in own]
        self._changed = [name for name in names if CHANGED + name in own]
        read = [ROW, *self._plain, *(CHANGED + name for name in self._changed)]
        schema = pa.schema([columns.field(name) for name in read])
        self._empty = pa.RecordBatch.from_pylist([], schema=schema)
        self._batches = _file_rows(file, columns, read, GROUP_ROWS)
        self._waiting: pa.RecordBatch | None = None

    def over(self, below: Batches) -> Batches:
        """Yield the layer's rows, in batches with the borders of those below."""
        start, is_empty, batch = 0, True, None
        for batch in below:
            own = self._until(start + batch.num_rows)
            if own.num_rows:
                is_empty = False
                yield self._joined(own, batch, start)
            start += batch.num_rows
        rest = self._until(None)
        if rest.num_rows:
            raise _RowsMissing(rest.column(ROW)[0])
        if is_empty and batch is not None:
            yield self._joined(rest, batch.slice(0, 0), start)

    def _until(self, stop: int | None) -> pa.RecordBatch:
        """Return the layer's next rows whose row below is before `stop`."""
        taken: list[pa.RecordBatch] = []
        while (batch := self._next()) is not None:
            count = batch.num_rows if stop is None else int(np.searchsorted(_numbers(batch), stop))
            taken.append(batch.slice(0, count))
            if count < batch.num_rows:
                self._waiting = batch.slice(count)
                break
        whole = pa.Table.from_batches(taken, schema=self._empty.schema)
        combined: list[pa.RecordBatch] = whole.combine_chunks().to_batches()
        return combined[0] if combined else self._empty

    def _next(self) -> pa.RecordBatch | None:
        """Return the rest of the last batch of the layer's own columns, or the next batch; None at the end."""
        waiting, self._waiting = self._waiting, None
        return waiting if waiting is not None else next(self._batches, None)

    def _joined(self, own: pa.RecordBatch, below: pa.RecordBatch, start: int) -> pa.RecordBatch:
        """Return rows with the layer's own columns, and those of the rows below with what the layer changes."""
        if own.num_rows < below.num_rows:
            rows = _numbers(own) - start
            below = pa.record_batch([take_rows(column, rows) for column in below.columns], schema=below.schema)
        columns = [
            own.column(name)
            if name in self._plain
            else changed(below.column(name), own.column(CHANGED + name) if name in self._changed else None)
            for name in self._names
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(self._names))


def _numbers(own: pa.RecordBatch) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = own.column(ROW).to_numpy()
    return numbers


def changed(values: pa.Array, changes: pa.StructArray | None) -> pa.Array:
    """Return values with those of `changes` in their place; a null there changes nothing."""
    if changes is None or changes.null_count == len(changes):
        return values
    other = pc.struct_field(changes, VALUE)
    if is_long(values.type):
        other = delta.decode(values, other, values.type)
    return pc.if_else(pc.is_valid(changes), other, values)
