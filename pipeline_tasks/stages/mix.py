"""Sample languages or sources down to target shares of the tokens, and all documents to a token budget."""

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Annotated, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import Range, Seed, Weight
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stage import Batches, Engine, Layer, Shards, Stage, reject
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws


@dataclass(frozen=True, slots=True)
class Params:
    """Groups, their target shares of tokens, and a token budget.

    `weights` are target shares of the tokens of the groups of `by` (they need not add up to 1). The total is the
    largest for which no group needs more tokens than it has, so no document is repeated. A weighted group without
    tokens in this snapshot is ignored. Groups that `weights` does not name follow `unlisted`: `drop`, or `keep` them
    whole. Without `weights` every group is kept whole. A `budget_tokens` above 0 scales all groups by one factor.

    A document is kept if its draw (by `seed` and id) is below the limit of its group. Limits are set by counting: a
    group never has more tokens than its share, and at most a thousandth of its tokens (or one document) fewer.
    """

    by: Literal["language", "source"] = "language"
    weights: Mapping[str, Weight] = field(default_factory=dict)
    budget_tokens: Annotated[int, Range(0, 2**62)] = 0
    seed: Seed = 0
    unlisted: Literal["drop", "keep"] = "drop"


BINS = 1 << 10
"""Draws are counted in 1,024 equal ranges, so a limit is exact to a thousandth and a shard's counts are small."""

_COUNT = pa.schema([pa.field("group", pa.string()), pa.field("bin", pa.int64()), pa.field("tokens", pa.int64())])
_SHARE = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("tokens", pa.int64()),  # all tokens of the group
        pa.field("limit", pa.int64()),  # documents whose draw is below it are kept; DRAW_SPAN keeps all
        pa.field("listed", pa.bool_()),  # false: rejected as `mix:unlisted`
    ]
)


