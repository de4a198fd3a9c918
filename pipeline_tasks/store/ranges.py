"""Reads ranges of an object in a bucket: several at once, near ones by one request; and an object as a file."""

import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from pipeline_tasks.store.protocol import MERGE_GAP, PARALLEL_REQUESTS


def read_merged(read: Callable[[int, int], bytes], ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return bytes [start, stop) for each range, by as few calls of `read` as small gaps allow."""
    spans, span_of = _merged(ranges)
    with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
        bodies = list(pool.map(lambda span: read(*span), spans))
    return [
        bodies[span][start - spans[span][0] : stop - spans[span][0]]
        for span, (start, stop) in zip(span_of, ranges, strict=True)
    ]


def _merged(ranges: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """Join ranges with small gaps between them; return the spans to request, and the span that has each range."""
    spans: list[tuple[int, int]] = []
    span_of: list[int] = []
    for start, stop in ranges:
        if spans and 0 <= start - spans[-1][1] <= MERGE_GAP:
            spans[-1] = (spans[-1][0], stop)
        else:
            spans.append((start, stop))
        span_of.append(len(spans) - 1)
    return spans, span_of


class Ranged(Protocol):
    """A store that returns bytes [start, stop) of an object."""

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """Return one range; DigestMismatch if the object ends before it."""


class RangeReader(io.RawIOBase):
    """An object as a seekable file; each read is one ranged GET, checked for its length."""

    def __init__(self, store: Ranged, path: str, size: int) -> None:
        super().__init__()
        self._store, self._path, self._size, self._at = store, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readall(self) -> bytes:
        body = bytearray(max(self._size - self._at, 0))
        self.readinto(body)
        return bytes(body)

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 -- any writable buffer
        stop = min(self._at + len(buffer), self._size)
        if stop <= self._at:
            return 0
        body = self._store.read_range(self._path, self._at, stop)
        buffer[: len(body)] = body
        self._at = stop
        return len(body)
