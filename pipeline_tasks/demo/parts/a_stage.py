"""A stage: long documents are rejected, and each document has its number of lines."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.facets import UnitCost
from pipeline_tasks.stage import Batches, Engine, Layer, Shards, Stage, reject, replace_column

_READS = pa.schema([pa.field("text", pa.large_string())])


@dataclass(frozen=True, slots=True)
class Params:
    """At most so many characters."""

    max_chars: int = 1000


def judge(batches: Batches, params: Params) -> Batches:
    """Count lines, and reject what is too long."""
    for batch in batches:
        lines = pc.add(pc.count_substring(batch["text"], "\n"), 1).cast(pa.int64())
        is_long = pc.greater(pc.utf8_length(batch["text"]), params.max_chars)
        why = pc.if_else(is_long, pa.scalar("a_stage:long"), pa.scalar(None, pa.string()))
        proof = pc.if_else(is_long, pa.scalar("{}"), pa.scalar(None, pa.string()))
        yield reject(replace_column(batch, "n_lines", lines), why, proof)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Judge each document by itself."""
    return on.map(partial(judge, params=params), shards, layer=Layer(reads=("text",), stores=("n_lines",)))


STAGE: Stage[Params] = Stage(
    name="a_stage",
    run=run,
    params=Params,
    reads=_READS,
    writes=_READS.append(pa.field("n_lines", pa.int64())),
    version=1,
    splits=True,
    profiled=("n_lines",),
    reasons=("a_stage:long",),
    title="Long documents leave",
    removes="unfit",
    cost=UnitCost(0.01, 0.9, 0.1, 3, rows=0.9),
    suite=str(Path(__file__).with_name("a_stage.json")),
)
