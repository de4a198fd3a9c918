"""Plots a calendar of snapshots: a cell a day, in the color of its state."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from pipeline_tasks.publish.plots.plot import Plot, Spec, base_spec, is_date

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

WEEKS = 54
"""Weeks that a calendar shows, the last ones; its table has every snapshot."""

CELL = 15
"""Pixels of a cell."""

GAP = {"paddingInner": 0.14, "paddingOuter": 0.07}
"""Shares of a cell between two."""

COLORS = {
    "published": "--good",
    "approved": "--plot-6",
    "partial": "--part",
    "stale": "--warn",
    "awaiting": "--await",
    "refused": "--bad",
    "failed": "--plot-2",
    "retracted": "--odd",
    "running": "--plot-1",
    "waiting": "--plot-3",
    "queued": "--plot-5",
    "unfinished": "--brand",
    "landed": "--idle",
}
"""The color of each state; in the legend are those that occur."""


def calendar(states: Sequence[tuple[str, str, str]]) -> Plot:
    """Plot snapshots given as name, state and address; names that are no dates are in a row, in their order."""
    dated = all(is_date(name) for name, _, _ in states)
    cells = _days(states) if dated else [_cell(entry, {"at": rank}) for rank, entry in enumerate(states)]
    spec = _calendar_spec(cells) if dated else _row_spec(cells)
    rows = [(name, state) for name, state, _ in reversed(states)]
    note = f"The last {WEEKS} weeks of {len(states):,} snapshots." if dated and len(cells) < len(states) else ""
    return Plot("Calendar of snapshots", spec, ("snapshot", "state"), rows, note)


def _cell(entry: tuple[str, str, str], place: Mapping[str, Any]) -> dict[str, Any]:
    name, state, address = entry
    return {"snapshot": name, "state": state, "url": address, **place}


def _days(states: Sequence[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Return the cells of the last weeks, each with the Monday of its week."""
    last = _monday(date.fromisoformat(max(name for name, _, _ in states)))
    cells = []
    for entry in states:
        day = date.fromisoformat(entry[0])
        if last - _monday(day) < timedelta(weeks=WEEKS):
            cells.append(_cell(entry, {"week": _monday(day).isoformat(), "day": DAYS[day.weekday()]}))
    return cells


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _weeks(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return every week from the first to the last, so that a week without a snapshot is a gap."""
    first, last = (date.fromisoformat(end(cell["week"] for cell in cells)) for end in (min, max))
    return [(first + timedelta(weeks=week)).isoformat() for week in range((last - first).days // 7 + 1)]


def _calendar_spec(cells: Sequence[Mapping[str, Any]]) -> Spec:
    month = "utcdate(toDate(datum.value)) <= 7 ? utcFormat(toDate(datum.value), '%b') : ''"
    axis = {"labelExpr": month, "labelAngle": 0, "orient": "top", "labelAlign": "left", "labelOverlap": False}
    bare = {"title": None, "axis": {"domain": False, "ticks": False, **axis}}
    days = {"domain": False, "ticks": False, "values": ["Mon", "Wed", "Fri"]}
    encoding = {
        "x": {"field": "week", "type": "ordinal", "scale": {"domain": _weeks(cells), **GAP}, **bare},
        "y": {"field": "day", "type": "ordinal", "scale": {"domain": list(DAYS), **GAP}, "title": None, "axis": days},
    }
    return _spec(cells, encoding) | {"height": {"step": CELL}}


def _row_spec(cells: Sequence[Mapping[str, Any]]) -> Spec:
    return _spec(cells, {"x": {"field": "at", "type": "ordinal", "axis": None, "scale": GAP}}) | {"height": CELL}


def _spec(cells: Sequence[Mapping[str, Any]], encoding: Spec) -> Spec:
    known = [state for state in COLORS if any(cell["state"] == state for cell in cells)]
    scale = {"domain": known, "range": [COLORS[state] for state in known]}
    color = {"field": "state", "type": "nominal", "scale": scale, "legend": {"title": None, "orient": "bottom"}}
    tooltip = [{"field": "snapshot", "type": "nominal"}, {"field": "state", "type": "nominal"}]
    link = {"field": "url", "type": "nominal"}
    mark = {"type": "rect", "cornerRadius": 2, "cursor": "pointer"}
    step = {"width": {"step": CELL}, "mark": mark}
    return base_spec(cells) | step | {"encoding": {**encoding, "color": color, "tooltip": tooltip, "href": link}}
