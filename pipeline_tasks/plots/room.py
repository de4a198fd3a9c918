"""Plots the room that the facts of gates leave to their bounds: to the left of zero a bound is broken."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_tasks.plots.plot import Plot, base_spec, tick_decimals

SHOWN = 16
"""Facts that are plotted, those with the least room."""

TICKS = 5
"""Ticks that the axis has, about."""

FINDINGS = {"met": "--good", "undecided": "--warn", "violated": "--bad"}
"""The color of each finding."""


@dataclass(frozen=True, slots=True)
class BoundedFact:
    """A fact of a gate with one of its bounds; `why` is the bound's note."""

    gate: str
    fact: str
    value: float
    least: float | None
    most: float | None
    severity: str
    finding: str
    why: str

    @property
    def room(self) -> float:
        """The distance to the nearer limit as a share of the limit: below 0 outside, from -1 to 1.

        A limit of 0 has no scale: outside of it the room is -1, and inside only the other limit counts.
        """
        limits = ((self.least, 1), (self.most, -1))
        distances = [(limit, side * (self.value - limit)) for limit, side in limits if limit is not None]
        rooms = [distance / abs(limit) for limit, distance in distances if limit]
        rooms += [-1.0 for limit, distance in distances if not limit and distance < 0]
        return max(-1.0, min([1.0, *rooms]))

    @property
    def has_scale(self) -> bool:
        """Return whether there is room to speak of: not where only one value is allowed, or no limit but 0."""
        return self.finding != "met" or (self.least != self.most and any((self.least, self.most)))

    @property
    def bound(self) -> str:
        """The limits as text."""
        limits = (("at least", self.least), ("at most", self.most))
        return " and ".join(f"{name} {limit:.6g}" for name, limit in limits if limit is not None)


def _name(fact: BoundedFact, *, is_one: bool) -> str:
    """Return what a bar is called; bars of one name would lie on each other."""
    return f"{fact.gate}: {fact.fact} ({fact.severity}{'' if is_one else f', {fact.bound}'})"


def room_plot(facts: Sequence[BoundedFact]) -> Plot | None:
    """Plot the facts with the least room to their bounds; None without facts."""
    nearest = sorted(facts, key=lambda fact: (list(FINDINGS).index(fact.finding) * -1, fact.room, fact.gate, fact.fact))
    if not nearest:
        return None
    plotted = [fact for fact in nearest if fact.has_scale]
    bounds = Counter((fact.gate, fact.fact, fact.severity) for fact in plotted)
    rows = [
        {
            "name": _name(fact, is_one=bounds[fact.gate, fact.fact, fact.severity] == 1),
            "room": fact.room,
            "finding": fact.finding,
            "value": f"{fact.value:.4g}, must be {fact.bound}",
            "why": fact.why,
        }
        for fact in plotted[:SHOWN]
    ]
    table = [(fact.gate, fact.fact, f"{fact.value:.4g}", fact.bound, fact.severity, fact.finding) for fact in nearest]
    y = {
        "field": "name",
        "type": "nominal",
        "sort": [row["name"] for row in rows],
        "title": None,
        "axis": {"labelLimit": 440, "ticks": False},
    }
    rooms = [0.0, *(fact.room for fact in plotted[:SHOWN])]
    low, high = min(rooms), max(rooms)
    decimals = tick_decimals((100 * low, 100 * high), TICKS)
    axis = {"format": f"+.{decimals}%", "tickCount": TICKS}
    x = {"field": "room", "type": "quantitative", "title": "room to the bound, as a share of the bound", "axis": axis}
    scale = {"domain": list(FINDINGS), "range": list(FINDINGS.values())}
    color = {"field": "finding", "type": "nominal", "scale": scale, "legend": {"title": None, "orient": "top"}}
    tooltip = [{"field": field, "type": "nominal"} for field in ("name", "value", "finding", "why")]
    bars = {"x": {**x, "scale": {"domain": [low, high], "nice": True}}, "y": y, "color": color, "tooltip": tooltip}
    limit = {
        "mark": {"type": "rule", "aria": False, "strokeWidth": 2, "color": "--text"},
        "encoding": {"x": {"datum": 0}},
    }
    said = {"type": "text", "align": "left", "dx": 5, "fontSize": 11, "color": "--text"}
    words = {
        "transform": [{"filter": "datum.finding !== 'met'"}],
        "mark": said,
        "encoding": {"x": {"datum": 0}, "y": y, "text": {"field": "finding", "type": "nominal"}},
    }
    spec = base_spec(rows) | {"height": {"step": 20}}
    spec |= {"layer": [{"mark": {"type": "bar", "height": 10}, "encoding": bars}, limit, words]}
    shown = f"The {len(rows)} of {len(nearest)} bounds with the least room." if len(rows) < len(nearest) else ""
    head = ("gate", "fact", "value", "bound", "severity", "finding")
    note = f"{shown} The line is the bound, and a bar to the left of it is outside; 100 % stands for more, too.".strip()
    return Plot("Room to the bounds", spec, head, table, note)
