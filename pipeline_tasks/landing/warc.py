"""WARC and ARC archives as rows, one per record and one per unreadable stretch, each with its exact place.

In a file with one gzip member per record (the usual layout) a place is the member's compressed bytes; in plain,
whole-file gzip, Zstandard and LZ4 files it is the record's bytes in the decompressed stream.
"""

import base64
import hashlib
import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from pipeline_tasks.landing.decompression import CHUNK, STEP, Tape, consumed, seek_member, starts_member
from pipeline_tasks.landing.http_body import CAP, RATIO, RATIO_FLOOR, Message, read_message

HEAD_CAP = 1 << 20  # bytes of one record header
DISCARD_CAP = 4 << 30  # output of one oversized member that is inflated only to find its end
LENGTH_CAP = 1 << 40  # a Content-Length above this is a lie
_VERSION = re.compile(rb"(?i:WARC)/[0-9]\.[0-9]{1,2}[ \t]*\r*\n")
_BOUNDARY = re.compile(rb"\n\r*\n(?=WARC/[01]\.[0-9]{1,2}\r*\n[A-Za-z])")
_HEADER = re.compile(rb"(?=WARC/[01]\.[0-9]{1,2}\r*\n(?:WARC-|Content-))")
_ARC_LINE = re.compile(
    rb"([a-zA-Z][a-zA-Z0-9+.-]{1,20}:[^\r\n]{0,8192}) ([^ \r\n]+) (\d{8,17}) ([^\r\n]{0,256}?) ?(-?\d+)\r?\n"
)
_ARC_BOUNDARY = re.compile(rb"\n(?=(?:https?|ftp|dns):[^\r\n]{1,4096} [0-9a-fA-F.:]{1,45} \d{14} [^ \r\n]+ \d+\r?\n)")
_BLANK_LINE = re.compile(rb"\n\r*\n")
_SHA1 = re.compile(r"(?i)sha-?1:(?:([A-Z2-7]{32})|([0-9a-f]{40}))\Z")
_IN_COLUMNS = frozenset(
    {"warc-type", "warc-record-id", "warc-date", "warc-target-uri", "warc-payload-digest", "content-length"}
)
_KEPT_HTTP = ("content-language", "last-modified", "location", "x-robots-tag")


class Row(NamedTuple):
    """One row of `schema.RECORD` as one record of a file tells it."""

    offset: int
    length: int
    record_id: str | None = None
    url: str | None = None
    crawled_at: str | None = None
    payload_digest: str | None = None
    kind: str = "damage"
    status: int | None = None
    content_type: str | None = None
    payload: bytes | None = None
    text: str | None = None
    metadata: str | None = None
    error: str | None = None
    error_detail: str | None = None
    source: str | None = None  # where the record itself names it, instead of the landed file's


class Head(NamedTuple):
    """A record's header: `size` bytes of it, then `length` bytes of block (-1 where that is no number)."""

    size: int
    length: int
    fields: dict[str, str]
    arc: bool


def is_archive(start: bytes) -> bool:
    """Tell whether `start` begins like a WARC or ARC record."""
    return _VERSION.match(start) is not None or start.startswith(b"filedesc://")


def read_head(data: bytes, at: int) -> Head | None:
    """Read the record header at `at`; None if none starts there or it does not end within `data`."""
    version = _VERSION.match(data, at)
    if version is None:
        return _read_arc_line(data, at)
    start = version.end()
    end = data.find(b"\r\n\r\n", start - 2, at + HEAD_CAP) if data.startswith(b"\r\n", start - 2) else -1
    stop = end + 4
    if end < 0:
        blank = _BLANK_LINE.search(data, start - 1, at + HEAD_CAP)
        if blank is None:
            return None
        end, stop = blank.start(), blank.end()
    fields: dict[str, str] = {}
    last = ""
    for line in data[start:end].decode("utf-8", "replace").split("\n"):
        name, colon, value = line.partition(":")
        if line[:1] in {" ", "\t"} and last:
            fields[last] += " " + line.strip()
        elif colon:
            last = name.strip().lower()
            fields[last] = value.strip()
    return Head(stop - at, _length(fields.get("content-length", "")), fields, arc=False)


