"""A plot: a Vega-Lite spec, and a table with the same numbers for who does not see it.

Specs name colors by the custom properties of a stylesheet, such as `--plot-1`, in `range` and `color`; what draws a
spec puts the colors of its theme there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import floor, log10, sqrt
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""The version of Vega-Lite that specs are written for; nothing is fetched from there."""

Row = Mapping[str, Any]
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plot:
    """A titled plot. `head` and `rows` are its text alternative; `note` says what to see, in one sentence."""

    title: str
    spec: Mapping[str, Any]
    head: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""


def base_spec(rows: Iterable[Row], *, height: int = 160) -> Spec:
    """Return a spec of rows that is as wide as the page lets it be."""
    return {"$schema": SCHEMA, "width": "container", "height": height, "data": {"values": list(rows)}}


def is_date(name: str) -> bool:
    """Return whether the name of a snapshot is a date, `2026-11-19`."""
    try:
        return date.fromisoformat(name).isoformat() == name
    except ValueError:
        return False


# --- Axes -----------------------------------------------------------------------------------------------------------


def tick_decimals(values: Iterable[float], ticks: int, *, least: float | None = None) -> int:
    """Return the decimals that the labels of about so many ticks need, so that no two of them read the same.

    The axis goes from the smallest of `values`, or from `least`, to the largest. The step is d3's: 1, 2 or 5 times a
    power of ten.
    """
    known = list(values)
    low, high = min([*known, *([] if least is None else [least])], default=0.0), max(known, default=0.0)
    wanted = (high - low) / ticks or abs(high) / ticks
    if not wanted:
        return 0
    power = floor(log10(wanted))
    rest = wanted / 10.0**power
    step = 10 if rest >= sqrt(50) else 5 if rest >= sqrt(10) else 2 if rest >= sqrt(2) else 1
    return max(0, -(power + (step == 10)))  # noqa: PLR2004 -- the step of d3 that is the next power


def share_axis(shares: Iterable[float], ticks: int, *, least: float | None = 0.0) -> Spec:
    """Return an axis of shares in percent."""
    decimals = tick_decimals((100 * share for share in shares), ticks, least=None if least is None else 100 * least)
    return {"format": f".{decimals}%", "tickCount": ticks}


def count_axis(most: float, ticks: int, *, short: bool = True) -> Spec:
    """Return an axis of counts up to `most`, without ticks between two whole numbers; `short` ones are in thousands."""
    return {"format": "~s" if short else ",d", "tickCount": max(1, min(ticks, round(most)))}


FEW = 14
"""Snapshots up to which each has its own tick."""


def snapshot_axis(names: Sequence[str]) -> Spec:
    """Return the horizontal axis of snapshots: time if there are many and all names are dates, else their order."""
    if len(names) > FEW and all(map(is_date, names)):
        axis = {"format": "%b %d", "labelOverlap": True, "tickCount": 6}
        return {"field": "snapshot", "type": "temporal", "title": None, "axis": axis, "scale": {"type": "utc"}}
    axis = {"labelOverlap": True, "labelAngle": 0, "grid": False}
    return {"field": "snapshot", "type": "ordinal", "title": None, "axis": axis}
