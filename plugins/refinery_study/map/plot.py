"""Plots documents as points: near ones are near by their vectors, and a column of theirs has a color and a shape."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pipeline_tasks.plots.plot import Plot, Spec, base_spec

COLORS = ("--plot-1", "--plot-2", "--plot-4", "--plot-5", "--plot-6")
SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down")

LOOKS = tuple((color, SHAPES[(at + round_) % len(SHAPES)]) for round_ in range(3) for at, color in enumerate(COLORS))
"""The color and the shape of each group, in their order: no two groups have both."""

GROUPS = len(LOOKS)
"""Groups that have a look of their own."""

OTHERS = "(others)"
"""The group of values that have none."""

OF_OTHERS = ("--plot-3", "triangle-down")

HEIGHT = 560

LEGEND_COLUMNS = 4

ADDRESS = 60
"""Characters of a URL that are shown."""


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A document: its place, its group, its URL and title."""

    id: str
    x: float
    y: float
    group: str
    url: str
    title: str


def map_plot(title: str, by: str, points: Sequence[MapPoint], pages: str = "") -> Plot:
    """Plot documents; `pages` is the address to which an id is added for the page of a document, "" for none."""
    counts = Counter(point.group for point in points)
    groups = sorted(counts, key=lambda name: (name == OTHERS, -counts[name], name))
    if any(name[:1].isdigit() and ": " in name for name in groups):
        groups = sorted(groups)  # bands of numbers are in their own order
    rows = [
        {
            "id": point.id,
            "x": point.x,
            "y": point.y,
            "group": point.group,
            "name": point.title,
            "url": _short(point.url),
        }
        for point in points
    ]
    table = [(name, f"{counts[name]:,}", f"{counts[name] / len(points):.1%}") for name in groups]
    note = (
        "Points that are near have vectors that are near. Distances of groups far from each other, the axes and the "
        "density mean nothing. Drag to move, turn the wheel to come nearer."
    )
    return Plot(
        title, base_spec(rows, height=HEIGHT) | _spec(by, groups, pages), (by, "documents", "share"), table, note
    )


def _spec(by: str, groups: Sequence[str], pages: str) -> Spec:
    bare = {"type": "quantitative", "axis": None, "scale": {"zero": False, "nice": True}}
    legend = {
        "title": by,
        "orient": "top",
        "columns": LEGEND_COLUMNS,
        "symbolSize": 80,
        "labelLimit": 220,
        "symbolOpacity": 1,
    }
    group = {"field": "group", "type": "nominal", "legend": legend}
    known = [OF_OTHERS if name == OTHERS else LOOKS[at] for at, name in enumerate(groups)]
    looks = {
        name: {**group, "scale": {"domain": list(groups), "range": [look[at] for look in known]}}
        for at, name in enumerate(("color", "shape"))
    }
    tooltip = [
        {"field": "name", "type": "nominal", "title": "document"},
        {"field": "url", "type": "nominal"},
        {"field": "group", "type": "nominal", "title": by},
    ]
    encoding: Spec = {"x": {"field": "x", **bare}, "y": {"field": "y", **bare}, **looks, "tooltip": tooltip}
    mark: Spec = {"type": "point", "filled": True, "size": 36, "opacity": 0.75}
    zoom = {"name": "zoom", "select": "interval", "bind": "scales"}
    spec: Spec = {"params": [zoom], "mark": mark, "encoding": encoding}
    if pages:
        mark["cursor"] = "pointer"
        encoding["href"] = {"field": "page", "type": "nominal"}
        spec["transform"] = [{"calculate": f"'{quote(pages, safe='/:?=&%')}' + datum.id", "as": "page"}]
    return spec


def _short(url: str) -> str:
    return url if len(url) <= ADDRESS else f"{url[:ADDRESS]} …"
