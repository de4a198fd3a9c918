"""Reads landed bytes front to back: a buffered reader, and decompressors that stop at damage instead of raising."""

import io
import re
import tempfile
from collections.abc import Callable
from typing import BinaryIO, Protocol, cast

import pyarrow as pa
from zlib_ng import zlib_ng

CHUNK = 1 << 20
STEP = 1 << 16  # compressed bytes offered to zlib at once: unused bytes are copied, so not too many
RATIO = 200  # more output than this per input byte is a bomb (HTML compresses 4-10 times)
BOMB_FLOOR = 1 << 30  # a stream may reach this before its ratio counts
GZIP = b"\x1f\x8b"
DEFLATE_ERROR = cast("type[Exception]", zlib_ng.error)  # its stub says that it is an instance
Starts = re.Pattern[bytes]
RECORD_STARTS = re.compile(rb"WARC/|https?://|filedesc://|dns:")
GZIP_WINDOW = 31  # what zlib takes for gzip with the largest window
_MEMBER = GZIP + b"\x08"  # a gzip header: DEFLATE is the only method
LZ4 = b"\x04\x22\x4d\x18"
COPY_IN_MEMORY = 64 << 20
REPLAY_CAP = 4 << 30
"""Bytes of one file that are read again behind wrong lengths."""

_PIECE = 1 << 12  # bytes of output that damage behind them may cost: Arrow's stream drops what it was about to return


class Source(Protocol):
    """What a reader reads from: bytes, and if they ended early, why and at which byte of the stored file."""

    damage: str | None
    damage_offset: int

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, empty at the end or at damage."""

    def resume(self, starts: Starts, /) -> bool:
        """Go on behind the damage, where compressed content `starts`; False where nothing readable is left."""


class PlainSource:
    """The stored bytes themselves."""

    def __init__(self, stream: BinaryIO) -> None:
        """Read from `stream`; its own I/O errors pass through."""
        self.stream = stream
        self.damage: str | None = None
        self.damage_offset = 0

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, empty only at the end."""
        data: bytes | None = self.stream.read(size)
        return bytes(data) if data else b""

    def resume(self, _starts: Starts, /) -> bool:
        """Return False: stored bytes have no damage of their own to skip."""
        return False


class BytesSource:
    """Bytes in memory."""

    damage: str | None = None
    damage_offset = 0

    def __init__(self, data: bytes) -> None:
        """Read `data` from its start."""
        self.data = data

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, empty only at the end."""
        part, self.data = self.data[:size], self.data[size:]
        return part

    def resume(self, _starts: Starts, /) -> bool:
        """Return False: bytes in memory have no damage to skip."""
        return False


class ReplayedSource:
    """Bytes that were read before, then the source that they came from."""

    def __init__(self, source: Source) -> None:
        """Read `source`, unless something is put back."""
        self.source = source
        self.damage: str | None = None
        self.damage_offset = 0
        self._parts: list[BinaryIO] = []

    def put_back(self, *parts: BinaryIO) -> None:
        """Read `parts`, each from where it is, before all that is left."""
        self._parts[:0] = parts
        self.damage, self.damage_offset = None, 0

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, empty at the end or at damage."""
        while self._parts:
            if part := self._parts[0].read(size):
                return part
            self._parts.pop(0).close()
        part = self.source.read(size)
        self.damage, self.damage_offset = self.source.damage, self.source.damage_offset
        return part

    def resume(self, starts: Starts, /) -> bool:
        """Go on behind the damage of the source."""
        is_resumed = self.source.resume(starts)
        self.damage, self.damage_offset = self.source.damage, self.source.damage_offset
        return is_resumed


