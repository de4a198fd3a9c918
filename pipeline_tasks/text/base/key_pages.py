"""Reads the pages of segments (`store.shards.segment`), and looks rows up by key in one that is a file of this machine.

Such a file is mapped and not read: however many rows it has, a process has the pages of the keys in hand.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError
from pipeline_tasks.schema import Array
from pipeline_tasks.text.base.key_filter import blocks_of, key_hashes, may_have

pc: Any = pyarrow.compute

LENGTH = 8
"""Bytes of the root's length at the end of the file, and of a page's uncompressed length before it; little-endian."""

CODEC = pa.Codec("zstd", compression_level=1)
"""A page is compressed as a whole: its many small buffers, each by itself, take three times as long and are larger."""

FILTERED = "filter of apart hashes"
"""The fact of the root that says where the filter is. Those named `filter` had the keys of a bucket in few blocks, and
let most other keys pass: they are not asked."""

NAMES = "refinery.names"
"""Key of a table's metadata: where the filter over the names of its rows begins, its bytes, and its digest."""

STEP = 128
"""Pages that are requested and decoded together: at most 2 MB, unless a row is larger than a page."""


@dataclass(frozen=True, slots=True)
class Root:
    """The top of a segment: the rows' schema and order, how many index levels are below, and the topmost entries.

    `filter` is where the filter over its keys begins, its bytes and digest; one without levels below the root has none.
    `names` is the same of the filter over the names of its rows (`store.shards.names`), as it is stored; empty in older
    ones.
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    depth: int
    entries: pa.RecordBatch
    filter: tuple[int, int, str] | None = None
    names: bytes = b""

    @classmethod
    def of(cls, body: bytes | pa.Buffer) -> Self:
        """Return the root that these bytes are."""
        with pa.ipc.open_stream(body) as stream:
            facts, entries = stream.schema.metadata, stream.read_next_batch()
        schema = pa.ipc.read_schema(pa.py_buffer(facts[b"schema"]))
        keys = tuple(json.loads(facts[b"keys"]))
        place, names = json.loads(facts.get(FILTERED.encode(), b"null")), facts.get(NAMES.encode(), b"")
        return cls(schema, keys, int(facts[b"depth"]), entries.replace_schema_metadata(), place, names)

    def sorted_keys(self, wanted: Array) -> pa.Array:
        """Return keys that are wanted as the segment has them: each once, in order, and no null."""
        keys = pc.unique(wanted).cast(self.schema.field(self.keys[0]).type).drop_null()
        return keys.take(pc.array_sort_indices(keys))

    def matching(self, pages: Sequence[pa.RecordBatch], keys: pa.Array) -> pa.Table:
        """Return the rows of pages in order that have one of some sorted keys."""
        table = pa.Table.from_batches(pages, schema=self.schema)
        column = table.column(self.keys[0])
        near = keys.slice(pc.search_sorted(keys, column[0]).as_py())
        near = near.slice(0, pc.search_sorted(near, column[-1], side="right").as_py())
        return table.filter(pc.is_in(column, value_set=near))


def decoded(page: bytes | pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of a page whose bytes have been verified."""
    plain = CODEC.decompress(pa.py_buffer(page)[LENGTH:], int.from_bytes(page[:LENGTH], "little"))
    return pa.ipc.read_record_batch(plain, schema)


def overlaps(entries: pa.RecordBatch, keys: pa.Array) -> pa.Array:
    """Return which entries can have rows of `keys`: those with a key between their first and last."""
    below = pc.search_sorted(keys, entries.column("first"))
    above = pc.search_sorted(keys, entries.column("last"), side="right")
    return pc.less(below, above)


class KeyedFile:
    """The rows of some keys of a segment that is a file of this machine, whose digest was compared."""

    def __init__(self, path: str) -> None:
        self._body = pa.memory_map(path).read_buffer()
        length = int.from_bytes(self._body[-LENGTH:], "little")
        if not 0 < length <= self._body.size - LENGTH:
            message = f"{path} is no list by key: another release wrote it; compose the dataset again"
            raise ContractError(message)
        self._root = Root.of(self._body[-LENGTH - length : -LENGTH])

    def rows(self, wanted: Array) -> pa.Table:
        """Return the rows whose key is in `wanted`, sorted by key."""
        keys = self._possible(self._root.sorted_keys(wanted))
        tables = [self._root.matching(pages, keys) for pages in self._leaves(keys) if pages]
        return pa.concat_tables([self._root.schema.empty_table(), *tables])

    def _possible(self, keys: pa.Array) -> pa.Array:
        if self._root.filter is None:
            return keys
        at, size, _ = self._root.filter
        return keys.filter(pa.array(may_have(blocks_of(self._body[at : at + size]), key_hashes(keys))))

    def _leaves(self, keys: pa.Array) -> Iterator[list[pa.RecordBatch]]:
        """Yield the pages of rows that can have `keys`, at most `STEP` at a time."""
        entries = self._root.entries
        for _ in range(self._root.depth):
            below = self._pages(entries.filter(overlaps(entries, keys)), entries.schema)
            entries = pa.concat_batches(below) if below else entries.slice(0, 0)
        entries = entries.filter(overlaps(entries, keys))
        for start in range(0, entries.num_rows, STEP):
            yield self._pages(entries.slice(start, STEP), self._root.schema)

    def _pages(self, entries: pa.RecordBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
        places = zip(entries["at"].to_pylist(), entries["bytes"].to_pylist(), strict=True)
        return [decoded(self._body[at : at + size], schema) for at, size in places]
