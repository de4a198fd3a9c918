"""Tables of documents for tests, with an origin and an id as `extract` gives them."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import pyarrow as pa

from pipeline_tasks.schema import DOCUMENT


def documents(texts: Sequence[str | None], urls: Sequence[str | None] | None = None, **more: pa.Array) -> pa.Table:
    """Return one document per text, with further columns appended."""
    rows: list[Mapping[str, Any]] = [
        {
            "source": "crawl",
            "snapshot": "2026-11-20",
            "file": "a.warc.gz",
            "offset": at,
            "length": len(text or ""),
            "record_id": f"a.warc.gz:{at}",
            "url": urls[at] if urls else f"https://example.org/{at}",
            "crawled_at": "2026-11-20T00:00:00Z",
            "payload_digest": "sha1:A",
            "id": sha256((text or "").encode()).hexdigest()[:32],
            "text": text,
            "title": None,
            "chars": len(text or ""),
        }
        for at, text in enumerate(texts)
    ]
    table = pa.Table.from_pylist(rows, DOCUMENT)
    for name, column in more.items():
        table = table.append_column(name, column)
    return table
