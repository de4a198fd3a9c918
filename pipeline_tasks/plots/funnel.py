"""Plots a funnel: what each stage kept and rejected, by reason, all stages on the scale of the records that landed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.cards import known_card
from pipeline_tasks.plots.plot import Plot, Row, Spec, base_spec, count_axis
from pipeline_tasks.stage import BY_ROW

ROW = 22
"""Pixels of a stage."""

KINDS = {"kept": "--plot-1", "rejected": "--plot-2", "quarantined": "--bad"}
"""The color of what becomes of rows."""

GENERATED = {"generated": "--plot-3"}
"""That of kept rows that are generated documents, which no record is; where there are any."""

MANY = 10_000
"""Rows from which on the axis has them in thousands."""


def counts_documents(stage: str) -> bool:
    """Return whether the rows of a stage are the documents that came in, and not their uses, shares or sequences."""
    card = known_card(stage)
    return card is None or (card.conserves in BY_ROW and card.removes != "surplus")


def funnel_plot(steps: Sequence[Mapping[str, Any]]) -> Plot | None:
    """Plot the entries of `inspect.funnel` but those of stages that count other things; None if no row came in."""
    shown = [step for step in steps if counts_documents(step["stage"])]
    first = shown[0]["rows_in"] if shown else 0
    if not first:
        return None
    rows = [row for step in shown for row in _rows(step, first)]
    table = [(row["stage"], row["what"], f"{row['rows']:,}", f"{row['share']:.1%}") for row in rows]
    stages = [step["stage"] for step in shown]
    widest = max(first, *(step["rows_in"] + step["offspring_in"] for step in shown))
    colors = KINDS | (GENERATED if any(step["generated"] for step in shown) else {})
    spec = base_spec(rows) | {"height": {"step": ROW}, "layer": _layers(stages, widest, colors)}
    scale = "the scale is that of the landed records" if widest == first else "generated texts make more than landed"
    note = f"Width is rows, and {scale}; each segment of what was rejected is a reason."
    return Plot("What became of the rows", spec, ("stage", "what", "rows", "share of all records"), table, note)


def _rows(step: Mapping[str, Any], first: int) -> Iterator[Row]:
    """Yield the segments of a stage: what it kept, generated documents apart, then each reason, most frequent first."""
    reasons = [("rejected", *pair) for pair in step["rejected"].items()]
    reasons += [("quarantined", *pair) for pair in step["quarantined"].items()]
    reasons.sort(key=lambda reason: (-reason[2], reason[1]))
    kept = [("kept", "kept", step["rows"] - step["generated"])]
    kept += [("generated", "kept, generated", step["generated"])] if step["generated"] else []
    for rank, (kind, what, rows) in enumerate([*kept, *reasons]):
        share = rows / first
        yield {"stage": step["stage"], "kind": kind, "what": what, "rows": rows, "share": share, "rank": rank}


def _layers(stages: Sequence[str], widest: int, colors: Mapping[str, str]) -> list[Spec]:
    y = {"field": "stage", "type": "ordinal", "sort": list(stages), "title": None, "axis": {"ticks": False}}
    axis = count_axis(widest, 5, short=widest >= MANY)
    x = {
        "field": "rows",
        "type": "quantitative",
        "title": "rows",
        "axis": axis,
        "scale": {"domain": [0, widest], "nice": False},
    }
    scale = {"domain": list(colors), "range": list(colors.values())}
    color = {"field": "kind", "type": "nominal", "scale": scale, "legend": {"title": None, "orient": "top"}}
    tooltip = [
        {"field": "stage", "type": "nominal"},
        {"field": "what", "type": "nominal"},
        {"field": "rows", "type": "quantitative", "format": ","},
        {"field": "share", "type": "quantitative", "format": ".1%", "title": "share of all records"},
    ]
    order = {"field": "rank", "type": "quantitative"}
    bars = {"x": {**x, "stack": "zero"}, "y": y, "color": color, "order": order, "tooltip": tooltip}
    kept = [{"filter": "datum.kind === 'kept'"}]
    text = {"type": "text", "align": "left", "dx": 4, "fontSize": 11, "color": "--page"}
    number = {"field": "share", "type": "quantitative", "format": ".0%"}
    return [
        {"mark": {"type": "bar", "stroke": "--page", "strokeWidth": 1}, "encoding": bars},
        {"transform": kept, "mark": text, "encoding": {"x": {"datum": 0}, "y": y, "text": number}},
    ]
