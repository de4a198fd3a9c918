"""Reads archive records that follow each other in one stream, and goes on at the next record behind damage.

Used for plain files and for those that are compressed as a whole: a place is the record's bytes in the decompressed
stream.
"""

from collections.abc import Iterator

from pipeline_tasks.landing.decompression import CHUNK, STEP, Reader
from pipeline_tasks.landing.http_body import CAP
from pipeline_tasks.landing.record import Row, damage_row, record_row
from pipeline_tasks.landing.record_header import (
    ARC_BOUNDARY,
    BARE_START,
    BOUNDARY,
    HEAD_CAP,
    VERSION,
    Head,
    read_head,
    separator,
)

_SEPARATOR = 16  # bytes behind a block that are looked at for its separator
_OVERLAP, _ARC_OVERLAP = 256, 8192  # bytes of a window that the next one repeats: the longest header start


def read_stream(reader: Reader, file: str, *, is_checked: bool = True) -> Iterator[Row]:
    """Read the records of `reader`: plain, or any compression around the whole."""
    while True:
        if not reader.fill(1):
            if reader.source.damage is None:
                return
            yield _source_damage(reader)
            if not reader.resume():
                return
            continue
        head = _next_head(reader)
        yield (
            _read_record(reader, head, file, is_checked=is_checked) if head else _skip_unreadable(reader, "bad_header")
        )


def _next_head(reader: Reader) -> Head | None:
    """Read the header ahead with as little of the source as it takes."""
    reader.fill(STEP)
    head = read_head(reader.data, reader.at)
    if head is None and reader.ahead < HEAD_CAP and VERSION.match(reader.data, reader.at):
        reader.fill(HEAD_CAP)
        head = read_head(reader.data, reader.at)
    return head


def _read_record(reader: Reader, head: Head, file: str, *, is_checked: bool) -> Row:
    start = reader.offset
    if head.length < 0:
        return _skip_unreadable(reader, "bad_length", head)
    if head.length > CAP:
        return _skip_oversize(reader, head)
    size = head.size + head.length
    if not reader.fill(size + _SEPARATOR) and reader.ahead < size:
        return _read_cut_short(reader, head)
    gap = separator(reader.data, reader.at + size, arc=head.arc)
    if gap is None:
        return _skip_unreadable(reader, "bad_length", head)
    block = reader.data[reader.at + head.size : reader.at + size]
    reader.at += size + gap
    return record_row(head, block, start, size + gap, file, is_checked=is_checked)


def _read_cut_short(reader: Reader, head: Head) -> Row:
    """Account for a record whose declared length runs past the end of the source."""
    start = reader.offset
    if BOUNDARY.search(reader.data, reader.at + head.size) is not None:
        return _skip_unreadable(reader, "bad_length", head)
    left = reader.ahead
    reader.skip(left)
    damage = reader.source.damage
    position = f"; compressed byte {reader.source.damage_offset}" if damage else ""
    if damage is not None:
        reader.resume()
    return damage_row(start, left, damage or "truncated", f"{left - head.size} of {head.length} bytes{position}", head)


def _source_damage(reader: Reader) -> Row:
    source = reader.source
    return damage_row(reader.offset, 0, source.damage or "truncated", f"compressed byte {source.damage_offset}")


def _skip_oversize(reader: Reader, head: Head) -> Row:
    """Skip a record too large to hold: to its declared end, or to a header before that."""
    start, declared = reader.offset, head.size + head.length
    _seek_record(reader, head.size, head.arc, declared + _SEPARATOR)
    skipped = reader.offset - start
    honest = declared <= skipped <= declared + _SEPARATOR
    return damage_row(start, skipped, "oversize" if honest else "bad_length", f"declared {head.length} bytes", head)


def _skip_unreadable(reader: Reader, reason: str, head: Head | None = None) -> Row:
    """Skip what cannot be read, up to the next header, as one damage row."""
    start = reader.offset
    _seek_record(reader, head.size if head else 0, head is not None and head.arc)
    detail = f"declared {head.fields.get('content-length', head.length)!a:.60}" if head else "no record header"
    return damage_row(start, reader.offset - start, reason, detail, head)


def _seek_record(reader: Reader, head_size: int, arc: bool, limit: int | None = None) -> None:
    """Move to the next record header: behind a blank line in a block (`head_size` > 0), anywhere outside of one."""
    pattern = ARC_BOUNDARY if arc else BOUNDARY if head_size else BARE_START
    overlap = _OVERLAP if pattern is BOUNDARY else _ARC_OVERLAP
    start = reader.offset
    reader.skip(max(head_size - 4, 0) if head_size else 1)
    while reader.fill(1):
        reader.fill(CHUNK)
        match = pattern.search(reader.data, reader.at)
        if match is not None:
            reader.at = match.start() if match[0] == b"W" else match.end()
            return
        if limit is not None and reader.offset - start > limit:
            return
        if not reader.fill(CHUNK + 1):
            reader.skip(reader.ahead)
            return
        reader.skip(reader.ahead - overlap)
