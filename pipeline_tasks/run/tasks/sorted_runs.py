"""Sorts rows that may not fit memory: in runs on this machine's disk, which are then merged."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.stage import Batches
from pipeline_tasks.store.shards.row_groups import RowGroups, no_space

Rows = np.ndarray[tuple[int], np.dtype[np.int64]]

RUN_BYTES = 16 * 1024 * 1024
"""Bytes of rows that are sorted in memory, where they are two or three times for a moment; of more, so many at a time
are a run."""

MOST_BYTES = 512 * 1024 * 1024
"""Bytes of a run at most, however much memory a task is given."""

MOST_RUNS = 64
"""Runs that are merged at once; of more, the first so many become one."""

BLOCK_BYTES = 512 * 1024
"""Bytes of texts and lists that a block of a run has, about: while runs are merged, one block of each is in memory."""

BLOCK_ROWS = 16 * 1024
"""Rows of a block, at most."""


def run_bytes(memory: float) -> int:
    """Return the bytes of a run of a task that is given so many GiB: an eighth; of one that is given none said."""
    return min(int(memory * (1 << 27)) or RUN_BYTES, MOST_BYTES)


def in_order(
    batches: Iterable[pa.RecordBatch], keys: Sequence[str], batch_rows: int, run_bytes: int = RUN_BYTES
) -> Batches:
    """Return rows sorted ascending by columns as batches of at most `batch_rows`; all are read before it returns.

    Nulls are last, and equal rows in the order in which they came. At least one of `batches` is needed, for its schema.
    """
    waiting: list[pa.RecordBatch] = []
    runs: list[IO[bytes]] = []
    weight = 0
    for batch in batches:
        waiting.append(batch)
        weight += batch.nbytes
        if weight >= run_bytes:
            runs.append(_run(_sorted_batches(waiting, keys, batch_rows), batch.schema))
            weight = 0
        if len(runs) == MOST_RUNS:
            runs = [_run(_merged(runs, keys, batch_rows), batch.schema)]
    rest = _sorted_batches(waiting, keys, batch_rows) if waiting else iter(())
    return merged([*map(pa.ipc.open_stream, runs), rest], keys, batch_rows) if runs else rest


def _merged(runs: Sequence[IO[bytes]], keys: Sequence[str], batch_rows: int) -> Batches:
    return merged(map(pa.ipc.open_stream, runs), keys, batch_rows)


def _sorted_batches(batches: list[pa.RecordBatch], keys: Sequence[str], batch_rows: int) -> Batches:
    """Return the rows of `batches` in order, one empty batch if there are none; the list is emptied, to free them."""
    table = pa.Table.from_batches(batches).combine_chunks()
    batches.clear()
    return _taken(table, row_order(table, *keys), batch_rows)


def _taken(table: pa.Table, order: Rows, rows: int) -> Batches:
    if table.num_rows == 0:
        yield pa.RecordBatch.from_pylist([], schema=table.schema)
    for start in range(0, table.num_rows, rows):
        yield from table.take(pa.array(order[start : start + rows])).combine_chunks().to_batches()


def row_order(table: pa.Table, *keys: str) -> Rows:
    """Return the rows of a table sorted ascending by columns, as `pyarrow.compute.sort_indices` orders them.

    Whole numbers are sorted by themselves. The columns after them are read for rows of equal numbers only.
    """
    numbers = whole_numbers(table.column(keys[0]))
    if numbers is None:
        return _sorted_rows(table, keys)
    rows = np.argsort(numbers)
    equal = numbers[rows[1:]] == numbers[rows[:-1]]
    places = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    tied = np.sort(rows[places])
    compared = table.select(list(dict.fromkeys(keys)))
    # Of a key that most rows have all rows are tied: they are not copied to be compared.
    rows[places] = tied[_sorted_rows(compared if len(tied) == len(rows) else compared.take(pa.array(tied)), keys)]
    return rows


def whole_numbers(column: pa.Array | pa.ChunkedArray) -> Rows | None:
    """Return a column of whole numbers without nulls as a numpy array, None for any other."""
    if not pa.types.is_integer(column.type) or column.null_count:
        return None
    return cast("Rows", column.to_numpy(zero_copy_only=False))


def _sorted_rows(table: pa.Table, keys: Sequence[str]) -> Rows:
    sort_keys = [(name, "ascending") for name in dict.fromkeys(keys)]
    return cast("Rows", pc.sort_indices(table, sort_keys=sort_keys).to_numpy().astype(np.int64, copy=False))


# --- Runs -----------------------------------------------------------------------------------------------------


def _run(rows: Batches, schema: pa.Schema) -> IO[bytes]:
    """Write rows in order to a file of TMPDIR that has no name, so that nothing is left of it; return it."""
    file = tempfile.TemporaryFile(prefix="refinery-")  # noqa: SIM115 -- it is read when all runs are written
    try:
        with pa.ipc.new_stream(file, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
            for block in _blocks(rows):
                stream.write_batch(block)
        file.seek(0)
    except OSError as error:
        raise no_space(Path(tempfile.gettempdir()), error) from error
    return file


def _blocks(batches: Batches) -> Batches:
    groups = RowGroups(BLOCK_ROWS, BLOCK_BYTES)
    for batch in batches:
        yield from map(pa.concat_batches, groups.add(batch))
    yield from map(pa.concat_batches, groups.rest())


def merged(streams: Iterable[Batches], keys: Sequence[str], batch_rows: int) -> Batches:
    """Yield the rows of sorted streams in order, in batches of at most `batch_rows`; none if no stream has a row.

    A block of each stream is in memory: all rows up to the first end of one are complete, as no later block has a row
    before it. Equal rows come in the order of their streams.
    """
    filled = [(batch for batch in stream if batch.num_rows) for stream in streams]
    live = [(block, stream) for stream in filled if (block := next(stream, None)) is not None]
    while live:
        blocks = [block for block, _ in live]
        cuts = _cuts(blocks, keys)
        cut = [block.slice(0, rows) for block, rows in zip(blocks, cuts, strict=True) if rows]
        yield from _sorted_batches(cut, keys, batch_rows)
        rest = [
            (block.slice(rows) if rows < block.num_rows else next(stream, None), stream)
            for (block, stream), rows in zip(live, cuts, strict=True)
        ]
        live = [(block, stream) for block, stream in rest if block is not None]


def _cuts(blocks: Sequence[pa.RecordBatch], keys: Sequence[str]) -> list[int]:
    """Return how many rows of each block, from its first on, are not after the first of the blocks' last rows.

    Of equal rows, those of an earlier block are before those of a later one.
    """
    first = int(_order_of([block.slice(block.num_rows - 1) for block in blocks], keys)[0])
    bound = [column[-1] for column in _compared(blocks[first], keys)]
    spans = [_equal_rows(_compared(block, keys), bound) for block in blocks]
    return [stop if place <= first else start for place, (start, stop) in enumerate(spans)]


def _compared(block: pa.RecordBatch, keys: Sequence[str]) -> list[pa.Array]:
    """Return the columns that a block is sorted by; of a struct, its fields."""
    columns = [block.column(name) for name in dict.fromkeys(keys)]
    return [part for column in columns for part in (column.flatten() if pa.types.is_struct(column.type) else [column])]


def _equal_rows(columns: Sequence[pa.Array], bound: Sequence[pa.Scalar]) -> tuple[int, int]:
    """Return from which row on, and up to which, a block has the values of a row: each column within the one before."""
    start, stop = 0, len(columns[0])
    for column, value in zip(columns, bound, strict=True):
        below, above = _equal_values(column.slice(start, stop - start), value)
        start, stop = start + below, start + above
        if start == stop:
            break
    return start, stop


def _equal_values(column: pa.Array, value: pa.Scalar) -> tuple[int, int]:
    """Return where a sorted column has a value, or would have it: nulls are last, and before them what is no number."""
    known = len(column) - column.null_count
    if not value.is_valid:
        return known, len(column)
    column = column.slice(0, known)
    if pa.types.is_floating(column.type):
        numbers = known - pc.is_nan(column).true_count
        if np.isnan(value.as_py()):
            return numbers, known
        column = column.slice(0, numbers)
    below, above = (pc.search_sorted(column, value, side=side).as_py() for side in ("left", "right"))
    return below, above


def _order_of(rows: Sequence[pa.RecordBatch], keys: Sequence[str]) -> Rows:
    """Return the order of batches of a row each."""
    names = list(dict.fromkeys(keys))
    return row_order(pa.Table.from_batches([row.select(names) for row in rows]).combine_chunks(), *keys)
