"""Reads any landed file (WARC, WET, WAT, ARC, JSON lines, Parquet; plain or compressed) as batches of `schema.RECORD`.

No content of a file raises. Every record is one row. Every stretch that cannot be read is one row of kind `damage`
with its `error`; reading goes on behind it at the next record. Only I/O errors of the stream itself pass through.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa

from pipeline_tasks import schema
from pipeline_tasks.landing import json_lines
from pipeline_tasks.landing.archives.gzip_members import (
    holds_record,
    inflate_member,
    is_one_record_per_member,
    read_members,
)
from pipeline_tasks.landing.archives.record import Row
from pipeline_tasks.landing.archives.record_header import is_archive
from pipeline_tasks.landing.archives.record_stream import read_stream
from pipeline_tasks.landing.archives.segments import joined
from pipeline_tasks.landing.brought_formats import brought_format
from pipeline_tasks.landing.decompression import (
    GZIP,
    LZ4,
    STEP,
    BytesSource,
    GzipSource,
    Lz4Source,
    PlainSource,
    Reader,
    inflated_start,
    seek_member,
    starts_member,
)
from pipeline_tasks.landing.json_lines import Names
from pipeline_tasks.landing.parquet import rows as parquet_rows
from pipeline_tasks.landing.whole_files import is_whole, read_whole
from pipeline_tasks.landing.zstd_frames import ZstdSource, is_zstd
from pipeline_tasks.profiles.field_types import ShapeCounter

BATCH_BYTES = 16 << 20
BATCH_ROWS = 10_000
ROW_OVERHEAD = 512  # bytes that the short columns of a row are taken to need
CONTENT = frozenset({"payload", "text"})
"""Columns that are what a record has, whatever its digests say."""

NO_FIELDS: Mapping[str, str] = MappingProxyType({})
"""Fields have the names of `schema.FIELDS`."""

_START = 1 << 14  # bytes that show what a file is: an ARC header may have a URL of 8 KiB
_JSON_NAME = re.compile(r"\.(?:jsonl?|ndjson)(?:\.|$)", re.IGNORECASE)
_PARQUET = (parquet_rows.MAGIC, parquet_rows.ENCRYPTED)
Layout = Literal["members", "records", "lines"]
"""Gzip members of one record each, archive records one after another, or lines of JSON; all in the stored bytes."""


def read_records(  # noqa: PLR0913 -- one keyword per thing that readers vary
    name: str,
    stream: BinaryIO,
    *,
    snapshot: str,
    batch_bytes: int = BATCH_BYTES,
    start: int = 0,
    columns: Sequence[str] = schema.RECORD.names,
    fields: Mapping[str, str] = NO_FIELDS,
    shapes: ShapeCounter | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read the landed file `name` of `snapshot` from `stream`, front to back, as at least one batch of RECORD.

    With `columns`, batches have these columns of it; digests are computed for those that depend on them.
    `fields` name some of `schema.FIELDS` as the file's JSON lines or table do. `shapes` counts what their records have.

    The stream begins at byte `start` of the file, 0 unless it is a piece (see `cuts`).

    The first bytes decide the format before the name does, but for formats that others bring. Memory stays within a few
    records (32 MiB each at most) and one batch of about `batch_bytes` of payload and text. Parquet, which is read from
    its end, is copied to TMPDIR where it has more than 64 MiB, and takes as much memory as `parquet_rows` allows.
    """
    stored = Reader(PlainSource(stream))
    stored.base = start
    is_checked = not CONTENT.issuperset(columns)
    rows = _rows(stored, name, json_lines.names_of(fields), is_checked=is_checked)
    rows = rows if shapes is None else _counting(rows, shapes)
    for batch in batches_of(joined(rows, name, is_checked=is_checked), name, snapshot, batch_bytes):
        yield batch.select(list(columns))


def _counting(rows: Iterable[Row], shapes: ShapeCounter) -> Iterator[Row]:
    for row in rows:
        if row.shape is not None:
            shapes.add(row.shape)
        yield row


def first_rows(name: str, stream: BinaryIO, fields: Mapping[str, str], most: int) -> Iterator[Row]:
    """Yield at most so many rows from the beginning of a landed file, without digests."""
    yield from islice(_rows(Reader(PlainSource(stream)), name, json_lines.names_of(fields), is_checked=False), most)


def unread(name: str, snapshot: str, start: int, length: int, error: str) -> pa.RecordBatch:
    """Return the one row of RECORD that stands for a file of `length` bytes, or a piece of one, that nobody reads."""
    return _batch([Row(max(start, 0), length, error=error, error_detail=f"{length} bytes")], name, snapshot)


def _rows(stored: Reader, name: str, names: Names, *, is_checked: bool) -> Iterator[Row]:
    start = stored.peek(8)
    if not start:
        yield Row(0, 0, error="empty_file", error_detail="0 bytes")
    elif start.startswith(_PARQUET):
        yield from parquet_rows.read_rows(stored, name, names)
    elif start.startswith(GZIP):
        yield from _gzip(stored, name, names, is_checked=is_checked)
    elif is_zstd(start):
        yield from _unpacked(Reader(ZstdSource(stored)), name, names, is_checked=is_checked)
    elif start.startswith(LZ4):
        yield from _unpacked(Reader(Lz4Source(stored)), name, names, is_checked=is_checked)
    else:
        yield from _unpacked(stored, name, names, is_checked=is_checked)


