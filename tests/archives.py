"""Small archives for tests, written record by record so that each can be broken in a known way."""

import base64
import gzip
import hashlib
import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline_tasks import schema
from pipeline_tasks.landing.formats import read_records

CONTENT = ["payload", "text"]

PAGE = b"<html><head><title>T</title></head><body><p>%s</p></body></html>" % (b"A sentence of plain words. " * 12)


def sha1(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def warc(kind: str, block: bytes, url: str = "", length: str | None = None, **fields: str) -> bytes:
    """One WARC record; `length` lies about its block, underscores in further field names are hyphens."""
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Record-ID: <urn:x:{url or kind}>",
        "WARC-Date: 2026-11-20T00:00:00Z",
    ]
    lines += [f"WARC-Target-URI: {url}"] if url else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    lines += [f"Content-Length: {len(block) if length is None else length}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def http(body: bytes = PAGE, status: str = "200 OK", headers: str = "Content-Type: text/html; charset=utf-8") -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n".encode() + body


def response(url: str, block: bytes | None = None, **fields: str) -> bytes:
    fields.setdefault("Content_Type", "application/http; msgtype=response")
    return warc("response", http() if block is None else block, url, **fields)


def three(middle: bytes) -> list[bytes]:
    """A record to look at between two sound ones."""
    return [response("https://example.org/first"), middle, response("https://example.org/last")]


def zipped(records: list[bytes]) -> list[bytes]:
    return [gzip.compress(record, mtime=0) for record in records]


def lz4(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as out:
        out.write(data)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def read(data: bytes, name: str = "a.warc.gz", batch_bytes: int = 1 << 24) -> list[dict[str, Any]]:
    """Read a file's bytes as rows, twice: what a record has does not depend on whether its digests are looked at."""
    whole = _table(data, name, batch_bytes, schema.RECORD.names)
    assert _table(data, name, batch_bytes, CONTENT).equals(whole.select(CONTENT))
    return whole.to_pylist()  # type: ignore[no-any-return]


def _table(data: bytes, name: str, batch_bytes: int, columns: Sequence[str]) -> pa.Table:
    records = read_records(name, io.BytesIO(data), snapshot="s", batch_bytes=batch_bytes, columns=columns)
    return pa.Table.from_batches(list(records))


def covers(rows: list[dict[str, Any]], size: int) -> bool:
    """Whether the rows' places follow each other over the whole file."""
    at = 0
    for row in rows:
        if row["offset"] != at:
            return False
        at += row["length"]
    return at == size
