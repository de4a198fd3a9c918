"""Reads mailboxes (RFC 4155): a record for each message, its text or HTML, and its headers.

A line `From ` behind an empty line begins a message; `>From ` in a body is `From `, as mboxrd writes it.
"""

import email
import re
from collections.abc import Iterator
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO

import orjson

from pipeline_tasks.errors import ContractError
from pipeline_tasks.landing.json_lines import LINE_CAP
from pipeline_tasks.text.page.charset import decode

HTML = "html"

BEGIN = b"From "

_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_messages(stream: BinaryIO, uri: str) -> Iterator[bytes]:
    """Yield each message as a line of JSON: `text` or `html`, `id`, `date`, and `headers`.

    ContractError for a file that does not begin with a message, or has one of more than 32 MiB.
    """
    for body in _bodies(stream, uri):
        yield orjson.dumps(_record(email.message_from_bytes(body)), option=orjson.OPT_SORT_KEYS)


def _bodies(stream: BinaryIO, uri: str) -> Iterator[bytes]:
    held: list[bytes] = []
    size, is_begun, was_empty = 0, False, True
    for number, line in enumerate(iter(lambda: stream.readline(LINE_CAP), b""), 1):
        if was_empty and line.startswith(BEGIN):
            if is_begun:
                yield _QUOTED.sub(rb"\1", b"".join(held))
            held, size, is_begun, was_empty = [], 0, True, False
            continue
        was_empty = line in (b"\n", b"\r\n")
        if not is_begun and not was_empty:
            message = f"{uri}, line {number:,}: it begins with no line `From `, so it is no mailbox"
            raise ContractError(message)
        held.append(line)
        size += len(line)
        if size > LINE_CAP:
            message = f"{uri}, line {number:,}: a message of more than {LINE_CAP:,} bytes; leave this file out"
            raise ContractError(message)
    if is_begun:
        yield _QUOTED.sub(rb"\1", b"".join(held))


def _record(message: Message) -> dict[str, Any]:
    kind, content = _content(message)
    headers: dict[str, str] = {}
    for name, value in message.items():
        key, shown = name.lower(), _header(str(value))
        headers[key] = f"{headers[key]}\n{shown}" if key in headers else shown
    record = {kind: content, "id": headers.get("message-id", "").strip().strip("<>"), "date": _date(message)}
    return {name: value for name, value in record.items() if value or name == kind} | {"headers": headers}


def _content(message: Message) -> tuple[str, str]:
    """Return what a message says: its plain texts, else its first HTML; attachments are left out."""
    parts = [
        part for part in message.walk() if not part.is_multipart() and part.get_content_disposition() != "attachment"
    ]
    plain = [_body(part) for part in parts if part.get_content_type() == "text/plain"]
    if any(text.strip() for text in plain):
        return "text", "\n".join(plain)
    pages = [_body(part) for part in parts if part.get_content_type() == "text/html"]
    return (HTML, pages[0]) if pages else ("text", "")


def _body(part: Message) -> str:
    data = part.get_payload(decode=True)
    declared = part.get_content_charset() or ""
    text = decode(data, f"text/plain; charset={declared}").text if isinstance(data, bytes) else ""
    return text.replace("\r\n", "\n")


def _header(value: str) -> str:
    """Return a header as it reads, as it is written where that cannot be told."""
    try:
        shown = str(make_header(decode_header(value)))
    except (HeaderParseError, LookupError, ValueError):
        shown = value
    return _SURROGATE.sub("\ufffd", " ".join(shown.split()))


def _date(message: Message) -> str:
    """Return the date of a message (ISO 8601), "" if it has none."""
    try:
        return parsedate_to_datetime(str(message["Date"])).isoformat()
    except (TypeError, ValueError, IndexError):
        return ""
