"""Reads Parquet files as rows: no value, type or size in a file raises, and memory is bounded before pages are decoded.

Each row group is read by itself, in batches as small as the bounds of `parquet_pages` ask for, so that a damaged one
costs only its own rows.
"""

import math
import tempfile
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline_tasks.landing import json_lines
from pipeline_tasks.landing.archives.record import Row
from pipeline_tasks.landing.decompression import BOMB_FLOOR, CHUNK, RATIO, Reader
from pipeline_tasks.landing.json_lines import Names
from pipeline_tasks.landing.parquet.footer import Footer, read_footer
from pipeline_tasks.landing.parquet.pages import PAGE_CAP, Chunk, bound_chunk
from pipeline_tasks.schema import FIELDS

MAGIC, ENCRYPTED = b"PAR1", b"PARE"
BATCH_ROWS = 1_000
BATCH_BYTES = 64 << 20  # that rows of one batch may decode to
HELD = 2 * PAGE_CAP  # bytes of pages and dictionaries that the columns of a row group may hold together
ROW_BYTES = 512  # that every row counts at least, as it becomes a row of RECORD
ROW_CAP = 32 << 20  # bytes of one value, or of a whole row as JSON
IN_MEMORY = 64 << 20  # a larger file from a stream is copied to TMPDIR
_BUFFER = 1 << 20
_UNREADABLE = object()
"""Stands for a value that Python cannot hold."""

FAULTS = (pa.ArrowException, ValueError, TypeError, LookupError, OverflowError, RecursionError, MemoryError, OSError)
"""Everything that pyarrow raises over a file or a value."""


def read_rows(reader: Reader, file: str, names: Names = FIELDS) -> Iterator[Row]:
    """Read the rows of a Parquet file, which is next in `reader`."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="refinery-") as copy:
        while part := reader.read(CHUNK):
            copy.write(part)
        size = copy.tell()
        if reader.source.damage is not None:
            yield Row(
                0, size, error=reader.source.damage, error_detail=f"compressed byte {reader.source.damage_offset}"
            )
            return
        yield from _file_rows(cast("BinaryIO", copy), size, file, names)


def _file_rows(content: BinaryIO, size: int, file: str, names: Names) -> Iterator[Row]:
    content.seek(0)
    if content.read(len(ENCRYPTED)) == ENCRYPTED:
        yield Row(0, 0, error="parquet", error_detail="its footer is encrypted; land the file decrypted")
        return
    try:
        footer = read_footer(content, size)
        table = pq.ParquetFile(content, page_checksum_verification=True, pre_buffer=False, buffer_size=_BUFFER)
        problem = _problem(table)
    except FAULTS as error:
        problem = _unreadable(error)
    if problem is not None:
        yield problem
        return
    decoded = 0
    nested = paths_in(table.schema_arrow, chain.from_iterable(names.values()))
    for row, row_bytes in _table_rows(_Table(table, footer, content, names, nested), file):
        yield row
        decoded += row_bytes
        if decoded > BOMB_FLOOR and decoded > RATIO * size:
            yield Row(row.offset + 1, 0, error="bomb", error_detail=f"more than {RATIO} times its {size} bytes")
            return


def _problem(table: pq.ParquetFile) -> Row | None:
    """Return the damage row of a file without columns, with too many, or with one that is given twice."""
    names = [str(name) for name in table.schema_arrow.names]
    if not names:
        return Row(0, 0, error="no_text", error_detail="no columns")
    if len(set(names)) < len(names):
        return Row(0, 0, error="dup_key", error_detail="a column is given twice")
    return None


class _Table(NamedTuple):
    """A file as pyarrow opened it, what its footer says, its bytes, and the names of the fields of a record.

    `nested` are those of the names that are paths into columns of structs.
    """

    file: pq.ParquetFile
    footer: Footer
    content: BinaryIO
    looked_for: Names
    nested: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [str(name) for name in self.file.schema_arrow.names]

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of the fields that become columns of a record."""
        return tuple(chain.from_iterable(self.looked_for.values()))

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """The names of the columns that have these fields."""
        return (*self.needed, *(path.partition(".")[0] for path in self.nested))

    def chunks(self, group: int) -> list[Chunk]:
        """Return the bounds of the column chunks of a row group."""
        columns = zip(self.footer.groups[group].columns, self.footer.leaves, strict=True)
        return [bound_chunk(self.content, column, leaf) for column, leaf in columns]


