"""Plots the time of stages, and of the partitions of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pipeline_tasks.plots.plot import Plot, Spec, base_spec

SLOW = 2.0
"""A partition is slow from this many times the median of its stage on."""

LEAST = 5.0
"""Seconds below which no partition is called slow."""


@dataclass(frozen=True, slots=True)
class Partition:
    """The time of one partition of a stage, and its page in Airflow."""

    stage: str
    partition: int
    seconds: float
    address: str = ""


def slow_partitions(partitions: Sequence[Partition]) -> list[Partition]:
    """Return the partitions that took at least twice the median of their stage, the slowest first."""
    middle = {
        stage: median(partition.seconds for partition in partitions if partition.stage == stage)
        for stage in {partition.stage for partition in partitions}
    }
    slow = [each for each in partitions if each.seconds >= max(SLOW * middle[each.stage], LEAST)]
    return sorted(slow, key=lambda partition: (-partition.seconds, partition.stage, partition.partition))


def stage_times(costs: Sequence[Mapping[str, Any]]) -> Plot:
    """Plot the time of each stage, given rows of the ledger's query `cost`."""
    rows = [
        {"stage": row["stage"], "seconds": row["wall_seconds"], "engine": row["engine"], "usd": row["cost_usd"]}
        for row in costs
    ]
    table = [(row["stage"], row["engine"], f"{row['seconds']:,.2f}", f"${row['usd']:.6f}") for row in rows]
    tooltip = [
        {"field": "stage", "type": "nominal"},
        {"field": "engine", "type": "nominal"},
        {"field": "seconds", "type": "quantitative", "format": ",.2f"},
        {"field": "usd", "type": "quantitative", "format": "$.2~g", "title": "cost"},
    ]
    encoding = {"y": _stage_axis([row["stage"] for row in rows]), "x": _seconds_axis(), "tooltip": tooltip}
    spec = base_spec(rows) | {"height": {"step": 20}, "mark": {"type": "bar", "height": 12}, "encoding": encoding}
    return Plot("Time of each stage", spec, ("stage", "engine", "seconds", "cost"), table)


def partition_times(partitions: Sequence[Partition]) -> Plot:
    """Plot the time of each partition; slow ones are marked."""
    slow = set(slow_partitions(partitions))
    rows = [
        {
            "stage": each.stage,
            "partition": each.partition,
            "seconds": each.seconds,
            "speed": "slow" if each in slow else "usual",
            "url": each.address,
        }
        for each in partitions
    ]
    table = [(row["stage"], row["partition"], f"{row['seconds']:,.1f}", row["speed"]) for row in rows]
    scale = {"domain": ["usual", "slow"], "range": ["--plot-1", "--bad"]}
    color = {"field": "speed", "type": "nominal", "scale": scale, "legend": {"title": None, "orient": "top"}}
    tooltip = [{"field": field, "type": "nominal"} for field in ("stage", "partition", "speed")]
    tooltip.append({"field": "seconds", "type": "quantitative"})
    stages = list(dict.fromkeys(each.stage for each in partitions))
    encoding = {"y": _stage_axis(stages), "x": _seconds_axis(), "color": color, "tooltip": tooltip}
    encoding["href"] = {"field": "url", "type": "nominal"}
    mark = {"type": "tick", "thickness": 2, "cursor": "pointer"}
    spec = base_spec(rows) | {"height": {"step": 20}, "mark": mark, "encoding": encoding}
    note = f"A partition is slow at {SLOW:.0f} times the median of its stage, and from {LEAST:.0f} seconds on."
    return Plot("Time of each partition", spec, ("stage", "partition", "seconds", "speed"), table, note)


def _stage_axis(stages: Sequence[str]) -> Spec:
    return {"field": "stage", "type": "ordinal", "sort": list(stages), "title": None, "axis": {"ticks": False}}


def _seconds_axis() -> Spec:
    return {"field": "seconds", "type": "quantitative", "title": "seconds", "axis": {"tickCount": 5}}
