"""Reads the rows of a shard: of a segment, of a file with all of its columns, or of a layer over the shard below it.

A layer is a file that has columns of its own, and in `ROW` the row of the shard below that each of its rows is. In its
metadata are that shard, and all columns of its rows in order. A column that it has anew for some rows only is a struct
of one field, null where the row below has the value; of texts and payloads it has what differs (`delta`). So a layer's
digest covers everything that its rows are read from.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from pipeline_tasks.store.shards.file import GROUP_ROWS, checked
from pipeline_tasks.store.shards.layer_columns import CHANGED, ROW, VALUE
from pipeline_tasks.store.shards.segment import Segment
from pipeline_tasks.text.base import delta
from pipeline_tasks.text.base.buffers import is_long, take_rows

METADATA = "refinery.layer"
"""Key of a file's metadata: the shard below and the columns of the rows, as JSON."""

Columns = tuple[tuple[str, str], ...]
"""Names and types of columns, in order."""

Rows = npt.NDArray[np.int64]
"""Numbers of rows of a shard, which ascend."""

PLACED = ("offset", "length", "record_id", "payload_digest")
"""Columns of a layer over a landed file that say where a record is, and what it has to be."""


class Places(NamedTuple):
    """Records of a landed file: their numbers in it, and `PLACED` of each."""

    rows: Rows
    records: pa.Table


Landed = Callable[[Shard, Sequence[str], Places | None], Batches]
"""Reads columns of the records of a landed file, which are some of `schema.RECORD`: of all, or of those at places."""

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
    return list(layers_of(root, shard))[-1]


def layers_of(root: str, shard: Shard) -> Iterator[Shard]:
    """Yield a shard, and below a layer each shard that its rows are read from, down to the lowest."""
    yield shard
    while shard.below:
        with checked(root, shard) as source:
            facts = facts_of(pq.read_schema(source))
        if facts is None:
            break
        shard = facts.below
        yield shard


def read_shard(
    root: str,
    shard: Shard,
    *,
    batch_rows: int = GROUP_ROWS,
    columns: Sequence[str] | None = None,
    landed: Landed | None = None,
) -> Batches:
    """Yield a committed shard's batches after checking its digest; at least one batch, empty if it has no rows.

    See `ShardRows`. ContractError at the end for more or fewer rows than were committed.
    """
    rows = 0
    for batch in ShardRows(root, shard, batch_rows=batch_rows, columns=columns, landed=landed):
        rows += batch.num_rows
        yield batch
    if rows != shard.rows and not shard.is_landed:
        message = (
            f"{root}/{shard.path} has {rows} rows, and {shard.rows} were committed; "
            f"run `refinery verify {root}`, which says what to do"
        )
        raise ContractError(message)


class ShardRows:
    """The rows of a shard, or `columns` of them: those that it has of the names that are given, of all of its rows.

    `all_columns` has every column of the rows, read or not, from the first batch on. `landed` reads the records of a
    landed file; without it, what a layer leaves there cannot be read. With `rows` these rows are read alone.
    """

    def __init__(
        self,
        root: str,
        shard: Shard,
        *,
        batch_rows: int = GROUP_ROWS,
        columns: Sequence[str] | None = None,
        landed: Landed | None = None,
        rows: Rows | None = None,
        places: Places | None = None,
    ) -> None:
        self.all_columns: Columns = ()
        self._root, self._shard, self._batch_rows = root, shard, batch_rows
        self._picked = None if columns is None else frozenset(columns)
        self._landed, self._rows, self._places = landed, rows, places

    def __iter__(self) -> Batches:
        """Yield the rows in batches of at most `batch_rows`; at least one, empty if there are none."""
        if self._shard.is_landed:
            yield from self._of_landed()
        elif self._shard.index_digest:
            yield from picked(self._of_segment(), self._rows)
        else:
            with checked(self._root, self._shard) as source:
                on_disk = not isinstance(source, pa.BufferReader)  # bytes in memory are those whose digest was checked
                yield from self._of_file(pq.ParquetFile(source, page_checksum_verification=on_disk, pre_buffer=False))

    def _of_segment(self) -> Batches:
        for batch in Segment(self._root, self._shard, self._batch_rows):
            self.all_columns = schema_pairs(batch.schema)
            yield batch.select(self._picks(batch.schema.names))

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
        columns = self._picks(RECORD.names)
        if self._places is not None:
            yield from self._landed(self._shard, columns, self._places)
        else:
            yield from picked(self._landed(self._shard, columns, None), self._rows)

    def _of_file(self, file: pq.ParquetFile) -> Batches:
        schema = file.schema_arrow  # pyarrow converts it at each use, which takes as long as reading a small column
        facts = facts_of(schema)
        self.all_columns = schema_pairs(schema) if facts is None else facts.columns
        names = self._picks([name for name, _ in self.all_columns])
        lower = [name for name in names if name not in schema.names]
        if facts is None or not lower:
            yield from picked(_file_rows(file, schema, names, self._batch_rows), self._rows)
            return
        below = self._below(file, facts, lower)
        try:
            yield from _LayerRows(file, schema, names, self._rows).over(below)
        except RowsMissing as error:
            message = (
                f"{self._root}/{self._shard.path} has row {error} of {facts.below.path}, which has fewer; "
                "remove the layer's folder and run again"
            )
            raise ContractError(message) from error

    def _below(self, file: pq.ParquetFile, facts: Facts, columns: Sequence[str]) -> "ShardRows":
        """Return the rows below a layer that the rows of the layer rest on, with some columns."""
        numbers = _column_of_file(file, ROW, self._rows)
        places = None
        if facts.below.is_landed and set(PLACED) <= set(file.schema_arrow.names):
            records = file.read(list(PLACED), use_threads=False)
            places = Places(numbers, records if self._rows is None else records.take(pa.array(self._rows)))
        how: Mapping[str, Any] = {"batch_rows": self._batch_rows, "columns": columns, "landed": self._landed}
        return ShardRows(self._root, facts.below, rows=numbers, places=places, **how)


