"""Plots the distribution of a column in a snapshot over those of the previous one and of the trailing ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.plots.plot import Plot, Row, Spec, base_spec, count_axis, share_axis, tick_decimals

SERIES = {"this snapshot": "--plot-1", "previous": "--plot-2", "trailing": "--plot-3"}
"""The color of each distribution."""

DASHES = ([1, 0], [5, 3], [1.5, 2])
"""The dashes of each line, in the order of the colors: which is which is seen without them."""

LABEL = 250
"""Pixels of the longest name: what tells content types apart is at their end."""

TICKS, VALUES = 4, 5
"""Ticks that an axis of shares has, and one of values, about."""

NAMES = 10
"""Values of a column of names that are plotted, the most frequent; the table has all."""

TITLES = {
    "chars": "Length in characters",
    "n_tokens": "Length in tokens",
    "language_score": "Certainty of the language",
    "score": "Quality score",
    "language": "Languages",
    "source": "Sources",
    "content_type": "Content types",
    "cut_chars": "Characters that were cut",
}

Profiles = Mapping[str, Mapping[str, Any]]
"""Profiles of one column, by the names of the colors; one that has no rows is left out."""


def distribution(stage: str, column: str, profiles: Profiles, colors: Mapping[str, str] = SERIES) -> Plot:
    """Plot the shares of the values of a column after a stage, one distribution over the other, the first in front."""
    kind = next(iter(profiles.values()))["kind"]
    rows = [row for series, profile in profiles.items() for row in _rows(series, profile, kind)]
    spec = share_bars(rows, colors) if kind == "name" else _lines(rows, kind, colors)
    title = TITLES.get(column, column.replace("_", " ").capitalize())
    table = [(row["value"], row["series"], f"{row['share']:.2%}") for row in rows]
    return Plot(title, spec, ("value", "snapshot", "share of documents"), table, f"Kept documents after {stage}.")


def _rows(series: str, profile: Mapping[str, Any], kind: str) -> Iterator[Row]:
    bins = profile["bins"].items()
    pairs = sorted(bins, key=lambda pair: (-pair[1], pair[0])) if kind == "name" else sorted(bins, key=_value)
    total = sum(profile["bins"].values())
    for value, count in pairs:
        shown = value if kind == "name" else int(value) / 100 if kind == "ratio" else int(value)
        yield {"series": series, "value": shown, "share": count / total}


def _value(pair: tuple[str, int]) -> int:
    return int(pair[0])


def _by_series(rows: Sequence[Row], colors: Mapping[str, str], looks: Sequence[object] = ()) -> Spec:
    """Return what encodes the series: by their colors, or by `looks` in the order of these."""
    known = {series: at for at, series in enumerate(colors) if any(row["series"] == series for row in rows)}
    scale = {"domain": [*known], "range": [looks[at] if looks else colors[series] for series, at in known.items()]}
    legend = {"title": None, "orient": "top"} | ({"symbolType": "stroke", "symbolSize": 300} if looks else {})
    return {"field": "series", "type": "nominal", "scale": scale, "legend": legend}


def _share(rows: Iterable[Row]) -> Spec:
    axis = share_axis((row["share"] for row in rows), TICKS)
    return {"field": "share", "type": "quantitative", "title": None, "axis": axis}


def _tooltip(kind: str) -> list[Spec]:
    share = {"field": "share", "type": "quantitative", "format": ".1%"}
    return [{"field": "series", "type": "nominal"}, {"field": "value", "type": kind}, share]


def _lines(rows: list[Row], kind: str, colors: Mapping[str, str]) -> Spec:
    """Return a line per snapshot; lengths have bins of equal ratio, so that their scale is one of ratios, too."""
    scale = {"zero": False, "nice": False} | ({"type": "symlog"} if kind == "whole" else {})
    values = [row["value"] for row in rows]
    decimals = max(tick_decimals(values, VALUES), 2)  # 0.84 and not 840m
    x = {
        "field": "value",
        "type": "quantitative",
        "title": None,
        "scale": scale,
        "axis": count_axis(max(values) - min(values), VALUES)
        if kind == "whole"
        else {"tickCount": VALUES, "format": f".{decimals}~f"},
    }
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5, "point": _is_point(rows)}
    looks = {"color": _by_series(rows, colors), "strokeDash": _by_series(rows, colors, DASHES)}
    looks["color"]["legend"] = looks["strokeDash"]["legend"]
    encoding = {"x": x, "y": _share(rows), **looks, "tooltip": _tooltip("quantitative")}
    behind = sorted(rows, key=lambda row: -list(colors).index(row["series"]))  # the first is drawn over the others
    return base_spec(behind, height=150) | {"mark": mark, "encoding": encoding}


def _is_point(rows: Sequence[Row]) -> bool:
    """Return whether a series has one value, of which there is no line."""
    series = [row["series"] for row in rows]
    return any(series.count(name) == 1 for name in series)


def share_bars(rows: Sequence[Row], colors: Mapping[str, str]) -> Spec:
    """Return bars side by side of the first `NAMES` values of the rows: the most frequent ones of this snapshot."""
    names = list(dict.fromkeys(str(row["value"]) for row in rows))[:NAMES]
    shown = [row for row in rows if row["value"] in names]
    y = {
        "field": "value",
        "type": "nominal",
        "sort": names,
        "title": None,
        "axis": {"labelLimit": LABEL, "ticks": False},
    }
    offset = {"field": "series", "type": "nominal", "sort": list(colors)}
    encoding = {
        "y": y,
        "yOffset": offset,
        "x": _share(shown),
        "color": _by_series(rows, colors),
        "tooltip": _tooltip("nominal"),
    }
    return base_spec(shown) | {"height": {"step": 7}, "mark": {"type": "bar"}, "encoding": encoding}
