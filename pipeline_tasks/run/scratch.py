"""Pieces of buckets as objects under the root, for engines without a shuffle of their own.

A scatter task writes one object: the pieces of all buckets one after another, and where each bucket's end. These ends
are then turned into an index by bucket, of which a gather task reads its own part. So a group leaves as many objects as
it has scatter tasks, and its driver has a number for each of them, whatever the number of buckets
(docs/decisions/0055-the-shuffle.md).
"""

import contextlib
import io
import itertools
import os
import struct
import tempfile
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from pipeline_tasks.errors import StorageBusy
from pipeline_tasks.run.shuffle import gather, piece_batches, scatter
from pipeline_tasks.run.tasks.task import Outcome, StageIO, Task
from pipeline_tasks.stage import Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import CHUNK, Store

Places = npt.NDArray[np.int64]

_FRAME = struct.Struct("<QQQ")
"""What is before each Arrow stream: its bucket, its bytes, and their XXH3-64. S3 does not check parts of objects.

With the bucket, a place that is not where the pieces of a bucket end is seen, too.
"""

_PLACE = np.dtype("<i8")

_DIGEST = 8
"""Bytes of the XXH3-64 behind the places of a bucket in an index."""

INDEX_BYTES = 64 * 1024 * 1024
"""Bytes of the index that one task turns and writes."""

AHEAD = 8
"""Pieces that are requested at the same time, at most: fewer if their first `CHUNK` bytes are more than `2 * CHUNK`."""


class _Piece(NamedTuple):
    """Bytes [start, stop) of an object: one bucket's frames."""

    path: str
    bucket: int
    start: int
    stop: int


def new_scratch(stage_io: StageIO) -> str:
    """Return a folder for the pieces of one group; no other attempt has it, so each may remove its own."""
    return f"{stage_io.prefix}/scratch/{uuid.uuid4().hex}"


def remove_scratch(stage_io: StageIO, folder: str) -> None:
    """Remove the pieces of a group that is finished or has failed."""
    store = storage.connect(stage_io.root)
    store.delete_many([entry.path for entry in store.list(folder)])


# --- Writing --------------------------------------------------------------------------------------------------


def scatter_to_store(stage_io: StageIO, shards: Shards, by: str, buckets: int, folder: str, number: int) -> int:
    """Store the pieces of some shards as object `number` of the scratch `folder`; return its bytes.

    Object 0 has an empty piece for each bucket, so that no bucket lacks a schema.
    """
    frames: list[tuple[int, int, int]] = []
    with _temporary_file() as cut, _temporary_file() as sorted_:
        for bucket, rows, body in scatter(stage_io, shards, by, buckets):
            if rows or number == 0:
                frames.append((bucket, cut.tell(), _FRAME.size + len(body)))
                cut.write(_FRAME.pack(bucket, len(body), xxhash.xxh3_64_intdigest(body)))
                cut.write(body)
        cut.flush()
        by_bucket = sorted(frames, key=lambda frame: frame[0])  # stable: the pieces of a bucket stay in order
        whole = cut if by_bucket == frames else sorted_
        for _, start, length in by_bucket if whole is sorted_ else ():
            sorted_.write(os.pread(cut.fileno(), length, start))
        lengths = np.zeros(buckets, _PLACE)
        np.add.at(lengths, [bucket for bucket, _, _ in frames], [length for _, _, length in frames])
        whole.write(np.cumsum(lengths, dtype=_PLACE).tobytes())
        return _put(stage_io, _object(folder, number), whole)


