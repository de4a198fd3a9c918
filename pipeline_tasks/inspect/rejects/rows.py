"""Reads some of the rows that a stage rejected or quarantined: of one reason, from a row on, up to so many bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.inspect.search import Bounds, batches_from
from pipeline_tasks.manifest import Manifest

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """Rows that a stage did not keep, of `[start, end)`, the rows that were looked at, of all `total` of them."""

    rows: tuple[Mapping[str, Any], ...]
    start: int
    end: int
    total: int


def rejected_rows(root: str, manifest: Manifest, reason: str, bounds: Bounds) -> RejectedRows:
    """Return rejected and quarantined rows with a reason (any, if it is ""), with all their columns.

    Shards before `bounds.start` are not read. Of those behind it, as much is read as the hits or the bytes ask for.
    """
    shards = (*manifest.rejects, *manifest.quarantine)
    total = sum(shard.rows for shard in shards)
    start = end = min(bounds.start, total)
    rows: list[Mapping[str, Any]] = []
    read = 0
    for _, first, batch in batches_from(root, [(shard, None) for shard in shards], start):
        places = _places(batch, reason)
        room = bounds.most_hits - len(rows) if bounds.most_hits else len(places)
        rows += batch.take(pa.array(places[:room], pa.int64())).to_pylist()
        if bounds.most_hits and len(rows) == bounds.most_hits:
            return RejectedRows(tuple(rows), start, first + places[room - 1] + 1, total)
        end, read = first + batch.num_rows, read + batch.nbytes
        if bounds.most_bytes and read >= bounds.most_bytes:
            break
    return RejectedRows(tuple(rows), start, end, total)


def _places(batch: pa.RecordBatch, reason: str) -> list[int]:
    """Return the numbers of the rows with a reason."""
    if not reason:
        return list(range(batch.num_rows))
    found = pc.fill_null(pc.equal(batch.column("reason"), reason), fill_value=False)
    places: list[int] = pc.indices_nonzero(found).to_pylist()
    return places
