"""Writes segments: sorted rows in small pages, with an index of pages above them (see `segment`)."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.shards.names import Names
from pipeline_tasks.store.shards.row_groups import RowGroups, no_space
from pipeline_tasks.text.base.key_filter import Hashes, filter_of, key_hashes, may_filter
from pipeline_tasks.text.base.key_pages import CODEC, FILTERED, LENGTH

PAGE_ROWS = 128
PAGE_BYTES = 16 * 1024
"""A page ends at the first row that reaches either bound, so its borders follow from the rows alone. A key costs one
page of rows and one of each index level that is not cached, so small pages make a day's cost small: 128 band keys are
about 5 kB as stored, and the index over them adds 1 %."""

BUFFER = 1024 * 1024
"""Bytes that are written at once: about a hundred pages."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=3), use_threads=False)

pc: Any = pyarrow.compute


class SegmentWriter:
    """Collects sorted batches into one segment; the same rows give the same bytes however they were batched."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str]) -> None:
        self.rows = 0
        self.schema = schema.remove_metadata()
        self._keys = tuple(keys)
        self._groups = RowGroups(PAGE_ROWS, PAGE_BYTES)
        self._last: pa.RecordBatch | None = None
        self._levels: list[list[dict[str, Any]]] = [[]]
        self._at = 0
        self._hashes: list[Hashes] = []
        self._unhashed: list[pa.Array] = []
        self._names = Names(self.schema)
        self._has_filter = may_filter(self.schema.field(self._keys[0]).type)
        handle, name = tempfile.mkstemp(prefix="refinery-", suffix=".segment")
        self._local = Path(name)
        self._file = os.fdopen(handle, "wb", BUFFER)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch's rows; ContractError if its keys are not in order after all before it."""
        if batch.num_rows == 0:
            return
        batch = pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
        self._check_order(batch)
        if self._has_filter:
            self._unhashed.append(batch.column(self._keys[0]).unique())
            if len(self._levels) > 1:
                self._hash()
        self._names.add(batch)
        for group in self._groups.add(batch):
            self._page(group)
        self.rows += batch.num_rows

    def _hash(self) -> None:
        """Hash the keys that wait for it: a segment without levels below its root has no filter."""
        self._hashes += map(key_hashes, self._unhashed)
        self._unhashed.clear()

    def _check_order(self, batch: pa.RecordBatch) -> None:
        columns = batch.select(self._keys)
        both = [self._last, columns] if self._last is not None else [columns]
        rows = pa.Table.from_batches(both).combine_chunks()
        ascends = pa.array(np.ones(max(rows.num_rows - 1, 0), bool))
        for column in reversed(rows.columns):
            before, after = column.slice(0, rows.num_rows - 1), column.slice(1)
            ascends = pc.or_(pc.less(before, after), pc.and_(pc.equal(before, after), ascends))
        if any(column.null_count for column in rows.columns) or not pc.all(ascends, min_count=0).as_py():
            message = f"rows of history by {', '.join(self._keys)} are not sorted by them; group by them before"
            raise ContractError(message)
        self._last = columns.slice(batch.num_rows - 1)

    def _page(self, group: Sequence[pa.RecordBatch]) -> None:
        page = compact(group)
        keys = page.column(self._keys[0])
        self._add(0, page, {"first": keys[0].as_py(), "last": keys[-1].as_py(), "rows": page.num_rows})

    def _add(self, level: int, page: pa.RecordBatch, content: dict[str, Any]) -> None:
        """Write a page, and its entry into the level above, which is written in turn when it has a page full."""
        body = _encoded(page)
        entry = {**content, "at": self._at, "bytes": len(body), "digest": hashlib.sha256(body).digest()}
        self._put(body)
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(entry)
        if len(self._levels[level]) == PAGE_ROWS:
            self._lift(level)

    def _lift(self, level: int) -> None:
        """Write the entries that wait at `level` as a page of the index."""
        entries, self._levels[level] = self._levels[level], []
        rows = sum(entry["rows"] for entry in entries)
        content = {"first": entries[0]["first"], "last": entries[-1]["last"], "rows": rows}
        self._add(level + 1, self._index(entries), content)

    def _index(self, entries: Sequence[dict[str, Any]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(list(entries), schema=_entries_schema(self.schema.field(self._keys[0]).type))

    def _put(self, body: bytes) -> None:
        try:
            self._file.write(body)
        except OSError as error:
            raise no_space(self._local, error) from error
        self._at += len(body)

    def store(self, root: str, folder: str) -> Shard:
        """Finish the file and store it under `folder`, named by its content; returns the shard."""
        try:
            top = self._finish()
            with self._local.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            path = f"{folder}/{digest[:32]}.segment"
            storage.connect(root).put_file(path, self._local, digest, spare=True)
            return Shard(path, self.rows, self._at, digest, top)
        finally:
            self.discard()

    def _finish(self) -> str:
        """Write the waiting rows and entries, then the root; return the root's SHA-256."""
        for group in self._groups.rest():
            self._page(group)
        for level in range(len(self._levels) - 1):
            if self._levels[level]:
                self._lift(level)
        depth = len(self._levels) - 1
        keyed = self._filter() if depth and self._has_filter else {}
        at, body = self._at, self._names.filter()
        self._put(body)
        body = self._root(depth, keyed | self._names.said(at, body))
        self._put(body + len(body).to_bytes(LENGTH, "little"))
        try:
            self._file.close()
        except OSError as error:
            raise no_space(self._local, error) from error
        return hashlib.sha256(body).hexdigest()

    def _filter(self) -> dict[str, str]:
        """Write the filter over all keys; return what the root says of it."""
        self._hash()
        body = filter_of(np.unique(np.concatenate(self._hashes)))
        place = [self._at, len(body), sha256(body)]
        self._put(body)
        return {FILTERED: json.dumps(place)}

    def _root(self, depth: int, filters: Mapping[str, str]) -> bytes:
        entries = self._index(self._levels[depth])
        facts: dict[str, str | bytes] = {**filters, "keys": json.dumps(self._keys), "depth": str(depth)}
        facts["schema"] = self.schema.serialize().to_pybytes()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, entries.schema.with_metadata(facts), options=_OPTIONS) as stream:
            stream.write_batch(entries.replace_schema_metadata(facts))
        return cast("bytes", sink.getvalue().to_pybytes())

    def discard(self) -> None:
        """Remove the local file; safe to call twice."""
        with contextlib.suppress(OSError):
            self._file.close()
        self._local.unlink(missing_ok=True)


def store_segment(
    root: str, folder: str, schema: pa.Schema, keys: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Shard:
    """Store sorted batches as a segment under `folder`."""
    writer = SegmentWriter(schema, keys)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.store(root, folder)
    finally:
        writer.discard()


def compact(group: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches as one with buffers of its own: no slice's neighbors are left in its bytes."""
    return pa.concat_batches(group)


def _entries_schema(key: pa.DataType) -> pa.Schema:
    whole = [pa.field(name, pa.int64()) for name in ("at", "bytes", "rows")]
    return pa.schema([pa.field("first", key), pa.field("last", key), *whole, pa.field("digest", pa.binary(32))])


def _encoded(page: pa.RecordBatch) -> bytes:
    """Return a page as `segment.decoded` reads it."""
    plain = page.serialize()
    return len(plain).to_bytes(LENGTH, "little") + cast("bytes", CODEC.compress(plain, asbytes=True))