def layout_of(stored: Reader) -> Layout | None:
    """Return how records follow each other in the stored bytes ahead, None where none can be found from its offset."""
    start = stored.peek(len(GZIP))
    if start == GZIP:
        return "members" if holds_record(stored) else None
    start = stored.peek(_START)
    if start.startswith((*_PARQUET, LZ4)) or is_zstd(start):
        return None
    return "records" if is_archive(start) else "lines" if json_lines.LINE_START.match(start) else None


def _gzip(stored: Reader, name: str, names: Names, *, is_checked: bool) -> Iterator[Row]:
    if is_archive(inflated_start(stored, _START)) or _is_followed_by_records(stored):
        if is_one_record_per_member(stored):
            yield from read_members(stored, name, is_checked=is_checked)
        else:
            yield from read_stream(Reader(GzipSource(stored)), name, is_checked=is_checked)
        return
    start = stored.data[stored.at :]
    content = Reader(GzipSource(stored))
    if content.peek(1) or _JSON_NAME.search(name):
        yield from _unpacked(content, name, names, is_checked=is_checked)
    elif content.source.damage is None:
        stored.skip(stored.ahead)
        yield Row(0, stored.offset, error="empty_file", error_detail="a gzip file of nothing")
    else:
        yield from _behind_first_member(stored, start, content.source.damage, name, is_checked=is_checked)


def _is_followed_by_records(stored: Reader) -> bool:
    """Return whether the second gzip member begins like a record, so that a first one that does not is damaged."""
    _, size, _ = inflate_member(stored)
    following = stored.peek(size + STEP)[size:] if size else b""
    return starts_member(Reader(BytesSource(following)))


def _behind_first_member(stored: Reader, start: bytes, damage: str, name: str, *, is_checked: bool) -> Iterator[Row]:
    """Read a gzip file whose very first member is broken, from the first member that is not."""
    stored.data, stored.at, stored.base = start, 0, 0
    seek_member(stored)
    yield Row(0, stored.offset, error=damage, error_detail="first gzip member")
    yield from read_members(stored, name, is_checked=is_checked)


def _unpacked(reader: Reader, name: str, names: Names, *, is_checked: bool) -> Iterator[Row]:
    """Read a file by its content once no compression is left around it."""
    start = reader.peek(_START)
    if brought := brought_format(name):
        yield from brought.format.read_rows(reader, name, names)
    elif is_archive(start):
        yield from read_stream(reader, name, is_checked=is_checked)
    elif start.startswith(_PARQUET):
        yield from parquet_rows.read_rows(reader, name, names)
    elif json_lines.LINE_START.match(start) or (_JSON_NAME.search(name) and not start.lstrip().startswith(b"<")):
        yield from json_lines.read_lines(reader, name, names)
    elif is_whole(name):
        yield from read_whole(reader, name, is_checked=is_checked)
    else:
        yield from _unknown(reader, name, is_checked=is_checked)


def _unknown(reader: Reader, name: str, *, is_checked: bool) -> Iterator[Row]:
    """Look for records behind a damaged beginning; without any, the whole file is one damage row."""
    rows = read_stream(reader, name, is_checked=is_checked)
    first = next(rows, None)
    if (first is None or first.kind == "damage") and not reader.fill(1):
        error = reader.source.damage or ("not_an_archive" if reader.offset else "empty_file")
        yield Row(0, reader.offset, error=error, error_detail="no record found in the file")
        return
    if first is not None:
        yield first
    yield from rows


def batches_of(rows: Iterable[Row], name: str, snapshot: str, limit: int = BATCH_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield rows of a file as batches of RECORD of about `limit` bytes of payload and text; at least one."""
    batch: list[Row] = []
    size = 0
    empty = True
    for row in rows:
        batch.append(row)
        size += len(row.payload or b"") + len(row.text or "") + len(row.metadata or "") + len(row.url or "")
        size += len(row.record_id or "") + ROW_OVERHEAD
        if size >= limit or len(batch) >= BATCH_ROWS:
            yield _batch(batch, name, snapshot)
            batch, size, empty = [], 0, False
    if batch or empty:
        yield _batch(batch, name, snapshot)


def _batch(rows: list[Row], name: str, snapshot: str) -> pa.RecordBatch:
    columns: dict[str, Any] = dict(zip(Row._fields, zip(*rows, strict=True), strict=True)) if rows else {}
    sources = [row.source or "" for row in rows]
    columns |= {"source": sources, "snapshot": [snapshot] * len(rows), "file": [name] * len(rows)}
    columns["payload"] = _binary(columns.get("payload", ()))
    arrays = [pa.array(columns.get(field.name, ()), field.type) for field in schema.RECORD]
    return pa.record_batch(arrays, schema=schema.RECORD)


def _binary(values: Sequence[bytes | None]) -> pa.Array:
    """Return values as a large binary column, copied once: Arrow's own builder takes many times as long."""
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value or b"") for value in values], out=ends[1:])
    data = pa.py_buffer(b"".join(filter(None, values)))
    is_valid = pa.array([value is not None for value in values], pa.bool_()).buffers()[1]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(values), [is_valid, pa.py_buffer(ends), data])
