"""Adds profiles up, and reads quantiles off them."""

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from pipeline_tasks.profiles.bins import octave_end


def merge(profiles: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add profiles of the same columns up; exact, and the same in any order."""
    merged: dict[str, Any] = {}
    for columns in profiles:
        add(merged, columns)
    return merged


def add(merged: dict[str, Any], columns: Mapping[str, Any]) -> None:
    """Add a profile to what others were merged into."""
    for name, column in columns.items():
        into = merged.setdefault(name, {"kind": column["kind"], "count": 0, "bins": {}})
        into["count"] += column["count"]
        if "sum" in column:
            into["sum"] = into.get("sum", 0) + column["sum"]
        for key, count in column["bins"].items():
            into["bins"][key] = into["bins"].get(key, 0) + count


def quantile(column: Mapping[str, Any], share: float) -> float:
    """Return the value below which `share` of a profiled column lies (a bin's lower bound; hundredths for ratios)."""
    bins = sorted((int(key), count) for key, count in column["bins"].items())
    target = share * sum(count for _, count in bins)
    reached = (
        low for (low, _), seen in zip(bins, accumulate(count for _, count in bins), strict=True) if seen >= target
    )
    value = next(reached, bins[-1][0] if bins else 0)
    return value / 100 if column["kind"] == "ratio" else float(value)


def quantile_bin(column: Mapping[str, Any], share: float) -> tuple[float, float]:
    """Return the least and the largest value of the bin that `quantile` names; of a ratio's, which it stays below."""
    low = quantile(column, share)
    return low, low + 0.01 if column["kind"] == "ratio" else float(octave_end(int(low)))
