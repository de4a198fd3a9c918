"""Blanks rows: what a document said is taken out of them, and what counts them and says where they came from stays.

So no row is lost: manifests count the rows that are there, layers over a shard find the rows that they rest on, and
sequences have as many tokens as before.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.schema import GENERATED_TEXTS
from pipeline_tasks.store.shards.layer_columns import CHANGED, ROW, VALUE

pc: Any = pyarrow.compute

KEPT = frozenset(
    [
        "id",
        "parent",
        "origin",
        "source",
        "snapshot",
        "file",
        "record_id",
        "payload_digest",
        "crawled_at",
        "kind",
        "content_type",
        "extractor",
        "language",
        "html_language",
        "reason",
    ]
)
"""Columns of strings that stay: where a record came from, and why it was rejected."""

CONTENT = frozenset(
    ["url", "text", "title", "payload", "metadata", "tokens", "embedding", "published", "evidence", GENERATED_TEXTS]
)
"""Columns with content, of tables in which other columns are hashes or ids."""

EVIDENCE, REASON, FILE = "evidence", "reason", "file"

_COMPARED = r"^(dedup_[a-z]+:|[a-z_]+:taken_down$)"
"""Reasons whose evidence names documents or entries of the list, and nothing that a document said."""

URL = "url"

ADDRESS = pa.struct([pa.field(URL, pa.string())])
"""What a blank row has as its address: a struct, as the address may be null; null for a row that is not blanked."""


def blanked(batch: pa.RecordBatch, addresses: pa.Array) -> pa.RecordBatch:
    """Return rows of which those with an address (`ADDRESS`) say nothing but where they came from."""
    is_erased = pc.is_valid(addresses)
    if not pc.any(is_erased, min_count=0).as_py():
        return batch
    columns = [_column(batch, name, is_erased, addresses) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def blanked_entries(column: pa.Array, places: Sequence[Sequence[int]]) -> pa.Array:
    """Return lists of which the entries at some places of each say nothing."""
    flags = [at in gone for row, gone in zip(column, places, strict=True) for at in range(len(row.values or ()))]
    own, blank = column.flatten(), _blank(column.flatten())
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = pa.array(np.cumsum([0, *lengths.to_pylist()]), column.offsets.type)
    entries = pc.if_else(pa.array(flags, pa.bool_()), blank, own)
    return type(column).from_arrays(offsets, entries, type=column.type, mask=pc.is_null(column))


def saying(batch: pa.RecordBatch, addresses: pa.Array) -> int:
    """Return how many of the rows with an address say more than they may."""
    is_erased = pc.is_valid(addresses)
    before = batch.filter(is_erased)
    after = blanked(before, addresses.filter(is_erased))
    rows = zip(before.to_pylist(), after.to_pylist(), strict=True)
    return sum(repr(row) != repr(blank) for row, blank in rows)  # of NaN only the text is equal


def can_say(schema: pa.Schema, *, segment: bool = False) -> bool:
    """Return whether a table has a column that may say something of a document."""
    return bool(set(sayable(schema, segment=segment)) - {REASON})


def sayable(schema: pa.Schema, *, segment: bool = False) -> list[str]:
    """Return the columns that may say something of a document, and the reason of a rejection, by which one is judged.

    A table whose rows name no record, and the history in segments, have hashes, sketches and ids besides: later
    snapshots are compared with these, and no text can be read from them. Only columns that are known to have content
    count there.
    """
    known_only = segment or not {URL, FILE, ROW} & set(schema.names)
    says = [column.name for column in schema if _says(column.name, column.type)]
    if known_only:
        says = [name for name in says if name in CONTENT]
    return [*says, *([REASON] if EVIDENCE in says else [])]


def has_words(column: pa.Field) -> bool:
    """Return whether a column can have words of a document, or its tokens; lists of other numbers have none."""
    numbers = _is_list(column.type) and _is_number(column.type.value_type)
    return _says(column.name, column.type) and (column.name in CONTENT or not numbers)


def compares(reasons: pa.Array) -> pa.Array:
    """Return which reasons have evidence that names documents or entries of the list, and says nothing of one."""
    return pc.fill_null(pc.match_substring_regex(reasons, _COMPARED), fill_value=False)


def _column(batch: pa.RecordBatch, name: str, is_erased: pa.Array, addresses: pa.Array) -> pa.Array:
    column = batch.column(name)
    if not _says(name, column.type):
        return column
    if name == URL:
        return pc.if_else(is_erased, pc.struct_field(addresses, [URL]).cast(column.type), column)
    if name == EVIDENCE and REASON in batch.schema.names:
        is_erased = pc.and_(is_erased, pc.invert(compares(batch.column(REASON))))
    if name == GENERATED_TEXTS:
        return pc.if_else(is_erased, _blank_each(column), column)
    return pc.if_else(is_erased, _blank(column, is_text=name == "text"), column)


def _says(name: str, kind: pa.DataType) -> bool:
    """Return whether a column can have what a document says."""
    if name in KEPT or name == ROW:
        return False
    if name.startswith(CHANGED):
        return name.removeprefix(CHANGED) not in KEPT
    return _has_content(kind)


def _has_content(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_content(field.type) for field in kind)
    if _is_list(kind) or pa.types.is_map(kind):
        return True
    strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return bool(any(is_string(kind) for is_string in strings) or pa.types.is_fixed_size_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _blank(column: pa.Array, *, is_text: bool = False) -> pa.Array:
    """Return a column of the same length that says nothing: lists of numbers keep their lengths, and are zeros."""
    kind = column.type
    if is_text:
        return pa.array([""] * len(column), kind)
    if _is_list(kind) and not pa.types.is_fixed_size_list(kind) and _is_number(kind.value_type):
        values = pa.array(np.zeros(len(column.values), kind.value_type.to_pandas_dtype()), kind.value_type)
        whole = type(column).from_arrays(column.offsets, values, type=kind)
        return pc.if_else(pc.is_valid(column), whole, pa.nulls(len(column), kind))
    if pa.types.is_struct(kind) and [field.name for field in kind] != [VALUE]:
        parts = [pc.struct_field(column, [at]) for at in range(kind.num_fields)]
        fields = [part if not _has_content(part.type) else _blank(part) for part in parts]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=pc.is_null(column))
    return pa.nulls(len(column), kind)


def _blank_each(column: pa.Array) -> pa.Array:
    """Return lists of the same lengths, which others count, of entries that say nothing."""
    whole = type(column).from_arrays(column.offsets, _blank(column.values), type=column.type)
    return pc.if_else(pc.is_valid(column), whole, pa.nulls(len(column), column.type))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
