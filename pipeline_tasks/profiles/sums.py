"""Sums a column of whole numbers by the values of another, for names that a card's `profiled` may have."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

SUMS: Mapping[str, tuple[str, str]] = {
    "language_bytes": ("language", "n_bytes"),
    "language_tokens": ("language", "n_tokens"),
}
"""Name of the profile -> the column whose values are its bins, and the column that is summed."""


def columns_summed(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that the sums among `names` read."""
    return tuple(column for name in names for column in SUMS.get(name, ()))


def sums(batch: Any, names: Iterable[str]) -> dict[str, dict[str, Any]]:  # noqa: ANN401 -- a batch or table of rows
    """Return the profiles of the sums among `names`; without those whose columns the rows do not have."""
    wanted = {name: SUMS[name] for name in names if name in SUMS}
    return {
        name: _summed(batch.column(by), batch.column(amount))
        for name, (by, amount) in wanted.items()
        if {by, amount} <= set(batch.schema.names)
    }


def _summed(by: Any, amount: Any) -> dict[str, Any]:  # noqa: ANN401 -- Array or ChunkedArray
    rows = pa.table({"by": by, "amount": amount}).filter(pc.is_valid(by))
    totals = rows.group_by("by", use_threads=False).aggregate([("amount", "sum")])
    bins = dict(zip(totals["by"].to_pylist(), totals["amount_sum"].to_pylist(), strict=True))
    return {
        "kind": "name",
        "count": rows.num_rows,
        "bins": {str(key): value or 0 for key, value in sorted(bins.items())},
    }
