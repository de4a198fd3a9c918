"""Plots of a comparison: how the models of both arms learned, and where one arm is better."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_tasks.plots.plot import Plot, Spec, base_spec, count_axis, tick_decimals
from refinery_ablate.job import ARMS, Job, Plan, read_result
from refinery_ablate.statistics import Difference, Floats

Losses = Sequence[Sequence[Sequence[float]]]
"""(step, mean loss of the steps up to it) of each seed."""

COLORS = {"a": "--plot-1", "b": "--plot-2"}
"""The color of each arm."""

SIDES = {"better": "--good", "no difference seen": "--plot-3", "worse": "--bad"}
"""The color of what a group of held-out documents says of the second arm."""

SHAPES = {"better": "triangle-left", "no difference seen": "circle", "worse": "triangle-right"}
"""The shape of each, which is seen without its color."""

LEFT_OUT = 0.1
"""Share of the steps, the first ones, that curves leave out: the fall of the loss there would flatten the rest."""

POINTS = 40
"""Most points of a curve: a point is the mean of the steps since the one before it."""

TICKS = 5


def curves_plot(folder: Path, plan: Plan, rate: float) -> Plot:
    """Plot the training loss of both arms at a rate over tokens: the mean of the seeds, from the lowest to the highest.

    Bits per token; a run's result has the means of a few steps each.
    """
    return plot_of_curves(rate, curve_rows(folder, plan, rate))


def curve_rows(folder: Path, plan: Plan, rate: float, arms: tuple[int, int] = (0, 1)) -> list[dict[str, Any]]:
    """Return the points of two arms at a rate: `arm`, `step`, `tokens`, and `mean`, `low` and `high` of the seeds."""
    return rows_of_curves([_losses(folder, plan, arm, rate) for arm in arms], _steps(folder, plan), plan.tokens)


def rows_of_curves(losses: Sequence[Losses], steps: int, tokens: int) -> list[dict[str, Any]]:
    """Return the points of two arms, as `curve_rows` does, by the losses of each seed of both."""
    rows = [row for name, own in zip(ARMS, losses, strict=True) for row in _curve(name, own, steps)]
    return [{**row, "tokens": round(row["step"] * tokens / steps)} for row in rows]


def plot_of_curves(rate: float, rows: Sequence[Mapping[str, Any]]) -> Plot:
    """Plot points of `curve_rows`."""
    table = [
        (row["arm"], f"{row['tokens']:,}", *(f"{row[name]:.3f}" for name in ("mean", "low", "high"))) for row in rows
    ]
    note = (
        "The line is the mean of the seeds, and the band goes from the lowest to the highest. Each arm is measured on "
        "its own tokens: a lower curve is text that is easier to predict, and not a better model."
    )
    head = ("arm", "tokens", "bits per token", "lowest seed", "highest seed")
    return Plot(f"Training at rate {rate:g}", _curves_spec(rows), head, table, note)


def _steps(folder: Path, plan: Plan) -> int:
    return int(read_result(folder, Job(0, plan.rates[0], plan.seeds[0]))["steps"])


def _losses(folder: Path, plan: Plan, arm: int, rate: float) -> Losses:
    return [read_result(folder, Job(arm, rate, seed))["losses"] for seed in plan.seeds]


def _curve(arm: str, losses: Losses, steps: int) -> Iterator[dict[str, Any]]:
    """Yield the points of an arm: all seeds have the same steps."""
    points = np.array([point[0] for point in losses[0]])
    values: Floats = np.array([[point[1] for point in seed] for seed in losses], np.float64)
    shown = points > LEFT_OUT * steps if (points > LEFT_OUT * steps).any() else np.ones(len(points), np.bool_)
    points, values = points[shown], values[:, shown]
    every = -(-len(points) // POINTS)
    for at in range(0, len(points), every):
        seeds = values[:, at : at + every].mean(axis=1)
        step = int(points[min(at + every, len(points)) - 1])
        low, high = float(seeds.min()), float(seeds.max())
        yield {"arm": arm, "step": step, "mean": float(seeds.mean()), "low": low, "high": high}


def _curves_spec(rows: Sequence[Mapping[str, Any]]) -> Spec:
    scale = {"domain": list(COLORS), "range": list(COLORS.values())}
    legend = {"title": None, "orient": "top", "symbolOpacity": 1}
    color = {"field": "arm", "type": "nominal", "scale": scale, "legend": legend}
    bounds = [row[name] for row in rows for name in ("low", "high")]
    axis = {"format": f".{tick_decimals(bounds, TICKS, least=min(bounds))}f", "tickCount": TICKS}
    y = {"type": "quantitative", "title": "bits per token", "scale": {"zero": False}, "axis": axis}
    tokens = count_axis(max(row["tokens"] for row in rows), TICKS)
    x = {"field": "tokens", "type": "quantitative", "title": "tokens", "axis": tokens | {"grid": False}}
    x["scale"] = {"zero": False, "nice": False}
    band = {"y": y | {"field": "low"}, "y2": {"field": "high"}}
    return base_spec(rows, height=220) | {
        "encoding": {"x": x, "color": color},
        "layer": [
            {"mark": {"type": "area", "opacity": 0.2, "line": False}, "encoding": band},
            {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": {"y": y | {"field": "mean"}}},
        ],
    }


# --- Forest -------------------------------------------------------------------------------------------------------


def forest_plot(
    differences: Mapping[float, Difference], groups: Mapping[str, Difference], names: tuple[str, str] = ("b", "a")
) -> Plot:
    """Plot the difference at each rate and in each group of held-out documents, with intervals and a line at 0.

    `names` are those of what is compared and of what it is compared with.
    """
    one, other = names
    rows = [_interval(f"all, rate {rate:g}", compared) for rate, compared in sorted(differences.items(), reverse=True)]
    rows += [_interval(name, compared) for name, compared in groups.items()]
    table = [(row["name"], *(f"{row[name]:+.4f}" for name in ("value", "low", "high")), row["says"]) for row in rows]
    note = (
        f"Bits per byte of {one} minus {other}, with 95 % intervals: to the left of 0 {one} is better. Groups are of "
        "the larger rate, and their intervals are as wide as lets all of them hold together."
    )
    title = "Where one arm is better" if names == ("b", "a") else f"Where {one} is better"
    head = ("held-out documents", f"{one} - {other}", "low", "high", f"{one} is")
    return Plot(title, _forest_spec(rows, f"bits per byte, {one} - {other}"), head, table, note)


def _interval(name: str, compared: Difference) -> dict[str, Any]:
    side = "better" if compared.value < 0 else "worse"
    says = side if compared.excludes_zero else "no difference seen"
    return {"name": name, "value": compared.value, "low": compared.low, "high": compared.high, "says": says}


def _forest_spec(rows: Sequence[Mapping[str, Any]], title: str) -> Spec:
    names = [row["name"] for row in rows]
    bounds = [0.0, *(row[name] for row in rows for name in ("low", "high"))]
    axis = {"format": f"+.{tick_decimals(bounds, TICKS)}f", "tickCount": TICKS}
    x = {"type": "quantitative", "title": title, "axis": axis, "scale": {"zero": True, "nice": True}}
    y = {"field": "name", "type": "ordinal", "sort": names, "title": None, "axis": {"ticks": False, "labelLimit": 220}}
    color = {"field": "says", "type": "nominal", "scale": {"domain": list(SIDES), "range": list(SIDES.values())}}
    shape = {"field": "says", "type": "nominal", "scale": {"domain": list(SHAPES), "range": list(SHAPES.values())}}
    legend = {"title": None, "orient": "top"}
    color, shape = color | {"legend": legend}, shape | {"legend": legend}
    span = {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y, "color": color}
    point = {"x": x | {"field": "value"}, "y": y, "color": color, "shape": shape}
    return base_spec(rows) | {
        "height": {"step": 24},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 1, "color": "--quiet", "aria": False},
                "encoding": {"x": x | {"datum": 0}},
            },
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": span},
            {"mark": {"type": "point", "filled": True, "opacity": 1, "size": 70}, "encoding": point},
        ],
    }
