"""Reads CSV and TSV strictly (RFC 4180): each row has the fields of the header, or the file is refused at its line."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from pipeline_tasks.errors import ContractError
from pipeline_tasks.landing.json_lines import LINE_CAP
from pipeline_tasks.sources.parquet_part import BATCH_BYTES, BATCH_ROWS


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
            message = (
                f"{uri}, after line {lines.line_num:,}: its bytes are not {form.encoding}; name its `encoding` in the "
                "recipe"
            )
            raise ContractError(message) from error
        if row is None:
            return
        if row:
            yield lines.line_num, row


def _batches(
    rows: Iterator[tuple[int, list[str]]], schema: pa.Schema, texts: frozenset[str], uri: str
) -> Iterator[pa.RecordBatch]:
    held: list[list[str]] = []
    size = 0
    for line, row in rows:
        if len(row) != len(schema):
            message = f"{uri}, line {line:,}: {len(row)} fields, and its header has {len(schema)}; correct that line"
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