def _length(value: str) -> int:
    return (
        int(value)
        if value.isascii() and value.isdigit() and len(value) <= len(str(LENGTH_CAP)) and int(value) < LENGTH_CAP
        else -1
    )


def _read_arc_line(data: bytes, at: int) -> Head | None:
    line = _ARC_LINE.match(data, at)
    if line is None:
        return None
    url, address, date, kind, length = (part.decode("utf-8", "replace") for part in line.groups())
    fields = {
        "warc-type": "warcinfo" if url.startswith("filedesc:") else "response",
        "warc-target-uri": url,
        "warc-ip-address": address,
        "warc-date": _arc_date(date),
        "content-type": kind.split(" ")[0],
    }
    return Head(line.end() - at, _length(length), fields, arc=True)


def _arc_date(date: str) -> str:
    day, time = date[:8], date[8:14]
    if len(date) != 14:  # noqa: PLR2004
        return date
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}Z"


def read_stream(tape: Tape, file: str) -> Iterator[Row]:
    """Read records that follow each other in `tape` (plain, or any compression around the whole)."""
    while True:
        if not tape.need(1):
            if tape.source.damage is None:
                return
            yield _source_damage(tape, tape.offset)
            if not tape.resume():
                return
            continue
        head = _next_head(tape)
        yield _read_record(tape, head, file) if head else _lost(tape, tape.offset, "bad_header")


def _next_head(tape: Tape) -> Head | None:
    """Read the header ahead with as little of the source as it takes."""
    tape.need(STEP)
    head = read_head(tape.data, tape.at)
    if head is None and tape.ahead < HEAD_CAP and _VERSION.match(tape.data, tape.at):
        tape.need(HEAD_CAP)
        head = read_head(tape.data, tape.at)
    return head


def _read_record(tape: Tape, head: Head, file: str) -> Row:
    start = tape.offset
    if head.length < 0:
        return _lost(tape, start, "bad_length", head, head.size)
    if head.length > CAP:
        return _pass_oversize(tape, head)
    size = head.size + head.length
    whole = tape.need(size + 16) or tape.ahead >= size
    if not whole:
        return _cut_short(tape, head, start)
    gap = _gap(tape.data, tape.at + size, arc=head.arc)
    if gap is None:
        return _lost(tape, start, "bad_length", head, head.size)
    block = tape.data[tape.at + head.size : tape.at + size]
    tape.at += size + gap
    return describe(head, block, start, size + gap, file)


def _gap(data: bytes, end: int, *, arc: bool) -> int | None:
    """Return the bytes between a block that ends at `end` and the next record; None if the block must end elsewhere."""
    at = end
    while at < end + 12 and data[at : at + 1] in {b"\r", b"\n"}:
        at += 1
    if at == len(data) or _starts_record(data, at):
        return at - end
    if not arc and data.startswith((b"\r\n\r\n", b"\n\n"), end):
        return 4 if data.startswith(b"\r", end) else 2  # the separator is right: what follows is damaged, not this
    return 4 if _VERSION.match(data, end + 4) else None  # the separator itself is damaged


def _starts_record(data: bytes, at: int) -> bool:
    return _VERSION.match(data, at) is not None or _ARC_LINE.match(data, at) is not None


def _cut_short(tape: Tape, head: Head, start: int) -> Row:
    """Account for a record whose declared length runs past the end of the source."""
    found = _BOUNDARY.search(tape.data, tape.at + head.size)
    if found is not None:
        return _lost(tape, start, "bad_length", head, head.size)
    have = tape.ahead
    tape.skip(have)
    reason = tape.source.damage or "truncated"
    where = f"; compressed byte {tape.source.where}" if tape.source.damage else ""
    detail = f"{have - head.size} of {head.length} bytes{where}"
    if tape.source.damage is not None:
        tape.resume()
    return _damage(start, have, reason, detail, head)


def _source_damage(tape: Tape, start: int) -> Row:
    return _damage(start, 0, tape.source.damage or "truncated", f"compressed byte {tape.source.where}")


