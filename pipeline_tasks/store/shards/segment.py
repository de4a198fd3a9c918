"""Reads segments: rows sorted by a key, in small pages that a few keys find without reading the rest.

A segment is one immutable file: pages of rows, pages of an index over them, pages of an index over those and so on, a
filter over its keys and one over the names of its rows, then the root and its length. Every page is named by the
SHA-256 of its bytes in the page above it, and the root by `Shard.index_digest` in a manifest: whatever is used has been
verified, however little of the file was read.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, DigestMismatch, JobLost
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import TAKEDOWNS
from pipeline_tasks.store.once import Once
from pipeline_tasks.store.shards.file import successor_of
from pipeline_tasks.text.base.key_filter import Blocks, blocks_of, has_hashes, key_hashes, may_have
from pipeline_tasks.text.base.key_pages import LENGTH, STEP, Root, decoded, overlaps

pc: Any = pyarrow.compute

TAIL = 16 * 1024
"""Bytes that are fetched to find the root: enough for any index over text keys of up to 40 characters."""

CACHED_PAGES = 128
"""Pages that a reader caches: keys come in order, so the next key often needs the pages of the last."""

COMPACTED = "compacted"
"""Prefix of segments that merge several (see `compaction`); the parts still exist."""

_FILTERS: Once[Blocks] = Once(lambda blocks: blocks.nbytes, 256 << 20)
"""Filters of segments by their roots and digests: a process reads each once."""

PAGE = 4096
"""Bytes of a page of rows as stored, roughly: a filter is read where the pages of all keys could be more bytes.

