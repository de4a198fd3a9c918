"""Brings all documents into one seeded random order."""

from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import Batches, Engine, Shards, Stage
from pipeline_tasks.text.base.sampling import uniform_draws


@dataclass(frozen=True, slots=True)
class Params:
    """Which of all orders (`seed`), and into how many shards (`buckets`); both decide the bytes.

    One bucket is sorted in one worker's memory, so choose `buckets` for at most about a gigabyte of tokens each.
    """

    seed: int = 0
    buckets: int = 4


def draw(docs: Batches, *, params: Params) -> Batches:
    """Append each document's draw under the seed."""
    for batch in docs:
        yield batch.append_column("draw", pa.array(uniform_draws(batch["id"], params.seed)))


def deal(docs: Batches) -> Batches:
    """Yield the bucket's documents as they come, sorted by draw, without it."""
    for batch in docs:
        yield batch.drop_columns(["draw"])


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Deal documents to buckets by a hash of their draw and sort each bucket by draw.

    Both follow from seed and id alone, so the output is the same bytes for any sharding of the
    input. The locator behind the id orders documents that share one.
    """
    if params.buckets < 1:
        message = f"shuffle.buckets: {params.buckets}; the documents need at least 1 shard to go to"
        raise RecipeError(message)
    drawn = on.map(partial(draw, params=params), shards)
    return on.group(deal, drawn, by="draw", order=("id", "snapshot", "file", "offset"), buckets=params.buckets)


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
