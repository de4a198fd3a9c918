"""Reads the rows of committed shards that have a value in a column: each file once, up to so many bytes of files."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.stage import Shard
from pipeline_tasks.store.shards.file import checked
from pipeline_tasks.store.shards.layer_columns import CHANGED, ROW
from pipeline_tasks.store.shards.rows import Facts, changed, facts_of

pc: Any = pyarrow.compute


class _Rows(NamedTuple):
    """Some rows of a shard, with all of its columns, and their numbers in it, which ascend."""

    numbers: npt.NDArray[np.int64]
    table: pa.Table


class _NoRoomError(Exception):
    """A file has more bytes than may be read."""


class MatchingRows:
    """Finds the rows with `value` in `column`, which no layer has anew, in one shard after the other.

    Of a layer its own file is read, and the rows below it are those that were found there: a file that many layers rest
    on is read once. `read` are the bytes of the files that were read, at most `most_bytes` (0: no bound).
    """

    def __init__(self, root: str, column: str, value: str, most_bytes: int = 0) -> None:
        self.read = 0
        self._root, self._column, self._value, self._most = root, column, value, most_bytes
        self._known: dict[str, _Rows] = {}

    def of(self, shard: Shard) -> pa.Table | None:
        """Return the rows of a shard, with all of its columns; None if its files have more bytes than may be read."""
        try:
            return self._found(shard).table
        except _NoRoomError:
            return None

    def _found(self, shard: Shard) -> _Rows:
        if shard.path not in self._known:
            if self._most and self.read + shard.bytes > self._most:
                raise _NoRoomError(shard.path)
            self.read += shard.bytes
            with checked(self._root, shard) as source:
                on_disk = not isinstance(source, pa.BufferReader)  # bytes in memory are those whose digest was checked
                file = pq.ParquetFile(source, page_checksum_verification=on_disk, pre_buffer=False)
                facts = facts_of(file.schema_arrow)
                self._known[shard.path] = self._of_file(file) if facts is None else self._of_layer(file, facts)
        return self._known[shard.path]

    def _of_file(self, file: pq.ParquetFile) -> _Rows:
        """Return the rows of a file that has all of its columns: those of a row group are read if it has any."""
        is_wanted = pc.fill_null(pc.equal(file.read([self._column])[self._column], self._value), fill_value=False)
        return _taken(file, pc.indices_nonzero(is_wanted).to_numpy().astype(np.int64), file.schema_arrow.names)

    def _of_layer(self, file: pq.ParquetFile, facts: Facts) -> _Rows:
        """Return the rows of a layer whose rows below were found."""
        below = self._found(facts.below)
        rows = file.read([ROW])[ROW].to_numpy()
        own = _taken(file, np.flatnonzero(np.isin(rows, below.numbers)), file.schema_arrow.names)
        under = below.table.take(np.searchsorted(below.numbers, rows[own.numbers]))
        columns = {name: _column(name, own.table, under) for name, _ in facts.columns}
        return _Rows(own.numbers, pa.table(columns))


def _taken(file: pq.ParquetFile, numbers: npt.NDArray[np.int64], columns: list[str]) -> _Rows:
    """Return the rows of a file with these numbers, from the row groups that have them."""
    ends = np.cumsum([file.metadata.row_group(rank).num_rows for rank in range(file.metadata.num_row_groups)])
    groups = np.searchsorted(ends, numbers, side="right")
    parts = [file.schema_arrow.empty_table().select(columns)]
    for rank in np.unique(groups):
        first = ends[rank - 1] if rank else 0
        parts.append(file.read_row_group(int(rank), columns=columns).take(numbers[groups == rank] - first))
    return _Rows(numbers, pa.concat_tables(part.replace_schema_metadata() for part in parts))


def _column(name: str, own: pa.Table, under: pa.Table) -> pa.ChunkedArray | pa.Array:
    """Return a column of a layer's rows: its own, or that of the rows below with what the layer changes."""
    if name in own.column_names:
        return own[name]
    if CHANGED + name not in own.column_names:
        return under[name]
    return changed(_whole(under[name]), _whole(own[CHANGED + name]))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
