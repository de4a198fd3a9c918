"""Reads the record that opens an archive, in which a crawler says who it is and how it crawled."""

from typing import BinaryIO

from pipeline_tasks.landing.archives.header_fields import header_fields
from pipeline_tasks.landing.archives.record_header import HEAD_CAP, read_head
from pipeline_tasks.landing.decompression import GZIP, LZ4, GzipSource, Lz4Source, PlainSource, Reader
from pipeline_tasks.landing.zstd_frames import ZstdSource, is_zstd

BLOCK = 1 << 16
"""Bytes of the record's block that are read; a crawler says what there is to say in a kilobyte."""


def read_warcinfo(stream: BinaryIO) -> dict[str, str]:
    """Return the fields of the `warcinfo` record that a file begins with, by name in lower case; none without one.

    Only the beginning of the stream is read, whatever is around the records: gzip, Zstandard, LZ4 or nothing.
    """
    reader = _unpacked(Reader(PlainSource(stream)))
    reader.fill(HEAD_CAP)
    head = read_head(reader.data, reader.at)
    if head is None or head.fields.get("warc-type") != "warcinfo" or head.length < 0:
        return {}
    reader.fill(head.size + min(head.length, BLOCK))
    start = reader.at + head.size
    block = reader.data[start : start + min(head.length, BLOCK)]
    return header_fields(block.decode("utf-8", "replace").split("\n"))


def _unpacked(stored: Reader) -> Reader:
    start = stored.peek(8)
    if start.startswith(GZIP):
        return Reader(GzipSource(stored))
    if is_zstd(start):
        return Reader(ZstdSource(stored))
    return Reader(Lz4Source(stored)) if start.startswith(LZ4) else stored
