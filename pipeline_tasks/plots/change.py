"""Plots counts of two sides, as now and with other bounds: two bars per name, one below the other."""

from collections.abc import Iterable, Iterator, Mapping

from pipeline_tasks.plots.plot import Plot, Row, Spec, base_spec, count_axis

SERIES = {"now": "--plot-3", "then": "--plot-1"}
"""The color of each side."""

NAMES = 12
"""Names that are plotted, those with the highest counts; the table has all."""

BAR = 9
"""Pixels of a bar."""

Counts = tuple[int | None, int | None]
"""What both sides counted of a name; None of a side that lacks it."""


def change_plot(
    title: str,
    what: str,
    counts: Mapping[str, Counts],
    note: str = "",
    *,
    colors: Mapping[str, str] = SERIES,
    ranked: bool = True,
) -> Plot | None:
    """Plot the two counts of each name; None if nothing is counted. A side that lacks a name has no bar of it.

    `colors` has the names of the sides. Unless `ranked`, all names are plotted in their order, not the highest first.
    """
    names = [name for name, pair in counts.items() if any(pair)]
    if ranked:
        names.sort(key=lambda name: (-max(filter(None, counts[name])), name))
    if not names:
        return None
    shown = names[:NAMES] if ranked else names
    rows = [row for name in shown for row in _rows(name, colors, counts[name])]
    table = [(name, *_cells(*counts[name])) for name in names]
    return Plot(title, _spec(rows, shown, colors), (what, *colors, "change"), table, note)


def _cells(now: int | None, then: int | None) -> tuple[str, str, str]:
    """Return both counts and their change as text, "-" for what is not there."""
    change = "-" if now is None or then is None else f"{then - now:+,}"
    return "-" if now is None else f"{now:,}", "-" if then is None else f"{then:,}", change


def _rows(name: str, sides: Iterable[str], counts: Counts) -> Iterator[Row]:
    for series, count in zip(sides, counts, strict=True):
        if count is not None:
            yield {"name": name, "series": series, "rows": count}


def _spec(rows: list[Row], names: list[str], colors: Mapping[str, str]) -> Spec:
    y = {"field": "name", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": 240, "ticks": False}}
    offset = {"field": "series", "type": "nominal", "sort": list(colors)}
    x = {
        "field": "rows",
        "type": "quantitative",
        "title": "rows",
        "axis": count_axis(max(row["rows"] for row in rows), 5),
    }
    scale = {"domain": list(colors), "range": list(colors.values())}
    color = {"field": "series", "type": "nominal", "scale": scale, "legend": {"title": None, "orient": "top"}}
    tooltip: list[Spec] = [{"field": name, "type": "nominal"} for name in ("name", "series")]
    tooltip.append({"field": "rows", "type": "quantitative", "format": ","})
    encoding = {"y": y, "yOffset": offset, "x": x, "color": color, "tooltip": tooltip}
    return base_spec(rows) | {"height": {"step": BAR}, "mark": {"type": "bar"}, "encoding": encoding}
