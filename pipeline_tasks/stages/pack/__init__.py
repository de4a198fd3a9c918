"""Pack the tokens of all documents into sequences of one length, and record the pieces of documents in each."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from pipeline_tasks.facets import Canceled, UnitCost, Wiring
from pipeline_tasks.stage import Engine, Shards, Stage
from pipeline_tasks.stages.pack.by_shard import pack_shard
from pipeline_tasks.stages.pack.concat import COLUMNS, pack_concat
from pipeline_tasks.stages.pack.sequences import PLACED, TAIL, Params


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Pack by the method of the params."""
    if params.by_shard:
        kernel = partial(pack_shard, params=params)
        return on.map(kernel, shards, shared=params.tail != "drop", reads=COLUMNS)
    return pack_concat(shards, params, on)


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    if params.method == "concat" and params.tail == "drop":
        yield Canceled("pad_id", "`tail: drop` leaves no sequence to pad", "write another `tail`")


STAGE: Stage[Params] = Stage(
    name="pack",
    run=run,
    params=Params,
    reads=pa.schema(
        [pa.field("id", pa.string()), pa.field("tokens", pa.list_(pa.int32())), pa.field("n_tokens", pa.int64())]
    ),
    writes=PLACED,
    version=4,
    splits=False,
    conserves="tokens",
    profiled=("n_tokens",),
    reasons=(TAIL,),
    canceled=canceled,
    cost=UnitCost(0.04, 0.02, 0.02, 2),
    wiring=Wiring(builds=True, place=-1, brings=("takedown",)),
    changes=("n_tokens",),
)
