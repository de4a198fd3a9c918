"""Select the documents of a training dataset: without superseded ones, and by conditions on stored columns."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.conditions import Condition, any_of, columns_read, failing
from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.facets import UnitCost, Wiring
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import KNOWN_BY, LOCATOR, PARENT, Array
from pipeline_tasks.stage import (
    NO_FILE,
    Batches,
    Engine,
    FilePath,
    Keyed,
    Layer,
    Shards,
    Stage,
    column_of,
    reject,
    replace_column,
)
from pipeline_tasks.text.base.key_pages import KeyedFile

pc: Any = pyarrow.compute

SUPERSEDED = "select:superseded"
TAKEN_DOWN = "select:taken_down"
WHERE = "select:where"

SIZE = "cluster_size"

_READ = (*KNOWN_BY, "snapshot")


@dataclass(frozen=True, slots=True)
class Params:
    """Conditions on columns of the tokenized documents, all of which a document must meet.

    A build fills in `superseded`: a segment by `id`, with the `snapshot` of documents that leave because another
    selected snapshot supersedes them. With `versions: {cluster_sizes: true}` it fills in `clusters`, too: a segment
    with the `cluster_size` of documents (`id`) that stand for several records. Every document then has this column, 1
    where the file says nothing. `taken_down` is a list of what was taken down before.
    """

    where: Mapping[str, Condition] = field(default_factory=dict)
    superseded: FilePath = NO_FILE
    clusters: FilePath = field(default=NO_FILE, metadata={OMITTED: NO_FILE})
    taken_down: FilePath = field(default=NO_FILE, metadata={OMITTED: NO_FILE})


def select(docs: Batches, *listed: Keyed, params: Params) -> Batches:
    """Yield every document; reject those that were taken down, are superseded, or fail a condition."""
    from pipeline_tasks.text.urls.takedown import evidence, read_list

    leaving = KeyedFile(params.superseded) if params.superseded else None
    taken = read_list(params.taken_down, *listed)
    for batch in _sized(docs, params):
        failures = [(name, failing(batch, name, condition, "select.where")) for name, condition in params.where.items()]
        failed = pa.array([False] * batch.num_rows) if not failures else any_of([mask for _, mask in failures])
        winners = _winners(batch, leaving)
        none = pa.scalar(None, pa.string())
        entries = evidence(taken, batch)
        judged = pc.if_else(pc.is_valid(winners), SUPERSEDED, pc.if_else(failed, WHERE, none))
        reasons = pc.if_else(pc.is_valid(entries), TAKEN_DOWN, judged)
        if reasons.null_count == len(reasons):
            yield batch
        else:
            proofs = pa.array(_evidence(batch, reasons, failures, winners), pa.string())
            yield reject(batch, reasons, pc.if_else(pc.is_valid(entries), entries, proofs))


def _sized(docs: Batches, params: Params) -> Batches:
    """Yield the documents with the size of their cluster, if the params name a file of sizes."""
    if not params.clusters:
        yield from docs
        return
    sizes = KeyedFile(params.clusters)
    for batch in docs:
        rows = sizes.rows(batch["id"]).combine_chunks()
        size = rows[SIZE].take(pc.index_in(batch["id"], value_set=rows["id"]))
        yield replace_column(batch, SIZE, pc.fill_null(size, 1).combine_chunks())


def _keys(rows: pa.RecordBatch | pa.Table, name: str) -> Array:
    """Return an id and the snapshot of each document as one text; ids have 32 digits, and so no other pair has it."""
    return pc.binary_join_element_wise(*(rows[column].cast(pa.string()) for column in (name, "snapshot")), "")


def _winners(batch: pa.RecordBatch, leaving: KeyedFile | None) -> pa.Array:
    """Return the winner of each document that leaves, by itself or with its parent, null for any other."""
    winners = pa.nulls(batch.num_rows, pa.string())
    if leaving is None:
        return winners
    for name in ("id", PARENT):
        if name in batch.schema.names:
            rows = leaving.rows(batch[name])
            places = pc.index_in(_keys(batch, name), value_set=_keys(rows, "id").combine_chunks())
            winners = pc.coalesce(winners, rows["winner"].take(places).combine_chunks())
    return winners


def _evidence(
    batch: pa.RecordBatch, reasons: pa.Array, failures: list[tuple[str, pa.Array]], winners: pa.Array
) -> Iterator[str | None]:
    """Yield the winner of a superseded document, or all columns that fail with their values; None for a kept one."""
    values = {name: (mask.to_pylist(), column_of(batch, name, "select.where").to_pylist()) for name, mask in failures}
    for row, reason in enumerate(reasons.to_pylist()):
        proof: dict[str, object] = {}
        if reason == SUPERSEDED:
            proof = {"winner": winners[row].as_py()}
        elif reason == WHERE:
            proof = {name: _proof(column[row]) for name, (mask, column) in values.items() if mask[row]}
        yield json.dumps(proof, sort_keys=True, separators=(",", ":")) if reason else None


def _proof(value: object) -> object:
    """Return a value as JSON has it; NaN, infinity, and what JSON has no form for, as text."""
    is_json = value is None or isinstance(value, (str, int)) or (isinstance(value, float) and isfinite(value))
    return value if is_json else str(value)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Judge each shard by itself."""
    stores = (SIZE,) if params.clusters else ()
    layer = Layer(reads=tuple(dict.fromkeys((*_READ, *columns_read(params.where)))), stores=stores)
    return on.map(partial(select, params=params), shards, broadcast=on.keyed(params.taken_down), layer=layer)


def resources(params: Params) -> tuple[str, ...]:
    """Return the files of superseded documents, of cluster sizes and of what was taken down, if there are such."""
    return tuple(path for path in (params.superseded, params.clusters, params.taken_down) if path)


def writes_for(params: Params) -> pa.Schema:
    """Return the column of cluster sizes, if they were counted."""
    return pa.schema([pa.field(SIZE, pa.int64())] if params.clusters else [])


_COLUMNS = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("n_tokens", pa.int64())])

STAGE: Stage[Params] = Stage(
    name="select",
    run=run,
    params=Params,
    reads=_COLUMNS,
    writes=_COLUMNS,
    version=3,
    splits=True,
    libraries={UNICODE: lambda params: bool(params.taken_down)},
    writes_for=writes_for,
    resources=resources,
    reads_history=False,
    profiled=("n_tokens", "language", "source"),
    reasons=(TAKEN_DOWN, SUPERSEDED, WHERE),
    cost=UnitCost(0.015, 1.00, 0.01, 2, rows=1.0),
    wiring=Wiring(builds=True, place=2),
)
