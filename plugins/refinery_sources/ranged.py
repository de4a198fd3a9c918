"""Reads ranges of a file at its source, within the budget of its host."""

import io
import re
from typing import TYPE_CHECKING

from pipeline_tasks.errors import ContractError, RecipeError, SourceBusy
from refinery_sources.download import NUMBER
from refinery_sources.web import Web, answered, tried

if TYPE_CHECKING:
    import httpx

TAIL = 64 * 1024
"""Bytes at the end of a file that are read at once: the footer of a Parquet file is most often in them."""

PARTIAL = 206

_CONTENT_RANGE = re.compile(f"bytes ({NUMBER})-({NUMBER})/({NUMBER})")


def read_range(on: Web, url: str, start: int, stop: int) -> bytes:
    """Return the bytes `start` to `stop` of a file, tried again while the source is busy.

    ContractError if the source sends others; RecipeError if it sends no ranges.
    """
    return tried(on, lambda: _range(on, url, f"{start}-{stop - 1}", stop - start)[0])


def _range(on: Web, url: str, span: str, size: int) -> tuple[bytes, int, str]:
    """Return the body of a range of at most `size` bytes, the bytes of the whole file, and its ETag."""
    with answered(on, url, headers={"Range": f"bytes={span}"}) as response:
        total = _total(response, url, span)
        body, budget = bytearray(), on.budget(url)
        for chunk in response.iter_raw():
            budget.spend(len(chunk))
            body += chunk
            if len(body) > size:
                break
    expected = min(size, total)
    if len(body) != expected:
        message = f"{url}: {len(body):,} of {expected:,} bytes of the range {span} came; try again later"
        raise SourceBusy(message)
    return bytes(body), total, response.headers.get("ETag", "")


def _total(response: "httpx.Response", url: str, span: str) -> int:
    """Return the bytes of the whole file by the header of a range, which has to be the one that was asked for."""
    if response.status_code != PARTIAL:
        message = f"{url} was asked for a range and answered with {response.status_code}; name a mirror that has ranges"
        raise RecipeError(message)
    header = response.headers.get("Content-Range", "")
    match = _CONTENT_RANGE.fullmatch(header)
    first, last = span.split("-")
    is_asked = match and (not first or match[1] == first) and (first == "" or not last or match[2] == last)
    if match is None or not is_asked:
        message = f"{url} was asked for the bytes {span} and answered with {header[:100]!a}; name another mirror"
        raise ContractError(message)
    return int(match[3])


class RangedFile(io.RawIOBase):
    """A file at its source, as a stream that reads ranges; ContractError if the file changes meanwhile.

    A library that reads it may replace an error by one of its own: `error` is the first that was raised here.
    """

    def __init__(self, on: Web, url: str) -> None:
        self._on, self._url, self._at = on, url, 0
        self.error: Exception | None = None
        self._tail, self._size, self._etag = tried(on, lambda: _range(on, url, f"-{TAIL}", TAIL))

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can be read anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, and return it."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes: all that were asked for, unless the file ends."""
        stop = self._size if size is None or size < 0 else min(self._at + size, self._size)
        start, self._at = self._at, max(stop, self._at)
        tail_at = self._size - len(self._tail)
        if start >= stop:
            return b""
        if start >= tail_at:
            return self._tail[start - tail_at : stop - tail_at]
        try:
            return self._read(start, stop)
        except Exception as error:
            self.error = self.error or error
            raise

    def _read(self, start: int, stop: int) -> bytes:
        body, size, etag = tried(self._on, lambda: _range(self._on, self._url, f"{start}-{stop - 1}", stop - start))
        if (size, etag) != (self._size, self._etag):
            message = f"{self._url} has changed while it was read; run the same command again"
            raise ContractError(message)
        return body
