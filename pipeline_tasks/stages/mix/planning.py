"""Plan a mixture: count the tokens of all shards, and decide which documents of each group are used how often."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import pyarrow as pa

from pipeline_tasks.stage import Batches
from pipeline_tasks.stages.mix.groups import factors_of, groups_of
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.shares import shares, wanted_tokens
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws

BINS = 1 << 10
"""Draws are counted in 1,024 equal ranges, so a limit is exact to a thousandth and a shard's counts are small."""

_COUNT = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("factor", pa.string()),  # as the text of a fraction
        pa.field("bin", pa.int64()),
        pa.field("tokens", pa.int64()),
        pa.field("documents", pa.int64()),
    ]
)

PLAN = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("documents", pa.int64()),
        pa.field("available", pa.int64()),  # tokens of the group, times its factors
        pa.field("wanted", pa.int64()),  # tokens that the params ask for, before what limits them
        pa.field("taken", pa.int64()),  # tokens of the mixture, exactly
        pa.field("uses", pa.int64()),  # times that each document with the factor 1 is used
        pa.field("limit", pa.int64()),  # without factors: documents whose draw is below it are used once more
        pa.field("listed", pa.bool_()),  # false: rejected as `mix:unlisted`
        pa.field("limited_by", pa.string()),  # why less is taken than wanted, "" if nothing limits
    ]
)
"""One row per group, sorted: the plan of a mixture."""

LIMITS = pa.schema(
    [
        *(PLAN.field(name) for name in ("group", "listed")),
        pa.field("factor", pa.string()),
        pa.field("uses", pa.int64()),  # times that each document is used
        pa.field("limit", pa.int64()),  # documents whose draw is below it are used once more; DRAW_SPAN is all
    ]
)
"""One row per group and factor: which documents are used how often."""


def count(docs: Batches, *, params: Params) -> Batches:
    """Yield the shard's tokens and documents per group, factor and range of draws, sorted."""
    tokens: Counter[tuple[str, str, int]] = Counter()
    documents: Counter[tuple[str, str, int]] = Counter()
    for batch in docs:
        bins = pa.array(uniform_draws(batch["id"], params.seed) // (DRAW_SPAN // BINS))
        names = {"group": groups_of(batch, params), "factor": factors_of(batch, params), "bin": bins}
        sums = pa.table({**names, "tokens": batch["n_tokens"]}).group_by(list(names))
        for row in sums.aggregate([("tokens", "sum"), ("tokens", "count")]).to_pylist():
            key = row["group"], row["factor"], row["bin"]
            tokens[key] += row["tokens_sum"]
            documents[key] += row["tokens_count"]
    rows = [dict(zip(_COUNT.names, (*key, tokens[key], documents[key]), strict=True)) for key in sorted(tokens)]
    yield pa.RecordBatch.from_pylist(rows, schema=_COUNT)


Bins = Mapping[str, Mapping[Fraction, Sequence[int]]]
"""Tokens by draw, of each group and factor."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """What all shards have: documents per group, and tokens by draw."""

    documents: Mapping[str, int]
    bins: Bins

    @property
    def available(self) -> dict[str, Fraction]:
        """The tokens of each group, times the factors of its documents."""
        return {
            group: sum((factor * sum(bins) for factor, bins in factors.items()), Fraction(0))
            for group, factors in sorted(self.bins.items())
        }


def _counted(counts: Batches) -> _Counted:
    bins: defaultdict[str, dict[Fraction, list[int]]] = defaultdict(dict)
    documents: Counter[str] = Counter()
    for batch in counts:
        for row in batch.to_pylist():
            bins[row["group"]].setdefault(Fraction(row["factor"]), [0] * BINS)[row["bin"]] += row["tokens"]
            documents[row["group"]] += row["documents"]
    return _Counted(documents, bins)


def plan(counts: Batches, *, params: Params) -> Batches:
    """Yield the plan: rows of `PLAN`."""
    counted = _counted(counts)
    available = counted.available
    wanted, kept = wanted_tokens(available, params), shares(available, params)
    rows = []
    for group, tokens in available.items():
        share = kept.get(group, Fraction(0))
        taken = sum(_taken(bins, share * factor) for factor, bins in counted.bins[group].items())
        numbers = {"documents": counted.documents[group], "available": int(tokens), "taken": taken}
        numbers |= {
            "wanted": int(wanted.get(group, 0)),
            "uses": int(share),
            "limit": _draw_limit(counted, group, share),
        }
        limited_by = _limited_by(group, params) if share * tokens < wanted.get(group, 0) else ""
        rows.append({"group": group, **numbers, "listed": group in kept, "limited_by": limited_by})
    yield pa.RecordBatch.from_pylist(rows, schema=PLAN)


def _draw_limit(counted: _Counted, group: str, share: Fraction) -> int:
    """Return the limit of a group's draws where it has no factors."""
    return limit([sum(bins) for bins in zip(*counted.bins[group].values(), strict=True)], share % 1)


def _taken(bins: Sequence[int], share: Fraction) -> int:
    """Return the tokens of documents of which `share` is used."""
    uses, rest = divmod(share, 1)
    return int(uses) * sum(bins) + sum(bins[: limit(bins, rest) // (DRAW_SPAN // BINS)])


def limits(counts: Batches, *, params: Params) -> Batches:
    """Yield which documents of each group and factor are used how often: rows of `LIMITS`."""
    counted = _counted(counts)
    kept = shares(counted.available, params)
    rows = []
    for group, factors in sorted(counted.bins.items()):
        for factor, bins in sorted(factors.items()):
            uses, rest = divmod(kept.get(group, Fraction(0)) * factor, 1)
            numbers = {"uses": int(uses), "limit": limit(bins, rest)}
            rows.append({"group": group, "factor": str(factor), "listed": group in kept, **numbers})
    yield pa.RecordBatch.from_pylist(rows, schema=LIMITS)


def _limited_by(group: str, params: Params) -> str:
    """Return what keeps a group below the tokens that are wanted of it."""
    is_capped = (params.temperature and group not in params.epochs) or (
        group in params.tokens and not params.budget_tokens
    )
    return f"max_epochs {params.max_epochs:g}" if is_capped else "budget_tokens"


def limit(bins: Sequence[int], share: Fraction | int) -> int:
    """Return the highest draw in [0, DRAW_SPAN] below which `bins` hold no more than `share` of their tokens."""
    if not share:
        return 0
    allowed = share * sum(bins)
    return bisect_right(list(accumulate(bins)), allowed) * (DRAW_SPAN // BINS)