def _column_of_file(file: pq.ParquetFile, name: str, rows: Rows | None) -> Rows:
    """Return the whole numbers of a column, of all rows or of some."""
    values: Rows = file.read([name], use_threads=False)[name].to_numpy()
    return values if rows is None else values[rows]


class RowsMissing(ValueError):
    """A row was asked for that a shard does not have."""


def picked(batches: Batches, rows: Rows | None) -> Batches:
    """Yield the rows with these numbers, or all; at least one batch, empty if there are none.

    The batches are read to their end, where some are checked. RowsMissing names the first row that they do not have.
    """
    if rows is None:
        yield from batches
        return
    start, at, empty = 0, 0, None
    for batch in batches:
        stop = at + int(np.searchsorted(rows[at:], start + batch.num_rows))
        if stop - at == batch.num_rows and stop > at:
            yield batch
        elif stop > at:
            own = rows[at:stop] - start
            columns = [take_rows(column, own) for column in batch.columns]
            yield pa.record_batch(columns, schema=batch.schema) if columns else batch.slice(0, len(own))
        empty = batch.slice(0, 0) if not at and stop == at else None
        start, at = start + batch.num_rows, stop
    if at < len(rows):
        raise RowsMissing(int(rows[at]))
    if not at and empty is not None:
        yield empty


def _file_rows(file: pq.ParquetFile, columns: pa.Schema, names: Sequence[str], batch_rows: int) -> Batches:
    """Yield those of a file's columns in the order of `names`, a row group at a time in memory."""
    if file.metadata.num_rows == 0:
        yield pa.RecordBatch.from_pylist([], schema=pa.schema([columns.field(name) for name in names]))
    for rank in range(file.metadata.num_row_groups):
        table = file.read_row_group(rank, columns=names, use_threads=False).select(names)
        for batch in table.combine_chunks().to_batches(max_chunksize=batch_rows):
            yield batch.replace_schema_metadata()


class _LayerRows:
    """The rows of a layer, or some of them, put together from its own columns and those of the rows below."""

    def __init__(self, file: pq.ParquetFile, columns: pa.Schema, names: Sequence[str], rows: Rows | None) -> None:
        self._names = names
        own = columns.names
        self._plain = [name for name in names if name in own]
        self._changed = [name for name in names if CHANGED + name in own]
        read = [ROW, *self._plain, *(CHANGED + name for name in self._changed)]
        schema = pa.schema([columns.field(name) for name in read])
        self._empty = pa.RecordBatch.from_pylist([], schema=schema)
        self._batches = picked(_file_rows(file, columns, read, GROUP_ROWS), rows)
        self._waiting: pa.RecordBatch | None = None

    def over(self, below: Iterable[pa.RecordBatch]) -> Batches:
        """Yield the layer's rows, in batches with the borders of those below."""
        for batch in below:
            yield self._joined(self._next(batch.num_rows), batch)

    def _next(self, count: int) -> pa.RecordBatch:
        """Return the layer's next rows, so many."""
        taken: list[pa.RecordBatch] = []
        while count:
            batch = self._waiting if self._waiting is not None else next(self._batches)
            taken.append(batch.slice(0, count))
            self._waiting = batch.slice(count) if batch.num_rows > count else None
            count -= taken[-1].num_rows
        whole = pa.Table.from_batches(taken, schema=self._empty.schema)
        combined: list[pa.RecordBatch] = whole.combine_chunks().to_batches()
        return combined[0] if combined else self._empty

    def _joined(self, own: pa.RecordBatch, below: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the layer's own columns, and those of the rows below with what the layer changes."""
        columns = [
            own.column(name)
            if name in self._plain
            else changed(below.column(name), own.column(CHANGED + name) if name in self._changed else None)
            for name in self._names
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(self._names))


def changed(values: pa.Array, changes: pa.StructArray | None) -> pa.Array:
    """Return values with those of `changes` in their place; a null there changes nothing."""
    if changes is None or changes.null_count == len(changes):
        return values
    other = pc.struct_field(changes, VALUE)
    if is_long(values.type):
        other = delta.decode(values, other, values.type)
    return pc.if_else(pc.is_valid(changes), other, values)
