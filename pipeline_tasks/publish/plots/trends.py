"""Plots a number over snapshots: a line, and a point per snapshot in the color of its gates' outcome."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_tasks.publish.plots.plot import Plot, Spec, base_spec, snapshot_axis

OUTCOMES = {"pass": "--good", "warn": "--warn", "refuse": "--bad", "not judged": "--plot-3"}
"""The color of each outcome."""

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
    """What is plotted: its title, the format of its axis (d3's) and of its table (Python's), and what it means."""

    title: str
    axis: str
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
    axis = {"format": measure.axis, "tickCount": 4}
    scale = {"zero": False, "nice": True}
    value = {"field": "value", "type": "quantitative", "title": None, "scale": scale, "axis": axis}
    tooltip: list[Spec] = [
        {"field": "snapshot", "type": "nominal"},
        {"field": "value", "type": "quantitative", "format": measure.axis, "title": measure.title.lower()},
        {"field": "gates", "type": "nominal"},
    ]
    return {"x": snapshot_axis([point.snapshot for point in measured]), "y": value, "tooltip": tooltip}


def _layers(count: int) -> list[Spec]:
    scale = {"domain": list(OUTCOMES), "range": list(OUTCOMES.values())}
    color = {"field": "gates", "type": "nominal", "scale": scale, "legend": None}
    point = {"type": "point", "filled": True, "opacity": 1, "size": 16 if count > MANY else 45}
    return [{"mark": {"type": "line", "strokeWidth": 1.5}}, {"mark": point, "encoding": {"color": color}}]
