"""Shuffle all documents into one seeded random order."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.constraints import Buckets, Seed
from pipeline_tasks.facets import BUCKET_MEMORY, Grouped, UnitCost, Wiring
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import Batches, Engine, Layer, Shards, Stage, buckets_for
from pipeline_tasks.text.base.sampling import uniform_draws

COPY_STRIDE = 0x9E3779B97F4A7C15
"""How far the seeds of two copies' draws are apart: far more than the seeds of recipes.

The first copy's is one stride from the recipe's seed. Stages that sample by that seed, such as `mix`, keep the
documents of low draws, and an order by the same draws would begin with the groups of which they kept a part.
"""

LEAST_BUCKETS = 4
"""Buckets, however few the tokens are."""


@dataclass(frozen=True, slots=True)
class Params:
    """Seed of the order, and number of output shards; both decide the bytes.

    A bucket is sorted in the memory of one worker. `buckets` of 0 takes as many as the bytes of the input ask for: a
    power of two from 4 on, of about 128 MB each. `copies` follows from the input: its column of that name says how
    often each document is used.
    """

    seed: Seed = 0
    buckets: Buckets = 0
    copies: bool = False


def draw(docs: Batches, *, params: Params) -> Batches:
    """Append each document's draw under the seed; a document is a row, with its own draw, for each of its `copies`."""
    for batch in docs:
        rows = _copied(batch) if "copies" in batch.schema.names else batch
        yield rows.append_column("draw", pa.array(_draws(rows, params.seed)))


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return each row as often as its `copies` say, with its number among them, from 0, as the column `copy`."""
    copies = np.asarray(batch["copies"])
    rows = batch.drop_columns(["copies"]).take(pa.array(np.repeat(np.arange(batch.num_rows), copies)))
    starts = np.repeat(np.cumsum(copies) - copies, copies)
    return rows.append_column("copy", pa.array((np.arange(rows.num_rows) - starts).astype(np.int32)))


def _draws(rows: pa.RecordBatch, seed: int) -> npt.NDArray[np.int64]:
    """Return a draw per row; that of a copy is under a seed of its own, so that copies are apart."""
    if "copy" not in rows.schema.names:
        return uniform_draws(rows["id"], seed + COPY_STRIDE)
    copies, draws = np.asarray(rows["copy"]), np.empty(rows.num_rows, np.int64)
    for copy in np.unique(copies):
        at = np.flatnonzero(copies == copy)
        draws[at] = uniform_draws(rows["id"].take(pa.array(at)), seed + (int(copy) + 1) * COPY_STRIDE)
    return draws


def drop_draw(docs: Batches) -> Batches:
    """Yield the documents of a bucket, which are sorted by draw, without the draw."""
    for batch in docs:
        yield batch.drop_columns(["draw"])


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Assign documents to buckets by a hash of their draw, and sort each bucket by draw.

    Both depend on seed and id only, so the output is the same bytes for any sharding of the input. Documents with the
    same id are ordered by their locator. Documents that are used several times have rows of their own, which no layer
    can name: they are written with the draw.
    """
    buckets = params.buckets or buckets_for(shards, LEAST_BUCKETS)
    drawn = on.map(partial(draw, params=params), shards, layer=None if params.copies else Layer(reads=("id",)))
    order = ("id", "snapshot", "file", "offset", *(["copy"] if params.copies else []))
    return on.group(drop_draw, drawn, by="draw", order=order, buckets=buckets)


def for_columns(params: Params, columns: frozenset[str]) -> Params:
    """Return the params with `copies` as the input has it."""
    return replace(params, copies="copies" in columns)


def writes_for(params: Params) -> pa.Schema:
    """Return the column that numbers the uses of a document, if there may be several."""
    return pa.schema([pa.field("copy", pa.int32())] if params.copies else [])


_COLUMNS = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("n_tokens", pa.int64())])

STAGE: Stage[Params] = Stage(
    name="shuffle",
    run=run,
    params=Params,
    reads=_COLUMNS,
    writes=_COLUMNS,
    writes_for=writes_for,
    for_columns=for_columns,
    version=4,
    splits=False,
    conserves="copies",
    profiled=("n_tokens",),
    spread=("snapshot", "source", "language", "n_tokens", "score"),
    cost=UnitCost(0.024, 0.50, 0.50, 2, BUCKET_MEMORY, rows=1.0),
    wiring=Wiring(builds=True, place=-2),
    buckets=Grouped(least=LEAST_BUCKETS),
)
