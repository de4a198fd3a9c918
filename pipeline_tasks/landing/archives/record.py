"""Turns archive records into rows: text of conversions, decoded HTTP bodies of responses, digests, and damage."""

import base64
import hashlib
import re
from typing import Any, NamedTuple

import orjson

from pipeline_tasks.landing.archives.http_body import Message, read_message, starts_message
from pipeline_tasks.landing.archives.record_header import Head
from pipeline_tasks.landing.dates import iso_date
from pipeline_tasks.profiles.field_types import Shape
from pipeline_tasks.schema import HTTP_RIGHTS

_SHA1 = re.compile(r"(?i)sha-?1:(?:([A-Z2-7]{32})|([0-9a-f]{40}))\Z")
_IN_COLUMNS = frozenset(
    {"warc-type", "warc-record-id", "warc-date", "warc-target-uri", "warc-payload-digest", "content-length"}
)
_KEPT_HTTP = ("content-language", "last-modified", "location", "x-robots-tag")


class Segment(NamedTuple):
    """A part of a record, as a file has it."""

    head: Head
    block: bytes


class Row(NamedTuple):
    """One row of `schema.RECORD` as one record of a file gives it."""

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
    segment: Segment | None = None  # of a record in parts: no column
    shape: Shape | None = None  # names and types of the fields of a record that is looked at for them: no column


class _Block(NamedTuple):
    """The decoded content of a record's block."""

    digest: str | None = None
    status: int | None = None
    content_type: str | None = None
    payload: bytes | None = None
    text: str | None = None
    error: str | None = None
    detail: str | None = None


def damage_row(start: int, length: int, reason: str, detail: str, head: Head | None = None) -> Row:
    """Return the row of a stretch that cannot be read, with what its header says if it has one."""
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


def record_row(head: Head, block: bytes, offset: int, length: int, file: str, *, is_checked: bool = True) -> Row:
    """Return the row of a sound record.

    A row that is not checked has no digest and no error for one that differs; its payload and text are the same.
    """
    fields = head.fields
    kind = fields.get("warc-type", "").lower() or "unknown"
    extra: dict[str, Any] = {name: value for name, value in fields.items() if name not in _IN_COLUMNS}
    date = fields.get("warc-date")
    crawled_at = iso_date(date) if date else None
    if date and not crawled_at:  # it stays to be read by people
        extra["warc-date"] = date
    content = _read_content(head, block, kind, extra, is_checked=is_checked)
    if "warc-type" not in fields:
        content = content._replace(error="bad_header", detail="no WARC-Type")
    return Row(
        offset,
        length,
        record_id=fields.get("warc-record-id") or f"{file}:{offset}",
        url=_url(fields),
        crawled_at=crawled_at,
        payload_digest=content.digest,
        kind=kind,
        status=content.status,
        content_type=content.content_type,
        payload=content.payload,
        text=content.text,
        metadata=orjson.dumps(extra).decode() if extra else None,
        error=content.error,
        error_detail=content.detail,
        segment=Segment(head, block) if "warc-segment-number" in fields else None,
    )


def _url(fields: dict[str, str]) -> str | None:
    url = fields.get("warc-target-uri")
    return url.strip("<>") if url else None  # wget 1.14 puts brackets around it


def _read_content(head: Head, block: bytes, kind: str, extra: dict[str, Any], *, is_checked: bool) -> _Block:
    """Read a block by its kind of record; fields without a column go to `extra`."""
    fields = head.fields
    if kind in {"response", "revisit"} and _is_http(head, block):
        return _read_http(head, block, kind, extra, is_checked=is_checked)
    if kind in {"response", "resource", "conversion"}:
        return _read_block(fields, block, kind, extra, is_checked=is_checked)
    digest = normal_digest(fields.get("warc-payload-digest", "")) if kind == "revisit" else None
    return _Block(digest, content_type=fields.get("content-type"))


def _is_http(head: Head, block: bytes) -> bool:
    if starts_message(block):
        return True
    declared = head.fields.get("content-type", "").lower()
    web = (_url(head.fields) or "").lower().startswith(("http:", "https:"))
    return web and not head.arc and (declared.startswith("application/http") or not declared)


def _read_http(head: Head, block: bytes, kind: str, extra: dict[str, Any], *, is_checked: bool) -> _Block:
    message = read_message(block, is_cut="warc-truncated" in head.fields)
    content_type = message.headers.get("content-type") or (head.fields.get("content-type") if head.arc else None)
    for name in _KEPT_HTTP:
        if name in message.headers:
            extra["http-" + name] = message.headers[name]
    if message.rights:
        extra[HTTP_RIGHTS] = dict(message.rights)
    if kind == "revisit":  # headers only, whatever they say about a body
        digest = normal_digest(head.fields.get("warc-payload-digest", ""))
        return _Block(digest, message.status, content_type)
    digest, wrong = check_digest(head.fields, block, message) if is_checked else (None, None)
    if message.error is not None:
        return _Block(digest, message.status, content_type, error=message.error, detail=message.detail)
    if digest and wrong is not None:
        content = _mismatch(sha1(message.raw), digest, wrong, extra)
        return content._replace(status=message.status, content_type=content_type, payload=message.body)
    return _Block(digest, message.status, content_type, payload=message.body)


def _mismatch(actual: str, declared: str, wrong: str, extra: dict[str, Any]) -> _Block:
    """Return the block of a record that is not what its digest says, by its actual digest; `extra` tells the rest.

    Its content goes on with it, so that `ingest` may keep it.
    """
    extra["digest_mismatch"] = wrong
    extra["digest_declared"] = declared
    return _Block(actual, error="digest", detail=wrong)


def _read_block(fields: dict[str, str], block: bytes, kind: str, extra: dict[str, Any], *, is_checked: bool) -> _Block:
    content_type = fields.get("content-type")
    digest, wrong = check_digest(fields, block, None) if is_checked else (None, None)
    content = _mismatch(sha1(block), digest, wrong, extra) if digest and wrong is not None else _Block(digest)
    if kind != "conversion":
        return content._replace(content_type=content_type, payload=block)
    text, replaced = _decode(block)
    if replaced:
        extra["replaced"] = str(replaced)
    return content._replace(content_type=content_type, text=text)


def _decode(block: bytes) -> tuple[str, int]:
    """Return a block as text, and the number of U+FFFD that replace invalid UTF-8."""
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
    none of these is wrong only if the block digest, which leaves no such choice, is absent or wrong too.
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
