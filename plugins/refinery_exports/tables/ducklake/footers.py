"""Reads from the footer of a file what a lake keeps of it: rows, columns, and the ranges of their values as text."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.shards.table import End
from refinery_exports.tables.catalog import DataFile
from refinery_exports.tables.ducklake.columns import Column, columns_of

LONGEST = 128
"""Characters of a bound: those of longer values are not kept, as no query looks for a range of whole texts."""

_FOOTER = 8
"""Bytes after the footer of a Parquet file: its length, and `PAR1`."""

Bound: TypeAlias = str | int | float | bool | Decimal | dt.date | None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column without columns in it: its compressed bytes, values with nulls, nulls, and ends; None if not known."""

    bytes: int
    values: int
    nulls: int | None
    low: Bound
    high: Bound

    @property
    def is_null(self) -> bool:
        """Return whether it has only nulls, which is so without values, too."""
        return self.nulls == self.values


@dataclass(frozen=True, slots=True)
class Footer:
    """What the footer of a file says: rows, its own bytes, columns, and their leaves in order."""

    file: DataFile
    rows: int
    bytes: int
    columns: tuple[Column, ...]
    leaves: tuple[Leaf, ...]


def read_footers(files: Sequence[DataFile]) -> list[Footer]:
    """Return what the footers of files say; ContractError names one that is damaged."""
    roots = sorted({file.root for file in files})
    read = {root: _of_root(root, [file for file in files if file.root == root]) for root in roots}
    return [next(read[file.root]) for file in files]


def _of_root(root: str, files: Sequence[DataFile]) -> Iterator[Footer]:
    store, known = storage.connect(root), Schemas()
    return storage.each(store, lambda file: _read(store, file, known), files)


@dataclass(frozen=True, slots=True)
class Schemas:
    """The columns of files by their schemas: most files of a table have the same one, and to compare two is cheap."""

    known: list[tuple[pq.ParquetSchema, tuple[Column, ...]]] = field(default_factory=list)

    def columns(self, schema: pq.ParquetSchema) -> tuple[Column, ...]:
        """Return the columns of a schema; RecipeError names one that a lake cannot have."""
        for known, columns in self.known:
            if known.equals(schema):
                return columns
        columns = columns_of(schema.to_arrow_schema())
        self.known.append((schema, columns))
        return columns


def _read(store: Store, file: DataFile, known: Schemas) -> Footer:
    try:
        length, metadata = End(store, file.path, file.bytes).footer()
        columns = known.columns(metadata.schema)
    except (pa.ArrowException, OSError, OverflowError) as error:
        if isinstance(error, ContractError):
            raise
        message = f"{file.root}/{file.path} is no whole Parquet file ({error}); `refinery verify` says the way out"
        raise ContractError(message) from error
    return Footer(file, metadata.num_rows, length - _FOOTER, columns, tuple(_leaves(metadata)))


def _leaves(metadata: pq.FileMetaData) -> Iterator[Leaf]:
    groups = [metadata.row_group(rank) for rank in range(metadata.num_row_groups)]
    for rank in range(metadata.num_columns):
        yield _leaf([group.column(rank) for group in groups])


def _leaf(chunks: Sequence[pq.ColumnChunkMetaData]) -> Leaf:
    size = values = nulls = 0
    is_counted = is_known = True
    low: Bound = None
    high: Bound = None
    for chunk in chunks:  # one loop, as a file has a hundred leaves and a commit thousands of files
        if not chunk.num_values:
            continue
        said = chunk.statistics
        size += chunk.total_compressed_size
        values += chunk.num_values
        count = said.null_count if said is not None and said.has_null_count else None
        is_counted = is_counted and count is not None
        nulls += count or 0
        if count == chunk.num_values:
            continue
        if said is None or not said.has_min_max:
            is_known = False
            continue
        low = said.min if low is None else min(low, said.min)
        high = said.max if high is None else max(high, said.max)
    ends = (low, high) if is_known else (None, None)
    return Leaf(size, values, nulls if is_counted else None, *ends)


def text_of(value: Bound, type_: str) -> str | None:
    """Return a value as a lake writes it, None where it keeps none: of bytes, and of nanoseconds."""
    if isinstance(value, str):
        return value
    if value is None or type_ in ("blob", "timestamp_ns"):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        zone = "+00" if type_ == "timestamptz" else ""
        return f"{value.replace(tzinfo=None).isoformat(sep=' ')}{zone}"
    if isinstance(value, dt.date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)


def bounds_of(leaf: Leaf, type_: str) -> tuple[str | None, str | None]:
    """Return the bounds of a leaf as text, both None if one is not known or too long."""
    low, high = text_of(leaf.low, type_), text_of(leaf.high, type_)
    if low is None or high is None or max(len(low), len(high)) > LONGEST:
        return None, None
    return low, high
