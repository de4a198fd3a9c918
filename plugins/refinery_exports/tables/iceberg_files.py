"""What Iceberg keeps of a data file: its rows, its partition, and bounds of columns, all from its footer.

Values stay in the files but for bounds: those of numbers, and those of texts that `BOUNDED` names. Texts of documents
have none, so that no metadata quotes a document.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import groupby
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import ResolveError
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    StatisticsCollector,
    UnsupportedPyArrowTypeException,
    _pyarrow_to_schema_without_ids,
    compute_statistics_plan,
    parquet_path_to_id_mapping,
    pyarrow_to_schema,
)
from pyiceberg.manifest import DataFile as Registered
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntry
from pyiceberg.partitioning import partition_record_value
from pyiceberg.schema import Schema, assign_fresh_schema_ids, index_by_id, promote
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType
from pyiceberg.utils.truncate import truncate_upper_bound_text_string

from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from refinery_exports.tables.catalog import DataFile, Table

METRICS, DEFAULT_METRICS = "write.metadata.metrics.column.", "write.metadata.metrics.default"
"""Properties of a table that say what is kept of a column, by its name, and of all others."""

BOUNDED = ("id", "url", "crawled_at", "language", "snapshot", "source", "stage", "reason", "outcome")
"""Columns of text by whose values readers look for rows: theirs are the only texts that have bounds."""

TEXT_BOUND = "truncate(64)"
"""Characters of a bound of a text: an id has 32, and 64 tell pages of a site apart."""

Value: TypeAlias = bool | int | float | str | bytes | date | Decimal
"""A value of a column, as Parquet's footers have it."""

AGAIN = "`refinery verify` of the root says how its files are written again"
"""The way out behind a file that is not as it was written."""


def metrics(table: Table) -> dict[str, str]:
    """Return the properties that say which columns have bounds; of all others only nulls are counted."""
    known = {DEFAULT_METRICS: "counts"}
    for column in table.schema:
        if column.name in table.parted_by or pa.types.is_primitive(column.type):
            known[METRICS + column.name] = "full"
        elif column.name in {*BOUNDED, *table.sorted_by} and pa.types.is_string(column.type):
            known[METRICS + column.name] = TEXT_BOUND
    return known


def schema_of(table: Table) -> Schema:
    """Return the columns of a table with ids, in Iceberg's types; RecipeError for one whose values it would not keep.

    Iceberg has texts, bytes, booleans, integers of 32 and 64 bits with a sign, `float`, `double`, decimals, days,
    timestamps of microseconds, in UTC or without a zone, and structs, lists and maps of them. PyIceberg takes integers
    without a sign for such with one, and other timestamps for those; what else it has no type for, it refuses.
    """
    for column in table.schema:
        odd = [kind for kind in _kinds(column.type) if pa.types.is_unsigned_integer(kind) or _is_odd_time(kind)]
        try:
            _pyarrow_to_schema_without_ids(pa.schema([column]))  # what `create_table` calls for columns of Arrow
        except (UnsupportedPyArrowTypeException, TypeError, ValueError):
            odd.append(column.type)
        if odd:
            message = (
                f"column {column.name!r} of the table {table.name} has values of {odd[0]}, which Iceberg has not; "
                "write them as another type, such as wider integers, or timestamps of microseconds"
            )
            raise RecipeError(message)
    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(table.schema))


def _is_odd_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit != "us")