def _pass_oversize(tape: Tape, head: Head) -> Row:
    """Pass a record too large to hold: to its declared end, or to a header found before that."""
    start, declared = tape.offset, head.size + head.length
    _seek_boundary(tape, head.size, head.arc, declared + 16)
    passed = tape.offset - start
    honest = declared <= passed <= declared + 16
    return _damage(start, passed, "oversize" if honest else "bad_length", f"declared {head.length} bytes", head)


def _lost(tape: Tape, start: int, reason: str, head: Head | None = None, known: int = 0) -> Row:
    """Pass what cannot be read, up to the next header, as one damage row."""
    _seek_boundary(tape, known, head is not None and head.arc)
    length = tape.offset - start
    detail = f"declared {head.fields.get('content-length', head.length)!a:.60}" if head else "no record header"
    return _damage(start, length, reason, detail, head)


def _seek_boundary(tape: Tape, known: int, arc: bool, limit: int | None = None) -> None:
    """Move to the next record header: behind a blank line in a block (`known` > 0), anywhere outside of one."""
    pattern = _ARC_BOUNDARY if arc else _BOUNDARY if known else _HEADER
    start = tape.offset
    tape.skip(max(known - 4, 0) if known else 1)
    while tape.need(1):
        tape.need(CHUNK)
        found = pattern.search(tape.data, tape.at)
        if found is not None:
            tape.at = found.end()
            return
        if limit is not None and tape.offset - start > limit:
            return
        overlap = 8192 if arc else 256
        if not tape.need(CHUNK + 1):
            tape.skip(tape.ahead)
            return
        tape.skip(tape.ahead - overlap)


def _damage(start: int, length: int, reason: str, detail: str, head: Head | None = None) -> Row:
    fields = head.fields if head else {}
    return Row(
        start,
        length,
        record_id=fields.get("warc-record-id"),
        url=_url(fields),
        crawled_at=fields.get("warc-date"),
        error=reason,
        error_detail=detail[:200],
    )


def _url(fields: dict[str, str]) -> str | None:
    url = fields.get("warc-target-uri")
    return url.strip("<>") if url else None  # wget 1.14 puts brackets around it


def read_members(raw: Tape, file: str) -> Iterator[Row]:
    """Read records that lie in a gzip member each; places are of the members as stored."""
    while raw.need(1):
        start = raw.offset
        if raw.need(2) and not raw.data.startswith(b"\x1f\x8b", raw.at):
            yield _skip_member(raw, "gzip_corrupt", "no gzip member here")
            continue
        data, size, error = inflate_member(raw)
        if error in {"gzip_corrupt", "gzip_truncated"}:
            yield _skip_member(raw, error, "", read_head(data, 0))
        elif error is not None:
            raw.at += size
            if not size:
                _pass_member(raw)
            yield _damage(
                start, raw.offset - start, error, "more than a record may hold", read_head(data[:HEAD_CAP], 0)
            )
        else:
            raw.at += size
            yield from _member_rows(data, start, size, file)


def inflate_member(raw: Tape) -> tuple[bytes, int, str | None]:
    """Inflate the member ahead without passing it: (output, stored bytes, error)."""
    parts: list[bytes] = []
    inflater, used, got = zlib.decompressobj(31), 0, 0
    while True:
        if raw.ahead - used <= 0 and not raw.need(used + STEP) and raw.ahead - used <= 0:
            return b"".join(parts), used, "gzip_truncated"
        piece = memoryview(raw.data)[raw.at + used : raw.at + used + STEP]
        try:
            part = inflater.decompress(piece, CAP + HEAD_CAP - got)
        except zlib.error:
            return b"".join(parts), used, "gzip_corrupt"
        parts.append(part)
        got += len(part)
        used += consumed(inflater, len(piece))
        if inflater.eof:
            if got > RATIO_FLOOR and got > RATIO * used:
                return b"".join(parts), used, "bomb"
            return b"".join(parts), used, None
        if got > RATIO_FLOOR and got > RATIO * used:
            return b"".join(parts), 0, "bomb"
        if got >= CAP + HEAD_CAP:
            return b"".join(parts), 0, "oversize"


