"""Plots a number over snapshots: a line, and a point per snapshot in color and shape of its gates' outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline_tasks.plots.plot import Plot, Spec, base_spec, snapshot_axis, tick_decimals

OUTCOMES = {"pass": "--good", "warn": "--warn", "refuse": "--bad", "not judged": "--plot-3"}
"""The color of each outcome."""

SHAPES = {"pass": "circle", "warn": "triangle-up", "refuse": "cross", "not judged": "square"}
"""The shape of each outcome, which is seen without its color."""

TICKS = 4
"""Ticks that an axis has, about."""

FORMATS = {"share": (100.0, ".{}%"), "dollars": (1.0, "$,.{}f"), "number": (1.0, ",.{}f")}
"""What each unit is multiplied by on its axis, and its format (d3's), which the decimals of the ticks are put into."""

MANY = 90
"""Snapshots from which on points are small."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The number of one snapshot, and the worst outcome of its gates ("" if it has no gates)."""

    snapshot: str
    value: float
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """What is plotted: its title, its unit, the format of its table (Python's), and what it means."""

    title: str
    unit: Literal["share", "dollars", "number"]
    text: str
    note: str = ""


def trend(measure: Measure, measured: Sequence[Measured]) -> Plot:
    """Plot a measure over snapshots."""
    rows = [
        {"snapshot": point.snapshot, "value": point.value, "gates": point.outcome or "not judged"} for point in measured
    ]
    table = [(point.snapshot, measure.text.format(point.value), point.outcome or "-") for point in reversed(measured)]
    spec = base_spec(rows, height=130) | {"encoding": _encoding(measure, measured), "layer": _layers(len(measured))}
    return Plot(measure.title, spec, ("snapshot", measure.title.lower(), "gates"), table, measure.note)


def _encoding(measure: Measure, measured: Sequence[Measured]) -> Spec:
    factor, written = FORMATS[measure.unit]
    decimals = tick_decimals((factor * point.value for point in measured), TICKS)
    axis = {"format": written.format(decimals), "tickCount": TICKS}
    scale = {"zero": False, "nice": True}
    value = {"field": "value", "type": "quantitative", "title": None, "scale": scale, "axis": axis}
    tooltip: list[Spec] = [
        {"field": "snapshot", "type": "nominal"},
        {
            "field": "value",
            "type": "quantitative",
            "format": written.format(decimals + 1),
            "title": measure.title.lower(),
        },
        {"field": "gates", "type": "nominal"},
    ]
    return {"x": snapshot_axis([point.snapshot for point in measured]), "y": value, "tooltip": tooltip}


def _layers(count: int) -> list[Spec]:
    scale = {"domain": list(OUTCOMES), "range": list(OUTCOMES.values())}
    color = {"field": "gates", "type": "nominal", "scale": scale, "legend": None}
    shape = {**color, "scale": {"domain": list(SHAPES), "range": list(SHAPES.values())}}
    point = {"type": "point", "filled": True, "opacity": 1, "size": 24 if count > MANY else 55}
    encoding = {"color": color, "shape": shape}
    return [{"mark": {"type": "line", "strokeWidth": 1.5}}, {"mark": point, "encoding": encoding}]
