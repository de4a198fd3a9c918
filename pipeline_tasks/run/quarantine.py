"""Quarantines partitions that failed every try, and records on which a kernel raises; neither is refined."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.manifest import PARTITION
from pipeline_tasks.run.plan import Plan
from pipeline_tasks.run.tasks.poison import PLACE, PoisonedRow
from pipeline_tasks.run.tasks.task import Outcome, Task, run, run_stream
from pipeline_tasks.run.tracker import MapOptions, Tracker
from pipeline_tasks.schema import DOCUMENT, LOCATOR, PAGE
from pipeline_tasks.sealed import canonical
from pipeline_tasks.stage import LANDING, Batches, Engine, Layer, Shard, Shards, reject
from pipeline_tasks.store.reading import conformed

pc: Any = pyarrow.compute

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


def without_poison(shards: Shards, rows: Sequence[PoisonedRow], stage: str, on: Engine) -> Shards:
    """Return shards without the records on which a kernel of a stage raised; they are quarantined for `error:<stage>`.

    A shard that has none of them stays as it is, and so do the tasks that read it.
    """
    if not rows:
        return shards
    kernel = partial(quarantine_records, rows=tuple(sorted(rows, key=str)), reason=f"error:{stage}")
    left = on.map(kernel, shards, layer=Layer(reads=(*LOCATOR.names, "id")))
    return tuple(after if after.rows != before.rows else before for before, after in zip(shards, left, strict=True))


def quarantine_records(batches: Batches, *, rows: tuple[PoisonedRow, ...], reason: str) -> Iterator[pa.RecordBatch]:
    """Yield every row; those of `rows` have a reason, and the error as evidence."""
    errors = {(*row.place, row.id): canonical({"error": row.error}).decode() for row in rows}
    offsets = pa.array({row.offset for row in rows}, pa.int64())
    for batch in batches:
        evidence: list[str | None] = [None] * batch.num_rows
        near = pc.indices_nonzero(pc.is_in(batch.column("offset"), value_set=offsets)).to_pylist()
        named = [batch.column(name).take(near).to_pylist() for name in PLACE] if near else []
        ids = batch.column("id").take(near).to_pylist() if near and "id" in batch.schema.names else [None] * len(near)
        for at, row, *place in zip(near, ids, *named, strict=True):
            evidence[at] = errors.get((*place, row)) or errors.get((*place, None))
        proof = pa.array(evidence, pa.string())
        yield reject(batch, pc.if_else(pc.is_valid(proof), reason, pa.scalar(None, pa.string())), proof)


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
    return run_stream(task, _unread(task, shard), landed=True)


def _unread(task: Task, shard: Shard) -> Batches:
    """Yield the row that stands for a landed file, or piece of one."""
    from pipeline_tasks.landing import formats

    name = shard.path.removeprefix(LANDING)
    yield conformed(formats.unread(name, task.io.snapshot, shard.start, shard.bytes, UNREAD), PAGE)
