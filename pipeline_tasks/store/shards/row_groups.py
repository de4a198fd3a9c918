"""Gathers rows into groups whose borders follow from the rows alone, however they were batched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import NoSpace

pc: Any = pyarrow.compute


ELEMENT = 4
"""Bytes that an element of a list counts for."""

HEAVIEST_BYTE = 8 * ELEMENT
"""What a byte of a batch weighs at most: as elements of a bit each."""


class RowGroups:
    """Groups that end at the first row that reaches `rows` rows or `weight` bytes of variable-length data."""

    def __init__(self, rows: int, weight: int) -> None:
        self._bounds = rows, weight
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._weight = 0
        self._light: list[pa.RecordBatch] = []  # those of the waiting that `_weight` has no bytes of
        self._bound = 0  # what they weigh at most

    def add(self, batch: pa.RecordBatch) -> Iterator[list[pa.RecordBatch]]:
        """Add a batch's rows; yield every group that they fill, as the batches that it has rows of."""
        most, heaviest = self._bounds
        bound = batch.num_rows + batch.nbytes * HEAVIEST_BYTE
        if self._rows + batch.num_rows <= most and self._weight + self._bound + bound < heaviest:
            self._waiting.append(batch)
            self._light.append(batch)
            self._bound += bound
            self._rows += batch.num_rows
            if self._rows == most:
                yield from self.rest()
            return
        self._weigh()
        start, ends = 0, np.cumsum(row_weights(batch))
        while start < batch.num_rows:
            spent = int(ends[start - 1]) if start else 0
            full = int(ends.searchsorted(heaviest - self._weight + spent)) + 1
            stop = min(full, start + most - self._rows, batch.num_rows)
            self._waiting.append(batch.slice(start, stop - start))
            self._weight += int(ends[stop - 1]) - spent
            self._rows += stop - start
            if self._rows >= most or self._weight >= heaviest:
                yield from self.rest()
            start = stop

    def rest(self) -> Iterator[list[pa.RecordBatch]]:
        """Yield the rows that wait for a group to be full as the last group, if there are any."""
        if self._waiting:
            group, self._waiting, self._rows, self._weight = self._waiting, [], 0, 0
            self._light, self._bound = [], 0
            yield group

    def _weigh(self) -> None:
        """Weigh the light batches that wait: what they weigh at most may fill a group, and a border must be exact."""
        self._weight += sum(int(row_weights(batch).sum()) for batch in self._light)
        self._light, self._bound = [], 0


def row_weights(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Return the bytes of variable-length data in each row."""
    weights = np.ones(batch.num_rows, dtype=np.int64)
    for column in (part for whole in batch.columns for part in _parts(whole)):
        kind = column.type
        if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_string(kind):
            lengths = pc.binary_length(column).fill_null(0)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            lengths = pc.multiply(pc.list_value_length(column).fill_null(0), ELEMENT)
        else:
            continue
        weights += cast("npt.NDArray[np.int64]", lengths.to_numpy(zero_copy_only=False))
    return weights


def _parts(column: pa.Array) -> list[pa.Array]:
    """Return the fields of a struct, or the column itself."""
    return column.flatten() if pa.types.is_struct(column.type) else [column]


def no_space(local: Path, error: OSError) -> NoSpace:
    """Return the refusal for a local file that could not be written on."""
    return NoSpace(f"{local}: writing failed ({error}); free space there or set TMPDIR, nothing was committed")
