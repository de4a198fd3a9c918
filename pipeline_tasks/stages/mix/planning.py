"""Plan a mixture: count the tokens of all shards, and decide which documents of each group are used how often."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa

from pipeline_tasks.stage import Batches
from pipeline_tasks.stages.mix.bands import ends_of
from pipeline_tasks.stages.mix.groups import bands_of, factor_of, factors_of, groups_of
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.quality import UNSCORED, Quality
from pipeline_tasks.stages.mix.shares import shares, wanted_tokens
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws

BINS = 1 << 10
"""Draws are counted in 1,024 equal ranges, so a limit is exact to a thousandth and a shard's counts are small."""

_COUNT = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("band", pa.int64()),  # `UNSCORED` for none
        pa.field("factor", pa.string()),  # of `factors`, as the text of a fraction
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
        *(_COUNT.field(name) for name in ("band", "factor")),
        pa.field("uses", pa.int64()),  # times that each document is used
        pa.field("limit", pa.int64()),  # documents whose draw is below it are used once more; DRAW_SPAN is all
    ]
)
"""One row per group, band and factor: which documents are used how often."""

BANDS = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("band", pa.int64()),  # from 1, the lowest; `UNSCORED` of documents without a value
        pa.field("up_to", pa.float64()),  # value of its last document; null of the highest band and of `UNSCORED`
        pa.field("factor", pa.float64()),  # of the band
        pa.field("documents", pa.int64()),
        pa.field("tokens", pa.int64()),
        pa.field("taken", pa.int64()),  # tokens of the mixture, exactly
    ]
)
"""One row per group and band, sorted: the plan of a mixture by quality."""


def count(docs: Batches, *, params: Params) -> Batches:
    """Yield the shard's tokens and documents per group, band, factor and range of draws, sorted."""
    tokens: Counter[tuple[str, int, str, int]] = Counter()
    documents: Counter[tuple[str, int, str, int]] = Counter()
    for batch in docs:
        names = {"group": groups_of(batch, params), "band": bands_of(batch, params)}
        names |= {"factor": factors_of(batch, params)}
        names |= {"bin": pa.array(uniform_draws(batch["id"], params.seed) // (DRAW_SPAN // BINS))}
        sums = pa.table({**names, "tokens": batch["n_tokens"]}).group_by(list(names))
        for row in sums.aggregate([("tokens", "sum"), ("tokens", "count")]).to_pylist():
            key = row["group"], row["band"], row["factor"], row["bin"]
            tokens[key] += row["tokens_sum"]
            documents[key] += row["tokens_count"]
    rows = [dict(zip(_COUNT.names, (*key, tokens[key], documents[key]), strict=True)) for key in sorted(tokens)]
    yield pa.RecordBatch.from_pylist(rows, schema=_COUNT)


class Part(NamedTuple):
    """Documents of a group that are used alike: their band, and their factor of `factors` as text."""

    band: int
    factor: str


Bins = Sequence[int]
"""Tokens by draw."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """What all shards have: documents, and tokens by draw, of each part of each group."""

    documents: Mapping[str, Mapping[Part, int]]
    bins: Mapping[str, Mapping[Part, Bins]]
    params: Params

    def factor(self, part: Part) -> Fraction:
        """Return how much more often than its group a part is used."""
        return factor_of(part.band, part.factor, self.params)

    @property
    def available(self) -> dict[str, Fraction]:
        """The tokens of each group, times the factors of its documents."""
        return {
            group: sum((self.factor(part) * sum(bins) for part, bins in parts.items()), Fraction(0))
            for group, parts in sorted(self.bins.items())
        }

    @property
    def shares(self) -> dict[str, Fraction]:
        """How often each group that is not dropped is used."""
        return shares(self.available, self.params)


def _counted(counts: Batches, params: Params) -> _Counted:
    bins: defaultdict[str, dict[Part, list[int]]] = defaultdict(dict)
    documents: defaultdict[str, Counter[Part]] = defaultdict(Counter)
    for batch in counts:
        for row in batch.to_pylist():
            part = Part(row["band"], row["factor"])
            bins[row["group"]].setdefault(part, [0] * BINS)[row["bin"]] += row["tokens"]
            documents[row["group"]][part] += row["documents"]
    return _Counted(documents, bins, params)


def plan(counts: Batches, *, params: Params) -> Batches:
    """Yield the plan: rows of `PLAN`."""
    counted = _counted(counts, params)
    available = counted.available
    wanted, kept = wanted_tokens(available, params), counted.shares
    rows = []
    for group, tokens in available.items():
        share = kept.get(group, Fraction(0))
        taken = sum(_taken(bins, share * counted.factor(part)) for part, bins in counted.bins[group].items())
        numbers = {"documents": sum(counted.documents[group].values()), "available": int(tokens), "taken": taken}
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
    counted = _counted(counts, params)
    kept = counted.shares
    rows = []
    for group, parts in sorted(counted.bins.items()):
        for part, bins in sorted(parts.items()):
            uses, rest = divmod(kept.get(group, Fraction(0)) * counted.factor(part), 1)
            numbers = {"uses": int(uses), "limit": limit(bins, rest)}
            rows.append({"group": group, **part._asdict(), "listed": group in kept, **numbers})
    yield pa.RecordBatch.from_pylist(rows, schema=LIMITS)


def plan_bands(counts: Batches, *, params: Params, quality: Quality) -> Batches:
    """Yield the plan by band: rows of `BANDS`, without `up_to`; every band of a group has one."""
    counted = _counted(counts, params)
    kept = counted.shares
    rows: list[dict[str, object]] = []
    for group, parts in sorted(counted.bins.items()):
        for band in range(UNSCORED, quality.bands + 1):
            of_band = {part: bins for part, bins in parts.items() if part.band == band}
            factors = {part: kept.get(group, Fraction(0)) * counted.factor(part) for part in of_band}
            numbers = {
                "factor": float(factor_of(band, "1", params)),
                "documents": sum(counted.documents[group][part] for part in of_band),
                "tokens": sum(map(sum, of_band.values())),
                "taken": sum(_taken(bins, factors[part]) for part, bins in of_band.items()),
            }
            if band != UNSCORED or of_band:
                rows.append({"group": group, "band": band, **numbers})
    yield pa.RecordBatch.from_pylist(rows, schema=BANDS)


def with_borders(planned: Batches, found: Batches) -> Batches:
    """Yield the plan by band with the value of each band's last document."""
    ends = ends_of(found)
    for batch in planned:
        rows = batch.to_pylist()
        for row in rows:
            at, of_group = row["band"] - 1, ends.get(row["group"], ())
            row["up_to"] = of_group[at][0] if 0 <= at < len(of_group) else None
        yield pa.RecordBatch.from_pylist(rows, schema=BANDS)


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