def index_parts(objects: int, buckets: int) -> list[range]:
    """Return the buckets of each part of an index: all, unless that had more than `INDEX_BYTES`."""
    most = max(INDEX_BYTES // (2 * _PLACE.itemsize * max(objects, 1)), 1)
    return [range(start, min(start + most, buckets)) for start in range(0, buckets, most)]


def index_scratch(stage_io: StageIO, folder: str, sizes: Sequence[int], buckets: int, part: range) -> None:
    """Store where the pieces of some buckets are, bucket by bucket, given the bytes of each object."""
    store = storage.connect(stage_io.root)
    with ThreadPoolExecutor(AHEAD) as pool, _temporary_file() as file:
        read = partial(_read_places, store, folder, buckets, part)
        for places in np.stack(list(pool.map(read, range(len(sizes)), sizes)), axis=1):
            body = places.tobytes()
            file.write(body + xxhash.xxh3_64_digest(body))
        _put(stage_io, _index(folder, part), file)


def _read_places(store: Store, folder: str, buckets: int, part: range, number: int, size: int) -> Places:
    """Return where the pieces of some buckets start and stop in an object of `size` bytes."""
    first = size - (buckets - part.start) * _PLACE.itemsize  # where it says where the first of them ends
    before = _PLACE.itemsize if part.start else 0
    [body] = store.read_ranges(_object(folder, number), [(first - before, first + len(part) * _PLACE.itemsize)])
    ends = np.frombuffer(body if before else bytes(_PLACE.itemsize) + body, _PLACE)
    whole = size - buckets * _PLACE.itemsize
    if (ends[1:] < ends[:-1]).any() or ends[-1] > whole or (part.stop == buckets and ends[-1] != whole):
        raise _changed(_object(folder, number))
    return np.stack([ends[:-1], ends[1:]], axis=1)


def _put(stage_io: StageIO, path: str, file: IO[bytes]) -> int:
    """Store a temporary file, which may be moved; return its bytes."""
    size: int = file.tell()
    file.flush()
    storage.connect(stage_io.root).put_scratch(path, Path(file.name))
    return size


@contextlib.contextmanager
def _temporary_file() -> Iterator[IO[bytes]]:
    """Open a new file of this machine; it is removed at the end if it is still there."""
    with tempfile.NamedTemporaryFile(prefix="refinery-", suffix=".scratch", delete=False) as file:
        try:
            yield file
        finally:
            Path(file.name).unlink(missing_ok=True)


def _object(folder: str, number: int) -> str:
    return f"{folder}/{number}.pieces"


def _index(folder: str, part: range) -> str:
    return f"{folder}/{part.start}.index"


# --- Reading --------------------------------------------------------------------------------------------------


def gather_from_store(
    task: Task, folder: str, objects: int, buckets: int, bucket: int, by: str, order: Sequence[str]
) -> Outcome:
    """Read one bucket's pieces back from the `objects` of the scratch `folder`, and run the kernel over them."""
    store = storage.connect(task.io.root)
    places = _places_of(store, folder, objects, buckets, bucket)
    pieces = [
        _Piece(_object(folder, number), bucket, start, stop)
        for number, (start, stop) in enumerate(places)
        if start < stop
    ]
    return gather(task, itertools.chain.from_iterable(map(_batches_of, _opened(store, pieces))), by, order)


def _places_of(store: Store, folder: str, objects: int, buckets: int, bucket: int) -> list[list[int]]:
    """Return where a bucket's pieces start and stop in each object."""
    part = next(part for part in index_parts(objects, buckets) if bucket in part)
    length = 2 * _PLACE.itemsize * objects + _DIGEST
    start = (bucket - part.start) * length
    [row] = store.read_ranges(_index(folder, part), [(start, start + length)])
    body = row[:-_DIGEST]
    if xxhash.xxh3_64_digest(body) != row[-_DIGEST:]:
        raise _changed(_index(folder, part))
    places: list[list[int]] = np.frombuffer(body, _PLACE).reshape(objects, 2).tolist()
    return places


def _opened(store: Store, pieces: Sequence[_Piece]) -> Iterator["io.BufferedReader[_PieceFile]"]:
    """Yield pieces as files, in order, the first bytes of each read; those of the next ones are requested meanwhile."""
    if len(pieces) == 1:
        yield _open(store, pieces[0])
        return
    largest = max((min(CHUNK, piece.stop - piece.start) for piece in pieces), default=1)
    ahead = min(AHEAD, 2 * CHUNK // largest)
    with ThreadPoolExecutor(ahead) as pool:
        coming = deque(pool.submit(_open, store, piece) for piece in pieces[:ahead])
        for piece in pieces[ahead:]:
            file = coming.popleft().result()
            coming.append(pool.submit(_open, store, piece))
            yield file
        while coming:
            yield coming.popleft().result()


def _open(store: Store, piece: _Piece) -> "io.BufferedReader[_PieceFile]":
    file = io.BufferedReader(_PieceFile(store, piece), min(CHUNK, piece.stop - piece.start))
    file.peek(1)
    return file


class _PieceFile(io.RawIOBase):
    """A piece as a file that is read from front to back; each read is one request."""

    def __init__(self, store: Store, piece: _Piece) -> None:
        super().__init__()
        self.piece, self._store, self._at = piece, store, piece.start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 -- any writable buffer
        stop = min(self._at + len(buffer), self.piece.stop)
        if stop > self._at:
            [body] = self._store.read_ranges(self.piece.path, [(self._at, stop)])
            buffer[: len(body)] = body
        read, self._at = stop - self._at, stop
        return read


def _batches_of(file: "io.BufferedReader[_PieceFile]") -> Iterator[pa.RecordBatch]:
    """Yield the batches of a piece; StorageBusy if its bytes are not those that were written."""
    piece = file.raw.piece
    while header := file.read(_FRAME.size):
        bucket, length, digest = _FRAME.unpack(header.ljust(_FRAME.size, b"\0"))
        body = file.read(min(length, piece.stop - piece.start))
        if (bucket, length, digest) != (piece.bucket, len(body), xxhash.xxh3_64_intdigest(body)):
            raise _changed(piece.path)
        yield from piece_batches(body)


def _changed(path: str) -> StorageBusy:
    return StorageBusy(f"{path}: its bytes are not those that were written; it is tried again later")
