"""Sample or repeat groups of documents to shares, budgets and epochs of tokens, planned before any data moves."""

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.stage import Batches, Engine, Layer, Section, Shards, Stage, reject, replace_column
from pipeline_tasks.stages.mix.groups import factors_of, groups_of
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.planning import LIMITS, PLAN, count, limits, plan
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws


def sample(docs: Batches, limit_rows: Batches, *, params: Params) -> Batches:
    """Yield every document, and reject those above the share of their group and factor or of an unlisted group.

    If the params repeat documents, each has the column `copies`: how often it is used.
    """
    table = pa.Table.from_batches(limit_rows, schema=LIMITS).combine_chunks()
    names = _joined(table["group"].combine_chunks(), table["factor"].combine_chunks())
    listed, uses, most = (table[name].combine_chunks() for name in ("listed", "uses", "limit"))
    for batch in docs:
        groups, factors = groups_of(batch, params), factors_of(batch, params)
        at = pc.index_in(_joined(groups, factors), value_set=names)
        drawn, allowed = pa.array(uniform_draws(batch["id"], params.seed)), most.take(at)
        copies = pc.add(uses.take(at), pc.less(drawn, allowed).cast(pa.int64()))
        over = pc.if_else(pc.equal(copies, 0), "mix:over_budget", pa.scalar(None, pa.string()))
        reasons = pc.if_else(listed.take(at), over, "mix:unlisted")
        marked = replace_column(batch, "copies", copies) if params.repeats else batch
        if reasons.null_count == len(reasons):
            yield marked
        else:
            evidence = _evidence(groups, factors, drawn, allowed, reasons)
            yield reject(marked, reasons, pa.array(evidence, pa.string()))


def _joined(groups: pa.Array, factors: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(groups, factors, "\0")


def _evidence(*of_rows: pa.Array) -> Iterator[str | None]:
    """Yield the proof of each row's rejection, of its group, factor, draw, limit and reason."""
    for group, factor, draw, limit, reason in zip(*(column.to_pylist() for column in of_rows), strict=True):
        proof: dict[str, object] = {"group": group} | ({"factor": float(Fraction(factor))} if factor != "1" else {})
        if reason == "mix:over_budget":
            proof |= {"draw": round(draw / DRAW_SPAN, 6), "share": round(limit / DRAW_SPAN, 6)}
        yield json.dumps(proof, sort_keys=True, separators=(",", ":")) if reason else None


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Count tokens per group and factor in all shards, plan once, and sample every shard by the plan."""
    counts = on.map(partial(count, params=params), shards)
    planned, limited = (
        on.group(partial(kernel, params=params), counts, by="group", order=("factor", "bin", "tokens"), buckets=1)
        for kernel in (plan, limits)
    )
    on.save_history("plan", planned)
    layer = Layer(reads=("id", *params.by.split("+"), *params.factors))
    return on.map(partial(sample, params=params), shards, broadcast=limited, layer=layer)


_COLUMNS = pa.schema([pa.field("id", pa.string()), pa.field("n_tokens", pa.int64())])


def writes_for(params: Params) -> pa.Schema:
    """Return the column of uses, if documents may be used more than once."""
    return pa.schema([pa.field("copies", pa.int64())] if params.repeats else [])


STAGE: Stage[Params] = Stage(
    name="mix",
    run=run,
    params=Params,
    reads=_COLUMNS,
    writes=_COLUMNS,
    writes_for=writes_for,
    version=2,
    splits=False,
    history={"plan": Section(PLAN)},
    reads_history=False,
    profiled=("n_tokens", "language", "source", "copies"),
    reasons=("mix:over_budget", "mix:unlisted"),
)