def _table_rows(table: _Table, file: str) -> Iterator[tuple[Row, int]]:
    """Yield the rows of each row group, each with the bytes that it decoded to."""
    start = 0
    for number, group in enumerate(table.footer.groups):
        at = start
        for batch, left_out in _group_batches(table, number) if group.rows else ():  # an empty group has no pages
            if isinstance(batch, Row):
                yield batch._replace(offset=at, length=max(start + group.rows - at, 0)), ROW_BYTES
                break
            each = max(batch.nbytes // max(batch.num_rows, 1), ROW_BYTES)
            for fields, unreadable in _objects(_lifted(batch, table.nested), table.needed):
                row = _row(fields, [*left_out, *unreadable], at, file, table)
                yield row, max(each, len(row.text or "") + len(row.metadata or ""))
                at += 1
        else:
            missing = group.rows - (at - start)
            if missing > 0:  # Arrow ends early and says nothing where pages have fewer values than the footer says
                detail = f"row group {number} gives {at - start} of {group.rows} rows"
                yield Row(at, missing, error="parquet", error_detail=detail), ROW_BYTES
        start += group.rows


def _group_batches(table: _Table, group: int) -> Iterator[tuple[pa.RecordBatch | Row, list[str]]]:
    """Yield the batches of a row group, and the columns that are left out of it; last a row of what is unreadable."""
    try:
        chunks, names = table.chunks(group), table.names
        left_out = _left_out(names, chunks)
        refusal = _refusal(names, left_out, table.needed_columns)
        if refusal is not None:
            yield refusal, []
            return
        columns = [name for name in names if name not in left_out]
        step = _step([chunk for chunk in chunks if not _columns_of(chunk.column, left_out)])
        for batch in table.file.iter_batches(step, row_groups=[group], columns=columns):
            yield batch, sorted(left_out)
    except FAULTS as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's own; Arrow's have no number
        yield _unreadable(error), []


def _left_out(names: list[str], chunks: list[Chunk]) -> dict[str, str]:
    """Return {column: reason} of the columns that are not decoded: those out of bounds, and the largest of the rest."""
    left_out: dict[str, str] = {}
    known = frozenset(names)
    held = 0
    for chunk in sorted(chunks, key=lambda chunk: (chunk.fixed, chunk.column)):
        held += chunk.fixed
        reason = chunk.error or ("oversize" if held > HELD else None)
        if reason is not None:
            left_out |= dict.fromkeys(_columns_of(chunk.column, known), reason)
    return left_out


def _columns_of(leaf: str, names: Container[str]) -> list[str]:
    """Return the columns that the leaf may belong to: names with dots make it more than one."""
    parts = leaf.split(".")
    prefixes = [".".join(parts[: count + 1]) for count in range(len(parts))]
    return [name for name in prefixes if name in names]


def paths_in(schema: pa.Schema, names: Iterable[str]) -> list[str]:
    """Return those of the names that are no column, and lead by their dots to a field in a column of structs."""
    return [name for name in names if "." in name and name not in schema.names and _leads(schema, name)]


def _leads(fields: pa.Schema | pa.StructType, path: str) -> bool:
    first, _, below = path.partition(".")
    if [field.name for field in fields].count(first) != 1:
        return False
    kind = fields.field(first).type
    return not below or (pa.types.is_struct(kind) and _leads(kind, below))


def _lifted(batch: pa.RecordBatch, paths: Sequence[str]) -> pa.RecordBatch:
    """Return a batch that has the fields at the end of paths as columns of their own, and no more in their structs."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for path in paths:
        first, *below = path.split(".")
        if first in columns:
            columns[path] = pc.struct_field(columns[first], below)
    for path in paths:
        first, *below = path.split(".")
        if first in columns:
            rest = _without(columns.pop(first), below)
            columns |= {} if rest is None else {first: rest}
    return pa.record_batch(list(columns.values()), list(columns)) if paths else batch


def _without(column: pa.Array, path: Sequence[str]) -> pa.Array | None:
    """Return a column of structs without the field at the end of a path, None if it was the only one."""
    children = {field.name: column.field(at) for at, field in enumerate(column.type)}
    if path[0] not in children:
        return column
    inner = _without(children[path[0]], path[1:]) if path[1:] else None
    children = {name: inner if name == path[0] else child for name, child in children.items()}
    kept = {name: child for name, child in children.items() if child is not None}
    return pa.StructArray.from_arrays(list(kept.values()), list(kept), mask=column.is_null()) if kept else None


def _refusal(names: list[str], left_out: dict[str, str], needed: Sequence[str]) -> Row | None:
    """Return the damage row of a row group whose columns that a record needs, or all columns, are left out."""
    missing = [name for name in needed if name in left_out]
    if missing or len(left_out) == len(names):
        name = (missing or sorted(left_out))[0]
        return Row(0, 0, error=left_out[name], error_detail=f"column {name[:40]!a} decodes to too many bytes")
    return None


def _step(chunks: list[Chunk]) -> int:
    """Return how many rows may be decoded at once."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES // max(sum(chunk.per_row for chunk in chunks), 1)))


def _unreadable(error: Exception) -> Row:
    detail = f"{type(error).__name__}: {str(error)[:150]!a}"
    return Row(0, 0, error="parquet", error_detail=detail[:200])


def _objects(batch: pa.RecordBatch, needed: Sequence[str]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield each row as an object, with the names of its fields that cannot be read."""
    if batch.nbytes > BATCH_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _objects(batch.slice(0, half), needed)
        yield from _objects(batch.slice(half), needed)
        return
    columns = [_values(column) for column in batch.columns]
    suspects = [name for name, column in zip(batch.schema.names, batch.columns, strict=True) if _has_no_number(column)]
    for values in zip(*columns, strict=True):
        fields = dict(zip(batch.schema.names, values, strict=True))
        for name in suspects:
            _without_no_number(fields, name, needed)
        unreadable = [name for name, value in fields.items() if value is _UNREADABLE]
        yield {name: value for name, value in fields.items() if value is not _UNREADABLE}, unreadable


def _without_no_number(fields: dict[str, Any], name: str, needed: Sequence[str]) -> None:
    """Mark a field with NaN or an infinite number, which JSON has not; in a column of a record, NaN is a missing value.

    So pandas writes a column of missing texts.
    """
    value = fields[name]
    if name in needed and isinstance(value, float) and math.isnan(value):
        fields[name] = None
    elif not _is_finite(value):
        fields[name] = _UNREADABLE


def _has_no_number(column: pa.Array) -> bool:
    """Return whether a column may have NaN or an infinite number, at any depth."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _has_no_number(column.storage)
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        return any(_has_no_number(part) for part in _parts(column))
    if pa.types.is_float16(kind):
        return True
    return bool(pa.types.is_floating(kind) and pc.any(pc.invert(pc.is_finite(column))).as_py())


def _parts(column: pa.Array) -> list[pa.Array]:
    """Return the columns that a nested column or a dictionary is made of."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return [column.dictionary]
    if pa.types.is_map(kind):
        return [column.keys, column.items]
    return [column.field(place) for place in range(kind.num_fields)] if pa.types.is_struct(kind) else [column.flatten()]


def _is_finite(value: object) -> bool:
    """Return whether all numbers in a value are finite; without recursion, as values may be nested deeply."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, float) and not math.isfinite(part):
            return False
        if isinstance(part, dict):
            parts += part.values()
        elif isinstance(part, list | tuple):
            parts += part
    return True


def _values(column: pa.Array) -> list[Any]:
    """Return the values of a column; those that Python cannot hold, and lists that are too large, are `_UNREADABLE`."""
    if pa.types.is_nested(column.type) and column.nbytes > ROW_CAP:
        return [_value(column, at) for at in range(len(column))]
    try:
        values: list[Any] = _plain(column).to_pylist()
    except FAULTS:
        return [_value(column, at) for at in range(len(column))]
    return values


def _value(column: pa.Array, at: int) -> object:
    try:
        value = column.slice(at, 1)
        too_large = pa.types.is_nested(column.type) and value.nbytes > ROW_CAP
        return _UNREADABLE if too_large else _plain(value).to_pylist()[0]
    except FAULTS:
        return _UNREADABLE


def _plain(column: pa.Array) -> pa.Array:
    """Return a column in a type that means the same on every machine: zones are names only, and times microseconds."""
    if isinstance(column.type, pa.BaseExtensionType):
        return _plain(column.storage)
    if pa.types.is_timestamp(column.type):
        unit = "us" if column.type.unit == "ns" else column.type.unit
        return column.cast(pa.timestamp(unit, "UTC" if column.type.tz else None), safe=False)
    return column


def _row(fields: dict[str, Any], unreadable: list[str], at: int, file: str, table: _Table) -> Row:
    missing = [name for name in table.needed if name in unreadable]
    if missing:
        return Row(at, 1, kind="row", error="field_type", error_detail=f"{missing[0]} has a value that cannot be read")
    if unreadable:
        fields["unreadable_fields"] = sorted(unreadable)
    texts = {name: _text(fields[name]) for name in table.needed if isinstance(fields.get(name), bytes)}
    return json_lines.object_row(fields | texts, at, 1, file, "row", names=table.looked_for)


def _text(value: bytes) -> str | bytes:
    """Return bytes as text if they are valid UTF-8: many writers leave out that a column is text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
