"""Encode the text of each document as token ids that end with exactly one end token."""

from functools import partial

import pyarrow as pa

from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import Engine, Layer, Section, Shards, Stage
from pipeline_tasks.stages.tokenize.choosing import choose_tokenizer, load_tokenizer
from pipeline_tasks.stages.tokenize.encoding import choose_backend, encode
from pipeline_tasks.stages.tokenize.params import JSON, TOKENIZER, Params


def resources(params: Params) -> tuple[str, ...]:
    """Return the files whose content is identity: the `tokenizer.json`, if there is one."""
    return (params.tokenizer,) if params.tokenizer.endswith(JSON) else ()


def check_files(params: Params) -> None:
    """Raise RecipeError unless the `tokenizer.json` can be read; a tokenizer of another place is not fetched here."""
    if resources(params):
        for _ in load_tokenizer(iter(()), params=params):
            pass


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Choose one tokenizer for the whole run, save it for readers, and encode every shard with it.

    A dataset's own tokenizer comes as `params.tokenizer`: it is chosen and pinned before this runs.
    """
    tokenizer = choose_tokenizer(shards, params, on)
    on.save_history("tokenizer", tokenizer)
    choices = on.map(partial(choose_backend, params=params), shards, broadcast=tokenizer)
    return on.map(encode, shards, choices, broadcast=tokenizer, layer=Layer(stores=("tokens", "n_tokens")))


_READS = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("text", pa.large_string())])
_WRITES = pa.schema(
    [
        *LOCATOR,
        pa.field("id", pa.string()),
        pa.field("tokens", pa.list_(pa.int32())),
        pa.field("n_tokens", pa.int64()),
    ]
)

STAGE: Stage[Params] = Stage(
    name="tokenize",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    reads=_READS,
    writes=_WRITES,
    version=3,
    splits=False,
    history={"tokenizer": Section(TOKENIZER)},
    reads_history=False,
    profiled=("n_tokens", "language"),
    reasons=("tokenize:empty",),
    engine="ray",
)
