"""Plots of a mixture search: the shares of groups with intervals, and expected beside measured bits per byte."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline_tasks.plots.plot import Plot, Spec, base_spec, share_axis, tick_decimals
from refinery_ablate.mixture.found import Found

TICKS = 5

MIXTURES = {"prior": "--plot-2", "found": "--plot-1"}
"""The color of each mixture."""

SHAPES = {"prior": "diamond", "found": "circle"}


def weights_plot(found: Found) -> Plot:
    """Plot the share of each group in the prior and in the found mixture, with the interval of the latter."""
    rows = [
        {"group": weight.name or "(none)", "mixture": mixture, "share": share, "low": weight.low, "high": weight.high}
        for weight in found.weights
        for mixture, share in (("prior", weight.prior), ("found", weight.found))
    ]
    table = [
        (weight.name or "(none)", *(f"{share:.1%}" for share in (weight.prior, weight.found, weight.low, weight.high)))
        for weight in found.weights
    ]
    note = "The line is the interval of the found share: 95 % of fits to resampled proxies and held-out documents."
    return Plot("Shares of groups", _weights_spec(rows), ("group", "prior", "found", "low", "high"), table, note)


def _weights_spec(rows: Sequence[Mapping[str, Any]]) -> Spec:
    names = list(dict.fromkeys(row["group"] for row in rows))
    shares = [row[name] for row in rows for name in ("share", "low", "high")]
    x = {"type": "quantitative", "title": "share of tokens", "axis": share_axis(shares, TICKS)}
    y = {"field": "group", "type": "ordinal", "sort": names, "title": None, "axis": {"ticks": False, "labelLimit": 220}}
    legend = {"title": None, "orient": "top"}
    scale = {"domain": list(MIXTURES), "range": list(MIXTURES.values())}
    color = {"field": "mixture", "type": "nominal", "scale": scale, "legend": legend}
    shapes = {"domain": list(SHAPES), "range": list(SHAPES.values())}
    shape = {"field": "mixture", "type": "nominal", "scale": shapes, "legend": legend}
    span = {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y}
    point = {"x": x | {"field": "share"}, "y": y, "color": color, "shape": shape}
    return base_spec(rows) | {
        "height": {"step": 24},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 2, "color": "--plot-1"}, "encoding": span},
            {"mark": {"type": "point", "filled": True, "opacity": 1, "size": 70}, "encoding": point},
        ],
    }


def fit_plot(found: Found) -> Plot:
    """Plot the measured bits per byte of each mixture over those that fits without it expected."""
    check = found.check
    rows = [
        {"expected": expected, "measured": measured}
        for expected, measured in sorted(zip(check.expected, check.measured, strict=True))
    ]
    table = [
        (f"{row['expected']:.4f}", f"{row['measured']:.4f}", f"{row['measured'] - row['expected']:+.4f}")
        for row in rows
    ]
    note = "Each point is a mixture that was left out of the fit. Above the line the fit promised more than there was."
    head = ("expected", "measured", "measured - expected")
    return Plot("Mixtures that were left out", _fit_spec(rows), head, table, note)


def _fit_spec(rows: Sequence[Mapping[str, float]]) -> Spec:
    values = [row[name] for row in rows for name in ("expected", "measured")]
    low, high = min(values), max(values)
    axis = {"format": f".{tick_decimals(values, TICKS, least=low)}f", "tickCount": TICKS}
    scale = {"domain": [low, high], "zero": False, "nice": True}
    x = {"field": "expected", "type": "quantitative", "title": "expected bits per byte", "axis": axis, "scale": scale}
    y = {"field": "measured", "type": "quantitative", "title": "measured", "axis": axis, "scale": scale}
    line = {"values": [{"expected": low, "measured": low}, {"expected": high, "measured": high}]}
    return base_spec(rows, height=260) | {
        "layer": [
            {
                "data": line,
                "mark": {"type": "line", "strokeWidth": 1, "color": "--quiet"},
                "encoding": {"x": x, "y": y},
            },
            {
                "mark": {"type": "point", "filled": True, "opacity": 0.8, "color": "--plot-1"},
                "encoding": {"x": x, "y": y},
            },
        ],
    }