Where keys are asked for again and again, it is read once the pages of half of them could be.
"""

OPEN = 16
"""So few segments stay open between lookups, with the pages that each caches."""


class Segment:
    """A shard of history: all of its rows as a stream, or the rows of some keys from the pages that can have them.

    `cost` counts what was read: rows, pages, bytes and requests. Opening one reads nothing.
    """

    def __init__(self, root: str, shard: Shard, batch_rows: int = 4096) -> None:
        self._root_uri, self._shard, self._batch_rows = root, shard, batch_rows
        self._cached: dict[int, pa.RecordBatch] = {}
        self._asked = 0
        self._whole = b""  # the bytes of a segment that came as a whole with its root
        self.cost: Counter[str] = Counter()

    @cached_property
    def root(self) -> Root:
        """The top of the index, fetched and verified."""
        [body] = self._tail()
        size = self._shard.bytes
        self._whole = body if len(body) == size else b""
        length = int.from_bytes(body[-LENGTH:], "little")
        if len(body) - LENGTH < length <= size - LENGTH:
            [body] = self._fetch([(size - LENGTH - length, size)])
        body = body[max(len(body) - LENGTH - length, 0) : -LENGTH]
        self._require(body, bytes.fromhex(self._shard.index_digest), "root")
        self.cost["pages"] += 1
        return Root.of(body)

    def _tail(self) -> list[bytes]:
        """Return the end of the file, or of the one that an erasure put in its place."""
        try:
            return self._fetch([(max(self._shard.bytes - TAIL, 0), self._shard.bytes)])
        except (ContractError, JobLost):
            successor = successor_of(self._root_uri, self._shard)
            if successor is None:
                raise
            self._shard = successor
        return self._tail()

    def rows(self, wanted: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Return the rows whose key is in `wanted`, sorted by key.

        Reads at most one page per key and index level, and more only where the rows of one key fill more than one.
        """
        keys = self._possible(self.root.sorted_keys(wanted))
        leaves = self._leaves(self.root.entries, self.root.depth, partial(overlaps, keys=keys))
        tables = [self.root.matching(pages, keys) for pages in leaves]
        return pa.concat_tables([self.root.schema.empty_table(), *tables])

    def between(self, first: str, stop: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows whose key, a text, is not before `first`, and before `stop`; no other page of rows is read."""
        within = (pc.field(self.root.keys[0]) >= first) & (pc.field(self.root.keys[0]) < stop)
        for pages in self._leaves(self.root.entries, self.root.depth, partial(_within, first=first, stop=stop)):
            yield from pa.Table.from_batches(pages, schema=self.root.schema).filter(within).to_batches()

    def _possible(self, keys: pa.Array) -> pa.Array:
        """Return those of some keys that the segment may have, if its filter says that for less than their pages."""
        if self.root.filter is None or not has_hashes(keys.type):
            return keys
        at, size, digest = self.root.filter
        self._asked += len(keys)
        if max(len(keys), self._asked // 2) * PAGE < size and not _FILTERS.has((self._root_uri, digest)):
            return keys
        blocks = _FILTERS.get((self._root_uri, digest), lambda: self._read_filter(at, size, digest))
        return keys.filter(pa.array(may_have(blocks, key_hashes(keys))))

    def _read_filter(self, at: int, size: int, digest: str) -> Blocks:
        [body] = self._fetch([(at, at + size)])
        self._require(body, bytes.fromhex(digest), "filter")
        self.cost["pages"] += 1
        return blocks_of(body)

    def first(self, column: str) -> object:
        """Return the value of `column` in the first row, or None if there are no rows."""
        entries = self.root.entries.slice(0, 1)
        for _ in range(self.root.depth):
            entries = self._pages(entries, index=True)[0].slice(0, 1)
        return self._pages(entries)[0].column(column)[0].as_py() if entries.num_rows else None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows; at least one batch, empty if there are none."""
        if not self._shard.rows:
            yield pa.RecordBatch.from_pylist([], schema=self.root.schema)
        for pages in self._leaves(self.root.entries, self.root.depth):
            whole = pa.Table.from_batches(pages, schema=self.root.schema).combine_chunks()
            yield from whole.to_batches(max_chunksize=self._batch_rows)

    def _leaves(
        self, entries: pa.RecordBatch, depth: int, chosen: Callable[[pa.RecordBatch], pa.Array] | None = None
    ) -> Iterator[list[pa.RecordBatch]]:
        """Yield the pages of rows below those `entries` that are `chosen` (all without), at most `STEP` at a time."""
        if chosen is not None:
            entries = entries.filter(chosen(entries))
        for start in range(0, entries.num_rows, STEP):
            pages = self._pages(entries.slice(start, STEP), index=depth > 0)
            if depth:
                below = pa.Table.from_batches(pages).combine_chunks().to_batches()[0]
                yield from self._leaves(below, depth - 1, chosen)
            else:
                yield pages

    def _pages(self, entries: pa.RecordBatch, *, index: bool = False) -> list[pa.RecordBatch]:
        """Return the pages that entries name; adjacent pages are read in one request."""
        locations = [(entry["at"], entry["bytes"], entry["digest"]) for entry in entries.to_pylist()]
        pages = {at: self._cached.pop(at) for at, *_ in locations if at in self._cached}
        schema = entries.schema if index else self.root.schema
        runs = list(_runs([location for location in locations if location[0] not in pages]))
        bodies = self._fetch([(run[0][0], run[-1][0] + run[-1][1]) for run in runs])
        for run, body in zip(runs, bodies, strict=True):
            for at, size, digest in run:
                page = body[at - run[0][0] : at - run[0][0] + size]
                self._require(page, digest, f"page at byte {at}")
                pages[at] = decoded(page, schema)
                self.cost["rows"] += 0 if index else pages[at].num_rows
            self.cost["pages"] += len(run)
        self._cached.update({at: pages[at] for at, *_ in locations})
        for at in list(self._cached)[:-CACHED_PAGES]:
            del self._cached[at]
        return [pages[at] for at, *_ in locations]

    def _fetch(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        if self._whole or not ranges:
            return [self._whole[start:stop] for start, stop in ranges]
        where = f"{self._root_uri}/{self._shard.path}"
        try:
            bodies = storage.connect(self._root_uri).read_ranges(self._shard.path, ranges)
        except FileNotFoundError as error:
            if self._is_compacted:
                message = f"{where} was removed by a vacuum during this run; run again: its parts are read instead"
                raise JobLost(message) from error
            message = f"{where}: the file is missing; {self._way_out}"
            raise ContractError(message) from error
        except DigestMismatch as error:
            message = f"{where} was cut short: it had {self._shard.bytes:,} bytes when it was written; {self._way_out}"
            raise DigestMismatch(message) from error
        self.cost["requests"] += len(bodies)
        self.cost["bytes"] += sum(map(len, bodies))
        return bodies

    def _require(self, body: bytes, promised: bytes, part: str) -> None:
        actual = hashlib.sha256(body).digest()
        if actual != promised:
            message = (
                f"{self._root_uri}/{self._shard.path}, {part}: SHA-256 is {actual.hex()}, its index promised "
                f"{promised.hex()}; {self._way_out}"
            )
            raise DigestMismatch(message)

    @property
    def _is_compacted(self) -> bool:
        return self._shard.path.startswith(f"{COMPACTED}/")

    @property
    def _way_out(self) -> str:
        """What to do where the segment is missing, cut or damaged."""
        if self._is_compacted:
            prefix = "/".join(self._shard.path.split("/")[:2])
            return f"remove {self._root_uri}/{prefix}: its parts are still there and are read instead"
        if self._shard.path.startswith(f"{TAKEDOWNS.folder}/"):
            return TAKEDOWNS.way_out
        return "restore it, or remove its stage's manifest and refine that snapshot again"


class Segments:
    """Several shards of history: a stream of one after the other, or the rows of some keys in all of them."""

    def __init__(self, root: str, shards: Sequence[Shard], batch_rows: int = 4096) -> None:
        self._open = partial(Segment, root, batch_rows=batch_rows)
        self._shards = shards
        self._opened = [self._open(shard) for shard in shards] if len(shards) <= OPEN else []
        self.cost: Counter[str] = Counter()

    def _each(self) -> Iterator[Segment]:
        """Yield the shards in order; of many, the pages of a shard are freed before the next shard is read."""
        for segment in self._opened or map(self._open, self._shards):
            before = Counter(segment.cost)
            yield segment
            self.cost.update(segment.cost - before)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, sorted by key within each shard."""
        for segment in self._each():
            yield from segment

    def rows(self, wanted: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Return the rows whose key is in `wanted`, sorted by key within each shard."""
        return pa.concat_tables([segment.rows(wanted) for segment in self._each()])

    def between(self, first: str, stop: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows whose key is not before `first`, and before `stop`, sorted by key within each shard."""
        for segment in self._each():
            yield from segment.between(first, stop)

    def first(self, column: str) -> object:
        """Return the value of `column` in the first row of the first shard that has rows, or None."""
        return next((value for segment in self._each() if (value := segment.first(column)) is not None), None)


def _runs(locations: Sequence[tuple[int, int, bytes]]) -> Iterator[list[tuple[int, int, bytes]]]:
    """Cut locations in the file into runs without a gap."""
    pairs = enumerate(pairwise(locations), start=1)
    breaks = [rank for rank, (left, right) in pairs if left[0] + left[1] != right[0]]
    for start, stop in pairwise([0, *breaks, len(locations)]):
        if start < stop:
            yield list(locations[start:stop])


def _within(entries: pa.RecordBatch, first: str, stop: str) -> pa.Array:
    """Return which entries can have rows whose key is not before `first`, and before `stop`."""
    return pc.and_(pc.greater_equal(entries.column("last"), first), pc.less(entries.column("first"), stop))
