"""Reads any landed file (WARC, WET, WAT, ARC, JSON lines, Parquet; plain or compressed) as batches of `schema.RECORD`.

Nothing in a file raises: every record is one row, every stretch that cannot be read is one row of kind `damage`
with its `error`, and after it reading goes on at the next record that can be found. Only I/O errors of the
stream itself pass through.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks import schema
from pipeline_tasks.landing import json_lines, warc
from pipeline_tasks.landing.decompression import Gunzip, Plain, Tape, Unpack, inflated_start, seek_member
from pipeline_tasks.landing.warc import Row

BATCH_BYTES = 16 << 20
BATCH_ROWS = 10_000
PARQUET_ROWS = 1_000
_JSON_NAME = re.compile(r"\.(?:jsonl?|ndjson)(?:\.|$)", re.IGNORECASE)
_JSON_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*[\"}]")
_CODECS = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_GZIP = b"\x1f\x8b"


def read_records(
    name: str, stream: BinaryIO, *, source: str, snapshot: str, batch_bytes: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Read the landed file `name` of `snapshot` from `stream`, front to back, as at least one batch of RECORD.

    What the first bytes say goes before what the name says. Memory stays within a few records (32 MiB each at most)
    and one batch of about `batch_bytes` of payload; only Parquet from a stream without seek is held whole.
    """
    raw = Tape(Plain(stream))
    yield from _batches(_rows(raw, name, stream), name, source, snapshot, batch_bytes)


def _rows(raw: Tape, name: str, stream: BinaryIO) -> Iterator[Row]:
    start = raw.peek(8)
    if not start:
        yield Row(0, 0, error="empty_file", error_detail="0 bytes")
    elif start.startswith(b"PAR1"):
        yield from _parquet(raw, name, stream)
    elif start.startswith(_GZIP):
        yield from _gzip(raw, name)
    elif start[:4] in _CODECS:
        yield from _unpacked(Tape(Unpack(raw, _CODECS[start[:4]])), name)
    else:
        yield from _unpacked(raw, name)


def _gzip(raw: Tape, name: str) -> Iterator[Row]:
    if warc.is_archive(inflated_start(raw, 64)):
        single = warc.one_record_per_member(raw)
        yield from warc.read_members(raw, name) if single else warc.read_stream(Tape(Gunzip(raw)), name)
        return
    held = raw.data[raw.at :]
    content = Tape(Gunzip(raw))
    if content.peek(1) or _JSON_NAME.search(name):
        yield from _unpacked(content, name)
    elif content.source.damage is None:
        raw.skip(raw.ahead)
        yield Row(0, raw.offset, error="empty_file", error_detail="a gzip file of nothing")
    else:
        yield from _rescued(raw, held, content.source.damage, name)


def _rescued(raw: Tape, held: bytes, damage: str, name: str) -> Iterator[Row]:
    """Read a gzip file whose very first member is broken, from the first member that is not."""
    raw.data, raw.at, raw.base = held, 0, 0
    seek_member(raw)
    yield Row(0, raw.offset, error=damage, error_detail="first gzip member")
    yield from warc.read_members(raw, name)


def _unpacked(tape: Tape, name: str) -> Iterator[Row]:
    """Read a file by what it holds once no compression is left around it."""
    start = tape.peek(4096)
    if warc.is_archive(start):
        yield from warc.read_stream(tape, name)
    elif start.startswith(b"PAR1"):
        yield from _parquet(tape, name, None)
    elif _JSON_START.match(start) or (_JSON_NAME.search(name) and not start.lstrip().startswith(b"<")):
        yield from json_lines.read_lines(tape, name)
    else:
        yield from _unknown(tape, name)


def _unknown(tape: Tape, name: str) -> Iterator[Row]:
    """Look for records behind a damaged beginning; without any, the whole file is one damage row."""
    rows = warc.read_stream(tape, name)
    first = next(rows, None)
    if not tape.need(1):
        why = tape.source.damage or ("not_an_archive" if tape.offset else "empty_file")
        yield Row(0, tape.offset, error=why, error_detail="no record found in the file")
        return
    if first is not None:
        yield first
    yield from rows


def _parquet(tape: Tape, name: str, stream: BinaryIO | None) -> Iterator[Row]:
    seekable = stream is not None and hasattr(stream, "seekable") and stream.seekable()
    row = 0
    try:
        place = stream if seekable else pa.BufferReader(tape.read())
        file = pq.ParquetFile(place, page_checksum_verification=True, pre_buffer=False)
        for batch in file.iter_batches(PARQUET_ROWS):
            for fields in _dicts(batch):
                yield json_lines.object_row(fields, row, 1, name, "row") if fields else Row(row, 1, error="parquet")
                row += 1
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the stream's own; Arrow's have no number
        yield Row(row, 0, error="parquet", error_detail=f"unreadable from row {row} on: {str(error)[:120]!a}"[:200])


def _dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as dictionaries; a row that holds invalid UTF-8 is empty."""
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (UnicodeDecodeError, ValueError):
        if batch.num_rows == 1:
            return [{}]
        rows = [row for at in range(batch.num_rows) for row in _dicts(batch.slice(at, 1))]
    return rows


def _batches(rows: Iterable[Row], name: str, source: str, snapshot: str, limit: int) -> Iterator[pa.RecordBatch]:
    held: list[Row] = []
    size = 0
    empty = True
    for row in rows:
        held.append(row)
        size += len(row.payload or b"") + len(row.text or "") + 512
        if size >= limit or len(held) >= BATCH_ROWS:
            yield _batch(held, name, source, snapshot)
            held, size, empty = [], 0, False
    if held or empty:
        yield _batch(held, name, source, snapshot)


def _batch(rows: list[Row], name: str, source: str, snapshot: str) -> pa.RecordBatch:
    columns: dict[str, Any] = dict(zip(Row._fields, zip(*rows, strict=True), strict=True)) if rows else {}
    sources = [row.source or source for row in rows]
    given = {"source": sources, "snapshot": [snapshot] * len(rows), "file": [name] * len(rows)}
    arrays = [pa.array(given.get(field.name, columns.get(field.name, ())), field.type) for field in schema.RECORD]
    return pa.record_batch(arrays, schema=schema.RECORD)
