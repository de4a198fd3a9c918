"""Looks up ascending keys in a sorted stream of batches, reading it once and holding little of it."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class Lookup:
    """A stream sorted by the unique text column `key`, read forward as keys are asked for."""

    def __init__(self, batches: Iterator[pa.RecordBatch], key: str) -> None:
        self._batches = batches
        self._key = key
        first = next(batches)
        self._batch: pa.RecordBatch | None = first
        self.schema = first.schema
        self.read: int = first.num_rows

    def _next(self) -> pa.RecordBatch | None:
        batch = next(self._batches, None)
        self.read += batch.num_rows if batch is not None else 0
        return batch

    def rows(self, wanted: pa.Array) -> pa.Table:
        """Return the rows whose key is in `wanted`; no later call may ask for a key below the highest of this one."""
        found: list[pa.RecordBatch] = []
        high = pc.max(wanted).as_py() if len(wanted) else None
        while high is not None and self._batch is not None:
            keys: Any = self._batch.column(self._key)
            found.append(self._batch.filter(pc.is_in(keys, value_set=wanted)))
            if len(keys) and keys[-1].as_py() >= high:
                break
            self._batch = self._next()
        return pa.Table.from_batches(found, schema=self.schema)

    def finish(self) -> int:
        """Read to the end of the stream; return how many rows it had."""
        while self._batch is not None:
            self._batch = self._next()
        return self.read
