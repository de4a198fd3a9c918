"""Sums a column of numbers by the values of another, for names that a card's `profiled` may have."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

MILLIONTHS = 1_000_000
"""Fractions and their squares are summed in millionths, so that sums are whole numbers and the same in any order."""


class Sum(NamedTuple):
    """What a profile sums: `amount` to a power, by the values of `by`; to the power of 0 it counts the rows."""

    by: str
    amount: str
    power: int = 1


SCORE_ROWS = "language_score_rows"
"""Name of the profile that counts rows with a score by language."""

MOMENTS: Mapping[str, Sum] = {
    SCORE_ROWS: Sum("language", "score", 0),
    "language_score_sums": Sum("language", "score", 1),
    "language_score_squares": Sum("language", "score", 2),
}
"""Names of the profiles that give mean and variance of the score by language, in the order of their powers."""

SITE = "site of url"
"""Name of a column that rows do not have: the site of their `url`, which `removals.with_sites` adds."""

SITE_COVERAGES: Mapping[str, Sum] = {
    "site_coverage_rows": Sum(SITE, "coverage", 0),
    "site_coverage_sums": Sum(SITE, "coverage", 1),
    "site_coverage_squares": Sum(SITE, "coverage", 2),
}
"""Names of the profiles that give mean and variance of the coverage by site, in the order of their powers."""

SUMS: Mapping[str, Sum] = {
    "language_bytes": Sum("language", "n_bytes"),
    "language_tokens": Sum("language", "n_tokens"),
    **MOMENTS,
    **SITE_COVERAGES,
}
"""Name of the profile -> what it sums; the values of `by` are its bins."""


def columns_summed(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that the sums among `names` read."""
    return tuple(column for name in names if name in SUMS for column in (_column_of(SUMS[name].by), SUMS[name].amount))


def _column_of(by: str) -> str:
    return "url" if by == SITE else by


def sums(batch: pa.RecordBatch | pa.Table, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the profiles of the sums among `names`; without those whose columns the rows do not have."""
    wanted = {name: SUMS[name] for name in names if name in SUMS}
    return {
        name: _summed(batch.column(by), _powers(batch.column(amount), power))
        for name, (by, amount, power) in wanted.items()
        if {by, amount} <= set(batch.schema.names)
    }


def _powers(amount: pa.Array | pa.ChunkedArray, power: int) -> pa.Array | pa.ChunkedArray:
    """Return whole numbers to add up: the amounts themselves, or millionths of fractions to a power."""
    if not pa.types.is_floating(amount.type):
        return amount
    if power == 0:
        return pc.cast(pc.is_valid(amount), pa.int64())
    return pc.cast(pc.round(pc.multiply(pc.power(amount, power), float(MILLIONTHS))), pa.int64())


def _summed(by: pa.Array | pa.ChunkedArray, amount: pa.Array | pa.ChunkedArray) -> dict[str, Any]:
    rows = pa.table({"by": by, "amount": amount}).filter(pc.is_valid(by))
    totals = rows.group_by("by", use_threads=False).aggregate([("amount", "sum")])
    bins = dict(zip(totals["by"].to_pylist(), totals["amount_sum"].to_pylist(), strict=True))
    return {
        "kind": "name",
        "count": rows.num_rows,
        "bins": {str(key): value or 0 for key, value in sorted(bins.items())},
    }