class Reader:
    """A window over a source: `data[at:]` is what comes next, `offset` is where that is in the source."""

    def __init__(self, source: Source) -> None:
        """Start at byte 0 of `source`."""
        self.source = source
        self.data = b""
        self.at = 0
        self.base = 0  # offset in the source of data[0]
        self.ended = False
        self._replayed = 0

    @property
    def offset(self) -> int:
        """Offset in the source of the next byte."""
        return self.base + self.at

    @property
    def ahead(self) -> int:
        """Bytes of the window that have not been read."""
        return len(self.data) - self.at

    def fill(self, size: int) -> bool:
        """Fill the window to `size` bytes ahead; False where the source ends before."""
        if self.ahead >= size:
            return True
        if self.ended:
            return False
        parts, filled = [self.data[self.at :]], self.ahead
        while filled < size and not self.ended:
            part = self.source.read(max(CHUNK, min(size - filled, 8 * CHUNK)))
            self.ended = not part
            parts.append(part)
            filled += len(part)
        self.base += self.at
        self.data = b"".join(parts)
        self.at = 0
        return filled >= size

    def peek(self, size: int) -> bytes:
        """Return up to `size` bytes, which stay ahead."""
        self.fill(size)
        return self.data[self.at : self.at + size]

    def skip(self, size: int) -> int:
        """Skip `size` bytes without keeping them; return how many there were."""
        left = size
        while left:
            step = min(left, self.ahead)
            self.at += step
            left -= step
            if left and not self.fill(1):
                break
        return size - left

    def copy(self, size: int) -> BinaryIO:
        """Pass up to `size` bytes; return a copy of them, in TMPDIR if it is large."""
        copy = cast("BinaryIO", tempfile.SpooledTemporaryFile(COPY_IN_MEMORY, prefix="refinery-"))  # noqa: SIM115 -- put back
        left = size
        while left and self.fill(1):
            step = min(left, self.ahead)
            copy.write(memoryview(self.data)[self.at : self.at + step])
            self.at += step
            left -= step
        return copy

    def put_back(self, copy: BinaryIO) -> bool:
        """Read what was passed last again, out of the copy of it; False once `REPLAY_CAP` bytes of a file were.

        A file of wrong lengths may ask for it at each record.
        """
        size = copy.tell()
        self._replayed += size
        if self._replayed > REPLAY_CAP:
            copy.close()
            return False
        copy.seek(0)
        if not isinstance(self.source, ReplayedSource):
            self.source = ReplayedSource(self.source)
        self.source.put_back(copy, io.BytesIO(self.data[self.at :]))
        self.data, self.at, self.base, self.ended = b"", 0, self.offset - size, False
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes (all that is left for -1)."""
        if size < 0:
            parts = []
            while self.fill(1):
                parts.append(self.data[self.at :])
                self.at = len(self.data)
            return b"".join(parts)
        self.fill(min(size, CHUNK) or 1)
        part = self.data[self.at : self.at + size]
        self.at += len(part)
        return part

    def resume(self, starts: Starts = RECORD_STARTS) -> bool:
        """Go on behind damage of the source, if it can."""
        self.ended = not self.source.resume(starts)
        return not self.ended


class GzipSource:
    """The output of all gzip members of a file, one after another, or of those of a run of them."""

    def __init__(self, stored: Reader, *, is_run: bool = False) -> None:
        """Start at the first member, which is next in `stored`.

        With `is_run`, end at damage, or before the next member that starts a record.
        """
        self.stored = stored
        self._is_run = is_run
        self.damage: str | None = None
        self.damage_offset = 0
        self._zlib = zlib_ng.decompressobj(GZIP_WINDOW)
        self._started = False
        self._out = 0
        self._in = 0

    def read(self, size: int, /) -> bytes:
        """Return at most `size` inflated bytes, empty at the end or at damage (then `damage` says which)."""
        while self.damage is None:
            if self._zlib.eof and self._is_run and not goes_on(self.stored):
                return b""
            if self._zlib.eof:
                self._start_member()
            if not self.stored.fill(STEP) and not self.stored.ahead and not self._started:
                return b""
            out = self._inflate(size)
            if out:
                return out
        return b""

    def _start_member(self) -> None:
        self._zlib = zlib_ng.decompressobj(GZIP_WINDOW)
        self._started = False

    def _inflate(self, size: int) -> bytes:
        """Inflate the next piece; empty where it gives nothing, or where `damage` is set."""
        piece = memoryview(self.stored.data)[self.stored.at : self.stored.at + STEP]
        try:
            out = self._zlib.decompress(piece, size)
        except DEFLATE_ERROR:
            self._stop("gzip_corrupt")
            return b""
        used = consumed(self._zlib, len(piece))
        self.stored.at += used
        self._started = True
        self._in += used
        self._out += len(out)
        if self._out > BOMB_FLOOR and self._out > RATIO * self._in:
            self._stop("bomb")
            return b""
        if not out and not used and not self._zlib.eof:
            self._stop("gzip_truncated")
        return out

    def _stop(self, why: str) -> None:
        self.damage, self.damage_offset = why, self.stored.offset

    def resume(self, starts: Starts, /) -> bool:
        """Go on at the next member whose output starts so."""
        if self.damage is None or self._is_run or not seek_member(self.stored, starts):
            return False
        self.damage = None
        self._start_member()
        return True


class Lz4Source:
    """The output of an LZ4 file, all its frames one after another."""

    def __init__(self, stored: Reader) -> None:
        """Start at the first frame, which is next in `stored`."""
        self.damage: str | None = None
        self.damage_offset = 0
        self._file = _ArrowFile(stored)
        self._out = 0
        self._stream = pa.CompressedInputStream(pa.PythonFile(self._file, mode="r"), "lz4")

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, empty at the end or at damage; errors of the stream below pass through."""
        parts: list[bytes] = []
        for _ in range(min(size, CHUNK) // _PIECE):
            part = self._piece() if self.damage is None else b""
            if not part:
                break
            parts.append(part)
        return b"".join(parts)

    def _piece(self) -> bytes:
        try:
            out: bytes = self._stream.read(_PIECE)
        except (pa.ArrowException, OSError) as error:
            if self._file.failure is not None:
                raise self._file.failure from error
            self._stop(f"lz4_{'truncated' if 'runcated' in str(error) else 'corrupt'}")
            return b""
        self._out += len(out)
        if self._out > BOMB_FLOOR and self._out > RATIO * self._file.stored.offset:
            self._stop("bomb")
            return b""
        return out

    def _stop(self, why: str) -> None:
        self.damage, self.damage_offset = why, self._file.stored.offset

    def resume(self, _starts: Starts, /) -> bool:
        """Return False: the header of a next frame cannot be recognized for certain."""
        return False


class _ArrowFile:
    """A reader as Arrow wants files, which keeps what the stream below raised."""

    closed = False

    def __init__(self, stored: Reader) -> None:
        self.stored = stored
        self.failure: Exception | None = None

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self.stored.read(size)
        except Exception as error:  # kept whatever it is: Arrow replaces it by one of its own
            self.failure = error
            raise

    def close(self) -> None:
        self.closed = True


class Inflater(Protocol):
    """A decompression object of zlib, with the input that it has not used."""

    @property
    def eof(self) -> bool:
        """Whether the member ended."""

    @property
    def unused_data(self) -> bytes:
        """Input behind the end."""

    @property
    def unconsumed_tail(self) -> bytes:
        """Input that the bound on output left over."""


def consumed(inflater: Inflater, size: int) -> int:
    """Return how much of the last `size` bytes was used; at the end, zlib may name the same rest in both places."""
    return size - len(inflater.unused_data if inflater.eof else inflater.unconsumed_tail)


def seek_member(stored: Reader, starts: Starts = RECORD_STARTS) -> bool:
    """Skip the next byte, and go on to the next gzip member whose output starts like a record, or so."""
    return seek(stored, _MEMBER, lambda stored: starts_member(stored, starts))


def seek(stored: Reader, mark: bytes, is_it: Callable[[Reader], bool]) -> bool:
    """Skip the next byte, and go on to the next `mark` where `is_it`; to the end, and return False, without one."""
    stored.skip(1)
    while stored.fill(len(mark)):
        at = stored.data.find(mark, stored.at)
        if at < 0:
            stored.skip(stored.ahead - len(mark) + 1)
            if not stored.fill(len(mark)):
                break
            continue
        stored.at = at
        if is_it(stored):
            return True
        stored.at += 1
    stored.skip(stored.ahead)
    return False


def starts_member(stored: Reader, starts: Starts = RECORD_STARTS) -> bool:
    """Return whether a gzip member starts here that holds a WARC or ARC record, or whose output starts so."""
    return starts.match(inflated_start(stored)) is not None


def goes_on(stored: Reader) -> bool:
    """Return whether a gzip member starts here that goes on with the record of the one before."""
    start = inflated_start(stored)
    return bool(start) and RECORD_STARTS.match(start) is None


def inflated_start(stored: Reader, size: int = 16) -> bytes:
    """Inflate the first `size` bytes of the gzip member that starts here, without passing it; empty if none does."""
    stored.fill(STEP)
    try:
        return zlib_ng.decompressobj(GZIP_WINDOW).decompress(
            memoryview(stored.data)[stored.at : stored.at + STEP], size
        )
    except DEFLATE_ERROR:
        return b""
