"""Look up ascending keys in a sorted stream of batches, reading it once, with little of it in memory."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class Lookup:
    """A stream sorted by the unique text column `key`, read forward as keys are looked up."""

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

    def rows(self, keys: pa.Array) -> pa.Table:
        """Return the rows whose key is in `keys`; keys of later calls must not be below the highest of this call."""
        batches: list[pa.RecordBatch] = []
        high = pc.max(keys).as_py() if len(keys) else None
        while high is not None and self._batch is not None:
            column: Any = self._batch.column(self._key)
            batches.append(self._batch.filter(pc.is_in(column, value_set=keys)))
            if len(column) and column[-1].as_py() >= high:
                break
            self._batch = self._next()
        return pa.Table.from_batches(batches, schema=self.schema)

    def finish(self) -> int:
        """Read to the end of the stream; return how many rows it had."""
        while self._batch is not None:
            self._batch = self._next()
        return self.read
