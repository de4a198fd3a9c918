"""Writes the rows of an answer: as a table for a person, CSV, JSON lines or Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.ask.lines import aligned_lines
from pipeline_tasks.counted import counted

TABLE, CSV, JSONL, PARQUET = "table", "csv", "jsonl", "parquet"
FORMATS = (TABLE, CSV, JSONL, PARQUET)

SHOWN = 100
"""Rows of a table that are printed."""

WIDE = 80
"""Characters of a value that are printed in a table."""

Batches = Iterable[pa.RecordBatch]


def write(path: Path, format_: str, schema: pa.Schema, batches: Batches) -> int:
    """Write an answer to a file; return its rows."""
    return _WRITERS[format_](path, schema, batches)


def _parquet(path: Path, schema: pa.Schema, batches: Batches) -> int:
    rows = 0
    with pq.ParquetWriter(path, _storable(schema), compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.cast(writer.schema))
            rows += batch.num_rows
    return rows


def _storable(schema: pa.Schema) -> pa.Schema:
    """Return a schema without types that Parquet has not: intervals as texts."""
    return pa.schema(
        [column.with_type(pa.string()) if pa.types.is_interval(column.type) else column for column in schema]
    )


def _csv(path: Path, schema: pa.Schema, batches: Batches) -> int:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(schema.names)
        return _counted(rows_of(batches), lambda row: writer.writerow(map(_cell, row)))


def _jsonl(path: Path, schema: pa.Schema, batches: Batches) -> int:
    names = schema.names
    with path.open("wb") as stream:
        return _counted(rows_of(batches), lambda row: stream.write(_json(dict(zip(names, row, strict=True))) + b"\n"))


def _table(path: Path, schema: pa.Schema, batches: Batches) -> int:
    rows = rows_of(batches)
    shown = list(islice(rows, SHOWN))
    more = sum(1 for _ in rows)
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in table_lines(schema, shown, more))
    return len(shown) + more


_WRITERS: Mapping[str, Callable[[Path, pa.Schema, Batches], int]] = {
    TABLE: _table,
    CSV: _csv,
    JSONL: _jsonl,
    PARQUET: _parquet,
}


def _counted(rows: Iterable[Sequence[Any]], put: Callable[[Sequence[Any]], object]) -> int:
    count = 0
    for row in rows:
        put(row)
        count += 1
    return count


def rows_of(batches: Batches) -> Iterator[Sequence[Any]]:
    """Yield rows as values of Python, in the order of their columns."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def table_lines(schema: pa.Schema, rows: Sequence[Sequence[Any]], more: int) -> Iterator[str]:
    """Yield a line with the names of columns, a line for each row, and how many rows there are."""
    left = [at for at, column in enumerate(schema) if not _is_number(column.type)]
    yield from aligned_lines([schema.names, *([_short(value) for value in row] for row in rows)], left)
    yield counted(len(rows) + more, "row") + (f", of which {len(rows)} are shown; --format csv has all" if more else "")


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _short(value: object) -> str:
    """Return a value on one line, without what a terminal would take for a command."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return f"{value:,}"
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in str(_cell(value))).split())
    return text if len(text) <= WIDE else f"{text[: WIDE - 3]}..."


def _cell(value: object) -> object:
    """Return a value of CSV: lists and structs are JSON."""
    if isinstance(value, list | dict | tuple | bool):
        return _json(value).decode()
    return _plain(value) if isinstance(value, bytes | datetime | date | time) else value


def _json(value: object) -> bytes:
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # half a surrogate pair, or a number of more than 64 bits
        return json.dumps(value, default=_plain).encode()


def _plain(value: object) -> object:
    """Return what JSON can say of a value that it has no type for."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else str(value)


def read_text(path: Path) -> Iterator[str]:
    """Yield what was written, as text, in pieces."""
    with path.open("r", encoding="utf-8", newline="") as stream:
        while piece := stream.read(io.DEFAULT_BUFFER_SIZE * 16):
            yield piece
