"""Reads archive records that follow each other in one stream, and goes on at the next record behind damage.

Used for plain files and for those that are compressed as a whole: a place is the record's bytes in the decompressed
stream.
"""

from collections.abc import Iterator

from pipeline_tasks.landing.archives.http_body import CAP
from pipeline_tasks.landing.archives.record import Row, damage_row, record_row
from pipeline_tasks.landing.archives.record_header import (
    ARC_BOUNDARY,
    BARE_START,
    BOUNDARY,
    HEAD_CAP,
    VERSION,
    Head,
    read_head,
    separator,
)
from pipeline_tasks.landing.decompression import CHUNK, STEP, Reader, Starts

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
    """Skip a record too large to hold: to its declared end, or to a header before that if no record starts behind it.

    A page may have the header of a record in it, so that its declared length is believed first.
    """
    start, end = reader.offset, reader.offset + head.size + head.length
    reader.skip(max(head.size - 4, 0))
    if _seek(reader, ARC_BOUNDARY if head.arc else BOUNDARY, end):
        inside = reader.offset
        copy = reader.copy(end - inside)
        if reader.offset == end and _gap(reader, head) is not None:
            copy.close()
        elif reader.put_back(copy):
            return damage_row(start, inside - start, "bad_length", f"declared {head.length} bytes", head)
    gap = _gap(reader, head) if reader.offset == end else None
    if gap is None:
        _seek(reader, ARC_BOUNDARY if head.arc else BOUNDARY)
    else:
        reader.skip(gap)
    reason = "bad_length" if gap is None else "oversize"
    return damage_row(start, reader.offset - start, reason, f"declared {head.length} bytes", head)


def _gap(reader: Reader, head: Head) -> int | None:
    """Return the bytes between a block that ends here and the next record, None if none begins behind it."""
    reader.fill(STEP)
    return separator(reader.data, reader.at, arc=head.arc)


def _skip_unreadable(reader: Reader, reason: str, head: Head | None = None) -> Row:
    """Skip what cannot be read, up to the next header, as one damage row.

    A header is looked for behind a blank line in a block, anywhere outside of one.
    """
    start = reader.offset
    reader.skip(max(head.size - 4, 0) if head else 1)
    _seek(reader, BARE_START if head is None else ARC_BOUNDARY if head.arc else BOUNDARY)
    detail = f"declared {head.fields.get('content-length', head.length)!a:.60}" if head else "no record header"
    return damage_row(start, reader.offset - start, reason, detail, head)


def _seek(reader: Reader, starts: Starts, end: int | None = None) -> bool:
    """Move to the next header and return True; without one, move to offset `end`, or behind everything."""
    overlap = _OVERLAP if starts is BOUNDARY else _ARC_OVERLAP
    while reader.fill(1):
        reader.fill(CHUNK)
        limit = len(reader.data) if end is None else min(len(reader.data), reader.at + end - reader.offset)
        match = starts.search(reader.data, reader.at, limit)
        if match is not None:
            reader.at = match.start() if match[0] == b"W" else match.end()
            return True
        if limit < len(reader.data) or reader.offset + reader.ahead == end:
            reader.at = limit
            return False
        if not reader.fill(CHUNK + 1):
            reader.skip(reader.ahead)
            return False
        reader.skip(reader.ahead - overlap)
    return False
