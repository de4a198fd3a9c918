"""Turns what a kernel yields into a layer: the columns that it adds or changes, and the rows that they belong to."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError
from pipeline_tasks.manifest import schema_pairs
from pipeline_tasks.profiles.removals import columns_profiled
from pipeline_tasks.stage import Layer, Shard
from pipeline_tasks.store.shards.layer_columns import CHANGED, ROW, VALUE
from pipeline_tasks.store.shards.rows import Facts, ShardRows
from pipeline_tasks.text.base import delta
from pipeline_tasks.text.base.buffers import is_long

pc: Any = pyarrow.compute


def columns_read(layer: Layer, profiled: Sequence[str]) -> tuple[str, ...] | None:
    """Return the columns of its first input that a kernel gets, None for all."""
    return (*layer.reads, *layer.stores, *layer.changes, *columns_profiled(profiled)) if layer.reads else None


class LayerInput:
    """The first input of a kernel that writes a layer: it keeps each row until the kernel has said something of it."""

    def __init__(self, rows: ShardRows, below: Shard, layer: Layer) -> None:
        self.below, self._rows, self._layer = below, rows, layer
        self._waiting: deque[pa.RecordBatch] = deque()
        self._schema = pa.schema([])
        self._row = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            self._schema = batch.schema
            self._waiting.append(batch)
            yield batch

    def stored(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return what a layer has of rows that a kernel yielded: `ROW`, and the columns that are not as below."""
        before = self._taken(batch.num_rows)
        rows = np.arange(self._row, self._row + batch.num_rows)
        self._row += batch.num_rows
        columns: dict[str, Any] = {ROW: pa.array(rows, pa.int64())}
        for name in batch.schema.names:
            values = batch.column(name)
            if name not in self._schema.names or name in self._layer.stores:
                columns[name] = values
            elif name in self._layer.changes:
                columns[CHANGED + name] = _changes(before.column(name), values)
            elif not _is_same(values, before.column(name)):
                message = f"a kernel changed {name}, and its layer says neither `stores` nor `changes` of it"
                raise ContractError(message)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _taken(self, count: int) -> pa.RecordBatch:
        """Return the next `count` rows that the kernel read."""
        taken: list[pa.RecordBatch] = []
        while count and self._waiting:
            batch = self._waiting.popleft()
            taken.append(batch.slice(0, count))
            if batch.num_rows > count:
                self._waiting.appendleft(batch.slice(count))
            count -= taken[-1].num_rows
        if count:
            message = f"a kernel that writes a layer yielded {count} rows more than it had read"
            raise ContractError(message)
        if len(taken) == 1:
            return taken[0]
        if not taken:
            return pa.RecordBatch.from_pylist([], schema=self._schema)
        return pa.Table.from_batches(taken).combine_chunks().to_batches()[0]

    def absent(self, count: int) -> dict[str, pa.Array]:
        """Return the columns that rejected rows do not have, null in so many rows."""
        kinds = dict(self._rows.all_columns)
        return {name: pa.nulls(count, pa.type_for_alias(kinds[name])) for name in self._layer.kept_only}

    def finish(self, prefix: str) -> None:
        """Raise ContractError if the kernel said nothing of some rows."""
        missing = sum(batch.num_rows for batch in self._waiting)
        if missing:
            message = f"{prefix}: a kernel that writes a layer yielded {missing} rows less than it had read"
            raise ContractError(message)

    def facts(self, yielded: pa.Schema) -> Facts:
        """Return what the file of a layer says of itself, where the kernel yields these columns.

        Its columns are those below without those that the kernel left out, then the new ones.
        """
        of_kernel = dict(schema_pairs(yielded))
        left_out = set(self._schema.names) - set(of_kernel)
        below = {name: kind for name, kind in self._rows.all_columns if name not in left_out}
        return Facts(self.below, tuple((below | of_kernel).items()))


def _is_same(values: pa.Array, before: pa.Array) -> bool:
    """Return whether two columns are equal, a NaN to a NaN too."""
    if values.equals(before):
        return True
    if values.type != before.type or not values.is_null().equals(before.is_null()):
        return False
    if pa.types.is_struct(values.type):
        fields = range(values.type.num_fields)
        return all(_is_same(pc.struct_field(values, [at]), pc.struct_field(before, [at])) for at in fields)
    if not pa.types.is_floating(values.type):
        return False
    bare = [pc.if_else(pc.is_nan(column), pa.scalar(0, column.type), column) for column in (values, before)]
    return bool(bare[0].equals(bare[1]) and pc.is_nan(values).equals(pc.is_nan(before)))


def _changes(before: pa.Array, after: pa.Array) -> pa.StructArray:
    """Return the values of `after` as structs of one field, null where `before` has the same.

    The values of long columns (`buffers.is_long`) are what differs.
    """
    both_null = pc.and_(pc.is_null(before), pc.is_null(after))
    same = pc.or_(both_null, pc.fill_null(pc.equal(before, after), fill_value=False))
    values = pc.if_else(same, pa.scalar(None, after.type), after)
    if is_long(after.type):
        values = delta.encode(before, values)
    return pa.StructArray.from_arrays([values], names=[VALUE], mask=same)
