"""Opens tables of rows by their paths alone, as what looks at every object of a root finds them."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import Stored
from pipeline_tasks.store.protocol import Store, mismatch
from pipeline_tasks.store.shards.file import checked
from pipeline_tasks.store.shards.segment import Segment
from pipeline_tasks.text.base.key_pages import LENGTH

NAMED = 32
"""Digits of its digest that a shard is named by."""


TAIL = 8 * 1024
"""Bytes that are fetched of the end of a table: more than a footer of one row group, or the root of a small segment."""

_FOOTER = 8
"""Bytes behind the footer of a Parquet file: its length, and four letters."""


class Table(NamedTuple):
    """A table of rows in an object: what it is by path, bytes and digest, and the schema of its own columns."""

    shard: Shard
    schema: pa.Schema

    @property
    def is_segment(self) -> bool:
        """Whether its rows are sorted by a key, with an index over them."""
        return bool(self.shard.index_digest)

    @property
    def stored(self) -> Stored:
        """The object as the log of erasures names it."""
        return Stored(self.shard.path, self.shard.bytes, self.shard.digest, self.shard.index_digest)


def open_table(root: str, path: str) -> Table:
    """Return the table of an object; DigestMismatch if its name is not that of its bytes."""
    size, digest = storage.digest_of_file(f"{root}/{path}")
    if Path(path).name.partition(".")[0] != digest[:NAMED]:
        where, promised = f"{root}/{path}", Path(path).name.partition(".")[0]
        raise mismatch(where, promised, digest)
    if path.endswith(".segment"):
        shard = Shard(path, 0, size, digest, _index_digest(root, path, size))
        top = Segment(root, shard).root
        rows = sum(top.entries["rows"].to_pylist())
        return Table(Shard(path, rows, size, digest, shard.index_digest), top.schema)
    _, footer = End(storage.connect(root), path, size).footer()
    return Table(Shard(path, 0, size, digest), footer.schema.to_arrow_schema().with_metadata(footer.metadata))


class End:
    """The end of a table, of which as much is read as is asked for."""

    def __init__(self, store: Store, path: str, size: int) -> None:
        self._store, self._path, self.size = store, path, size
        self._bytes = b""

    def last(self, count: int) -> bytes:
        """Return the last bytes, so many."""
        have = len(self._bytes)
        if count > have:
            start = max(self.size - max(count, TAIL), 0)
            [body] = self._store.read_ranges(self._path, [(start, self.size - have)])
            self._bytes = body + self._bytes
        return self._bytes[-count:]

    def footer(self) -> tuple[int, pq.FileMetaData]:
        """Return the bytes from the footer of a Parquet file to its end, and what it says; ArrowInvalid for others."""
        length = int.from_bytes(self.last(_FOOTER)[:4], "little") + _FOOTER
        return length, pq.read_metadata(pa.BufferReader(self.last(length)))


def _index_digest(root: str, path: str, size: int) -> str:
    """Return the SHA-256 of the top page of a segment's index."""
    store = storage.connect(root)
    [tail] = store.read_ranges(path, [(size - LENGTH, size)])
    start = size - LENGTH - int.from_bytes(tail, "little")
    [body] = store.read_ranges(path, [(start, size - LENGTH)])
    return hashlib.sha256(body).hexdigest()


def own_rows(root: str, table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table with its own columns alone, or with some of them."""
    if table.is_segment:
        yield from (batch if columns is None else batch.select(columns) for batch in Segment(root, table.shard))
        return
    with checked(root, table.shard) as source:
        file = pq.ParquetFile(source, pre_buffer=False)
        for rank in range(file.metadata.num_row_groups):
            yield from file.read_row_group(rank, columns, use_threads=False).combine_chunks().to_batches()
