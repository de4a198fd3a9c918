"""Gives a request to tokenize the dataset's tokenizer: the pinned one, or one that is chosen and pinned now."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import tokenizes
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.publish.datasets.tokenizer_pin import (
    DEFAULT,
    TRAINED,
    Pin,
    adopt,
    pin_of,
    put_pin,
    read_pin,
    require_same,
)
from pipeline_tasks.run.history import History
from pipeline_tasks.run.plan import Plan, plan
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import EngineFactory
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Engine, Shards
from pipeline_tasks.stages.tokenize import STAGE
from pipeline_tasks.stages.tokenize.choosing import choose_tokenizer, count_bytes, default_row
from pipeline_tasks.stages.tokenize.params import Params, Training
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.store.s3 import waits as s3_waits


def with_pinned_tokenizer(request: RefineRequest, factory: EngineFactory) -> tuple[RefineRequest, Pin | None]:
    """Return the request with the dataset's tokenizer as its params, and its pin.

    The tokenizer's digest is then a part of the fingerprint, and nothing else about how it was chosen. A request of no
    dataset, or of another stage, comes back as it is, with None.
    """
    if not request.recipe or not tokenizes(request.stage):
        return request, None
    params: Params = bind(STAGE, request.params)
    planned = plan(request)
    identity = planned.identity["tokenizer"]
    pin = _known(request.root, request.recipe) or _chosen(planned, params, identity, factory)
    require_same(request.root, pin, params, identity)
    pinned = {"tokenizer": f"{request.root}/{pin.path}", "eos": pin.eos, "bos": pin.bos, "backend": params.backend}
    return replace(request, params=pinned), pin


def _known(root: str, recipe: str) -> Pin | None:
    return read_pin(root, recipe) or adopt(root, recipe)


def _chosen(planned: Plan, params: Params, identity: str, factory: EngineFactory) -> Pin:
    """Choose and pin a tokenizer; where another run has pinned one meanwhile, and removed its shards, that one."""
    tracker = Tracker(planned.io)
    try:
        pin = _choose(planned, params, identity, factory(tracker, History()))
    except RefineryError:
        pinned = read_pin(planned.request.root, planned.request.recipe)
        if pinned is None:
            raise
        return pinned
    finally:
        s3_waits.give_back(tracker.s3_waits)
    tracker.remove_intermediate()
    return pin


def _choose(planned: Plan, params: Params, identity: str, engine: Engine) -> Pin:
    """Choose a tokenizer as the recipe says, and pin it unless another run was faster; return the dataset's pin."""
    request, shards = planned.request, planned.inputs(None)
    if params.tokenizer:
        row, source = _row(request.root, choose_tokenizer(shards, planned.params, engine)), identity
    else:
        row, source = _trained(planned, params, engine)
    return put_pin(request.root, pin_of(row, request.recipe, source, params), row["definition"])


def _trained(planned: Plan, params: Params, engine: Engine) -> tuple[Mapping[str, Any], str]:
    """Return a trained tokenizer and its source; the default one where there is too little text to train one on.

    A dataset keeps its first tokenizer: that of a small first build would cut all later texts into many tokens.
    """
    root, shards, training = planned.request.root, planned.inputs(None), params.train or Training()
    size = sum(row["bytes"] for row in _rows(root, engine.map(count_bytes, shards)))
    if min(size, training.bytes) >= training.floor:
        row = _row(root, choose_tokenizer(shards, planned.params, engine))
        if row["bytes"] >= training.floor and row["vocab_size"] >= training.vocab_size:
            return row, TRAINED
    [row] = default_row(params).to_pylist()
    return {**row, "bytes": size}, DEFAULT


def _row(root: str, shards: Shards) -> Mapping[str, Any]:
    [row] = _rows(root, shards)
    return row


def _rows(root: str, shards: Shards) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.Table.from_batches(list(read_shards(root, shards))).to_pylist()
    return rows
