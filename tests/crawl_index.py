"""A crawl with its columnar index on a mirror: WARC files of requests, pages and metadata, and the places of the pages."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.demo.warc import Exchange, digest, member, plain, record_id, request, response
from tests.crawl_mirror import CRAWL, Mirror

WHEN = "2026-11-02T10:00:00Z"


@dataclass(frozen=True, slots=True)
class Crawled:
    """A page of a crawl: its URL, language as the index says, text, and why its body was cut."""

    url: str
    language: str
    text: str
    truncated: str = ""


def crawled(count: int) -> list[Crawled]:
    """Return pages on ten hosts, of which each third is German."""
    return [
        Crawled(
            f"https://site{number % 10}.example/{number}",
            "deu" if number % 3 == 0 else "eng",
            f"Page {number} of the crawl. " * (20 + number % 7),
            "length" if number % 50 == 1 else "",
        )
        for number in range(count)
    ]


def add_crawl(mirror: Mirror, pages: Sequence[Crawled], files: int = 3, parts: int = 2) -> list[dict[str, Any]]:
    """Add the WARC files of a crawl, and its index in some files; return the rows of the index."""
    rows: list[dict[str, Any]] = []
    archives = {}
    for number in range(files):
        path = f"part-{number:05}.warc.gz"
        body, places = _archive(pages[number::files])
        archives[path] = body
        rows += [{**row, "warc_filename": path} for row in places]
    paths = {path.rpartition("/")[2]: path for path in mirror.add(archives)}
    rows = [{**row, "warc_filename": paths[row["warc_filename"]]} for row in rows]
    add_index(mirror, rows, parts)
    return rows


def add_index(mirror: Mirror, rows: Sequence[dict[str, Any]], parts: int = 2) -> None:
    """Add an index in files that are sorted by host, as Common Crawl's is."""
    ordered = sorted(rows, key=lambda row: (row["url_host_name"], row["url"]))
    size = -(-len(ordered) // parts)
    names = []
    for number in range(parts):
        name = f"cc-index/table/cc-main/warc/crawl={CRAWL}/subset=warc/part-{number:05}.c000.gz.parquet"
        body = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(ordered[number * size :][:size], _SCHEMA), body, row_group_size=100)
        mirror.files[f"/{name}"] = body.getvalue()
        names.append(name)
    other = f"cc-index/table/cc-main/warc/crawl={CRAWL}/subset=crawldiagnostics/part-00000.c000.gz.parquet"
    mirror.list_paths([other, *names], "cc-index-table")


_SCHEMA = pa.schema(
    [
        ("url_surtkey", pa.string()),
        ("url", pa.string()),
        ("url_host_name", pa.string()),
        ("url_host_registered_domain", pa.string()),
        ("fetch_time", pa.timestamp("ms")),
        ("fetch_status", pa.int16()),
        ("content_digest", pa.string()),
        ("content_mime_type", pa.string()),
        ("content_mime_detected", pa.string()),
        ("content_languages", pa.string()),
        ("content_truncated", pa.string()),
        ("warc_filename", pa.string()),
        ("warc_record_offset", pa.int32()),
        ("warc_record_length", pa.int32()),
        ("warc_segment", pa.string()),
    ]
)


def _archive(pages: Sequence[Crawled]) -> tuple[bytes, list[dict[str, Any]]]:
    body, rows = bytearray(), []
    for page in pages:
        exchange = _exchange(page)
        identifier = record_id(page.url)
        body += member(request(exchange, identifier))
        record = response(exchange, identifier)
        if page.truncated:
            record = record.replace(b"\r\n", f"\r\nWARC-Truncated: {page.truncated}\r\n".encode(), 1)
        packed = member(record)
        rows.append(_row(page, exchange, len(body), len(packed)))
        body += packed
        headers = (
            ("WARC-Type", "metadata"),
            ("WARC-Record-ID", f"<{record_id('metadata', page.url)}>"),
            ("WARC-Date", WHEN),
        )
        body += member(plain(headers, b"fetchTimeMs: 12\r\n"))
    return bytes(body), rows


def _exchange(page: Crawled) -> Exchange:
    html = f"<html><head><title>{page.url}</title></head><body><p>{page.text}</p></body></html>".encode()
    return Exchange(page.url, WHEN, "200 OK", (("Content-Type", "text/html; charset=utf-8"),), html)


def _row(page: Crawled, exchange: Exchange, offset: int, length: int) -> dict[str, Any]:
    host = urlsplit(page.url).hostname or ""
    return {
        "url_surtkey": f"{','.join(reversed(host.split('.')))}){urlsplit(page.url).path}",
        "url": page.url,
        "url_host_name": host,
        "url_host_registered_domain": host,
        "fetch_time": datetime(2026, 11, 2, 10),  # noqa: DTZ001 -- the index has no zone
        "fetch_status": 200,
        "content_digest": digest(exchange.body).removeprefix("sha1:"),
        "content_mime_type": "text/html",
        "content_mime_detected": "text/html",
        "content_languages": page.language,
        "content_truncated": page.truncated or None,
        "warc_record_offset": offset,
        "warc_record_length": length,
    }
