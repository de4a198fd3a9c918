"""Writes an answer of HTTP as a record of WARC 1.1, compressed as one member of gzip, as crawlers do."""

import base64
import gzip
import hashlib
import uuid
from collections.abc import Iterable

_OF_TRANSFER = frozenset({b"transfer-encoding", b"content-length", b"connection", b"keep-alive", b"trailer", b"date"})
"""Fields of the transfer, in which equal answers differ: the body is recorded as it is behind it."""


def response_record(url: str, at: str, status: str, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes:
    """Return the record of an answer of a URL at a time (ISO 8601, UTC); `status` is its code with the reason.

    Equal answers at one time give equal bytes.
    """
    fields = [b"%s: %s" % (name, value) for name, value in headers if name.lower() not in _OF_TRANSFER]
    head = [f"HTTP/1.1 {status}".encode("latin-1", "replace"), *fields, b"Content-Length: %d" % len(body)]
    block = b"\r\n".join([*head, b"", body])
    digest = _digest(body)
    named = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<{uuid.uuid5(uuid.NAMESPACE_URL, f'{url} {at} {digest}').urn}>",
        "WARC-Date": at,
        "WARC-Target-URI": url,
        "WARC-Payload-Digest": digest,
        "WARC-Block-Digest": _digest(block),
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block)),
    }
    lines = ["WARC/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return gzip.compress("\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n", mtime=0)


def _digest(data: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()
