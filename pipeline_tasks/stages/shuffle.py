"""Shuffle all documents into one seeded random order."""

from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from pipeline_tasks.constraints import Buckets, Seed
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import Batches, Engine, Layer, Shards, Stage
from pipeline_tasks.text.base.sampling import uniform_draws


@dataclass(frozen=True, slots=True)
class Params:
    """Seed of the order, and number of output shards; both decide the bytes.

    A bucket is sorted in the memory of one worker: choose `buckets` for at most about a gigabyte of tokens each.
    """

    seed: Seed = 0
    buckets: Buckets = 4


def draw(docs: Batches, *, params: Params) -> Batches:
    """Append each document's draw under the seed."""
    for batch in docs:
        yield batch.append_column("draw", pa.array(uniform_draws(batch["id"], params.seed)))


def drop_draw(docs: Batches) -> Batches:
    """Yield the documents of a bucket, which are sorted by draw, without the draw."""
    for batch in docs:
        yield batch.drop_columns(["draw"])


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Assign documents to buckets by a hash of their draw, and sort each bucket by draw.

    Both depend on seed and id only, so the output is the same bytes for any sharding of the input. Documents with the
    same id are ordered by their locator.
    """
    if params.buckets < 1:
        message = f"shuffle.buckets: {params.buckets}; at least 1 is needed"
        raise RecipeError(message)
    drawn = on.map(partial(draw, params=params), shards, layer=Layer(reads=("id",)))
    return on.group(drop_draw, drawn, by="draw", order=("id", "snapshot", "file", "offset"), buckets=params.buckets)


_COLUMNS = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("n_tokens", pa.int64())])

STAGE: Stage[Params] = Stage(
    name="shuffle",
    run=run,
    params=Params,
    reads=_COLUMNS,
    writes=_COLUMNS,
    version=1,
    splits=False,
    profiled=("n_tokens",),
)
