"""Reads archives of one gzip member per record, the usual layout: a place is the member's compressed bytes."""

from collections.abc import Iterator

from zlib_ng import zlib_ng

from pipeline_tasks.landing.decompression import (
    CHUNK,
    DEFLATE_ERROR,
    GZIP,
    GZIP_WINDOW,
    STEP,
    BytesSource,
    Reader,
    consumed,
    seek_member,
    starts_member,
)
from pipeline_tasks.landing.http_body import CAP, RATIO, RATIO_FLOOR
from pipeline_tasks.landing.record import Row, damage_row, record_row
from pipeline_tasks.landing.record_header import (
    ARC_BOUNDARY,
    BOUNDARY,
    HEAD_CAP,
    Head,
    read_head,
    separator,
    starts_record,
)

DISCARD_CAP = 4 << 30  # output of one oversized member that is inflated only to find its end


def read_members(reader: Reader, file: str, *, is_checked: bool = True) -> Iterator[Row]:
    """Read the records of each gzip member of the stored bytes."""
    while reader.fill(1):
        yield from read_member(reader, file, is_checked=is_checked)


def read_member(reader: Reader, file: str, *, is_checked: bool = True) -> Iterator[Row]:
    """Read the records of the gzip member ahead, or skip to the next one behind what cannot be read."""
    start = reader.offset
    if reader.fill(len(GZIP)) and not reader.data.startswith(GZIP, reader.at):
        yield _skip_damaged(reader, "gzip_corrupt", "no gzip member here")
        return
    data, size, error = inflate_member(reader)
    if error in {"gzip_corrupt", "gzip_truncated"}:
        yield _skip_damaged(reader, error, "", read_head(data, 0))
        return
    reader.at += size
    if error is None:
        yield from _member_rows(data, start, size, file, is_checked=is_checked)
        return
    if not size:
        _skip_oversize(reader)
    head = read_head(data[:HEAD_CAP], 0)
    yield damage_row(start, reader.offset - start, error, "more than a record may hold", head)


def skip_record(reader: Reader) -> bool:
    """Pass the gzip member ahead if it is sound and holds one record and nothing else; else stay and return False."""
    size = _sound_size(reader)
    reader.at += size
    return size > 0


def holds_record(reader: Reader) -> bool:
    """Return whether the gzip member ahead is sound and holds one record and nothing else."""
    return _sound_size(reader) > 0


def _sound_size(reader: Reader) -> int:
    """Return the stored bytes of a member that is sound and holds one record, 0 for any other."""
    data, size, error = inflate_member(reader)
    head = read_head(data, 0) if error is None else None
    is_whole = head is not None and head.length <= CAP and _record_end(data, 0, head) == len(data)
    return size if is_whole else 0


def inflate_member(reader: Reader) -> tuple[bytes, int, str | None]:
    """Inflate the member ahead without passing it: (output, stored bytes, error).

    Stored bytes are 0 where the output outgrew its bounds before the member's end was known.
    """
    parts: list[bytes] = []
    inflater, used, size = zlib_ng.decompressobj(GZIP_WINDOW), 0, 0
    error: str | None = None
    while error is None and not inflater.eof:
        if reader.ahead - used <= 0 and not reader.fill(used + STEP) and reader.ahead - used <= 0:
            error = "gzip_truncated"
            break
        piece = memoryview(reader.data)[reader.at + used : reader.at + used + STEP]
        try:
            part = inflater.decompress(piece, CAP + HEAD_CAP - size)
        except DEFLATE_ERROR:
            error = "gzip_corrupt"
            break
        parts.append(part)
        size += len(part)
        used += consumed(inflater, len(piece))
        error = _bound_error(size, used, ended=inflater.eof)
    outgrown = error in {"bomb", "oversize"} and not inflater.eof
    return b"".join(parts), 0 if outgrown else used, error


def _bound_error(size: int, used: int, *, ended: bool) -> str | None:
    """Return which bound the `size` bytes that were inflated from `used` bytes break."""
    if size > RATIO_FLOOR and size > RATIO * used:
        return "bomb"
    return "oversize" if size >= CAP + HEAD_CAP and not ended else None


