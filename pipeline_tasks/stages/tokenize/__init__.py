"""Encode the text of each document as token ids that end with exactly one end token."""

from functools import partial

import pyarrow as pa

from pipeline_tasks.facets import UnitCost, Wiring
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import Engine, Layer, Section, Shards, Stage, always
from pipeline_tasks.stages.tokenize.choosing import choose_tokenizer, load_tokenizer
from pipeline_tasks.stages.tokenize.encoding import ENCODED, JUDGED, decide, encode
from pipeline_tasks.stages.tokenize.params import FILES, TIKTOKEN, TOKENIZER, Params


def resources(params: Params) -> tuple[str, ...]:
    """Return the files whose content is identity: the tokenizer's, if it is one."""
    return (params.tokenizer,) if params.tokenizer.endswith(FILES) else ()


def check_files(params: Params) -> None:
    """Raise RecipeError unless the tokenizer's file can be read; a tokenizer of another place is not fetched here."""
    if resources(params):
        for _ in load_tokenizer(iter(()), params=params):
            pass


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Choose one tokenizer for the whole run, save it for readers, and encode every shard with it.

    A dataset's own tokenizer comes as `params.tokenizer`: it is chosen and pinned before this runs. What is encoded is
    shared: a build finds the tokens of every shard of documents that an earlier one had, and encodes the new ones.
    """
    tokenizer = choose_tokenizer(shards, params, on)
    on.save_history("tokenizer", tokenizer)
    encoding = partial(encode, backend=params.backend)
    encoded = on.map(encoding, shards, broadcast=tokenizer, layer=Layer(stores=ENCODED, shared=True))
    return on.map(decide, encoded, layer=Layer(reads=JUDGED))


_READS = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("text", pa.large_string())])
_WRITES = pa.schema(
    [
        *LOCATOR,
        pa.field("id", pa.string()),
        pa.field("tokens", pa.list_(pa.int32())),
        pa.field("n_tokens", pa.int64()),  # the end token and the one before the document included
        pa.field("n_bytes", pa.int64()),  # of the text in UTF-8
        pa.field("lost_chars", pa.int64()),  # of the compared part, if any: what decoding does not give back
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
    version=8,
    splits=False,
    libraries={
        "tokenizers": lambda params: not params.tokenizer.startswith(TIKTOKEN),
        "tiktoken": lambda params: params.tokenizer.startswith(TIKTOKEN) or params.is_file,
        "sentencepiece": lambda params: params.is_file,
        "gigatoken": lambda params: params.backend == "auto",
        "fastokens": lambda params: params.backend == "auto",
        UNICODE: always,
    },
    history={"tokenizer": Section(TOKENIZER)},
    reads_history=False,
    profiled=("n_tokens", "n_bytes", "lost_chars", "language", "language_bytes", "language_tokens"),
    reasons=("tokenize:empty", "tokenize:reserved"),
    engine="ray",
    cost=UnitCost(0.16, 1.90, 0.92, 3, rows=1.0),
    wiring=Wiring(builds=True, place=1),
    derived_from=("text",),
)
