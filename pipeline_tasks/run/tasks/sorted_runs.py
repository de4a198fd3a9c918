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

RUN_BYTES = 512 * 1024 * 1024
"""Bytes of rows that are sorted in memory, where they are twice for a moment; of more, so many at a time are a run."""

BLOCK_BYTES = 4 * 1024 * 1024
"""Bytes of texts and lists that a block of a run has, about: while runs are merged, one block of each is in memory."""

BLOCK_ROWS = 16 * 1024
"""Rows of a block, at most."""


def run_bytes(memory: float) -> int:
    """Return the bytes of a run of a task that is given so many GiB: a quarter, and `RUN_BYTES` at most (or for 0)."""
    return min(int(memory * (1 << 28)) or RUN_BYTES, RUN_BYTES)


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
            runs.append(_run(waiting, keys, batch_rows))
            weight = 0
    if not runs:
        return _sorted_batches(waiting, keys, batch_rows)
    if waiting:
        runs.append(_run(waiting, keys, batch_rows))
    return merged([iter(pa.ipc.open_stream(run)) for run in runs], keys, batch_rows)


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
    rows[places] = tied[_sorted_rows(table.select(list(dict.fromkeys(keys))).take(pa.array(tied)), keys)]
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


def _run(batches: list[pa.RecordBatch], keys: Sequence[str], batch_rows: int) -> IO[bytes]:
    """Write rows in order to a file of TMPDIR that has no name, so that nothing is left of it; return it."""
    file = tempfile.TemporaryFile(prefix="refinery-")  # noqa: SIM115 -- it is read when all runs are written
    options, schema = pa.ipc.IpcWriteOptions(compression="lz4"), batches[0].schema
    try:
        with pa.ipc.new_stream(file, schema, options=options) as stream:
            for block in _blocks(_sorted_batches(batches, keys, batch_rows)):
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

    Of equal rows, those of an earlier block are before those of a later one. A search by halves in all blocks at once.
    """
    first = int(_order_of([block.slice(block.num_rows - 1) for block in blocks], keys)[0])
    bound = blocks[first].slice(blocks[first].num_rows - 1)
    low, high = [0] * len(blocks), [block.num_rows for block in blocks]
    low[first] = high[first]
    while any(below < above for below, above in zip(low, high, strict=True)):
        middle = [(below + above) // 2 for below, above in zip(low, high, strict=True)]
        probes = [block.slice(min(row, block.num_rows - 1), 1) for block, row in zip(blocks, middle, strict=True)]
        probes[first] = bound
        order = _order_of(probes, keys).tolist()
        before = set(order[: order.index(first)])
        for rank in range(len(blocks)):
            if low[rank] < high[rank]:
                low[rank], high[rank] = (middle[rank] + 1, high[rank]) if rank in before else (low[rank], middle[rank])
    return low


def _order_of(rows: Sequence[pa.RecordBatch], keys: Sequence[str]) -> Rows:
    """Return the order of batches of a row each."""
    names = list(dict.fromkeys(keys))
    return row_order(pa.Table.from_batches([row.select(names) for row in rows]).combine_chunks(), *keys)
