"""An HTTP message as archives store it: status, type, and the body after transfer and content decoding, bounded."""

import re
from typing import Any, NamedTuple

from zlib_ng import zlib_ng

from pipeline_tasks.landing.decompression import DEFLATE_ERROR, GZIP_WINDOW

CAP = 32 << 20  # bytes of one record, compressed or not
RATIO_FLOOR = 10 << 20  # output below this is never a bomb
RATIO = 200
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_ZLIB, _RAW_DEFLATE = 15, -15  # window bits of zlib: with its header, and bare deflate
_PRINTABLE = bytes(range(32, 127)) + b"\t\r\n"
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?[\s\0]*<[!?a-zA-Z]")


class Message(NamedTuple):
    """`raw` is the body as transferred, `body` the decoded one; `error` says why there is none."""

    status: int | None
    headers: dict[str, str]
    raw: bytes
    body: bytes
    error: str | None = None
    detail: str | None = None


def read_message(block: bytes) -> Message:
    """Read one stored HTTP response, however sloppy; a block that does not start with `HTTP/` is `http_header`."""
    if not block.startswith((b"HTTP/", b"ICY ")):
        return Message(None, {}, block, b"", "http_header", "no status line")
    end = _HEAD_END.search(block)
    cut, body_at = (end.start(), end.end()) if end else (len(block), len(block))
    lines = block[:cut].decode("latin-1").split("\n")
    status, headers = _status(lines[0]), _headers(lines)
    raw = block[body_at:]
    if status is None:
        return Message(None, headers, raw, b"", "http_header", "status is not three digits")
    body, error, detail = _decode(raw, headers)
    return Message(status, headers, raw, body, error, detail)


def _status(line: str) -> int | None:
    parts = line.split(None, 2)
    code = parts[1] if len(parts) > 1 else ""
    return int(code) if len(code) == 3 and code.isascii() and code.isdigit() else None  # noqa: PLR2004 -- RFC 9112, 4


def _headers(lines: list[str]) -> dict[str, str]:
    """Return headers by their name in lower case, the first of each; a line that begins with a blank continues one."""
    headers: dict[str, str] = {}
    last = ""
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if line[:1] in {" ", "\t"}:
            if last:
                headers[last] = f"{headers[last]} {line.strip()}".strip()
        elif colon:
            name = name.strip().lower()
            last = name if name not in headers else ""
            headers.setdefault(name, value.strip())
    return headers


def _decode(raw: bytes, headers: dict[str, str]) -> tuple[bytes, str | None, str | None]:
    """Undo transfer then content encoding; an encoding that the body does not have is ignored."""
    body = raw
    if "chunked" in headers.get("transfer-encoding", "").lower() and _CHUNK_SIZE.match(raw):
        joined = dechunk(raw)
        if joined is None:
            return b"", "chunked", f"broken chunk in {len(raw)} bytes"
        body = joined
    for coding in reversed(headers.get("content-encoding", "").lower().split(",")):
        name = coding.strip()
        if name in {"", "identity", "none", "utf-8"} or not body:
            continue
        plain, error = decompress(name, body)
        if error == "content_encoding" and _is_plain(body):
            continue  # never compressed: crawlers store decoded bodies under the old header
        if error is not None:
            return b"", error, f"{name[:40]!a} of {len(body)} bytes"
        body = plain
    return body, None, None


def _is_plain(body: bytes) -> bool:
    """Return whether a body is markup or printable text and not compressed."""
    return _MARKUP.match(body) is not None or not body[:4096].translate(None, _PRINTABLE)


def dechunk(raw: bytes) -> bytes | None:
    """Join the chunks of a chunked body (RFC 9112 7.1); None if one is broken or missing.

    A body that stops cleanly between chunks lacks only the last, empty one, and is accepted.
    """
    parts: list[bytes] = []
    at = 0
    while at < len(raw):
        size_line = _CHUNK_SIZE.match(raw, at)
        if size_line is None:
            return None
        size, at = int(size_line[1], 16), size_line.end()
        if size == 0:
            return b"".join(parts)
        if at + size > len(raw):
            return None
        parts.append(raw[at : at + size])
        at += size
        at += 2 if raw.startswith(b"\r\n", at) else raw.startswith(b"\n", at)
    return b"".join(parts)


def decompress(coding: str, data: bytes) -> tuple[bytes, str | None]:
    """Undo one content coding within bounds: (bytes, None) or (b"", reason)."""
    if coding in {"gzip", "x-gzip"}:
        return _inflate(data, GZIP_WINDOW)
    if coding == "deflate":  # RFC 9110 says zlib, many servers send bare deflate
        plain, error = _inflate(data, _ZLIB)
        return (plain, error) if error != "content_encoding" else _inflate(data, _RAW_DEFLATE)
    if coding == "br":
        return _unbrotli(data)
    if coding == "zstd":
        return _unzstd(data)
    return b"", "content_encoding"


def _inflate(data: bytes, wbits: int) -> tuple[bytes, str | None]:
    parts: list[bytes] = []
    size, rest = 0, data
    while rest:
        inflater = zlib_ng.decompressobj(wbits)
        try:
            part = inflater.decompress(rest, CAP + 1 - size)
        except DEFLATE_ERROR:
            return (b"".join(parts), None) if parts else (b"", "content_encoding")  # garbage after a whole member
        size += len(part)
        if size > RATIO_FLOOR and (size > CAP or size > RATIO * len(data)):
            return b"", "bomb" if size > RATIO * len(data) else "oversize"
        if not inflater.eof:
            return b"", "content_encoding"
        parts.append(part)
        rest = inflater.unused_data if wbits == GZIP_WINDOW else b""
    return b"".join(parts), None


def _unbrotli(data: bytes) -> tuple[bytes, str | None]:
    import brotlicffi

    inflater: Any = brotlicffi.Decompressor()
    try:
        out = inflater.decompress(data, output_buffer_limit=CAP + 1)
        while len(out) <= CAP and not inflater.is_finished():
            more = inflater.decompress(b"", output_buffer_limit=CAP + 1 - len(out))
            if not more:
                return b"", "content_encoding"
            out += more
    except brotlicffi.error:
        return b"", "content_encoding"
    return _bounded(out, len(data))


def _unzstd(data: bytes) -> tuple[bytes, str | None]:
    import zstandard

    try:
        out = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data).read(CAP + 1)
    except zstandard.ZstdError:
        return b"", "content_encoding"
    return _bounded(out, len(data)) if out else (b"", "content_encoding")


def _bounded(out: bytes, size: int) -> tuple[bytes, str | None]:
    if len(out) > RATIO_FLOOR and len(out) > RATIO * size:
        return b"", "bomb"
    return (b"", "oversize") if len(out) > CAP else (out, None)
