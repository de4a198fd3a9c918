"""Gives a request to tokenize the dataset's tokenizer: the pinned one, or one that is chosen and pinned now."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.publish.tokenizer_pin import (
    TOKENIZE,
    Pin,
    adopt,
    pin_of,
    put_pin,
    read_pin,
    require_enough,
    require_same,
)
from pipeline_tasks.recipe import is_trial, untried
from pipeline_tasks.run.history import History
from pipeline_tasks.run.plan import Plan, RefineRequest, plan
from pipeline_tasks.run.runner import EngineFactory
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Engine
from pipeline_tasks.stages.tokenize import STAGE
from pipeline_tasks.stages.tokenize.choosing import choose_tokenizer
from pipeline_tasks.stages.tokenize.params import Params
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_shards


def with_pinned_tokenizer(request: RefineRequest, factory: EngineFactory) -> RefineRequest:
    """Return the request with the dataset's tokenizer as its params; a request of no dataset, or stage, as it is.

    The tokenizer's digest is then a part of the fingerprint, and nothing else about how it was chosen.
    """
    if request.stage != TOKENIZE or not request.recipe:
        return request
    params: Params = bind(STAGE, request.params)
    planned = plan(request)
    identity = planned.identity["tokenizer"]
    pin = _known(request.root, request.recipe) or _chosen(planned, params, identity, factory)
    require_same(request.root, pin, params, identity)
    pinned = {"tokenizer": f"{request.root}/{pin.path}", "eos": pin.eos, "bos": pin.bos, "backend": params.backend}
    return replace(request, params=pinned)


def _known(root: str, recipe: str) -> Pin | None:
    """Return a dataset's pin; the trials of a recipe begin with its own, if it has one."""
    pin = read_pin(root, recipe) or adopt(root, recipe)
    if pin is None and is_trial(recipe) and (whole := read_pin(root, untried(recipe))):
        return put_pin(root, replace(whole, recipe=recipe), storage.connect(root).read(whole.path))
    return pin


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
    tracker.remove_intermediate()
    return pin


def _choose(planned: Plan, params: Params, identity: str, engine: Engine) -> Pin:
    """Choose a tokenizer as the recipe says, and pin it unless another run was faster; return the dataset's pin."""
    request = planned.request
    shards = choose_tokenizer(planned.inputs(None), planned.params, engine)
    rows = pa.Table.from_batches(list(read_shards(request.root, shards))).to_pylist()
    row: Mapping[str, Any] = rows[0]
    if params.train:
        require_enough(row, params.train, request.recipe)
    pin = pin_of(row, request.recipe, request.snapshot, identity or "trained", params)
    return put_pin(request.root, pin, row["definition"])
