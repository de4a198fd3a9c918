"""Joins the segments that a crawler wrote of one record (WARC 1.1, 7), where they follow each other in a file."""

from collections.abc import Iterable, Iterator

from pipeline_tasks.landing.archives.http_body import CAP
from pipeline_tasks.landing.archives.record import Row, Segment, record_row

NUMBER, ORIGIN, TOTAL = "warc-segment-number", "warc-segment-origin-id", "warc-segment-total-length"
CUT = "warc-truncated"
DIGEST = "warc-block-digest"


def joined(rows: Iterable[Row], file: str, *, is_checked: bool) -> Iterator[Row]:
    """Yield rows of a file with segments as one record, at the place of all of them.

    A record whose further segments are not behind it is one that its crawler cut (`warc-truncated`).
    """
    parts: list[tuple[Row, Segment]] = []
    for row in rows:
        segment = row.segment
        if segment is not None and (_is_next(segment, parts) if parts else segment.head.fields.get(NUMBER) == "1"):
            parts.append((row, segment))
            if TOTAL not in segment.head.fields:
                continue
            yield _record(parts, file, is_checked=is_checked)
            parts = []
            continue
        if parts:
            yield _record(parts, file, is_checked=is_checked)
        parts = []
        yield row
    if parts:
        yield _record(parts, file, is_checked=is_checked)


def _is_next(segment: Segment, parts: list[tuple[Row, Segment]]) -> bool:
    """Return whether a segment is the next of a record, which is not too long with it."""
    fields = segment.head.fields
    size = len(segment.block) + sum(len(part.block) for _, part in parts)
    is_of_it = fields.get(ORIGIN) == parts[0][1].head.fields.get("warc-record-id")
    return is_of_it and fields.get(NUMBER) == str(len(parts) + 1) and size <= CAP


def _record(parts: list[tuple[Row, Segment]], file: str, *, is_checked: bool) -> Row:
    """Return the row of a record by its segments, of which some may be missing at the end."""
    (first, segment), (last, ending) = parts[0], parts[-1]
    block = b"".join(part.block for _, part in parts)
    fields = {name: value for name, value in segment.head.fields.items() if name != DIGEST}
    if ending.head.fields.get(TOTAL) != str(len(block)):
        fields.setdefault(CUT, "segment")
    length = last.offset + last.length - first.offset
    return record_row(segment.head._replace(fields=fields), block, first.offset, length, file, is_checked=is_checked)
