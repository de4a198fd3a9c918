"""Writes rows as a part of a landing: one Parquet file, which has equal bytes for equal batches.

Row groups end where a number of rows or bytes is reached, so memory does not grow with the file. The type of a column
is that of the schema, whatever a batch has.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.landing.first_look import missing_column
from pipeline_tasks.store.local_store import flush, os_errors, sha256_of
from refinery_sources.budget import Stopped
from refinery_sources.source import Flow, Part, Received
from refinery_sources.web import Web

BATCH_ROWS, BATCH_BYTES = 1_000, 16 << 20
"""Rows and bytes of a batch at most, where a reader makes them: a row of more bytes is one."""

GROUP_ROWS, GROUP_BYTES = 10_000, 64 << 20
"""Rows and bytes at which a row group ends."""

FORMAT = {
    "compression": "zstd",
    "compression_level": 3,
    "version": "2.6",
    "write_page_checksum": True,
}


def require_columns(schema: pa.Schema, fields: dict[str, str], where: str) -> None:
    """Raise RecipeError, which names the columns, for a table without a text or without a field that is named."""
    names = [field.name for field in schema]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        message = f"{where} has the column {twice[:100]!a} twice, so that its rows cannot be read by names; rename one"
        raise RecipeError(message)
    missing = missing_column(schema, fields)
    if missing:
        message = f"{where}: {missing}. Name the field that has it under `fields` of the source, as {{text: NAME}}"
        raise RecipeError(message)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema without what libraries write beside names and types, such as maps in an order of no meaning."""
    return pa.schema(map(_plain_field, schema))


def _plain_field(column: pa.Field) -> pa.Field:
    return pa.field(column.name, _plain_type(column.type), column.nullable)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(inner) for inner in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    if pa.types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    return kind


def write_part(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, part: Part, partial: Path, web: Web, flow: Flow
) -> Received:
    """Write the rows of `batches` to the local file `partial`, from its beginning; return what was written.

    ContractError for a value that does not fit its column; Stopped when the pull ends.
    """
    rows = size = 0
    with os_errors(str(partial)), partial.open("wb") as stream:
        plain = plain_schema(schema)
        with pq.ParquetWriter(stream, plain, **FORMAT) as writer:
            for group in _groups(batches, plain, part):
                if web.stop.is_set():
                    raise Stopped
                writer.write_table(group, row_group_size=max(group.num_rows, 1))
                rows += group.num_rows
                flow.on_bytes(part.name, stream.tell() - size)
                size = stream.tell()
        flow.on_bytes(part.name, stream.tell() - size)
        size = stream.tell()
        flush(stream)
    return Received(size, sha256_of(partial), rows=rows)


def _groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema, part: Part) -> Iterator[pa.Table]:
    """Yield tables of about `GROUP_ROWS` rows or `GROUP_BYTES` bytes, each of whole batches, in order."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(_fitted(batch, schema, part))
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield pa.Table.from_batches(held, schema)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held, schema)


def _fitted(batch: pa.RecordBatch, schema: pa.Schema, part: Part) -> pa.RecordBatch:
    """Return a batch with the columns of a schema, by their names."""
    try:
        return batch if batch.schema.equals(schema) else batch.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError) as error:
        message = f"{part.address} has other columns than its source says ({str(error)[:200]!a})"
        raise ContractError(message) from error
