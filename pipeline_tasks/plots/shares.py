"""Plots the shares of a column's names over snapshots: those that moved most as lines, all of them in the table."""

from collections.abc import Mapping, Sequence
from statistics import median

from pipeline_tasks.plots.distributions import TITLES
from pipeline_tasks.plots.plot import Plot, Row, base_spec, share_axis, snapshot_axis

COLORS = ("--plot-1", "--plot-2", "--plot-4", "--plot-5", "--plot-6", "--plot-3")
"""The colors of the lines, that of the name that moved most first."""

DASHES = ([1, 0], [5, 3], [1.5, 2], [8, 2, 1.5, 2], [10, 4], [3, 1.5])
"""The dashes of the lines, in the order of the colors: which is which is seen without them."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

TICKS = 4
"""Ticks that the axis has, about."""

HEAD = ("this snapshot", "previous", "median before", "least before", "most before")

Shares = Mapping[str, float]
"""The share of the documents with each name."""


def shares_plot(column: str, snapshots: Sequence[tuple[str, Shares]]) -> Plot | None:
    """Plot the shares of names over snapshots, the last one's being this one's; None of fewer than two snapshots.

    The lines are the names between whose least and most share is the largest distance.
    """
    if not snapshots[1:]:  # a line needs two points
        return None
    names = sorted({name for _, shares in snapshots for name in shares})
    courses = {name: [shares.get(name, 0.0) for _, shares in snapshots] for name in names}
    moved = sorted(names, key=lambda name: (min(courses[name]) - max(courses[name]), name))
    shown = moved[: len(COLORS)]
    rows: list[Row] = [
        {"snapshot": snapshot, "name": name, "share": courses[name][at]}
        for name in shown
        for at, (snapshot, _) in enumerate(snapshots)
    ]
    title = f"{TITLES.get(column, column.replace('_', ' ').capitalize())} over snapshots"
    note = "Lines are of the names whose share moved most; the table has all, in this order."
    legend = {"title": None, "orient": "top", "symbolSize": 90}
    encoding = {
        "x": snapshot_axis([snapshot for snapshot, _ in snapshots]),
        "y": {
            "field": "share",
            "type": "quantitative",
            "title": None,
            "axis": share_axis([row["share"] for row in rows], TICKS),
        },
        "color": _named(shown, COLORS) | {"legend": legend},
        "strokeDash": _named(shown, DASHES) | {"legend": legend},
        "tooltip": [
            {"field": "snapshot", "type": "nominal"},
            {"field": "name", "type": "nominal", "title": column},
            {"field": "share", "type": "quantitative", "format": ".1%"},
        ],
    }
    point = {"type": "point", "filled": True, "opacity": 1, "size": 40}
    layer = [
        {"mark": {"type": "line", "strokeWidth": 1.5}},
        {
            "mark": point,
            "encoding": {"shape": _named(shown, SHAPES) | {"legend": None}, "strokeDash": {"value": [1, 0]}},
        },
    ]
    table = [(name, *map("{:.2%}".format, _summary(courses[name]))) for name in moved]
    return Plot(title, base_spec(rows) | {"encoding": encoding, "layer": layer}, (column, *HEAD), table, note)


def _named(names: Sequence[str], looks: Sequence[object]) -> dict[str, object]:
    scale = {"domain": list(names), "range": list(looks[: len(names)])}
    return {"field": "name", "type": "nominal", "scale": scale}


def _summary(course: Sequence[float]) -> tuple[float, ...]:
    """Return the last share, the one before it, and the median, least and most of those before."""
    *before, now = course
    return now, before[-1], median(before), min(before), max(before)