def _pass_member(raw: Tape) -> None:
    """Pass an oversized member: inflate it for its end only, or seek the next one if it is damaged or endless."""
    inflater, got = zlib.decompressobj(31), 0
    while got < DISCARD_CAP and (raw.need(STEP) or raw.ahead):
        piece = memoryview(raw.data)[raw.at : raw.at + STEP]
        try:
            got += len(inflater.decompress(piece, CHUNK))
        except zlib.error:
            break
        raw.at += consumed(inflater, len(piece))
        if inflater.eof:
            return
    seek_member(raw)


def _skip_member(raw: Tape, reason: str, detail: str, head: Head | None = None) -> Row:
    start = raw.offset
    found = seek_member(raw)
    if found and reason == "gzip_truncated":
        reason = "gzip_corrupt"  # it did not end before the next one began
    return _damage(start, raw.offset - start, reason, detail, head)


def _member_rows(data: bytes, start: int, size: int, file: str) -> Iterator[Row]:
    """Read what one sound member holds: a record, or (unusual) several, which then share the member's place."""
    at, count = 0, 0
    while at < len(data) or not count:
        head = read_head(data, at)
        if head is None:
            if not count or data[at:].strip():
                reason = "bad_header" if data else "empty_member"
                yield _damage(start, size, reason, f"no record header at byte {at} of the member")
            return
        end = at + head.size + head.length
        gap = _member_gap(data, end, arc=head.arc) if head.length >= 0 else None
        if gap is None or end > len(data):
            found = (_ARC_BOUNDARY if head.arc else _BOUNDARY).search(data, max(at + head.size - 4, 0))
            detail = f"declared {head.length} of {len(data) - at - head.size} bytes"
            yield _damage(start, size, "bad_length", detail, head)
            at = found.end() if found else len(data)
        elif head.length > CAP:
            yield _damage(start, size, "oversize", f"declared {head.length} bytes", head)
            at = end + gap
        else:
            yield describe(head, data[at + head.size : end], start, size, file, count)
            at = end + gap
        count += 1


def _member_gap(data: bytes, end: int, *, arc: bool) -> int | None:
    """Like `_gap`, where the end of the member also ends the record: nothing but line ends may follow."""
    rest = data[end : end + 4096]
    blank = len(rest) - len(rest.lstrip(b"\r\n"))
    if (blank == len(rest) and end <= len(data)) or _starts_record(data, end + blank):
        return blank
    return None if arc or not rest.startswith(b"\r\n\r\n") else 4


def one_record_per_member(raw: Tape) -> bool:
    """Tell from the first gzip member whether each holds one record, without passing it."""
    data, size, error = inflate_member(raw)
    head = read_head(data, 0)
    if head is None or error in {"bomb", "oversize"}:
        return data != b""
    if head.length < 0 or error is not None:
        end = head.size + head.length
        return head.length < 0 or not _starts_record(data[:-1], end + (_gap(data, end, arc=head.arc) or 0))
    end = head.size + head.length
    if end <= len(data):
        return not data[end:].strip() or not _starts_record(data, end + (_gap(data, end, arc=head.arc) or 0))
    following = raw.peek(size + STEP)[size:]
    return not following or starts_member(Tape(_Held(following)))


class _Held:
    """Bytes at hand as a source."""

    damage: str | None = None
    where = 0

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, size: int, /) -> bytes:
        part, self.data = self.data[:size], self.data[size:]
        return part

    def resume(self) -> bool:
        return False


class _Block(NamedTuple):
    """What a record's block turned out to be."""

    digest: str | None = None
    status: int | None = None
    content_type: str | None = None
    payload: bytes | None = None
    text: str | None = None
    error: str | None = None
    detail: str | None = None


