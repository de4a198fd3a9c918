"""Reads CSV and TSV strictly (RFC 4180): each row has the fields of the header, or the file is refused at its line."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from pipeline_tasks.errors import ContractError
from pipeline_tasks.landing.json_lines import LINE_CAP
from refinery_sources.parquet_part import BATCH_BYTES, BATCH_ROWS

OTHER_FORM = "If the file is written in another way, name its `delimiter`, or its `columns` where it has no header"
"""The way out where the rows of a file are not what its header says."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a file is written; `columns` are the names where it has no header."""

    encoding: str = "utf-8"
    delimiter: str = ","
    columns: tuple[str, ...] = ()


def read_delimited(
    stream: BinaryIO, uri: str, form: Form, texts: Sequence[str]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns of a file, which are all texts, and its rows in batches.

    An empty field is null; in the columns `texts` it is an empty text. ContractError, which names the line, for a row
    of another number of fields, quotes that do not end, and bytes of another encoding.
    """
    rows = _rows(stream, uri, form)
    names = form.columns or tuple(next(rows, (0, ()))[1])
    if not names:
        message = f"{uri} is empty: it has no line of names"
        raise ContractError(message)
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    return schema, _batches(rows, schema, frozenset(texts), uri)


def _rows(stream: BinaryIO, uri: str, form: Form) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the number of their last line; a blank line is none."""
    csv.field_size_limit(LINE_CAP)
    encoding = "utf-8-sig" if form.encoding.lower() in ("utf-8", "utf8") else form.encoding
    lines = csv.reader(
        io.TextIOWrapper(stream, encoding, errors="strict", newline=""), delimiter=form.delimiter, strict=True
    )
    while True:
        try:
            row = next(lines, None)
        except csv.Error as error:
            message = f"{uri}, line {lines.line_num:,}: {error}; correct that line"
            raise ContractError(message) from error
        except UnicodeDecodeError as error:
            line = lines.line_num + error.object.count(b"\n", 0, error.start) + 1
            raise _other_encoding(uri, line, f"a byte 0x{error.object[error.start]:02X} that is not", form) from error
        if row is None:
            return
        if any("\0" in field for field in row):
            raise _other_encoding(uri, lines.line_num, "NUL characters and is no text of", form)
        if row:
            yield lines.line_num, row


def _other_encoding(uri: str, line: int, what: str, form: Form) -> ContractError:
    return ContractError(
        f"{uri}, line {line:,}: it has {what} {form.encoding}; name the `encoding` of the file in the recipe, as "
        "utf-16, latin-1 or cp1252"
    )


def _batches(
    rows: Iterator[tuple[int, list[str]]], schema: pa.Schema, texts: frozenset[str], uri: str
) -> Iterator[pa.RecordBatch]:
    held: list[list[str]] = []
    size = 0
    for line, row in rows:
        if len(row) != len(schema):
            message = (
                f"{uri}, line {line:,}: {len(row)} fields, and its header has {len(schema)}; correct that line. "
                f"{OTHER_FORM}"
            )
            raise ContractError(message)
        held.append(row)
        size += sum(map(len, row))
        if len(held) == BATCH_ROWS or size >= BATCH_BYTES:
            yield _batch(held, schema, texts)
            held, size = [], 0
    if held:
        yield _batch(held, schema, texts)


def _batch(rows: list[list[str]], schema: pa.Schema, texts: frozenset[str]) -> pa.RecordBatch:
    columns = [
        pa.array(values if field.name in texts else [value or None for value in values], field.type)
        for field, values in zip(schema, zip(*rows, strict=True), strict=True)
    ]
    return pa.record_batch(columns, schema=schema)
