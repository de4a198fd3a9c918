"""Reads the Parquet file of a table in the order of its rows, as the columns of the table's schema."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError, SnapshotIncomplete
from pipeline_tasks.landing.parquet.rows import FAULTS
from refinery_sources.admission import open_file
from refinery_sources.parquet_part import BATCH_BYTES, BATCH_ROWS


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table: where it is, the rows that its log says it has, and what is not in it.

    `constants` are the values of columns that all rows share, those of partitions; `kept` says of each row whether it
    is one of the version, None where all are.
    """

    uri: str
    rows: int
    constants: Mapping[str, Any] = field(default_factory=dict)
    kept: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    @property
    def left(self) -> int:
        """Rows of the version."""
        return self.rows if self.kept is None else self.rows - int((~self.kept).sum())


def read_data_file(file: DataFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that are those of the version, in its order.

    A column that the file has not, as it is younger, is null. ContractError for a file that is damaged,
    SnapshotIncomplete for one that is gone.
    """
    at = 0
    with _faults(file.uri), open_file(file.uri) as stream:
        table = pq.ParquetFile(stream, pre_buffer=False)
        columns = [name for name in schema.names if name in table.schema_arrow.names and name not in file.constants]
        for batch in table.iter_batches(_step(table), columns=columns):
            rows = batch if file.kept is None else batch.filter(pa.array(file.kept[at : at + batch.num_rows]))
            at += batch.num_rows
            yield _completed(rows, file, schema)


def rows_of(uri: str) -> int:
    """Return the rows that the footer of a file counts."""
    with _faults(uri), open_file(uri) as stream:
        return int(pq.ParquetFile(stream, pre_buffer=False).metadata.num_rows)


def _step(table: pq.ParquetFile) -> int:
    """Return how many rows are decoded at once, by the largest mean of a row group."""
    groups = [table.metadata.row_group(number) for number in range(table.num_row_groups)]
    largest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=1)
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(largest, 1)))


def _completed(batch: pa.RecordBatch, file: DataFile, schema: pa.Schema) -> pa.RecordBatch:
    there = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [
        there[column.name].cast(column.type)
        if column.name in there
        else pa.repeat(pa.scalar(file.constants.get(column.name), column.type), batch.num_rows)
        for column in schema
    ]
    return pa.record_batch(columns, schema=schema)


@contextlib.contextmanager
def _faults(uri: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        message = f"{uri} is a file of the version, and is gone"
        raise SnapshotIncomplete(message) from error
    except FAULTS as error:
        if isinstance(error, ContractError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        message = f"{uri} cannot be read ({type(error).__name__}: {str(error)[:150]!a})"
        raise ContractError(message) from error