def _kinds(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    for index in range(kind.num_fields):
        yield from _kinds(kind.field(index).type)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column of values in a file: its id and type in the table, and what is kept of it.

    `characters` are those of a bound of a text, None for whole values.
    """

    id: int
    kind: PrimitiveType
    counted: bool
    bounded: bool
    characters: int | None

    def lower(self, value: Value) -> bytes:
        """Return a least value as Iceberg keeps it."""
        return to_bytes(self.kind, value[: self.characters] if isinstance(value, str) else value)

    def upper(self, value: Value) -> bytes | None:
        """Return a greatest value as Iceberg keeps it; None for a text of which no prefix is greater."""
        bound = truncate_upper_bound_text_string(value, self.characters) if isinstance(value, str) else value
        return None if bound is None else to_bytes(self.kind, bound)


@dataclass(slots=True)
class Counted:
    """What the row groups of a file have of its leaves, by their ids: bytes, values, nulls, and bounds.

    Of those that are `unknown` a group does not say its nulls or bounds, and those of the other groups say nothing.
    """

    sizes: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    values: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    nulls: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    bounds: dict[int, tuple[Value, Value]] = field(default_factory=dict)
    unknown: set[int] = field(default_factory=set)

    def add(self, group: pq.RowGroupMetaData, leaves: Sequence[Leaf]) -> None:
        """Count a row group, whose chunks are those of `leaves`, in order."""
        for position, leaf in enumerate(leaves):
            chunk = group.column(position)
            self.sizes[leaf.id] += chunk.total_compressed_size
            if leaf.counted:
                self.values[leaf.id] += chunk.num_values
                self._add_values(leaf, chunk)

    def _add_values(self, leaf: Leaf, chunk: pq.ColumnChunkMetaData) -> None:
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            self.unknown.add(leaf.id)
            return
        self.nulls[leaf.id] += statistics.null_count
        if leaf.bounded and statistics.null_count < chunk.num_values:
            if statistics.has_min_max:
                least, most = statistics.min, statistics.max
                known = self.bounds.get(leaf.id, (least, most))
                self.bounds[leaf.id] = min(known[0], least), max(known[1], most)
            else:  # Parquet keeps none of texts of more than 4,096 bytes
                self.unknown.add(leaf.id)

    def only_value(self, number: int, rows: int) -> tuple[bool, Value | None]:
        """Return whether all rows have one value of a leaf, or all have none, and the value."""
        nulls, bounds = self.nulls.get(number, 0), self.bounds.get(number)
        if number in self.unknown:
            return False, None
        return (nulls == rows, None) if bounds is None else (nulls == 0 and bounds[0] == bounds[1], bounds[0])


@dataclass(frozen=True)
class Reader:
    """Reads footers of files for a table as its metadata are.

    `plan` are the leaves of the table by their ids. `leaves` are those of files, by the columns that these have: most
    files of a table have the same ones.
    """

    metadata: TableMetadata
    plan: Mapping[int, Leaf]
    leaves: list[tuple[pq.ParquetSchema, tuple[Leaf, ...]]] = field(default_factory=list)

    def registered(self, files: Sequence[DataFile]) -> Iterator[Registered]:
        """Yield what Iceberg keeps of files, in order; ContractError for one that is damaged, or has other columns."""
        for file, footer in zip(files, _footers(files), strict=True):
            counted, leaves = Counted(), self._leaves(file, footer)
            groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
            for group in groups:
                counted.add(group, leaves)
            bounds = {number: pair for number, pair in counted.bounds.items() if number not in counted.unknown}
            yield Registered.from_args(
                content=DataFileContent.DATA,
                file_path=file.address,
                file_format=FileFormat.PARQUET,
                partition=self._partition(file, footer.num_rows, counted),
                record_count=footer.num_rows,
                file_size_in_bytes=file.bytes,
                column_sizes=dict(counted.sizes),
                value_counts=dict(counted.values),
                null_value_counts={key: nulls for key, nulls in counted.nulls.items() if key not in counted.unknown},
                nan_value_counts={},
                lower_bounds={number: self.plan[number].lower(least) for number, (least, _) in bounds.items()},
                upper_bounds={
                    number: bound
                    for number, (_, most) in bounds.items()
                    if (bound := self.plan[number].upper(most)) is not None
                },
                split_offsets=sorted(_start(group.column(0)) for group in groups),
                sort_order_id=None,
                spec_id=self.metadata.default_spec_id,
                equality_ids=None,
                key_metadata=None,
            )

    def _leaves(self, file: DataFile, footer: pq.FileMetaData) -> tuple[Leaf, ...]:
        """Return the leaves of a file; ContractError unless the table has each, with a type that holds its values."""
        for known, leaves in self.leaves:
            if known.equals(footer.schema):
                return leaves
        columns = footer.schema.to_arrow_schema().remove_metadata()
        schema = self.metadata.schema()
        try:
            for number, column in index_by_id(pyarrow_to_schema(columns, schema.name_mapping)).items():
                own = schema.find_field(number).field_type
                if column.field_type.is_primitive and column.field_type != own:
                    promote(column.field_type, own)
        except (ValueError, TypeError, ResolveError) as error:
            message = f"{file.root}/{file.path} has other columns than the table ({error}); {AGAIN}"
            raise ContractError(message) from error
        ids = parquet_path_to_id_mapping(schema)
        leaves = tuple(self.plan[ids[footer.schema.column(at).path]] for at in range(footer.num_columns))
        self.leaves.append((footer.schema, leaves))
        return leaves

    def _partition(self, file: DataFile, rows: int, counted: Counted) -> Record:
        """Return the values by which a file is parted; ContractError unless it has one of each such column, or none."""
        schema, values = self.metadata.schema(), []
        for part in self.metadata.spec().fields:
            is_one, value = counted.only_value(part.source_id, rows)
            if not is_one:
                message = (
                    f"{file.root}/{file.path} has not one value of the column {part.name!r}, by which files are "
                    f"parted; {AGAIN}"
                )
                raise ContractError(message)
            kind = schema.find_field(part.source_id).field_type
            values.append(part.transform.transform(kind)(partition_record_value(part, value, schema)))
        return Record(*values)


def reader_of(metadata: TableMetadata) -> Reader:
    """Return the reader for a table as its metadata are."""
    plan = compute_statistics_plan(metadata.schema(), metadata.properties)
    return Reader(metadata, {number: _leaf(collector) for number, collector in plan.items()})


def _leaf(collector: StatisticsCollector) -> Leaf:
    mode = collector.mode.type
    bounded = mode in (MetricModeTypes.TRUNCATE, MetricModeTypes.FULL)
    return Leaf(
        collector.field_id, collector.iceberg_type, mode != MetricModeTypes.NONE, bounded, collector.mode.length
    )


def _start(chunk: pq.ColumnChunkMetaData) -> int:
    """Return where a chunk begins in a file: with its dictionary, if it has one."""
    dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    return int(min(chunk.data_page_offset, chunk.data_page_offset if dictionary is None else dictionary))


def _footers(files: Sequence[DataFile]) -> Iterator[pq.FileMetaData]:
    """Yield the footers of files, in order, side by side where a store answers over a network."""
    for root, several in groupby(files, key=lambda file: file.root):
        store = storage.connect(root)
        yield from storage.each(store, partial(_footer, store), several)


def _footer(store: Store, file: DataFile) -> pq.FileMetaData:
    """Return the footer of a file; DigestMismatch if the file has other bytes, ContractError if it is damaged."""
    try:
        with store.open(file.path) as stream:
            size = stream.seek(0, 2)
            if size != file.bytes:
                message = f"{file.root}/{file.path} has {size} bytes, and {file.bytes} were written; {AGAIN}"
                raise DigestMismatch(message)
            return pq.read_metadata(stream)
    except (pa.ArrowInvalid, FileNotFoundError) as error:
        message = f"{file.root}/{file.path} is gone, or no whole file of Parquet ({error}); {AGAIN}"
        raise ContractError(message) from error


class Overwrite(_OverwriteFiles):
    """A snapshot that takes files away, and says no bounds of them: the least id may be of what was taken down."""

    def _deleted_entries(self) -> list[ManifestEntry]:
        return [_without_bounds(entry) for entry in super()._deleted_entries()]


def _without_bounds(entry: ManifestEntry) -> ManifestEntry:
    file = entry.data_file
    bare = Registered.from_args(
        content=file.content,
        file_path=file.file_path,
        file_format=file.file_format,
        partition=file.partition,
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
    )
    bare.spec_id = file.spec_id
    return ManifestEntry.from_args(
        status=entry.status,
        snapshot_id=entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=bare,
    )
