"""An HTTP message as archives store it: status, type, and the body after transfer and content decoding, bounded."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from zlib_ng import zlib_ng

from pipeline_tasks.landing.archives.header_fields import header_fields, rights_fields
from pipeline_tasks.landing.decompression import DEFLATE_ERROR, GZIP_WINDOW
from pipeline_tasks.text.page.media_types import BINARY, WIDE_MARKS

CAP = 32 << 20  # bytes of one record, compressed or not
RATIO_FLOOR = 10 << 20  # output below this is never a bomb
RATIO = 200
_STATUS_LINE = re.compile(rb"HTTP/|ICY[ \t]", re.IGNORECASE)
_STATUS = re.compile(r"(?:http/[0-9.]*|icy)\s+([0-9]{3})(?![0-9])", re.IGNORECASE)
_INTERIM = range(100, 200)  # statuses of messages that another one follows (RFC 9110, 15.2)
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNK_SIZE = re.compile(rb"(?:\r?\n)?[ \t]*([0-9a-fA-F]+)[ \t]*(?:;[^\r\n]*)?\r?\n")
_TRAILERS = re.compile(rb"(?:[!#-'*+.^-z|~\w-]+:[^\r\n]*\r?\n)*(?:\r?\n)?\Z")
"""What may follow the last chunk: fields, and an empty line (RFC 9112, 7.1.2)."""

_CHUNK_DIGITS = 16  # hexadecimal digits of a size, without its zeros: above it no body is as long
_CHUNKED = frozenset({"chunked", "aws-chunked"})
"""Codings of chunks: HTTP's, and that of uploads to S3, which stores name on what they have joined."""

_NO_CODING = frozenset({"", "identity", "none", "utf-8", *_CHUNKED})
_LISTS = frozenset({"content-type", "content-encoding", "transfer-encoding"})
"""Headers of which each further line goes on with the list of the first (RFC 9110, 5.3; Fetch, "get")."""

_ZLIB, _RAW_DEFLATE = 15, -15  # window bits of zlib: with its header, and bare deflate
_GZIP_HEADER = re.compile(rb"(?s)\x1f\x8b\x08(?:\0.{6}|\x08.{6}[^\0]*\0)")
"""A member's header with no field, or the name of its file (RFC 1952, 2.3)."""

_PIECE = 1 << 10  # bytes that are decompressed at once: a block of zstd has 128 KiB of three bytes
_GZIP_TRAILER = 8  # bytes of checksum and size behind a member

_LOOKED_AT = 4096
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?[\s\0]*<[!?a-zA-Z]")


class Message(NamedTuple):
    """`raw` is the body as transferred, `body` the decoded one; `error` says why there is none."""

    status: int | None
    headers: dict[str, str]
    raw: bytes
    body: bytes
    error: str | None = None
    detail: str | None = None
    rights: Mapping[str, str] = MappingProxyType({})


def read_message(block: bytes, *, is_cut: bool = False) -> Message:
    """Read one stored HTTP response, however sloppy; a block that does not start with `HTTP/` is `http_header`.

    Of a body that its crawler cut (`is_cut`) what is there is decoded. Interim responses before it are passed over.
    """
    if not _STATUS_LINE.match(block):
        return Message(None, {}, block, b"", "http_header", "no status line")
    start = 0
    while True:
        end = _HEAD_END.search(block, start)
        cut, body_at = end.span() if end else (len(block), len(block))
        lines = block[start:cut].decode("latin-1").split("\n")
        status = _status(lines[0])
        if status not in _INTERIM or not _STATUS_LINE.match(block, body_at):
            break
        start = body_at
    headers, raw = header_fields(lines[1:], lists=_LISTS), block[body_at:]
    if status is None:
        return Message(None, headers, raw, b"", "http_header", "status is not three digits")
    body, error, detail = _decode(raw, headers, is_cut=is_cut)
    return Message(status, headers, raw, body, error, detail, rights_fields(lines[1:], headers))


