"""Keeps rows in parts while a kernel computes them, so that a kill costs what it had in hand and no more.

A kernel that computes for minutes hands each row over as it is there. Rows are stored in parts below the cache of the
verb, under the input of the task: the next try finds them, in whatever process and for whatever task over that input.
Where the task ends, all of its rows are one segment of the cache (`row_cache`), and the parts go.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from math import inf
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.run.tasks.cancellation import raise_if_canceled
from pipeline_tasks.run.tasks.model_budget import ModelBudget
from pipeline_tasks.run.tasks.row_cache import (
    HARDWARE,
    KEY,
    KNOWN,
    TEXT,
    UNKNOWN,
    UNREADABLE,
    KnownRows,
    by_hardware,
    known_segments,
    named_shard,
    of_keys,
    parts_of,
    store_rows,
)
from pipeline_tasks.store import storage
from pipeline_tasks.store.shards.segment import Segment

pc: Any = pyarrow.compute

log = logging.getLogger("refinery")

SHARE = 10
"""So many times the seconds that the quickest part took lie between two: storing takes about a tenth of the time.

On a disk that is a part in 20 ms, on S3 one in half a second. A thread of its own stores them, beside the model.
"""

GATHERED = 0.02
"""Seconds that rows wait at least for others of their batch, which come with them."""

MERGED = 8
"""Parts of one level that become one of the next: as many parts stay as an hour has digits, and not as it has seconds.

Each row is written again once per level.
"""


class _Part(NamedTuple):
    level: int
    rows: pa.Table
    paths: tuple[str, ...]


class RowParts:
    """The rows of a cache as a kernel gets them that adds to it while it runs: see `stage.KeptRows`.

    `segments` are those that were there when the verb began. `source` names the input of the task, `hardware` what
    computes the rows of this try, and `budget` what it may take.
    """

    def __init__(
        self,
        root: str,
        prefix: str,
        source: str,
        segments: KnownRows,
        hardware: str,
        budget: ModelBudget,
    ) -> None:
        self._root, self._prefix, self._segments, self._hardware = root, prefix, segments, hardware
        self._folder, self._is_read = parts_of(prefix, source), False
        self._budget = budget
        self._mine: pa.Table | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._parts: list[_Part] = []
        self._stored, self._took = time.monotonic(), 0.0
        self._lock, self._timer = threading.RLock(), threading.Timer(0, self.flush)
        self.stored: tuple[str, ...] = ()
        """The paths of what `store` has stored."""

    @property
    def known(self) -> Self:
        """What the kernel gets."""
        return self

    @property
    def cost(self) -> Counter[str]:
        """What lookups in segments read."""
        return self._segments.cost

    @property
    def seconds(self) -> float:
        """Seconds that lookups took."""
        return self._segments.seconds

    def rows(self, texts: pa.Array) -> pa.Table:
        """Return what is known of each text, in order: `known`, and the columns of the cache, null where it is not."""
        from pipeline_tasks.text.base.hashed import text_keys  # it loads numba, which DAGs are parsed without

        keys = text_keys(texts)
        with self._lock:
            return self._known(keys)

    def _known(self, keys: pa.Array) -> pa.Table:
        self._take_parts()
        self.flush()
        missing = pc.unique(keys).drop_null()
        if self._mine is not None:
            missing = missing.filter(pc.invert(pc.is_in(missing, value_set=self._mine.column(KEY).combine_chunks())))
        found = self._segments.found_rows(missing)
        if found.num_rows:
            self._add(found)
        if self._mine is None:
            return pa.table({KNOWN: pa.array([False] * len(keys), pa.bool_())})
        return of_keys(keys, self._mine)

    def keep(self, rows: pa.RecordBatch) -> None:
        """Add rows that were computed: a part takes all that wait when it is due.

        JobLost if the work was canceled: nobody else may look for minutes.
        """
        raise_if_canceled()
        with self._lock:
            self._waiting.append(rows)
            if not self._timer.is_alive():
                left = SHARE * self._took - (time.monotonic() - self._stored)
                self._timer = threading.Timer(max(left, GATHERED), self.flush)
                self._timer.daemon = True
                self._timer.start()
        self._budget.spend()

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep nothing of the rows that a kernel yields: what is kept it says itself."""

    def flush(self) -> None:
        """Store what waits as a part. What cannot be stored is kept at the end of the task; no run fails for it."""
        with self._lock:
            rows = self._settle()
            if rows is None:
                return
            began = time.monotonic()
            try:
                self._parts.append(_Part(0, rows, store_rows(self._root, self._folder, rows)))
                self._took = min(self._took or inf, time.monotonic() - began)
                self._merge()
            except (RefineryError, OSError) as error:
                log.warning("%s/%s: rows cannot be kept (%s); a kill would cost them", self._root, self._folder, error)
            self._stored = time.monotonic()

    def stop(self) -> None:
        """Keep what is there of a task that fails."""
        self._timer.cancel()
        self.flush()

    def store(self) -> dict[str, int]:
        """Store all rows as one segment of the cache, and remove the parts; return rows by what computed them."""
        with self._lock:
            self._timer.cancel()
            self._settle()
            if self._mine is None:
                return {}
            self.stored = store_rows(self._root, self._prefix, self._mine)
            self._remove(self._parts)
            self._parts = []
            return by_hardware(self._mine)

    def _settle(self) -> pa.Table | None:
        """Take what waits to the rows of this task, and return it; None if nothing does."""
        if not self._waiting:
            return None
        from pipeline_tasks.text.base.hashed import text_keys

        whole = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting = []
        keys = text_keys(whole.column(TEXT).combine_chunks())
        rows = whole.drop_columns([TEXT]).append_column(KEY, keys)
        rows = rows.append_column(HARDWARE, pa.repeat(self._hardware, len(rows)))
        self._add(rows)
        return rows

    def _add(self, rows: pa.Table) -> None:
        rows = rows.set_column(
            rows.schema.get_field_index(HARDWARE), HARDWARE, pc.fill_null(rows.column(HARDWARE), UNKNOWN)
        )
        mine = self._mine
        self._mine = rows if mine is None else pa.concat_tables([mine, rows.select(mine.column_names)])

    def _take_parts(self) -> None:
        """Read what an earlier try left, once."""
        if self._is_read:
            return
        self._is_read = True
        for path in known_segments(self._root, self._folder):
            try:
                shard = named_shard(self._root, path)
                rows = pa.Table.from_batches([*Segment(self._root, shard)])
            except UNREADABLE as error:
                log.warning("%s/%s cannot be read (%s); its rows are computed again", self._root, path, error)
                continue
            self._parts.append(_Part(0, rows, (path, shard.path)))
            self._add(rows)

    def _merge(self) -> None:
        """Make one part of the last ones while they are enough of one level."""
        while len(last := self._parts[-MERGED:]) == MERGED and len({part.level for part in last}) == 1:
            rows = pa.concat_tables([part.rows for part in last])
            merged = _Part(last[0].level + 1, rows, store_rows(self._root, self._folder, rows))
            self._parts[-MERGED:] = [merged]
            self._remove([part for part in last if part.paths != merged.paths])

    def _remove(self, parts: Sequence[_Part]) -> None:
        """Remove parts: what names a segment goes before it."""
        store = storage.connect(self._root)
        with suppress(RefineryError, OSError):  # what stays is harmless, and ages with its cache
            store.delete_many([part.paths[0] for part in parts])
            store.delete_many(list(chain.from_iterable(part.paths[1:] for part in parts)))
