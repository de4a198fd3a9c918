"""Sample or repeat groups of documents to shares, budgets and epochs of tokens, planned before any data moves."""

import json
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.facets import Canceled, UnitCost, Wiring
from pipeline_tasks.stage import Batches, Engine, Layer, Section, Shards, Stage, reject, replace_column
from pipeline_tasks.stages.mix.bands import banded
from pipeline_tasks.stages.mix.groups import bands_of, factor_of, factors_of, groups_of
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.planning import BANDS, LIMITS, PLAN, count, limits, plan, plan_bands, with_borders
from pipeline_tasks.stages.mix.quality import BAND
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws


def sample(docs: Batches, limit_rows: Batches, *, params: Params) -> Batches:
    """Yield every document, and reject those above the share of their group, band and factor or of an unlisted group.

    If the params repeat documents, each has the column `copies`: how often it is used.
    """
    table = pa.Table.from_batches(limit_rows, schema=LIMITS).combine_chunks()
    names = _joined(*(table[name].combine_chunks() for name in ("group", "band", "factor")))
    listed, uses, most = (table[name].combine_chunks() for name in ("listed", "uses", "limit"))
    for batch in docs:
        parts = groups_of(batch, params), bands_of(batch, params), factors_of(batch, params)
        at = pc.index_in(_joined(*parts), value_set=names)
        drawn, allowed = pa.array(uniform_draws(batch["id"], params.seed)), most.take(at)
        copies = pc.add(uses.take(at), pc.less(drawn, allowed).cast(pa.int64()))
        over = pc.if_else(pc.equal(copies, 0), "mix:over_budget", pa.scalar(None, pa.string()))
        reasons = pc.if_else(listed.take(at), over, "mix:unlisted")
        marked = replace_column(batch, "copies", copies) if params.repeats else batch
        if reasons.null_count == len(reasons):
            yield marked
        else:
            evidence = _evidence(params, *parts, drawn, allowed, reasons)
            yield reject(marked, reasons, pa.array(evidence, pa.string()))


def _joined(groups: pa.Array, bands: pa.Array, factors: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(groups, bands.cast(pa.string()), factors, "\0")


def _evidence(params: Params, *of_rows: pa.Array) -> Iterator[str | None]:
    """Yield the proof of each row's rejection, of its group, band, factor, draw, limit and reason."""
    columns = (column.to_pylist() for column in of_rows)
    for group, band, of_columns, draw, limit, reason in zip(*columns, strict=True):
        factor = factor_of(band, of_columns, params)
        proof: dict[str, object] = {"group": group} | ({"factor": float(factor)} if factor != 1 else {})
        proof |= {"band": band} if params.quality and band else {}
        if reason == "mix:over_budget":
            proof |= {"draw": round(draw / DRAW_SPAN, 6), "share": round(limit / DRAW_SPAN, 6)}
        yield json.dumps(proof, sort_keys=True, separators=(",", ":")) if reason else None


_COUNTED = ("group", "band", "factor", "bin", "tokens")


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Count tokens per group, band and factor in all shards, plan once, and sample every shard by the plan.

    With `quality` the bands of all documents are named first.
    """
    found: Shards = ()
    if params.quality:
        shards, found = banded(shards, params, params.quality, on)
    columns = ("id", *params.by.split("+"), *params.factors, *([BAND] if params.quality else []))
    counts = on.map(partial(count, params=params), shards, reads=(*columns, "n_tokens"))
    planned, limited = (
        on.group(partial(kernel, params=params), counts, by=_COUNTED[0], order=_COUNTED[1:], buckets=1)
        for kernel in (plan, limits)
    )
    on.save_history("plan", planned)
    if params.quality:
        by_bands = partial(plan_bands, params=params, quality=params.quality)
        by_band = on.group(by_bands, counts, by=_COUNTED[0], order=_COUNTED[1:], buckets=1)
        on.save_history("bands", on.map(with_borders, by_band, broadcast=found))
    return on.map(partial(sample, params=params), shards, broadcast=limited, layer=Layer(reads=columns))


_COLUMNS = pa.schema([pa.field("id", pa.string()), pa.field("n_tokens", pa.int64())])


def writes_for(params: Params) -> pa.Schema:
    """Return the column of uses, if documents may be used more than once, and that of bands, if there are any."""
    copies = [pa.field("copies", pa.int64())] if params.repeats else []
    return pa.schema([*copies, *([pa.field(BAND, pa.int64())] if params.quality else [])])


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    shares = params.weights or params.tokens
    asked = shares or params.epochs or params.temperature
    if not shares:
        yield Canceled("unlisted", "`weights` and `tokens` name no group, so that every one is kept", "name groups")
    if not shares and not params.temperature:
        yield Canceled("max_epochs", "nothing asks for more of a group than it has", "name groups in `weights`")
    if not (asked or params.quality):
        yield Canceled("bands", "no group of them has a share", "name groups in `weights`, `tokens` or `epochs`")
    if not (asked or params.budget_tokens or params.factors or params.quality):
        yield Canceled("seed", "every document is used once, and none is drawn", "name shares, or a budget")
    if params.temperature == 1:
        yield Canceled("temperature", "1 weights groups by what they have", "write a larger one")


STAGE: Stage[Params] = Stage(
    name="mix",
    run=run,
    params=Params,
    reads=_COLUMNS,
    writes=_COLUMNS,
    writes_for=writes_for,
    version=2,
    splits=False,
    history={"plan": Section(PLAN), "bands": Section(BANDS)},
    reads_history=False,
    profiled=("n_tokens", "language", "source", "copies"),
    reasons=("mix:over_budget", "mix:unlisted"),
    removes="surplus",
    canceled=canceled,
    cost=UnitCost(0.025, 1.00, 0.01, 2, rows=1.0),
    wiring=Wiring(builds=True),
)