def starts_message(block: bytes) -> bool:
    """Return whether a block begins with the status line of HTTP."""
    return block[:5].lower() == b"http/"


def _status(line: str) -> int | None:
    """Return the three digits of a status line (RFC 9112, 4); clients take them without a blank behind, too."""
    status = _STATUS.match(line)
    return int(status[1]) if status else None


def _decode(raw: bytes, headers: dict[str, str], *, is_cut: bool) -> tuple[bytes, str | None, str | None]:
    """Undo transfer then content codings; one that the body does not have is ignored."""
    body = raw
    transfer, content = (_codings(headers.get(name, "")) for name in ("transfer-encoding", "content-encoding"))
    if not _CHUNKED.isdisjoint((*transfer, *content)):
        joined = dechunk(raw, is_cut=is_cut)
        if joined is None and headers.get("content-length") == str(len(raw)):
            joined = raw
        if joined is None:
            return b"", "chunked", f"broken chunk in {len(raw)} bytes"
        body = joined
    for coding in reversed((*content, *transfer)):
        if coding in _NO_CODING or not body:
            continue
        plain, error = decompress(coding, body, is_cut=is_cut)
        if error == "content_encoding" and _is_plain(body):
            continue  # never compressed: crawlers store decoded bodies under the old header
        if error is not None:
            return b"", error, f"{coding[:40]!a} of {len(body)} bytes"
        body = plain
    return body, None, None


def _codings(value: str) -> tuple[str, ...]:
    """Return the names of a list of codings, without quotes and parameters."""
    return tuple(coding.partition(";")[0].strip(" \t\"'") for coding in value.lower().split(","))


def _is_plain(body: bytes) -> bool:
    """Return whether a body is markup, or text in any encoding, and not compressed."""
    if _MARKUP.match(body) or body.startswith(WIDE_MARKS):
        return True
    start = body[:_LOOKED_AT]
    return len(start.translate(None, BINARY)) == len(start)


def dechunk(raw: bytes, *, is_cut: bool = False) -> bytes | None:
    """Join the chunks of a body (RFC 9112 7.1); None if one is broken or missing.

    A body that has no chunks is returned as it is: many crawlers store a joined body under its old header. Its first
    line is no size, or a size that nothing else agrees with (`_is_joined`). A body that stops between chunks lacks only
    the last, empty one, and is accepted; one that was cut gives what there is of its last chunk.
    """
    parts: list[bytes] = []
    at = 0
    while at < len(raw):
        size_line = _CHUNK_SIZE.match(raw, at)
        size = _chunk_size(size_line[1]) if size_line else None
        if size_line is None or size is None:
            return _joined(raw, parts, is_cut=is_cut)
        if not parts and _is_joined(raw, size_line, size):
            return raw
        at = size_line.end()
        if size == 0:
            return b"".join(parts)
        parts.append(raw[at : at + size])
        if at + size > len(raw):
            return b"".join(parts) if is_cut else None
        at += size
        if at == len(raw):
            break
        at += 2 if raw.startswith(b"\r\n", at) else raw.startswith(b"\n", at)
    return b"".join(parts)


def _is_joined(raw: bytes, size_line: re.Match[bytes], size: int) -> bool:
    """Return whether the first line of a body is a number in a text, and no size: what is behind so many bytes says it.

    Behind the last chunk there are fields or nothing, and behind another one an end of line or the next size. A size
    past the end is that of a chunk that was cut, unless its line ends as those of texts, or most of it would be missing
    and no markup begins behind it.
    """
    start = size_line.end()
    end, left = start + size, len(raw) - start
    if size == 0:
        return _TRAILERS.match(raw, start) is None
    if end > len(raw):
        return not size_line[0].endswith(b"\r\n") or (2 * left < size and _MARKUP.match(raw, start) is None)
    return end < len(raw) and raw[end] not in b"\r\n" and _CHUNK_SIZE.match(raw, end) is None


