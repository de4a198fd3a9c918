"""Reads dumps of MediaWiki (`pages-articles`, histories): a row for each revision, with its text as it is written.

<https://www.mediawiki.org/wiki/Help:Export>
"""

from collections.abc import Iterator
from typing import Any, BinaryIO
from urllib.parse import quote

import pyarrow as pa

from refinery_sources.files.xml_records import TEXT, Record, read_records
from refinery_sources.parquet_part import BATCH_BYTES, BATCH_ROWS

PATH, AROUND = "mediawiki/page/revision", frozenset({"siteinfo", "title", "ns", "id", "redirect"})

COLUMNS = pa.schema(
    [
        pa.field("id", pa.string()),  # of the page
        pa.field("revision", pa.string()),
        pa.field("title", pa.string()),
        pa.field("namespace", pa.string()),  # 0 is that of articles
        pa.field("redirect", pa.string()),  # title of the page that it leads to
        pa.field("url", pa.string()),
        pa.field("timestamp", pa.string()),
        pa.field("model", pa.string()),
        pa.field("text", pa.string()),
    ]
)


def read_pages(stream: BinaryIO, uri: str) -> Iterator[pa.RecordBatch]:
    """Yield the revisions of a dump, in order; errors are those of `xml_records`."""
    held: list[dict[str, Any]] = []
    size = 0
    for record in read_records(stream, uri, PATH, AROUND):
        held.append(_row(record))
        size += len(held[-1]["text"])
        if len(held) == BATCH_ROWS or size >= BATCH_BYTES:
            yield pa.RecordBatch.from_pylist(held, COLUMNS)
            held, size = [], 0
    if held:
        yield pa.RecordBatch.from_pylist(held, COLUMNS)


def _row(record: Record) -> dict[str, Any]:
    site, page = record.ancestors
    revision = record.value if isinstance(record.value, dict) else {}
    redirect, info = page.get("redirect"), site.get("siteinfo")
    return {
        "id": page.get("id"),
        "revision": revision.get("id"),
        "title": page.get("title"),
        "namespace": page.get("ns"),
        "redirect": redirect.get("title") if isinstance(redirect, dict) else None,
        "url": _url(info.get("base") if isinstance(info, dict) else None, page.get("title")),
        "timestamp": revision.get("timestamp"),
        "model": revision.get("model"),
        "text": _text(revision.get("text")),
    }


def _text(value: object) -> str:
    """Return the text of a revision, "" where it was deleted."""
    if isinstance(value, dict):
        return str(value.get(TEXT, ""))
    return str(value or "")


def _url(base: str | None, title: str | None) -> str | None:
    """Return the address of a page, beside that of the main page."""
    if not base or not title:
        return None
    return f"{base.rpartition('/')[0]}/{quote(title.replace(' ', '_'), safe='/:,@!~*()')}"
