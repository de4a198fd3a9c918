"""A plot: a Vega-Lite spec, and a table with the same numbers for who does not see it.

Specs name colors by the custom properties of a stylesheet, such as `--plot-1`, in `range` and `color`; what draws a
spec puts the colors of its theme there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
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


FEW = 14
"""Snapshots up to which each has its own tick."""


def snapshot_axis(names: Sequence[str]) -> Spec:
    """Return the horizontal axis of snapshots: time if there are many and all names are dates, else their order."""
    if len(names) > FEW and all(map(is_date, names)):
        axis = {"format": "%b %d", "labelOverlap": True, "tickCount": 6}
        return {"field": "snapshot", "type": "temporal", "title": None, "axis": axis, "scale": {"type": "utc"}}
    axis = {"labelOverlap": True, "labelAngle": 0, "grid": False}
    return {"field": "snapshot", "type": "ordinal", "title": None, "axis": axis}