def describe(head: Head, block: bytes, offset: int, length: int, file: str, nth: int = 0) -> Row:
    """Turn a sound record into its row: text for conversions, decoded HTTP body for responses."""
    fields = head.fields
    kind = fields.get("warc-type", "").lower() or "unknown"
    url = _url(fields)
    extra = {name: value for name, value in fields.items() if name not in _IN_COLUMNS}
    if nth:
        extra["member_position"] = str(nth)
    if kind in {"response", "revisit"} and _holds_http(head, block, url):
        found = _read_http(head, block, kind, extra)
    elif kind in {"response", "resource", "conversion"}:
        found = _read_block(fields, block, kind, extra)
    else:
        digest = normal_digest(fields.get("warc-payload-digest", "")) if kind == "revisit" else None
        found = _Block(digest, content_type=fields.get("content-type"))
    if "warc-type" not in fields:
        found = found._replace(error="bad_header", detail="no WARC-Type")
    return Row(
        offset,
        length,
        record_id=fields.get("warc-record-id") or f"{file}:{offset}" + (f":{nth}" if nth else ""),
        url=url,
        crawled_at=fields.get("warc-date"),
        payload_digest=found.digest,
        kind=kind,
        status=found.status,
        content_type=found.content_type,
        payload=found.payload,
        text=found.text,
        metadata=orjson.dumps(extra).decode() if extra else None,
        error=found.error,
        error_detail=found.detail,
    )


def _read_http(head: Head, block: bytes, kind: str, extra: dict[str, str]) -> _Block:
    message = read_message(block)
    content_type = message.headers.get("content-type") or (head.fields.get("content-type") if head.arc else None)
    for name in _KEPT_HTTP:
        if name in message.headers:
            extra["http-" + name] = message.headers[name]
    if kind == "revisit":  # headers only, whatever they say about a body
        digest = normal_digest(head.fields.get("warc-payload-digest", ""))
        return _Block(digest, message.status, content_type)
    digest, wrong = check_digest(head.fields, block, message)
    if message.error is not None:
        return _Block(digest, message.status, content_type, error=message.error, detail=message.detail)
    if wrong is not None:
        return _Block(digest, message.status, content_type, error="digest", detail=wrong)
    return _Block(digest, message.status, content_type, payload=message.body)


def _read_block(fields: dict[str, str], block: bytes, kind: str, extra: dict[str, str]) -> _Block:
    content_type = fields.get("content-type")
    digest, wrong = check_digest(fields, block, None)
    if wrong is not None:
        return _Block(digest, content_type=content_type, error="digest", detail=wrong)
    if kind != "conversion":
        return _Block(digest, content_type=content_type, payload=block)
    text, replaced = _text(block)
    if replaced:
        extra["replaced"] = str(replaced)
    return _Block(digest, content_type=content_type, text=text)


def _holds_http(head: Head, block: bytes, url: str | None) -> bool:
    if block.startswith(b"HTTP/"):
        return True
    declared = head.fields.get("content-type", "").lower()
    web = (url or "").lower().startswith(("http:", "https:"))
    return web and not head.arc and (declared.startswith("application/http") or not declared)


def _text(block: bytes) -> tuple[str, int]:
    try:
        return block.decode(), 0
    except UnicodeDecodeError:
        text = block.decode("utf-8", "replace")
        return text, text.count("\ufffd")


def normal_digest(declared: str) -> str | None:
    """Return a declared SHA-1 as `sha1:BASE32`, None if it is not one."""
    match = _SHA1.match(declared.strip())
    if match is None:
        return None
    return "sha1:" + (match[1].upper() if match[1] else base64.b32encode(bytes.fromhex(match[2])).decode())


def sha1(data: bytes) -> str:
    """Return the digest of `data` as archives write it."""
    return "sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def check_digest(fields: dict[str, str], block: bytes, message: Message | None) -> tuple[str, str | None]:
    """Return the payload's digest, and what is wrong with it.

    Crawlers disagree on what a payload is (with or without chunks, decoded or not), so a payload digest that fits
    none of these is believed to be wrong only if the block digest, which leaves no such choice, is absent or wrong too.
    """
    raw = message.raw if message else block
    actual = sha1(raw)
    declared = normal_digest(fields.get("warc-payload-digest", ""))
    if declared == actual:
        return actual, None
    whole = normal_digest(fields.get("warc-block-digest", ""))
    if whole is not None:
        return declared or actual, None if sha1(block) == whole else "block digest differs"
    if declared is None or (message is not None and declared == sha1(message.body)):
        return declared or actual, None
    return declared, "payload digest differs"
