"""Plots a calendar of snapshots: a mark a day, whose color and shape are its state."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from pipeline_tasks.plots.plot import Plot, Spec, base_spec, is_date

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

WEEKS = 54
"""Weeks that a calendar shows, the last ones; its table has every snapshot."""

CELL = 15
"""Pixels of a cell."""

DATED, DATED_WEEKS = 34, 26
"""Pixels of a cell that has the day of the month beside its mark, and up to how many weeks cells are that wide."""

NAMED = 20
"""Snapshots up to which a row of them has their names."""

SIZE = 110
"""Square pixels of a mark."""

GAP = {"type": "band", "paddingInner": 0.14, "paddingOuter": 0.07}
"""Cells, with shares of one between two."""

_X = "M-0.7,-1L0,-0.3L0.7,-1L1,-0.7L0.3,0L1,0.7L0.7,1L0,0.3L-0.7,1L-1,0.7L-0.3,0L-1,-0.7Z"
_RING = "M0,-1A1,1 0 0 1 0,1A1,1 0 0 1 0,-1M0,-0.5A0.5,0.5 0 0 0 0,0.5A0.5,0.5 0 0 0 0,-0.5"
_HALF = "M-1,-1L1,-1L-1,1Z"
_BAR = "M-1,-0.35L1,-0.35L1,0.35L-1,0.35Z"
_FRAME = "M-1,-1L1,-1L1,1L-1,1ZM-0.5,-0.5L-0.5,0.5L0.5,0.5L0.5,-0.5Z"

LOOKS = {
    "published": ("--good", "square"),
    "approved": ("--plot-6", "diamond"),
    "partial": ("--part", _HALF),
    "stale": ("--warn", "triangle-down"),
    "awaiting": ("--await", "triangle-up"),
    "refused": ("--bad", _X),
    "failed": ("--plot-2", "cross"),
    "retracted": ("--odd", _BAR),
    "running": ("--plot-1", "circle"),
    "waiting": ("--plot-3", "triangle-left"),
    "queued": ("--plot-5", "triangle-right"),
    "unfinished": ("--brand", _FRAME),
    "landed": ("--idle", _RING),
}
"""The color and the shape of each state; in the legend are those that occur."""

COLORS = {state: color for state, (color, _) in LOOKS.items()}


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
            place = {"week": _monday(day).isoformat(), "day": DAYS[day.weekday()], "date": str(day.day)}
            cells.append(_cell(entry, place))
    return cells


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _weeks(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return every week from the first to the last, so that a week without a snapshot is a gap."""
    first, last = (date.fromisoformat(end(cell["week"] for cell in cells)) for end in (min, max))
    return [(first + timedelta(weeks=week)).isoformat() for week in range((last - first).days // 7 + 1)]


def _calendar_spec(cells: Sequence[Mapping[str, Any]]) -> Spec:
    weeks = _weeks(cells)
    is_dated = len(weeks) <= DATED_WEEKS
    axis = {"labelExpr": "utcFormat(toDate(datum.value), '%b %e')", "labelAngle": 0, "orient": "top"}
    # Of two labels that overlap Vega leaves none out: a cell is narrower than its label, two cells are wider.
    axis |= {
        "values": weeks[::2],
        "labelAlign": "left",
        "labelOverlap": "greedy",
        "labelOffset": -(DATED if is_dated else CELL) / 2,
    }
    bare = {"title": None, "axis": {"domain": False, "ticks": False, "grid": False, **axis}}
    days = {"domain": False, "ticks": False, "grid": False, "values": DAYS if is_dated else ["Mon", "Wed", "Fri"]}
    place = {
        "x": {"field": "week", "type": "ordinal", "scale": {"domain": weeks, **GAP}, **bare},
        "y": {"field": "day", "type": "ordinal", "scale": {"domain": list(DAYS), **GAP}, "title": None, "axis": days},
    }
    size = {"width": {"step": DATED if is_dated else CELL}, "height": {"step": CELL + 5 if is_dated else CELL}}
    marks = _marks(cells, place, offset=-DATED / 4 if is_dated else 0)
    return base_spec(cells) | size | {"layer": [marks, *([_dates(place)] if is_dated else [])]}


def _dates(place: Spec) -> Spec:
    """Return the layer that has the day of the month beside each mark."""
    mark = {"type": "text", "align": "left", "dx": 2, "fontSize": 11, "color": "--text", "aria": False}
    return {"mark": mark, "encoding": {**place, "text": {"field": "date", "type": "nominal"}}}


def _row_spec(cells: Sequence[Mapping[str, Any]]) -> Spec:
    is_named = len(cells) <= NAMED
    axis = {"labelAngle": -35, "labelLimit": 160, "domain": False, "ticks": False, "grid": False} if is_named else None
    x = {"field": "snapshot" if is_named else "at", "type": "ordinal", "sort": None, "title": None, "axis": axis}
    size = {"width": {"step": DATED if is_named else CELL}, "height": CELL}
    return base_spec(cells) | size | _marks(cells, {"x": {**x, "scale": GAP}})


def _marks(cells: Sequence[Mapping[str, Any]], place: Spec, offset: float = 0) -> Spec:
    """Return the layer with a mark for each snapshot, `offset` pixels from the middle of its cell."""
    known = [state for state in LOOKS if any(cell["state"] == state for cell in cells)]
    legend = {"title": None, "orient": "bottom", "symbolSize": SIZE, "columns": len(known)}
    state = {"field": "state", "type": "nominal", "legend": legend}
    looks = {
        name: {**state, "scale": {"domain": known, "range": [LOOKS[state][at] for state in known]}}
        for at, name in enumerate(("color", "shape"))
    }
    tooltip = [{"field": "snapshot", "type": "nominal"}, {"field": "state", "type": "nominal"}]
    link = {"field": "url", "type": "nominal"}
    mark = {"type": "point", "filled": True, "opacity": 1, "size": SIZE, "cursor": "pointer", "xOffset": offset}
    return {"mark": mark, "encoding": {**place, **looks, "tooltip": tooltip, "href": link}}
