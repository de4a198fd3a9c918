"""Opens a file of a source as a stream of its content, however it is compressed: damage is refused."""

import bz2
import contextlib
import io
from collections.abc import Iterator
from typing import BinaryIO, cast

from pipeline_tasks.errors import ContractError, SnapshotIncomplete
from pipeline_tasks.landing.decompression import GZIP, LZ4, GzipSource, Lz4Source, PlainSource, Reader, Source
from pipeline_tasks.landing.zstd_frames import ZstdSource, is_zstd
from refinery_sources.admission import open_file

BZ2 = b"BZh"

PACKED = (".gz", ".bz2", ".zst", ".lz4")
"""Endings of names of compressed files; the first bytes decide."""


class _Content(io.RawIOBase):
    """The bytes of a source that ends early with damage, as a stream that raises ContractError there."""

    def __init__(self, source: Source, uri: str) -> None:
        self._reader, self._source, self._uri = Reader(source), source, uri

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._reader.read(len(buffer))
        if not data and self._source.damage is not None:
            message = f"{self._uri} is damaged at byte {self._source.damage_offset:,} ({self._source.damage})"
            raise ContractError(message)
        buffer[: len(data)] = data
        return len(data)


@contextlib.contextmanager
def content_of(uri: str, named: str = "") -> Iterator[BinaryIO]:
    """Open the content of a file; ContractError where it is damaged, SnapshotIncomplete if there is no such file."""
    try:
        with open_file(uri, named) as stored:
            yield unpacked(stored, uri)
    except FileNotFoundError as error:
        message = f"{uri} is gone since it was listed; run the same command again"
        raise SnapshotIncomplete(message) from error


def unpacked(stored: BinaryIO, uri: str) -> BinaryIO:
    """Return the content of a stored file as a stream of its own."""
    start = stored.read(len(LZ4))
    stored.seek(0)
    if start.startswith(BZ2):
        return cast("BinaryIO", io.BufferedReader(_Bzip2(stored, uri), 1 << 20))
    reader = Reader(PlainSource(stored))
    source: Source = reader.source
    if start.startswith(GZIP):
        source = GzipSource(reader)
    elif is_zstd(start):
        source = ZstdSource(reader)
    elif start.startswith(LZ4):
        source = Lz4Source(reader)
    return cast("BinaryIO", io.BufferedReader(_Content(source, uri), 1 << 20))


class _Bzip2(io.RawIOBase):
    def __init__(self, stored: BinaryIO, uri: str) -> None:
        self._file, self._uri = bz2.BZ2File(stored), uri

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._file.read(len(buffer))
        except (EOFError, OSError) as error:
            message = f"{self._uri} is damaged: its bzip2 stream is cut or broken"
            raise ContractError(message) from error
        buffer[: len(data)] = data
        return len(data)