def _skip_oversize(reader: Reader) -> None:
    """Skip an oversized member: inflate it for its end only, or seek the next one if it is damaged or endless."""
    inflater, size = zlib_ng.decompressobj(GZIP_WINDOW), 0
    while size < DISCARD_CAP and (reader.fill(STEP) or reader.ahead):
        piece = memoryview(reader.data)[reader.at : reader.at + STEP]
        try:
            size += len(inflater.decompress(piece, CHUNK))
        except DEFLATE_ERROR:
            break
        reader.at += consumed(inflater, len(piece))
        if inflater.eof:
            return
    seek_member(reader)


def _skip_damaged(reader: Reader, reason: str, detail: str, head: Head | None = None) -> Row:
    start = reader.offset
    is_followed = seek_member(reader)
    if is_followed and reason == "gzip_truncated":
        reason = "gzip_corrupt"  # it did not end before the next one began
    return damage_row(start, reader.offset - start, reason, detail, head)


def _member_rows(data: bytes, start: int, size: int, file: str, *, is_checked: bool) -> Iterator[Row]:
    """Read the content of one sound member: a record, or (unusual) several, which then share the member's place."""
    at, position = 0, 0
    while at < len(data) or not position:
        head = read_head(data, at)
        if head is None:
            if not position or data[at:].strip():
                reason = "bad_header" if data else "empty_member"
                yield damage_row(start, size, reason, f"no record header at byte {at} of the member")
            return
        end = _record_end(data, at, head)
        if end is None:
            detail = f"declared {head.length} of {len(data) - at - head.size} bytes"
            yield damage_row(start, size, "bad_length", detail, head)
            end = _next_boundary(data, at, head)
        elif head.length > CAP:
            yield damage_row(start, size, "oversize", f"declared {head.length} bytes", head)
        else:
            block = data[at + head.size : at + head.size + head.length]
            yield record_row(head, block, start, size, file, position, is_checked=is_checked)
        at = end
        position += 1


def _record_end(data: bytes, at: int, head: Head) -> int | None:
    """Return where the record at `at` ends with its separator, None if its declared length is wrong."""
    end = at + head.size + head.length
    gap = _member_separator(data, end, arc=head.arc) if head.length >= 0 else None
    return None if gap is None or end > len(data) else end + gap


def _next_boundary(data: bytes, at: int, head: Head) -> int:
    """Return where the record behind the one at `at` begins, the end of `data` if there is none."""
    boundary = (ARC_BOUNDARY if head.arc else BOUNDARY).search(data, max(at + head.size - 4, 0))
    return boundary.end() if boundary else len(data)


def _member_separator(data: bytes, end: int, *, arc: bool) -> int | None:
    """As `separator`, where the end of the member also ends the record: nothing but line ends may follow."""
    rest = data[end : end + 4096]
    blank = len(rest) - len(rest.lstrip(b"\r\n"))
    if (blank == len(rest) and end <= len(data)) or starts_record(data, end + blank):
        return blank
    return None if arc or not rest.startswith(b"\r\n\r\n") else 4


def is_one_record_per_member(reader: Reader) -> bool:
    """Return whether each gzip member holds one record, as the first one shows, without passing it."""
    data, size, error = inflate_member(reader)
    head = read_head(data, 0)
    if head is None or error in {"bomb", "oversize"}:
        return data != b""
    if head.length < 0:
        return True
    end = head.size + head.length
    if error is not None:
        return not _is_followed(data[:-1], data, end, head)
    if end <= len(data):
        return not data[end:].strip() or not _is_followed(data, data, end, head)
    following = reader.peek(size + STEP)[size:]
    return not following or starts_member(Reader(BytesSource(following)))


def _is_followed(inflated: bytes, data: bytes, end: int, head: Head) -> bool:
    """Return whether another record of `inflated` begins behind the block of `data` that ends at `end`."""
    return starts_record(inflated, end + (separator(data, end, arc=head.arc) or 0))
