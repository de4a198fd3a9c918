"""Makes documents of files: each one's text, decoded as a page is; what is no text is left out, and counted."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from pipeline_tasks.landing.json_lines import LINE_CAP
from pipeline_tasks.text.page.charset import decode
from refinery_sources.parquet_part import BATCH_BYTES, BATCH_ROWS

COLUMNS = pa.schema(
    [
        pa.field("text", pa.string()),
        pa.field("url", pa.string()),
        pa.field("path", pa.string()),
        pa.field("encoding", pa.string()),
        pa.field("bytes", pa.int64()),
    ]
)

GROUP_FILES, GROUP_BYTES = 10_000, 64 << 20
"""Files, and bytes of them, that become one part at most; a larger file is one of its own."""

LOOKED_AT = 8_000
"""Bytes in which a NUL makes a file binary: Git's own rule."""

BINARY, OVERSIZE = "binary", "oversize"

_WIDE = (b"\xff\xfe", b"\xfe\xff")

T = TypeVar("T")


class Document(NamedTuple):
    """A file: its path, the URL by which its document is known, and its bytes."""

    path: str
    url: str
    data: bytes


def batches_of(documents: Iterable[Document], left_out: Counter[str]) -> Iterator[pa.RecordBatch]:
    """Yield the documents that are text, and count the others in `left_out`."""
    held: list[dict[str, Any]] = []
    size = 0
    for document in documents:
        row = _row(document, left_out)
        if row is None:
            continue
        held.append(row)
        size += len(document.data)
        if len(held) == BATCH_ROWS or size >= BATCH_BYTES:
            yield pa.RecordBatch.from_pylist(held, COLUMNS)
            held, size = [], 0
    if held:
        yield pa.RecordBatch.from_pylist(held, COLUMNS)


def _row(document: Document, left_out: Counter[str]) -> dict[str, Any] | None:
    data = document.data
    if len(data) > LINE_CAP:
        left_out[OVERSIZE] += 1
        return None
    decoded = None if b"\0" in data[:LOOKED_AT] and not data.startswith(_WIDE) else decode(data, "")
    if decoded is None or not decoded.understood:
        left_out[BINARY] += 1
        return None
    about = {"url": document.url, "path": document.path, "encoding": decoded.encoding, "bytes": len(data)}
    return {"text": decoded.text, **about}


def grouped(files: Iterable[tuple[T, int]]) -> list[Sequence[T]]:
    """Return files, each with its bytes, in groups that become one part each."""
    groups: list[list[T]] = []
    count = size = 0
    for file, length in files:
        if not groups or count == GROUP_FILES or size + length > GROUP_BYTES:
            groups.append([])
            count = size = 0
        groups[-1].append(file)
        count, size = count + 1, size + length
    return list(groups)
