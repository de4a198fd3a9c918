"""Reads some records of a landed archive by where they are, where it has one gzip member for each.

Where most of a file's pages are those of an earlier snapshot, this is a small part of its bytes. The digest of the
whole file is not computed then. Each record is checked by itself: its member is whole by its own checksum, it is where
it was, and it has the record id and the payload digest that it had.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.landing.archives.gzip_members import read_member
from pipeline_tasks.landing.archives.record import Row
from pipeline_tasks.landing.decompression import GZIP, BytesSource, Reader
from pipeline_tasks.landing.formats import batches_of
from pipeline_tasks.store.protocol import MERGE_GAP

MOST = 0.75
"""Share of a file's bytes up to which its records are read one by one: a file that is read whole is checked whole."""

GROUP_BYTES = 16 << 20
"""Stored bytes that are in memory at a time: of records, and of the gaps between them that a store reads."""

Range = tuple[int, int]
"""Bytes of a file: from, and up to."""

ReadRanges = Callable[[Sequence[Range]], list[bytes]]
"""Reads ranges of a landed file."""


def is_worth_it(places: pa.Table, size: int) -> bool:
    """Return whether few enough bytes of a file of `size` bytes are read for records, with the gaps between them."""
    return bool(_costs(places).sum() <= MOST * size)


def _costs(places: pa.Table) -> npt.NDArray[np.int64]:
    """Return the bytes that each record takes: its own, and the gap before it if a store reads that with it."""
    offsets, lengths = (places[name].to_numpy() for name in ("offset", "length"))
    gaps = offsets[1:] - offsets[:-1] - lengths[:-1]
    costs: npt.NDArray[np.int64] = lengths + np.append(0, np.where(gaps <= MERGE_GAP, gaps, 0))[: len(lengths)]
    return costs


def read_placed(
    name: str, read: ReadRanges, places: pa.Table, *, snapshot: str, columns: Sequence[str]
) -> Iterator[pa.RecordBatch | None]:
    """Yield columns of the records at `places` (see `store.shards.rows.PLACED`), in order; None ends it early.

    It ends where a place is not that of a gzip member with this one record: the file is then to be read whole, by
    whoever asked.
    """
    for group in _groups(places):
        rows = _rows(name, read, group)
        if rows is None:
            yield None
            return
        for batch in batches_of(rows, name, snapshot):
            yield batch.select(list(columns))


def _groups(places: pa.Table) -> Iterator[pa.Table]:
    """Cut places where `GROUP_BYTES` are read for those before; none is empty but that of no places."""
    start, size = 0, 0
    for at, cost in enumerate(_costs(places).tolist()):
        size += cost
        if size >= GROUP_BYTES:
            yield places.slice(start, at + 1 - start)
            start, size = at + 1, 0
    if start < places.num_rows or not places.num_rows:
        yield places.slice(start)


def _rows(name: str, read: ReadRanges, group: pa.Table) -> list[Row] | None:
    """Return the rows of records, None where one of them is not by itself what it was."""
    promised = group.to_pylist()
    bodies = read([(place["offset"], place["offset"] + place["length"]) for place in promised])
    rows = [_row(name, body, place["offset"]) for body, place in zip(bodies, promised, strict=True)]
    known = all(row is not None and _is(row, place) for row, place in zip(rows, promised, strict=True))
    return [row for row in rows if row is not None] if known else None


def _row(name: str, body: bytes, offset: int) -> Row | None:
    """Return the one record of a gzip member, None if the bytes are anything else."""
    if not body.startswith(GZIP):
        return None
    reader = Reader(BytesSource(body))
    reader.base = offset
    rows = list(read_member(reader, name))
    return rows[0] if len(rows) == 1 and not reader.fill(1) else None


def _is(row: Row, promised: dict[str, object]) -> bool:
    return all(getattr(row, column) == value for column, value in promised.items())
