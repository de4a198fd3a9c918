"""Build Arrow batches of a declared schema, and find runs, order and rows in Arrow tables."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.schema import Array

pc: Any = pyarrow.compute

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def batch_of(schema: pa.Schema, **columns: Array) -> pa.RecordBatch:
    """Return a batch of `schema` from one array or chunked array per field."""
    if set(columns) != set(schema.names):
        message = f"columns {sorted(columns)} are not those of the schema: {sorted(schema.names)}"
        raise TypeError(message)
    return pa.RecordBatch.from_arrays([combined(columns[name]) for name in schema.names], schema=schema)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of `schema` without rows; `from_pylist` imports pandas, and some batches are made at import."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def combined(column: Array) -> pa.Array:
    """Return an array or chunked array as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def read_table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Read a stream into one table with one chunk per column."""
    return pa.Table.from_batches(list(batches)).combine_chunks()


def batches_of(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table; one empty batch if it has none."""
    yield from table.to_batches() or [empty_batch(table.schema)]


def sliced(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of at most `rows` rows; an empty batch stays one."""
    for batch in batches:
        for start in range(0, max(batch.num_rows, 1), rows):
            yield batch.slice(start, rows)


def in_order(table: pa.Table, *names: str) -> pa.Table:
    """Return a table sorted ascending by columns; a struct column sorts by its fields in order."""
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])).combine_chunks()


def run_starts(*columns: Array) -> Rows:
    """Return the rows at which any of some equally long columns differs from the row before; row 0 is one."""
    rows = len(columns[0])
    differs = np.zeros(rows, bool)
    differs[:1] = True
    for column in columns if rows else ():
        differs[1:] |= flags(pc.not_equal(column.slice(1), column.slice(0, rows - 1)))
    return np.flatnonzero(differs)


RUN_ROWS = 1 << 16
"""Rows of a table of a stream, at least: fewer cost more by the table than by the row."""


def tables_of(batches: Iterable[pa.RecordBatch], rows: int = RUN_ROWS) -> Iterator[pa.Table]:
    """Yield a stream as tables of at least so many rows; the last one has what is left."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield read_table(waiting)
            waiting, count = [], 0
    if waiting:
        yield read_table(waiting)


def whole_runs(batches: Iterable[pa.RecordBatch], *names: str) -> Iterator[pa.Table]:
    """Yield a stream sorted by columns as tables, of which no two have rows of equal columns; at least one table.

    A table has `RUN_ROWS` rows, or those of one run where that has more.
    """
    waiting: list[pa.RecordBatch] = []
    rows, most = 0, RUN_ROWS
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows < most:
            continue
        table = read_table(waiting)
        last = int(run_starts(*(table.column(name) for name in names))[-1])
        waiting, rows = table.slice(last).to_batches(), table.num_rows - last
        if last:
            yield table.slice(0, last).combine_chunks()
        most = max(RUN_ROWS, 2 * rows)  # a run that is longer is not looked at again with each batch
    yield read_table(waiting)


def last_of_runs(batches: Iterable[pa.RecordBatch], *names: str) -> Iterator[pa.RecordBatch]:
    """Yield of a stream sorted by columns the last row of each run of equal columns; at least one batch."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        rows = pa.concat_batches([*waiting, batch])
        starts = run_starts(*(rows.column(name) for name in names))
        yield rows.take(pa.array(starts[1:] - 1))
        waiting = [rows.slice(max(rows.num_rows - 1, 0))]
    yield from waiting


def run_numbers(starts: Rows, rows: int) -> Rows:
    """Return the number of each row's run, given where the runs start."""
    return np.repeat(np.arange(len(starts)), np.diff(np.append(starts, rows)))


def flags(column: Array) -> Flags:
    """Return a boolean column without nulls as a numpy array."""
    return np.asarray(combined(column).to_numpy(zero_copy_only=False), np.bool_)


def whole_numbers(column: Array) -> Rows:
    """Return an int64 column without nulls as a numpy array."""
    return np.asarray(combined(column).to_numpy(zero_copy_only=False), np.int64)


def rows_by(table: pa.Table, key: str) -> dict[Any, dict[str, Any]]:
    """Return the rows of a table as dictionaries, by their value of a unique column."""
    return {row[key]: row for row in table.to_pylist()}


def unchanged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches as they come: a kernel for the order that `group` gives."""
    yield from batches


def gathered(_first: Iterable[pa.RecordBatch], rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what is broadcast: many small shards become one, so that each of as many tasks asks for one."""
    yield from rows
