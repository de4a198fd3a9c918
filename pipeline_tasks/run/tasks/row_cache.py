"""Keeps columns that follow from a row's text and a state alone, so that no run computes them again.

A cache is no part of identity: with it and without it a stage writes the same bytes. So a row is known by the bytes of
its text and not by its `id`, which stays when a stage edits the text. Each task adds one segment by key with all of its
rows, those that it found included, and beside it a small sealed object that names the segment; its name has the first
and the last key. Rows are looked up in the newest segments whose keys overlap with those that are asked. Each
row has the class of hardware that computed it, which a row that is looked up keeps.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, JobLost
from pipeline_tasks.manifest import shard_of
from pipeline_tasks.run.tasks.stopwatch import Stopwatch
from pipeline_tasks.sealed import seal, unseal
from pipeline_tasks.stage import Shard, replace_column
from pipeline_tasks.store import storage
from pipeline_tasks.store.shards.segment import Segment
from pipeline_tasks.store.shards.segment_writer import SegmentWriter

pc: Any = pyarrow.compute

log = logging.getLogger("refinery")

CACHE = "cache"
"""Prefix of all caches of a root: whatever is below it may be removed at any time."""

NEWEST = 32
"""Segments in which a key is looked up, newest first, where rows are cheap to compute again: a task adds one.

Rows that a kernel keeps while it runs (`row_parts`) are dearer than any lookup: those are looked up in all segments.
"""

KEY, TEXT, KNOWN, HARDWARE = "key", "text", "known", "hardware"

UNKNOWN = "unknown"
"""What computed a row that a cache of an earlier release has."""

_END = ".json"
_WAY_OUT = "remove it: what a cache had is computed again"


_PARTS = "parts-"


def parts_of(prefix: str, source: str) -> str:
    """Return the prefix of the parts of a cache that tasks over one input add while they run (`row_parts`)."""
    stage, _, name = prefix.removeprefix(f"{CACHE}/").partition("/")
    return f"{CACHE}/{stage}/{_PARTS}{name}-{source}"


def is_part(path: str) -> bool:
    """Return whether an object of a cache is below the parts of a task that has not ended."""
    return path.removeprefix(f"{CACHE}/").partition("/")[2].startswith(_PARTS)


def cache_of(stage: str, name: str) -> str:
    """Return the prefix of a stage's cache of that name."""
    return f"{CACHE}/{stage}/{name}"


def known_segments(root: str, prefix: str) -> tuple[str, ...]:
    """Return the paths of the objects that name the segments of a cache, newest first."""
    entries = [entry for entry in storage.connect(root).list(prefix) if entry.path.endswith(_END) and entry.bytes]
    return tuple(entry.path for entry in sorted(entries, key=lambda entry: (-entry.modified, entry.path)))


UNREADABLE = (ContractError, JobLost, FileNotFoundError, TypeError, pa.ArrowInvalid)
"""What reading a part of a cache raises that is damaged, gone, or of another release."""


def named_shard(root: str, path: str) -> Shard:
    """Return the segment that an object of a cache names; one of `UNREADABLE` if it is none."""
    return shard_of(unseal(storage.connect(root).read(path), f"{root}/{path}", _WAY_OUT))


def store_rows(root: str, prefix: str, table: pa.Table) -> tuple[str, ...]:
    """Store rows with a `key` as a segment, each key once, then the object that names it; return the paths of both.

    The first path is that of the object. The same rows are stored once; of no row nothing is.
    """
    table = table.filter(pc.is_valid(table.column(KEY))).sort_by(KEY).combine_chunks()
    keys = table.column(KEY)
    if not len(keys):
        return ()
    is_first = pa.concat_arrays([pa.array([True]), pc.not_equal(keys[1:], keys[:-1]).combine_chunks()])
    writer = SegmentWriter(table.schema, (KEY,))
    for batch in table.filter(is_first).to_batches():
        writer.write(batch)
    shard = writer.store(root, prefix)
    path = f"{prefix}/{keys[0].as_py()}-{keys[-1].as_py()}-{shard.digest[:16]}{_END}"
    storage.connect(root).create(path, seal(shard))
    return path, shard.path


def of_keys(keys: pa.Array, rows: pa.Table) -> pa.Table:
    """Return what rows say of each key, in order: `known`, and their columns, null where there is no such row."""
    at = pc.index_in(keys, value_set=rows.column(KEY).combine_chunks())
    columns = {name: rows.column(name).take(at) for name in rows.column_names if name not in (KEY, HARDWARE)}
    return pa.table({KNOWN: pc.is_valid(at), **columns})