def count(docs: Batches, *, params: Params) -> Batches:
    """Yield the shard's tokens per group and range of draws, sorted."""
    tokens: Counter[tuple[str, int]] = Counter()
    for batch in docs:
        bins = pa.array(uniform_draws(batch["id"], params.seed) // (DRAW_SPAN // BINS))
        table = pa.table({"group": _groups(batch, params), "bin": bins, "tokens": batch["n_tokens"]})
        for row in table.group_by(["group", "bin"]).aggregate([("tokens", "sum")]).to_pylist():
            tokens[row["group"], row["bin"]] += row["tokens_sum"]
    rows = [{"group": group, "bin": at, "tokens": tokens[group, at]} for group, at in sorted(tokens)]
    yield pa.RecordBatch.from_pylist(rows, schema=_COUNT)


def plan(counts: Batches, *, params: Params) -> Batches:
    """Yield one row per group: its tokens, and the limit below which a document's draw keeps it."""
    bins: defaultdict[str, list[int]] = defaultdict(lambda: [0] * BINS)
    for batch in counts:
        for row in batch.to_pylist():
            bins[row["group"]][row["bin"]] += row["tokens"]
    tokens = {group: sum(bins[group]) for group in sorted(bins)}
    kept = shares(tokens, params)
    limits = {group: limit(bins[group], kept.get(group, 0)) for group in tokens}
    rows = [
        {"group": group, "tokens": tokens[group], "limit": limits[group], "listed": group in kept} for group in tokens
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=_SHARE)


def limit(bins: Sequence[int], share: Fraction | int) -> int:
    """Return the highest draw in [0, DRAW_SPAN] below which `bins` hold no more than `share` of their tokens."""
    allowed = share * sum(bins)
    return bisect_right(list(accumulate(bins)), allowed) * (DRAW_SPAN // BINS)


def shares(tokens: Mapping[str, int], params: Params) -> dict[str, Fraction]:
    """Return the exact share in [0, 1] of each group's tokens that is kept; dropped groups are absent."""
    kept = _weighted_shares(tokens, params.weights)
    if not params.weights or params.unlisted == "keep":
        kept |= {group: Fraction(1) for group in tokens if group not in params.weights}
    total = sum((share * tokens[group] for group, share in kept.items()), Fraction(0))
    if 0 < params.budget_tokens < total:
        kept = {group: share * params.budget_tokens / total for group, share in kept.items()}
    return kept


def _weighted_shares(tokens: Mapping[str, int], weights: Mapping[str, float]) -> dict[str, Fraction]:
    """Return the share of each weighted group for the largest total that no group limits."""
    parts = {group: Fraction(weight) for group, weight in weights.items() if tokens.get(group)}
    whole = sum(parts.values())
    total = min((tokens[group] * whole / part for group, part in parts.items() if part), default=Fraction(0))
    return {group: total * part / whole / tokens[group] if whole else Fraction(0) for group, part in parts.items()}


def sample(docs: Batches, plan_rows: Batches, *, params: Params) -> Batches:
    """Yield every document, and reject those above the share of their group or of an unlisted group."""
    rows = {row["group"]: row for batch in plan_rows for row in batch.to_pylist()}
    names = sorted(rows)
    limits = pa.array([rows[name]["limit"] for name in names], pa.int64())
    listed = pa.array([rows[name]["listed"] for name in names], pa.bool_())
    for batch in docs:
        groups = _groups(batch, params)
        at = pc.index_in(groups, pa.array(names, pa.string()))
        drawn = pa.array(uniform_draws(batch["id"], params.seed))
        over = pc.if_else(pc.greater_equal(drawn, limits.take(at)), "mix:over_budget", pa.scalar(None, pa.string()))
        reasons = pc.if_else(listed.take(at), over, "mix:unlisted")
        if reasons.null_count == len(reasons):
            yield batch
        else:
            evidence = pa.array(_evidence(groups, drawn, limits.take(at), reasons), pa.string())
            yield reject(batch, reasons, evidence)


def _evidence(groups: pa.Array, drawn: pa.Array, limits: pa.Array, reasons: pa.Array) -> Iterator[str | None]:
    columns = (column.to_pylist() for column in (groups, drawn, limits, reasons))
    for group, draw, limit, reason in zip(*columns, strict=True):
        proof: dict[str, object] = {"group": group}
        if reason == "mix:over_budget":
            proof |= {"draw": round(draw / DRAW_SPAN, 6), "share": round(limit / DRAW_SPAN, 6)}
        yield json.dumps(proof, sort_keys=True, separators=(",", ":")) if reason else None


def _groups(batch: pa.RecordBatch, params: Params) -> pa.Array:
    if params.by not in batch.schema.names and not params.weights:
        return pa.array([""] * batch.num_rows, pa.string())  # a common budget needs no groups
    if params.by not in batch.schema.names:
        message = f"mix.by: the documents have no column {params.by!r}; put the stage that writes it before mix"
        raise RecipeError(message)
    return pc.fill_null(batch[params.by], "")


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Count tokens per group in all shards, plan once, and sample every shard by the plan."""
    _check(params)
    counts = on.map(partial(count, params=params), shards)
    planned = on.group(partial(plan, params=params), counts, by="group", order=("bin", "tokens"), buckets=1)
    layer = Layer(reads=("id", params.by))
    return on.map(partial(sample, params=params), shards, broadcast=planned, layer=layer)


def _check(params: Params) -> None:
    bad = {group: weight for group, weight in params.weights.items() if not 0 <= weight < float("inf")}
    if bad or (params.weights and not any(params.weights.values())):
        message = f"mix.weights: {bad or dict(params.weights)}; weights are numbers from 0 up, at least one above 0"
        raise RecipeError(message)
    if params.budget_tokens < 0:
        message = f"mix.budget_tokens: {params.budget_tokens}; write a number of tokens, or 0 for no budget"
        raise RecipeError(message)


_COLUMNS = pa.schema([pa.field("id", pa.string()), pa.field("n_tokens", pa.int64())])

STAGE: Stage[Params] = Stage(
    name="mix",
    run=run,
    params=Params,
    reads=_COLUMNS,
    writes=_COLUMNS,
    version=1,
    splits=False,
    profiled=("n_tokens", "language", "source"),
    reasons=("mix:over_budget", "mix:unlisted"),
)
