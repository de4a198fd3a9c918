"""Writes WARC 1.0 records, one gzip member each, with the same bytes every time."""

import base64
import hashlib
import uuid
import zlib
from dataclasses import dataclass

_REVISIT = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One HTTP response to be recorded: `headers` end up before `body` as they are, `body` as transferred."""

    url: str
    date: str
    status: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def record_id(*parts: str) -> str:
    """Return a `urn:uuid:` that follows from `parts` alone."""
    return f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ' '.join(parts))}"


def digest(data: bytes) -> str:
    """Return the digest form that crawlers write: `sha1:` and base 32."""
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def warcinfo(name: str, date: str) -> bytes:
    """Return the record that opens every file."""
    fields = f"software: refinery-demo\r\nformat: WARC File Format 1.0\r\nisPartOf: {name}\r\nrobots: obey\r\n"
    headers = (
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", f"<{record_id('warcinfo', name)}>"),
        ("WARC-Date", date),
        ("WARC-Filename", name),
        ("Content-Type", "application/warc-fields"),
    )
    return plain(headers, fields.encode())


def request(exchange: Exchange, identifier: str) -> bytes:
    """Return the request that led to the response `identifier`."""
    host, _, path = exchange.url.partition("://")[2].partition("/")
    block = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: refinery-demo\r\nAccept: text/html\r\n\r\n".encode()
    headers = (
        ("WARC-Type", "request"),
        ("WARC-Record-ID", f"<{record_id('request', identifier)}>"),
        ("WARC-Date", exchange.date),
        ("WARC-Target-URI", exchange.url),
        ("WARC-Concurrent-To", f"<{identifier}>"),
        ("WARC-Block-Digest", digest(block)),
        ("Content-Type", "application/http; msgtype=request"),
    )
    return plain(headers, block)


def response(exchange: Exchange, identifier: str, lie: int = 0) -> bytes:
    """Return the response record; `lie` is added to its Content-Length to make a broken one."""
    block = _head(exchange) + exchange.body
    headers = (
        ("WARC-Type", "response"),
        *_common(exchange, identifier),
        ("WARC-Block-Digest", digest(block)),
        ("Content-Type", "application/http; msgtype=response"),
    )
    return plain(headers, block, lie)


def revisit(exchange: Exchange, identifier: str, earlier: str, earlier_date: str) -> bytes:
    """Return a record that says: the same payload as `earlier`; it carries the HTTP head only."""
    block = _head(exchange)
    headers = (
        ("WARC-Type", "revisit"),
        *_common(exchange, identifier),
        ("WARC-Profile", _REVISIT),
        ("WARC-Refers-To", f"<{earlier}>"),
        ("WARC-Refers-To-Target-URI", exchange.url),
        ("WARC-Refers-To-Date", earlier_date),
        ("WARC-Block-Digest", digest(block)),
        ("Content-Type", "application/http; msgtype=response"),
    )
    return plain(headers, block)


def _common(exchange: Exchange, identifier: str) -> tuple[tuple[str, str], ...]:
    return (
        ("WARC-Record-ID", f"<{identifier}>"),
        ("WARC-Date", exchange.date),
        ("WARC-Target-URI", exchange.url),
        ("WARC-IP-Address", "198.51.100.7"),
        ("WARC-Payload-Digest", digest(exchange.body)),
    )


def _head(exchange: Exchange) -> bytes:
    lines = [f"HTTP/1.1 {exchange.status}", *(f"{name}: {value}" for name, value in exchange.headers), "", ""]
    return "\r\n".join(lines).encode()


def plain(headers: tuple[tuple[str, str], ...], block: bytes, lie: int = 0) -> bytes:
    """Return an uncompressed record; its Content-Length is off by `lie`."""
    lines = [
        "WARC/1.0",
        *(f"{name}: {value}" for name, value in headers),
        f"Content-Length: {len(block) + lie}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + block + b"\r\n\r\n"


def member(record: bytes) -> bytes:
    """Return `record` as one gzip member without time or name."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(record) + packer.flush()
