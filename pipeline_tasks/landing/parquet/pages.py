"""Bounds what the column chunks of a Parquet file decode to, from the headers of their pages, before a page is decoded.

The sizes in a footer may lie, and dictionaries, runs and shared prefixes repeat a value at no cost: 748 bytes can say
4.5 GB. A decoder allocates what the header of a page says and no more, so these headers bound it.
Format: https://github.com/apache/parquet-format (`parquet.thrift`, from which all numbers of fields and types are).
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from pipeline_tasks.landing.archives.http_body import RATIO, RATIO_FLOOR
from pipeline_tasks.landing.parquet.footer import Column, Leaf
from pipeline_tasks.landing.parquet.thrift import BadThriftError, read_struct

PAGE_CAP = 256 << 20
"""Bytes of one page, or of one chunk of a repeated column, above which the column is not decoded."""

REPEATED_FLOOR, REPEATED_RATIO = 64 << 20, 32
"""A chunk of a repeated column may decode to this many bytes, or to this many times its stored bytes."""

PAGES = 100_000
"""Pages of one row group that are looked at."""

_HEADS = (1 << 12, 1 << 24)  # bytes in which a page header must end: most are short, and statistics may be long
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_SPELLED_OUT = (0, 6)  # encodings that write every value in full: PLAIN and DELTA_LENGTH_BYTE_ARRAY
_DICTIONARY_CODED = (2, 8)
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # of physical types in bytes
_FIXED = 7  # the physical type whose width is in the schema
_CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_LEVELS = 4  # bytes of levels per value
_DICTIONARY_CAP = 4 << 20  # bytes of a dictionary that is looked through for its longest value


class Chunk(NamedTuple):
    """A bound on what the decoder of a column chunk holds: `fixed` bytes, and `per_row` for each row of a batch.

    `error` says why the chunk is not to be decoded at all.
    """

    column: str
    fixed: int
    per_row: int
    error: str | None = None


class _Page(NamedTuple):
    kind: int
    stored: int
    decoded: int
    values: int
    encoding: int
    at: int  # where the body begins


def bound_chunk(file: BinaryIO, column: Column, leaf: Leaf) -> Chunk:
    """Bound a column chunk, as the footer describes it and its leaf of the schema, by the page headers in `file`."""
    pages = list(_pages(file, column))
    name = leaf.path
    largest = max((page.decoded for page in pages), default=0)
    if any(page.decoded > RATIO_FLOOR and page.decoded > RATIO * max(page.stored, 1) for page in pages):
        return Chunk(name, 0, 0, "bomb")
    width = leaf.width if column.kind == _FIXED else _WIDTHS.get(column.kind)
    dictionary = next((page for page in pages if page.kind == _DICTIONARY), None)
    held = largest + (dictionary.decoded if dictionary else 0)
    if held > PAGE_CAP or (width or 0) > PAGE_CAP:
        return Chunk(name, 0, 0, "oversize")
    data = [page for page in pages if page.kind in (_DATA, _DATA_V2)]
    if leaf.repeated:
        total = _repeated(file, column, data, dictionary, width)
        return Chunk(name, held + (total or 0), 0, "oversize" if total is None else None)
    coded = dictionary.decoded if dictionary else largest
    per_row = max((_per_value(page, width, coded) for page in data), default=0)
    return Chunk(name, held, per_row + _LEVELS)


def _repeated(
    file: BinaryIO, column: Column, data: list[_Page], dictionary: _Page | None, width: int | None
) -> int | None:
    """Return the bytes of a chunk in which one row may have all values, None if they are too many."""
    coded = dictionary.decoded if dictionary else 0
    most = min(PAGE_CAP, max(REPEATED_FLOOR, REPEATED_RATIO * column.stored))
    total = _total(data, width, coded)
    if total > most and width is None and dictionary is not None and coded <= _DICTIONARY_CAP:
        total = _total(data, width, _longest_value(file, column, dictionary))
    return total if total <= most else None


def _total(data: list[_Page], width: int | None, coded: int) -> int:
    return sum(page.values * (_LEVELS + _per_value(page, width, coded)) for page in data)


def _per_value(page: _Page, width: int | None, coded: int) -> int:
    """Return the bytes that a value of a page has: at most, or on average where every value is spelled out."""
    if width is not None:
        return width
    if page.encoding in _SPELLED_OUT:
        return page.decoded // max(page.values, 1) + 1
    return (coded if page.encoding in _DICTIONARY_CODED else page.decoded) + 1


def _longest_value(file: BinaryIO, column: Column, dictionary: _Page) -> int:
    """Return the bytes of the longest value of a dictionary, all of its bytes where it cannot be read here."""
    stored = _at(file, dictionary.at, dictionary.stored)
    try:
        codec = _CODECS[column.codec]
        body = pa.Codec(codec).decompress(stored, dictionary.decoded, asbytes=True) if codec else stored
    except (KeyError, ValueError, OSError):  # no such codec here, or broken: the decoder will say so
        return dictionary.decoded
    longest = at = 0
    while at + 4 <= len(body):
        size = int.from_bytes(body[at : at + 4], "little")
        longest = max(longest, size)
        at += 4 + size
    return min(longest, dictionary.decoded)


def _pages(file: BinaryIO, column: Column) -> Iterator[_Page]:
    """Yield the pages of a column chunk by their headers."""
    start, end = column.start, column.start + column.stored
    at, count = start, 0
    while at < end:
        page = _page(file, at, end)
        yield page
        at, count = page.at + page.stored, count + 1
        if count > PAGES:
            message = f"more than {PAGES} pages in a chunk"
            raise BadThriftError(message)


def _page(file: BinaryIO, at: int, end: int) -> _Page:
    for size in _HEADS:
        window = _at(file, at, min(size, end - at))
        try:
            fields, length = read_struct(window)
        except IndexError:
            continue
        return _known(fields, at + length)
    message = f"no page header at byte {at}"
    raise BadThriftError(message)


def _known(fields: dict[int, Any], body: int) -> _Page:
    kind, decoded, stored = (fields.get(place) for place in (1, 2, 3))
    inner = fields.get({_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}.get(kind if isinstance(kind, int) else -1, 0), {})
    values = inner.get(1, 0) if isinstance(inner, dict) else None
    encoding = inner.get(4 if kind == _DATA_V2 else 2, 0) if isinstance(inner, dict) else None
    page = (kind, stored, decoded, values, encoding)
    if not all(isinstance(number, int) and number >= 0 for number in page):
        message = f"no page header before byte {body}"
        raise BadThriftError(message)
    return _Page(*page, body)  # type: ignore[arg-type]  # whole numbers, as just checked


def _at(file: BinaryIO, at: int, size: int) -> bytes:
    if at < 0 or size <= 0:
        message = f"no page at byte {at}"
        raise BadThriftError(message)
    file.seek(at)
    return bytes(file.read(size))
