"""Reads archives of one gzip member per record, the usual layout: a place is the member's compressed bytes.

A member that holds several records gives each of them a byte of its place, and the last one the rest: no two records
share a place. Such a member is never held whole if it is large. Members that share a record are read as one.
"""

from collections.abc import Iterable, Iterator

from zlib_ng import zlib_ng

from pipeline_tasks.landing.archives.http_body import CAP, RATIO, RATIO_FLOOR
from pipeline_tasks.landing.archives.record import Row, damage_row, record_row
from pipeline_tasks.landing.archives.record_header import (
    ARC_BOUNDARY,
    BARE_START,
    BOUNDARY,
    HEAD_CAP,
    Head,
    read_head,
    separator,
    starts_record,
)
from pipeline_tasks.landing.archives.record_stream import read_stream
from pipeline_tasks.landing.decompression import (
    DEFLATE_ERROR,
    GZIP,
    GZIP_WINDOW,
    STEP,
    BytesSource,
    GzipSource,
    Reader,
    consumed,
    goes_on,
    seek_member,
    starts_member,
)


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
    if error is None and not (_is_cut(data) and goes_on(Reader(BytesSource(reader.peek(size + STEP)[size:])))):
        reader.at += size
        yield from _placed(_member_rows(data, file, is_checked=is_checked), start, reader, file)
        return
    head = read_head(data, 0)
    if error in {"gzip_corrupt", "gzip_truncated"} and not _holds_several(data, head):
        yield _skip_damaged(reader, error, "", head)
        return
    rows = _streamed_rows(reader, file, is_checked=is_checked)
    is_bomb = error == "bomb" and not _holds_several(data, head)
    yield from _placed(_without_bomb(rows) if is_bomb else rows, start, reader, file)


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


def _is_cut(data: bytes) -> bool:
    """Return whether the last record of a member's output does not end with it."""
    at, end = 0, 0
    while at < len(data):
        head = read_head(data, at)
        end = head.size + head.length + at if head and head.length >= 0 else len(data) + 1
        at = end + (_member_separator(data, end, arc=head.arc) or 0) if head and end <= len(data) else len(data)
    return end > len(data)


def _bound_error(size: int, used: int, *, ended: bool) -> str | None:
    """Return which bound the `size` bytes that were inflated from `used` bytes break."""
    if size > RATIO_FLOOR and size > RATIO * used:
        return "bomb"
    return "oversize" if size >= CAP + HEAD_CAP and not ended else None


def _holds_several(data: bytes, head: Head | None) -> bool:
    """Return whether the output of a damaged member has another record behind its first one."""
    return head is not None and head.length >= 0 and _is_followed(data[:-1], data, head.size + head.length, head)


def _streamed_rows(reader: Reader, file: str, *, is_checked: bool) -> Iterator[Row]:
    """Read the records of members that are not held whole, and pass them; places are those in their output."""
    content = Reader(GzipSource(reader, is_run=True))
    end_of_damage = -1
    for row in read_stream(content, file, is_checked=is_checked):
        if row.length or row.offset != end_of_damage:  # else the row before says already that its bytes are damaged
            yield row
        end_of_damage = row.offset + row.length if row.error else -1
    if content.source.damage is not None:
        seek_member(reader)


def _without_bomb(rows: Iterator[Row]) -> Iterator[Row]:
    """Replace the first record, which inflates to more than its bytes may, by its damage row."""
    for number, row in enumerate(rows):
        yield (
            row
            if number
            else Row(
                row.offset,
                row.length,
                record_id=row.record_id,
                url=row.url,
                crawled_at=row.crawled_at,
                error="bomb",
                error_detail="more than a record may hold",
            )
        )


def _placed(rows: Iterable[Row], start: int, reader: Reader, file: str) -> Iterator[Row]:
    """Give the records of the member at `start` a byte each of its stored bytes, and the last one the rest.

    `reader` is behind the member when `rows` end.
    """
    last: Row | None = None
    for place, row in enumerate(rows, start):
        if last is not None:
            yield last
        own_id = f"{file}:{place}" if row.record_id == f"{file}:{row.offset}" else row.record_id
        last = row._replace(offset=place, length=1, record_id=own_id)
    if last is not None:
        yield last._replace(length=reader.offset - last.offset)


def _skip_damaged(reader: Reader, reason: str, detail: str, head: Head | None = None) -> Row:
    start = reader.offset
    is_followed = seek_member(reader)
    if is_followed and reason == "gzip_truncated":
        reason = "gzip_corrupt"  # it did not end before the next one began
    return damage_row(start, reader.offset - start, reason, detail, head)


def _member_rows(data: bytes, file: str, *, is_checked: bool) -> Iterator[Row]:
    """Read the content of one sound member: a record, or (unusual) several; places are those in its output."""
    at, end = 0, None
    while end is None or at < len(data):
        head = read_head(data, at)
        end = _record_end(data, at, head) if head else None
        if head is None:
            end = _next_start(data, at)
            if not at or data[at:end].strip():
                reason = "bad_header" if data else "empty_member"
                yield damage_row(at, end - at, reason, f"no record header at byte {at} of the member")
        elif end is None:
            detail = f"declared {head.length} of {len(data) - at - head.size} bytes"
            end = _next_boundary(data, at, head)
            yield damage_row(at, end - at, "bad_length", detail, head)
        elif head.length > CAP:
            yield damage_row(at, end - at, "oversize", f"declared {head.length} bytes", head)
        else:
            block = data[at + head.size : at + head.size + head.length]
            yield record_row(head, block, at, end - at, file, is_checked=is_checked)
        at = end


def _record_end(data: bytes, at: int, head: Head) -> int | None:
    """Return where the record at `at` ends with its separator, None if its declared length is wrong."""
    end = at + head.size + head.length
    gap = _member_separator(data, end, arc=head.arc) if head.length >= 0 else None
    return None if gap is None or end > len(data) else end + gap


def _next_start(data: bytes, at: int) -> int:
    """Return where a record begins behind `at`, where none does; the end of `data` if there is none."""
    following = BARE_START.search(data, at + 1)
    return following.start() if following else len(data)


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
    if head is None:
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
