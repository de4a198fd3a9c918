"""Reads the headers of WARC and ARC records, and recognizes where a record begins."""

import re
from typing import NamedTuple

from pipeline_tasks.landing.archives.header_fields import header_fields

HEAD_CAP = 1 << 20  # bytes of one record header
LENGTH_CAP = 1 << 40  # a Content-Length above this is wrong
ARC_DATE_DIGITS = 14  # YYYYMMDDhhmmss
VERSION = re.compile(rb"(?i:WARC)/[0-9]\.[0-9]{1,2}[ \t]*\r*\n")
ARC_LINE = re.compile(
    rb"([a-zA-Z][a-zA-Z0-9+.-]{1,20}:[^\r\n]{0,8192}) ([^ \r\n]+) (\d{8,17}) ([^\r\n]{0,256}?) ?(-?\d+)\r?\n"
)
BOUNDARY = re.compile(rb"\n\r*\n(?=WARC/[01]\.[0-9]{1,2}\r*\n[A-Za-z])")
"""A WARC header behind a blank line, which is looked for inside a block: a block may quote a header elsewhere."""

BARE_HEADER = re.compile(rb"W(?=ARC/[01]\.[0-9]{1,2}\r*\n(?:WARC-|Content-))")
ARC_BOUNDARY = re.compile(rb"\n(?=(?:https?|ftp|dns):[^\r\n]{1,4096} [0-9a-fA-F.:]{1,45} \d{14} [^ \r\n]+ \d+\r?\n)")
BARE_START = re.compile(BARE_HEADER.pattern + b"|" + ARC_BOUNDARY.pattern)
"""A header of either kind, which is looked for where no record is known to be around it.

Both begin with a byte: `re` tries a pattern that begins with a lookahead at every place, 30 times slower.
"""

_BLANK_LINE = re.compile(rb"\n\r*\n")


class Head(NamedTuple):
    """A record's header: `size` bytes of it, then `length` bytes of block (-1 where that is no number)."""

    size: int
    length: int
    fields: dict[str, str]
    arc: bool


def is_archive(start: bytes) -> bool:
    """Return whether `start` begins like a WARC or ARC record."""
    return starts_record(start, 0) or start.startswith(b"filedesc://")


def starts_record(data: bytes, at: int) -> bool:
    """Return whether a WARC or ARC record starts at `at`."""
    return VERSION.match(data, at) is not None or ARC_LINE.match(data, at) is not None


def separator(data: bytes, end: int, *, arc: bool) -> int | None:
    """Return the bytes between a block that ends at `end` and the next record; None if the block must end elsewhere."""
    at = end
    while at < end + 12 and data[at : at + 1] in {b"\r", b"\n"}:
        at += 1
    if at == len(data) or starts_record(data, at):
        return at - end
    if not arc and data.startswith((b"\r\n\r\n", b"\n\n"), end):
        return 4 if data.startswith(b"\r", end) else 2  # the separator is right: what follows is damaged, not this
    return 4 if VERSION.match(data, end + 4) else None  # the separator itself is damaged


def read_head(data: bytes, at: int) -> Head | None:
    """Read the record header at `at`; None if none starts there or it does not end within `data`."""
    version = VERSION.match(data, at)
    if version is None:
        return _read_arc_line(data, at)
    ends = _head_end(data, version.end(), at + HEAD_CAP)
    if ends is None:
        return None
    lines = data[version.end() : ends[0]].decode("utf-8", "replace").split("\n")
    fields = header_fields(lines, first=False)
    return Head(ends[1] - at, _length(fields.get("content-length", "")), fields, arc=False)


def _head_end(data: bytes, start: int, limit: int) -> tuple[int, int] | None:
    """Return where the fields that begin at `start` end, and where the block begins; None if not before `limit`."""
    end = data.find(b"\r\n\r\n", start - 2, limit) if data.startswith(b"\r\n", start - 2) else -1
    if end >= 0:
        return end, end + 4
    blank = _BLANK_LINE.search(data, start - 1, limit)
    return blank.span() if blank else None


def _length(value: str) -> int:
    """Return a Content-Length, -1 if it is no number or too large to be true."""
    is_number = value.isascii() and value.isdigit() and len(value) <= len(str(LENGTH_CAP))
    return int(value) if is_number and int(value) < LENGTH_CAP else -1


def _read_arc_line(data: bytes, at: int) -> Head | None:
    """Read the one line that an ARC record has for a header."""
    line = ARC_LINE.match(data, at)
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
    """Return the date of an ARC record in ISO 8601, as it is unless it has fourteen digits."""
    if len(date) != ARC_DATE_DIGITS:
        return date
    day, time = date[:8], date[8:]
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}Z"
