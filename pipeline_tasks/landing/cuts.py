"""Cuts a large landed file into pieces where a record begins, so that several tasks read it.

A piece is read like a file of its own and gives the rows that the whole file has there: a cut lies behind a sound
record, where what follows is recognized alone as what the file is. Cuts follow from the bytes of the file and from the
sizes of the snapshot's files, never from workers.
"""

import hashlib
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO, Literal, NamedTuple, cast

from pipeline_tasks.landing.archives.gzip_members import read_member, skip_record
from pipeline_tasks.landing.archives.record_stream import read_stream
from pipeline_tasks.landing.decompression import PlainSource, Reader
from pipeline_tasks.landing.formats import Layout, layout_of
from pipeline_tasks.landing.json_lines import line_end, skip_line

LEAST, MOST = 64 << 20, 1 << 30
"""Bytes of a piece, about: `extract` takes 20 seconds for the fewest, and five minutes for the most."""

MEDIANS = 4
"""A piece may have so many times the bytes of the median file."""

REACH = 64 << 20
"""Bytes behind damage in which nothing is cut: the reader of a damaged record may have looked that far ahead."""


_CAN_BE_CUT = re.compile(r"\.(?:w?arc|wet|wat)(?:\.gz)?\Z|\.(?:jsonl?|ndjson)\Z")
"""The end of a name that a file has, usually, if it can be cut."""

Passed = Literal["record", "damage", "other"]
"""What a walk has passed: a sound record, damage, or something behind which nothing is cut."""


class Piece(NamedTuple):
    """A part of a file: the byte at which it begins, its bytes, and its SHA-256."""

    start: int
    size: int
    digest: str


def piece_bytes(sizes: Iterable[int]) -> int:
    """Return how many bytes a piece of a file of a snapshot has, about, if the snapshot's files have these sizes."""
    median = statistics.median_low([*sizes] or [LEAST])
    return min(max(MEDIANS * median, LEAST), MOST)


def is_large(size: int, piece: int) -> bool:
    """Return whether a file is to be cut, if it can be."""
    return size >= 2 * piece


def foretold(name: str, size: int, piece: int) -> list[int]:
    """Return the bytes of the pieces that a file will have, as far as its name says what it is."""
    if not is_large(size, piece) or not _CAN_BE_CUT.search(name.rpartition("/")[2].lower()):
        return [size]
    count = size // piece
    return [size // count] * count


def cut(stream: BinaryIO, size: int, piece: int) -> tuple[str, list[Piece]]:
    """Return the SHA-256 of a file of `size` bytes, and its pieces of about `piece` bytes: one if nothing is cut."""
    hashed = _Hashed(stream)
    reader = Reader(PlainSource(cast("BinaryIO", hashed)))
    pieces = [hashed.piece_to(offset) for offset in _cuts(reader, hashed, size, piece)]
    while reader.fill(1):
        reader.skip(reader.ahead)
        hashed.advance(reader.offset)
    pieces.append(hashed.piece_to(reader.offset))
    return hashed.whole.hexdigest(), pieces


def _cuts(reader: Reader, hashed: "_Hashed", size: int, piece: int) -> Iterator[int]:
    """Yield where to cut: at least `piece` bytes from each other, half as many from the end, and not behind damage."""
    layout = layout_of(reader)
    if layout is None:
        return
    earliest = piece
    for passed in WALKS[layout](reader):
        at = reader.offset
        hashed.advance(at)
        if passed == "damage":
            earliest = max(earliest, at + REACH)
        elif passed == "record" and earliest <= at <= size - piece // 2 and _is_recognized(reader, layout):
            yield at
            earliest = at + piece


def _is_recognized(reader: Reader, layout: Layout) -> bool:
    """Return whether what is ahead, alone, is read as the file is; a line must not begin with blanks, which count."""
    return layout_of(reader) == layout and (layout != "lines" or reader.peek(1) == b"{")


# --- Walking --------------------------------------------------------------------------------------------------


def _members(reader: Reader) -> Iterator[Passed]:
    """Pass gzip members; sound ones are inflated and not parsed."""
    while reader.fill(1):
        if skip_record(reader):
            yield "record"
        else:
            yield "damage" if any(row.error for row in read_member(reader, "")) else "other"


def _records(reader: Reader) -> Iterator[Passed]:
    """Pass archive records."""
    for row in read_stream(reader, ""):
        yield "damage" if row.error else "record"


def _lines(reader: Reader) -> Iterator[Passed]:
    """Pass lines: each ends at a line feed, whatever is in it."""
    while reader.fill(1):
        end = line_end(reader)
        if end is None:
            skip_line(reader)
            yield "other"
            continue
        line = reader.data[reader.at : end]
        reader.at = end
        yield "record" if line.endswith(b"\n") and line.strip() else "other"


WALKS: Mapping[Layout, Callable[[Reader], Iterator[Passed]]] = {
    "members": _members,
    "records": _records,
    "lines": _lines,
}


# --- Digests --------------------------------------------------------------------------------------------------


class _Hashed:
    """A stream that hashes what is read through it, as a whole and by pieces; it keeps what no piece has yet."""

    def __init__(self, stream: BinaryIO) -> None:
        self.whole = hashlib.sha256()
        self._stream = stream
        self._waiting = bytearray()
        self._piece, self._start, self._at = hashlib.sha256(), 0, 0

    def read(self, size: int, /) -> bytes:
        """Read as the wrapped stream does."""
        chunk = self._stream.read(size)
        self.whole.update(chunk)
        self._waiting += chunk
        return chunk

    def advance(self, offset: int) -> None:
        """Add everything up to `offset` to the piece: no earlier place will be cut."""
        count = offset - self._at
        self._piece.update(memoryview(self._waiting)[:count])
        del self._waiting[:count]
        self._at = offset

    def piece_to(self, offset: int) -> Piece:
        """Return the piece that ends at `offset`, and begin the next."""
        self.advance(offset)
        piece = Piece(self._start, offset - self._start, self._piece.hexdigest())
        self._piece, self._start = hashlib.sha256(), offset
        return piece
