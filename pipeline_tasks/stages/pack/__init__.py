"""Pack the tokens of all documents into sequences of one length, and record the pieces of documents in each."""

from functools import partial

import pyarrow as pa

from pipeline_tasks.stage import Engine, Shards, Stage
from pipeline_tasks.stages.pack.by_shard import pack_shard
from pipeline_tasks.stages.pack.concat import pack_concat
from pipeline_tasks.stages.pack.sequences import PLACED, SEQUENCE, TAIL, Params


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Pack by the method of the params."""
    if params.by_shard:
        kernel = partial(pack_shard, params=params)
        return on.map(kernel, shards, shared=params.tail != "drop", reads=("id", "copy", "n_tokens"))
    return pack_concat(shards, params, on)


def writes_for(params: Params) -> pa.Schema:
    """Return the tokens, where documents are split over shards; else a reader gets them from the documents."""
    return pa.schema([] if params.by_shard else [SEQUENCE.field("tokens")])


STAGE: Stage[Params] = Stage(
    name="pack",
    run=run,
    params=Params,
    reads=pa.schema(
        [pa.field("id", pa.string()), pa.field("tokens", pa.list_(pa.int32())), pa.field("n_tokens", pa.int64())]
    ),
    writes=PLACED,
    writes_for=writes_for,
    version=3,
    splits=False,
    conserves="tokens",
    profiled=("n_tokens",),
    reasons=(TAIL,),
)
