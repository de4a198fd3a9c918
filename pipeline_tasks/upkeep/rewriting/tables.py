"""Stores tables of rows again beside themselves: shards and layers in Parquet, and segments of history."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from pipeline_tasks.store.erasures import Erased, Stored
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.store.shards.names import own_metadata
from pipeline_tasks.store.shards.segment import Segment
from pipeline_tasks.store.shards.segment_writer import SegmentWriter
from pipeline_tasks.store.shards.table import Table


def rewritten(root: str, table: Table, batches: Iterable[pa.RecordBatch], rows: int) -> Erased:
    """Store a table again beside itself, from batches of its own columns, of which so many rows are changed."""
    folder = table.shard.path.rpartition("/")[0]
    if table.is_segment:
        top = Segment(root, table.shard).root
        writer: Any = SegmentWriter(table.schema, top.keys)
    else:
        writer = ShardWriter(table.schema, own_metadata(table.schema.metadata) or None)
    try:
        for batch in batches:
            writer.write(batch)
        after = writer.store(root, folder)
    finally:
        writer.discard()
    return Erased(table.stored, Stored(after.path, after.bytes, after.digest, after.index_digest), rows)
