"""Sorted rows in windows of whole bands, however many rows a band has: of a long one, nodes wait compressed."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.stage import Batches
from pipeline_tasks.text.base.tables import Flags, Rows, combined, flags, run_starts, tables_of, whole_numbers
from pipeline_tasks.text.near.ranking import is_known

pc: Any = pyarrow.compute

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")


PART_ROWS = 1 << 14
"""Rows of a part, about: four copies of so many are in memory for a moment, 20 MB of pairs."""


def in_parts(batches: Batches, *names: str, rows: int = 0) -> Iterator[pa.Table]:
    """Yield a stream sorted by columns as tables, at least one, of about `rows` rows (for 0 `PART_ROWS`) or more.

    Rows of equal columns are in one table, unless these alone have so many rows.
    """
    most = rows or PART_ROWS
    rest: list[pa.Table] = []
    for some in tables_of(batches, most):
        joined = pa.concat_tables([*rest, some])
        last = int(run_starts(*(joined.column(name) for name in names))[-1]) if joined.num_rows else 0
        if last:
            yield joined.slice(0, last).combine_chunks()
        tail = joined.slice(last).combine_chunks()
        rest = [tail]
        if tail.num_rows >= most:
            yield tail
            rest = [tail.schema.empty_table()]
    yield from rest


class Part:
    """Rows of `MEMBERS` in a row, with their numbers at hand; the nodes of a part of a long band are compressed."""

    def __init__(self, members: pa.Table) -> None:
        self.starts = run_starts(members.column("key"))
        self.keys = whole_numbers(members.column("key"))[self.starts]
        self.known = flags(is_known(members.column("node")))
        self.labels = combined(members.column("label").filter(pa.array(self.known)))
        nodes = members.select(["node"])
        is_long = len(self.starts) == 1 and len(self.known) >= PART_ROWS
        self._nodes: pa.Table | pa.Buffer = _compressed(nodes) if is_long else nodes

    def nodes(self) -> pa.StructArray:
        """Return the node of each row."""
        rows = self._nodes if isinstance(self._nodes, pa.Table) else pa.ipc.open_stream(self._nodes).read_all()
        return combined(rows.column("node"))


def _compressed(rows: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_COMPRESSED) as stream:
        stream.write_table(rows)
    return sink.getvalue()


@dataclass(frozen=True)
class Window:
    """Whole bands, in parts; rows count from the first of them."""

    parts: list[Part]

    @cached_property
    def offsets(self) -> Rows:
        """Return where each part begins, and where the last one ends."""
        return np.cumsum([0, *(len(part.known) for part in self.parts)])

    @cached_property
    def known(self) -> Flags:
        """Return which rows are of history."""
        return np.concatenate([part.known for part in self.parts])

    @cached_property
    def _bands(self) -> tuple[Rows, Rows]:
        """Return the keys of bands, and where each begins: a band of several parts begins once."""
        keys = np.concatenate([part.keys for part in self.parts])
        starts = np.concatenate([part.starts + start for part, start in zip(self.parts, self.offsets, strict=False)])
        first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        return keys[first], starts[first]

    @property
    def keys(self) -> Rows:
        """Return the key of each band, ascending."""
        return self._bands[0]

    @property
    def starts(self) -> Rows:
        """Return the first row of each band."""
        return self._bands[1]

    def band_of(self, rows: Rows) -> Rows:
        """Return the number of the band of each row."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def first_of_label(self) -> Rows:
        """Return, per row, the first row of its band with the same label; the row itself for a new member."""
        first, known = np.arange(len(self.known)), np.flatnonzero(self.known)
        labels = pa.concat_arrays([part.labels for part in self.parts]).dictionary_encode()
        codes = np.asarray(labels.indices.to_numpy(zero_copy_only=False), np.int64)
        _, rows, which = np.unique(
            self.band_of(known) * (len(labels.dictionary) + 1) + codes, return_index=True, return_inverse=True
        )
        first[known] = known[rows[which]]
        return first

    def nodes(self, rows: Rows) -> Iterator[tuple[Rows, pa.StructArray]]:
        """Yield, part by part, which of ascending rows are in it, by their places, and their nodes."""
        bounds = np.searchsorted(rows, self.offsets)
        for part, start, low, high in zip(self.parts, self.offsets, bounds, bounds[1:], strict=False):
            if low < high:
                yield np.arange(low, high), part.nodes().take(pa.array(rows[low:high] - start))


def windows(members: Batches) -> Iterator[Window]:
    """Yield `MEMBERS` sorted by key as windows: of about `PART_ROWS` rows, or of the rows of one band that has more."""
    waiting: list[Part] = []
    for rows in in_parts(members, "key"):
        key = whole_numbers(rows.column("key")[:1])
        if waiting and not (len(key) and key[0] == waiting[-1].keys[-1]):
            yield Window(waiting)
            waiting = []
        if rows.num_rows:
            waiting.append(Part(rows))
    if waiting:
        yield Window(waiting)