def by_hardware(rows: pa.Table) -> dict[str, int]:
    """Return how many rows each class of hardware computed."""
    counts = pc.value_counts(rows.column(HARDWARE))
    return dict(sorted(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))


class KnownRows:
    """The rows of a cache by text, as a kernel gets them.

    They are looked up in the `newest` segments that may have them. What cannot be read of a cache is not known; the log
    says so, and no run fails for it.
    """

    def __init__(self, root: str, paths: Sequence[str], newest: int = NEWEST) -> None:
        self._root, self._newest = root, newest
        self._ranges = [(path, *path.rpartition("/")[2].split("-")[:2]) for path in paths]
        self._opened: dict[str, Segment | None] = {}
        self.cost: Counter[str] = Counter()
        self.found: list[pa.Table] = []
        """What computed the rows that were found: `key` and `hardware`."""
        self._watch = Stopwatch()

    @property
    def seconds(self) -> float:
        """Seconds that lookups took."""
        return self._watch.seconds

    def rows(self, texts: pa.Array) -> pa.Table:
        """Return what is known of each text, in order: `known`, and the columns of the cache, null where it is not."""
        from pipeline_tasks.text.base.hashed import text_keys  # it loads numba, which DAGs are parsed without

        keys = text_keys(texts)
        found = self.found_rows(pc.unique(keys).drop_null())
        self.found.append(found.select([KEY, HARDWARE]))
        return of_keys(keys, found)

    def found_rows(self, keys: pa.Array) -> pa.Table:
        """Return the rows of these keys, one for each that is known, with `key` and `hardware`."""
        with self._watch.running():
            found = self._found(keys)
        return (
            found
            if HARDWARE in found.schema.names
            else found.append_column(HARDWARE, pa.nulls(len(found), pa.string()))
        )

    def _found(self, missing: pa.Array) -> pa.Table:
        """Return the rows of these keys, one for each that is known."""
        tables = [pa.table({KEY: pa.array([], missing.type)})]
        for path in self._overlapping(missing):
            if not len(missing):
                break
            rows = self._read(path, missing)
            if rows is not None and rows.num_rows:
                tables.append(rows)
                missing = missing.filter(pc.invert(pc.is_in(missing, value_set=rows.column(KEY).combine_chunks())))
        return pa.concat_tables(tables, promote_options="default")

    def _overlapping(self, keys: pa.Array) -> list[str]:
        if not len(keys):
            return []
        ends = pc.min_max(keys).as_py()
        first, last = ends["min"], ends["max"]
        return [path for path, low, high in self._ranges if low <= last and first <= high][: self._newest]

    def _read(self, path: str, keys: pa.Array) -> pa.Table | None:
        try:
            if path not in self._opened:
                self._opened[path] = Segment(self._root, named_shard(self._root, path))
            segment = self._opened[path]
            return segment.rows(keys) if segment else None
        except UNREADABLE as error:
            log.warning("%s/%s cannot be read (%s); its rows are computed again", self._root, path, error)
            self._opened[path] = None
            return None


class CachedRows:
    """Collects the rows of a task for a cache, and adds them as one segment; `known` are those that it has already.

    `hardware` is what computes the rows that are not known.
    """

    def __init__(self, root: str, prefix: str, columns: Sequence[str], known: KnownRows, hardware: str) -> None:
        self._root, self._prefix, self._columns, self.known = root, prefix, columns, known
        self._hardware = hardware
        self._batches: list[pa.RecordBatch] = []
        self.stored: tuple[str, ...] = ()
        """The paths of what was stored: of the object that names the segment, and of that."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows that a kernel yielded."""
        from pipeline_tasks.text.base.hashed import text_keys

        keys = text_keys(batch.column(TEXT))
        self._batches.append(replace_column(batch.select(self._columns), KEY, keys))

    def stop(self) -> None:
        """Keep nothing of a task that fails: its rows are kept when it ends."""

    def store(self) -> dict[str, int]:
        """Store the segment, then the object that names it; return how many rows each class of hardware computed."""
        if not self._batches:
            return {}
        table = pa.Table.from_batches(self._batches)
        table = table.append_column(HARDWARE, self._computed_by(table.column(KEY)))
        self.stored = store_rows(self._root, self._prefix, table)
        return by_hardware(table)

    def _computed_by(self, keys: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return what computed each row."""
        own = pa.chunked_array([pa.repeat(self._hardware, len(keys))])
        found = pa.concat_tables(self.known.found) if self.known.found else None
        if not found:
            return own
        at = pc.index_in(keys, value_set=found.column(KEY).combine_chunks(), skip_nulls=True)
        return pc.if_else(pc.is_null(at), own, pc.fill_null(found.column(HARDWARE).take(at), UNKNOWN))
