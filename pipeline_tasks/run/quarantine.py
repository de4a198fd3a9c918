"""Quarantines partitions that failed every try: each of their rows is stored with a reason, and none is refined."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pipeline_tasks.manifest import PARTITION
from pipeline_tasks.run.plan import Plan
from pipeline_tasks.run.tasks.task import Outcome, Task, run, run_streams
from pipeline_tasks.run.tracker import MapOptions, Tracker
from pipeline_tasks.schema import DOCUMENT, LOCATOR, PAGE
from pipeline_tasks.stage import LANDING, Batches, Layer, Shard, Shards, reject

UNREAD = PARTITION.removeprefix("error:")
"""The `error` of the row that stands for a landed file that was not read."""


def quarantine_rows(rows: Batches) -> Iterator[pa.RecordBatch]:
    """Yield every row with the reason `PARTITION`."""
    for batch in rows:
        yield reject(batch, pa.repeat(pa.scalar(PARTITION), batch.num_rows))


def quarantine_pages(pages: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the place of every page as a document without id and text, with the reason `PARTITION`."""
    for batch in pages:
        columns = [
            batch.column(field.name) if field.name in LOCATOR.names else pa.nulls(batch.num_rows, field.type)
            for field in DOCUMENT
        ]
        yield reject(pa.record_batch(columns, schema=DOCUMENT), pa.repeat(pa.scalar(PARTITION), batch.num_rows))


def quarantined(planned: Plan, shards: Shards) -> Tracker:
    """Store every row of shards as quarantined; return the tracker of the tasks that did.

    Nothing of a landed file is read, as reading may be what failed: one row stands for each file, or piece of one. Of
    pages the places are stored, as their payloads are in landed files. Of documents a layer is stored, which has the
    verdict alone.
    """
    tracker = Tracker(replace(planned.io, profiled=(), spread=()))
    columns = [name for name, _ in planned.parent.schema]
    if "payload" in columns:
        tasks = tracker.map_tasks(quarantine_pages, (shards,), (), MapOptions(reads=tuple(LOCATOR.names)))
    else:
        layer = Layer(reads=tuple(columns[:1])) if columns else None
        tasks = tracker.map_tasks(quarantine_rows, (shards,), (), MapOptions(layer=layer))
    tracker.complete(tasks, lambda missing: (_run(tasks[rank]) for rank in missing))
    return tracker


def _run(task: Task) -> Outcome:
    [shard] = task.inputs[0]
    if not shard.is_landed:
        return run(task)
    return run_streams(task, [_unread(task, shard)], landed=True)


def _unread(task: Task, shard: Shard) -> Batches:
    """Yield the row that stands for a landed file, or piece of one."""
    from pipeline_tasks.landing import formats

    name = shard.path.removeprefix(LANDING)
    yield formats.unread(name, task.io.snapshot, shard.start, shard.bytes, UNREAD).select(PAGE.names)