def _chunk_size(digits: bytes) -> int | None:
    """Return the size of a chunk, whatever zeros are before it; None if no body is so long."""
    digits = digits.lstrip(b"0")
    return int(digits or b"0", 16) if len(digits) <= _CHUNK_DIGITS else None


def _joined(raw: bytes, parts: list[bytes], *, is_cut: bool) -> bytes | None:
    """Return what a body has whose next line is no size of a chunk: all of it if none was before."""
    if not parts:
        return raw
    return b"".join(parts) if is_cut else None


def decompress(coding: str, data: bytes, *, is_cut: bool = False) -> tuple[bytes, str | None]:
    """Undo one content coding within bounds: (bytes, None) or (b"", reason); of a body that was cut what there is."""
    if coding in {"gzip", "x-gzip"}:
        return _gunzip(data, is_cut=is_cut)
    if coding == "deflate":  # RFC 9110 says zlib, many servers send bare deflate
        plain, error = _inflate(data, _ZLIB, is_cut=is_cut)
        return (plain, error) if error != "content_encoding" else _inflate(data, _RAW_DEFLATE, is_cut=is_cut)
    if coding == "br":
        return _unbrotli(data, is_cut=is_cut)
    if coding == "zstd":
        return _unzstd(data, is_cut=is_cut)
    return b"", "content_encoding"


def _gunzip(data: bytes, *, is_cut: bool) -> tuple[bytes, str | None]:
    """Undo gzip; what a server sent without the checksum and the size at its end is whole, too."""
    plain, error = _inflate(data, GZIP_WINDOW, is_cut=is_cut)
    header = _GZIP_HEADER.match(data)
    if error != "content_encoding" or header is None:
        return plain, error
    inflater = zlib_ng.decompressobj(_RAW_DEFLATE)
    try:
        plain = inflater.decompress(data[header.end() :], CAP + 1)
    except DEFLATE_ERROR:
        return b"", error
    has_no_trailer = inflater.eof and len(inflater.unused_data) < _GZIP_TRAILER
    return _bounded(plain, len(data)) if has_no_trailer else (b"", error)


def _inflate(data: bytes, wbits: int, *, is_cut: bool) -> tuple[bytes, str | None]:
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
        if not inflater.eof and not (is_cut and (parts or part)):
            return b"", "content_encoding"
        parts.append(part)
        rest = inflater.unused_data if wbits == GZIP_WINDOW and inflater.eof else b""
    return b"".join(parts), None


def _unbrotli(data: bytes, *, is_cut: bool) -> tuple[bytes, str | None]:
    import brotlicffi

    inflater: Any = brotlicffi.Decompressor()
    try:
        out = inflater.decompress(data, output_buffer_limit=CAP + 1)
        while len(out) <= CAP and not inflater.is_finished():
            more = inflater.decompress(b"", output_buffer_limit=CAP + 1 - len(out))
            if not more:
                if is_cut and out:
                    break
                return b"", "content_encoding"
            out += more
    except brotlicffi.error:
        return b"", "content_encoding"
    return _bounded(out, len(data))


def _unzstd(data: bytes, *, is_cut: bool) -> tuple[bytes, str | None]:
    import zstandard

    inflater = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    parts: list[bytes] = []
    size = 0
    try:
        for at in range(0, len(data), _PIECE):
            parts.append(inflater.decompress(data[at : at + _PIECE]))
            size += len(parts[-1])
            if size > CAP or inflater.eof:
                break
    except zstandard.ZstdError:
        return b"", "content_encoding"
    is_whole = inflater.eof or size > CAP or (is_cut and size)
    return _bounded(b"".join(parts), len(data)) if is_whole else (b"", "content_encoding")


def _bounded(out: bytes, size: int) -> tuple[bytes, str | None]:
    if len(out) > RATIO_FLOOR and len(out) > RATIO * size:
        return b"", "bomb"
    return (b"", "oversize") if len(out) > CAP else (out, None)
