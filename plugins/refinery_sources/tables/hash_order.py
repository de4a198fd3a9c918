"""Brings rows into the order of their hashes, and counts equal rows of changes against each other.

Rows go to one of `BUCKETS` files by the first byte of their hash, and each file is sorted in memory: the order is the
same however the rows arrive, and memory is that of one bucket.
"""

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_128_digest

from pipeline_tasks.store.local_store import os_errors
from refinery_sources.parquet_part import BATCH_ROWS

BUCKETS = 256

HASH, SIGN = "__hash", "__sign"

_KEY = [pa.field(HASH, pa.binary(16)), pa.field(SIGN, pa.int8())]

Signed = tuple[pa.RecordBatch, np.ndarray[Any, np.dtype[np.int8]]]
"""Rows, and of each whether it comes (1) or goes (-1)."""


class Buckets:
    """Files of rows by the first byte of their hash, in a folder that is removed at the end."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder = folder
        self.schema = pa.schema([*schema, *_KEY])
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        self.net = 0

    def add(self, rows: pa.RecordBatch, signs: np.ndarray[Any, np.dtype[np.int8]]) -> None:
        """Write rows to their buckets."""
        hashes = hashes_of(rows)
        keyed = pa.record_batch(
            [*rows.columns, pa.array(hashes, _KEY[0].type), pa.array(signs, pa.int8())], schema=self.schema
        )
        self.net += int(signs.sum(dtype=np.int64))
        buckets = np.fromiter((value[0] for value in hashes), np.uint8, len(hashes))
        for bucket in np.unique(buckets).tolist():
            self._writer(bucket).write_batch(keyed.filter(pa.array(buckets == bucket)))

    def _writer(self, bucket: int) -> pa.ipc.RecordBatchFileWriter:
        if bucket not in self._writers:
            path = self._path(bucket)
            self._writers[bucket] = pa.ipc.new_file(str(path), self.schema)
        return self._writers[bucket]

    def _path(self, bucket: int) -> Path:
        return self._folder / f"{bucket:03d}.arrow"

    def sorted(self, sign: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows that come (1) or go (-1) on balance, as often as they do, in the order of their hashes."""
        for writer in self._writers.values():
            writer.close()
        for bucket in sorted(self._writers):
            with pa.memory_map(str(self._path(bucket))) as stream:
                yield from _balanced(pa.ipc.open_file(stream).read_all(), sign)


def _balanced(table: pa.Table, sign: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a bucket that are left on one side."""
    keys = table.column(HASH).to_pylist()
    order = np.asarray(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
    signs = table.column(SIGN).to_numpy()[order]
    starts = np.flatnonzero([at == 0 or keys[order[at]] != keys[order[at - 1]] for at in range(len(keys))])
    counts = np.add.reduceat(signs.astype(np.int64), starts) * sign
    taken = np.repeat(order[starts], np.maximum(counts, 0))
    rows = table.drop_columns([HASH, SIGN])
    for start in range(0, len(taken), BATCH_ROWS):
        part = rows.take(pa.array(taken[start : start + BATCH_ROWS])).combine_chunks()
        yield from part.to_batches()


def hashes_of(rows: pa.RecordBatch) -> list[bytes]:
    """Return a hash of each row: of its values as Python writes them, so that NaN is not null and 1 is not 1.0."""
    columns = [column.to_pylist() for column in rows.columns]
    return [xxh3_128_digest(repr(values).encode("utf-8", "surrogatepass")) for values in zip(*columns, strict=True)]


@contextlib.contextmanager
def bucketed(batches: Iterable[Signed], schema: pa.Schema, folder: Path) -> Iterator[Buckets]:
    """Have all rows in buckets below `folder`, which is not there before or after."""
    shutil.rmtree(folder, ignore_errors=True)
    with os_errors(str(folder)):
        folder.mkdir(parents=True)
        try:
            buckets = Buckets(folder, schema)
            for rows, signs in batches:
                buckets.add(rows, signs)
            yield buckets
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def coming(batches: Iterable[pa.RecordBatch]) -> Iterator[Signed]:
    """Yield batches of which all rows come."""
    for batch in batches:
        yield batch, np.ones(batch.num_rows, np.int8)


def names_of_rows(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of some columns of each row, or of fields at the end of paths into columns of structs."""
    for batch in batches:
        yield from zip(*(_at(batch, name).to_pylist() for name in columns), strict=True)


def _at(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name in batch.schema.names:
        return batch.column(name)
    first, *below = name.split(".")
    return pc.struct_field(batch.column(first), below)
