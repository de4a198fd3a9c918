"""Forward-only reading of landed bytes: a buffered window, and decompressors that stop at damage instead of raising."""

import zlib
from typing import BinaryIO, Protocol

import pyarrow as pa

CHUNK = 1 << 20
STEP = 1 << 16  # compressed bytes offered to zlib at once: what it leaves unused is copied, so not too many
RATIO = 200  # more output than this per input byte is a bomb (RELIABILITY of crawls: HTML compresses 4-10 times)
BOMB_FLOOR = 1 << 30  # a stream may reach this before its ratio is judged


class Source(Protocol):
    """What a tape reads from: bytes, and why they ended early."""

    damage: str | None
    where: int

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, empty at the end or at damage."""

    def resume(self) -> bool:
        """Go on behind the damage; False where nothing readable is left."""


class Plain:
    """The stored bytes themselves."""

    def __init__(self, stream: BinaryIO) -> None:
        """Read from `stream`; its own I/O errors pass through."""
        self.stream = stream
        self.damage: str | None = None
        self.where = 0

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, empty only at the end."""
        data: bytes | None = self.stream.read(size)
        return bytes(data) if data else b""

    def resume(self) -> bool:
        """Tell that stored bytes have no damage of their own to skip."""
        return False


class Tape:
    """A window over a source: `data[at:]` is what lies ahead, `offset` is where that is in the source."""

    def __init__(self, source: Source) -> None:
        """Start at byte 0 of `source`."""
        self.source = source
        self.data = b""
        self.at = 0
        self.base = 0  # offset in the source of data[0]
        self.ended = False

    @property
    def offset(self) -> int:
        """Offset in the source of the next byte."""
        return self.base + self.at

    @property
    def ahead(self) -> int:
        """Bytes in the window that have not been passed."""
        return len(self.data) - self.at

    def need(self, size: int) -> bool:
        """Have `size` bytes ahead; False where the source ends before (all that is left is then ahead)."""
        if self.ahead >= size:
            return True
        if self.ended:
            return False
        parts, have = [self.data[self.at :]], self.ahead
        while have < size and not self.ended:
            part = self.source.read(max(CHUNK, min(size - have, 8 * CHUNK)))
            self.ended = not part
            parts.append(part)
            have += len(part)
        self.base += self.at
        self.data = b"".join(parts)
        self.at = 0
        return have >= size

    def peek(self, size: int) -> bytes:
        """Return up to `size` bytes without passing them."""
        self.need(size)
        return self.data[self.at : self.at + size]

    def skip(self, size: int) -> int:
        """Pass `size` bytes without keeping them; return how many there were."""
        left = size
        while left:
            step = min(left, self.ahead)
            self.at += step
            left -= step
            if left and not self.need(1):
                break
        return size - left

    def read(self, size: int = -1, /) -> bytes:
        """Return and pass up to `size` bytes (all that is left for -1)."""
        if size < 0:
            parts = []
            while self.need(1):
                parts.append(self.data[self.at :])
                self.at = len(self.data)
            return b"".join(parts)
        self.need(min(size, CHUNK) or 1)
        part = self.data[self.at : self.at + size]
        self.at += len(part)
        return part

    def resume(self) -> bool:
        """Go on behind damage of the source, if it can."""
        self.ended = not self.source.resume()
        return not self.ended


class Gunzip:
    """The output of all gzip members of a tape, one after another."""

    def __init__(self, raw: Tape) -> None:
        """Start at the first member, which `raw` stands at."""
        self.raw = raw
        self.damage: str | None = None
        self.where = 0
        self._zlib = zlib.decompressobj(31)
        self._started = False
        self._out = 0
        self._in = 0

    def read(self, size: int, /) -> bytes:
        """Return at most `size` inflated bytes, empty at the end or at damage (then `damage` says which)."""
        while self.damage is None:
            if self._zlib.eof:
                self._zlib = zlib.decompressobj(31)
                self._started = False
            if not self.raw.need(STEP) and not self.raw.ahead and not self._started:
                return b""
            piece = memoryview(self.raw.data)[self.raw.at : self.raw.at + STEP]
            try:
                out = self._zlib.decompress(piece, size)
            except zlib.error:
                self._stop("gzip_corrupt")
                continue
            used = consumed(self._zlib, len(piece))
            self.raw.at += used
            self._started = True
            self._in += used
            self._out += len(out)
            if self._out > BOMB_FLOOR and self._out > RATIO * self._in:
                self._stop("bomb")
            elif out:
                return out
            elif not used and not self._zlib.eof:
                self._stop("gzip_truncated")
        return b""

    def _stop(self, why: str) -> None:
        self.damage, self.where = why, self.raw.offset

    def resume(self) -> bool:
        """Go on at the next member whose output starts like a record."""
        if self.damage is None or not seek_member(self.raw):
            return False
        self.damage = None
        self._zlib = zlib.decompressobj(31)
        self._started = False
        return True


class Unpack:
    """The output of a Zstandard or LZ4 file, all its frames one after another."""

    def __init__(self, raw: Tape, codec: str) -> None:
        """Start at the first frame, which `raw` stands at; `codec` is an Arrow codec name."""
        self.damage: str | None = None
        self.where = 0
        self._codec = codec
        self._guard = _Guard(raw)
        self._out = 0
        self._stream = pa.CompressedInputStream(pa.PythonFile(self._guard, mode="r"), codec)

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, empty at the end or at damage; errors of the stream below pass through."""
        if self.damage is not None:
            return b""
        try:
            out: bytes = self._stream.read(min(size, CHUNK))
        except (pa.ArrowException, OSError) as error:
            if self._guard.failure is not None:
                raise self._guard.failure from error
            self._stop(f"{self._codec}_{'truncated' if 'runcated' in str(error) else 'corrupt'}")
            return b""
        self._out += len(out)
        if self._out > BOMB_FLOOR and self._out > RATIO * self._guard.raw.offset:
            self._stop("bomb")
            return b""
        return out

    def _stop(self, why: str) -> None:
        self.damage, self.where = why, self._guard.raw.offset

    def resume(self) -> bool:
        """Tell that frames have no header that could be found again for sure."""
        return False


class _Guard:
    """A tape as Arrow wants files, which remembers what the stream below raised."""

    closed = False

    def __init__(self, raw: Tape) -> None:
        self.raw = raw
        self.failure: Exception | None = None

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self.raw.read(size)
        except Exception as error:
            self.failure = error
            raise

    def close(self) -> None:
        self.closed = True


class Inflater(Protocol):
    """What zlib's decompression objects tell of the input that they have not used."""

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


def seek_member(raw: Tape) -> bool:
    """Move `raw` past its next byte to the next gzip member whose output starts like a record."""
    raw.skip(1)
    while raw.need(3):
        found = raw.data.find(b"\x1f\x8b\x08", raw.at)
        if found < 0:
            raw.skip(raw.ahead - 2)
            if not raw.need(3):
                break
            continue
        raw.at = found
        if starts_member(raw):
            return True
        raw.at += 1
    raw.skip(raw.ahead)
    return False


def starts_member(raw: Tape) -> bool:
    """Tell whether a gzip member that holds a WARC or ARC record starts here."""
    return inflated_start(raw).startswith((b"WARC/", b"http://", b"https://", b"filedesc://", b"dns:"))


def inflated_start(raw: Tape, size: int = 16) -> bytes:
    """Inflate the first `size` bytes of the gzip member that starts here, without passing it; empty if none does."""
    raw.need(STEP)
    try:
        return zlib.decompressobj(31).decompress(memoryview(raw.data)[raw.at : raw.at + STEP], size)
    except zlib.error:
        return b""
