"""Thins languages or sources to wanted shares of the tokens, and the whole to a budget."""

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stage import Batches, Engine, Shards, Stage, reject
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws


@dataclass(frozen=True, slots=True)
class Params:
    """Which groups, in which proportion of tokens, and how many tokens at most.

    `weights` are target shares of the tokens of the groups of `by` (they need not add up to 1); the total is the
    largest for which no group gives more than it has, so nothing is ever repeated. A weighted group without a
    single token today is left out of the sum. Groups that `weights` does not name follow `unlisted`: `drop`, or
    `keep` them whole. Without `weights` every group stays as it is. A `budget_tokens` above 0 thins all that
    would be kept by one common factor. A document stays if its draw (by `seed` and id) is below its group's limit,
    which is set by counting: a group never gives more tokens than its share, and at most about a
    thousandth of its tokens (or one document, if that is more) less.
    """

    by: Literal["language", "source"] = "language"
    weights: Mapping[str, float] = field(default_factory=dict)
    budget_tokens: int = 0
    seed: int = 0
    unlisted: Literal["drop", "keep"] = "drop"


BINS = 1 << 10
"""Draws are counted by 1,024 equal ranges, so a limit is exact to a thousandth and a shard's counts stay small."""

_COUNT = pa.schema([pa.field("group", pa.string()), pa.field("bin", pa.int64()), pa.field("tokens", pa.int64())])
_SHARE = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("tokens", pa.int64()),  # what the group has
        pa.field("limit", pa.int64()),  # documents whose draw is below it stay; SPAN keeps all
        pa.field("listed", pa.bool_()),  # false: dropped as `unlisted`
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
    """Yield one row per group: how much there is and below which draw a document of it stays."""
    bins: defaultdict[str, list[int]] = defaultdict(lambda: [0] * BINS)
    for batch in counts:
        for row in batch.to_pylist():
            bins[row["group"]][row["bin"]] += row["tokens"]
    tokens = {group: sum(bins[group]) for group in sorted(bins)}
    kept = shares(tokens, params)
    rows = [
        {"group": group, "tokens": there, "limit": limit(bins[group], kept.get(group, 0)), "listed": group in kept}
        for group, there in tokens.items()
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=_SHARE)


def limit(bins: Sequence[int], share: Fraction | int) -> int:
    """Return the highest draw border in [0, SPAN] below which `bins` hold no more than `share` of their tokens."""
    most = share * sum(bins)
    return bisect_right(list(accumulate(bins)), most) * (DRAW_SPAN // BINS)


def shares(tokens: Mapping[str, int], params: Params) -> dict[str, Fraction]:
    """Return the exact share in [0, 1] of each group's tokens that stays; groups not in it are unlisted and dropped."""
    there = {group: Fraction(weight) for group, weight in params.weights.items() if tokens.get(group)}
    weight = sum(there.values())
    most = min((tokens[group] * weight / part for group, part in there.items() if part), default=Fraction(0))
    kept = {group: most * part / weight / tokens[group] if weight else Fraction(0) for group, part in there.items()}
    if not params.weights or params.unlisted == "keep":
        kept |= {group: Fraction(1) for group in tokens if group not in params.weights}
    total = sum((share * tokens[group] for group, share in kept.items()), Fraction(0))
    if 0 < params.budget_tokens < total:
        kept = {group: share * params.budget_tokens / total for group, share in kept.items()}
    return kept


def thin(docs: Batches, plan_rows: Batches, *, params: Params) -> Batches:
    """Yield every document; those above their group's share or of no listed group are set aside."""
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
    columns = (one.to_pylist() for one in (groups, drawn, limits, reasons))
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
    """Count tokens per group everywhere, plan once, and thin every shard by the plan."""
    _check(params)
    counts = on.map(partial(count, params=params), shards)
    planned = on.group(partial(plan, params=params), counts, by="group", order=("bin", "tokens"), buckets=1)
    return on.map(partial(thin, params=params), shards, broadcast=planned)


def _check(params: Params) -> None:
    bad = {group: weight for group, weight in params.weights.items() if not 0 <= weight < float("inf")}
    if bad or (params.weights and not any(params.weights.values())):
        message = f"mix.weights: {bad or dict(params.weights)}; weights are numbers from 0 up, at least one above 0"
        raise RecipeError(message)
    if params.budget_tokens < 0:
        message = f"mix.budget_tokens: {params.budget_tokens}; give a number of tokens, or 0 for no budget"
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
