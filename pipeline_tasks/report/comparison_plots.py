"""Plots what documents had before the stages of a recipe, and have after them."""

from pipeline_tasks.plots.distributions import share_bars
from pipeline_tasks.plots.plot import Plot, Row
from pipeline_tasks.report.comparisons import Comparison

AFTER, BEFORE = "after", "before"
COLORS = {BEFORE: "--plot-3", AFTER: "--plot-1"}


def comparison_plot(comparison: Comparison) -> Plot | None:
    """Plot the measures of a comparison as two bars each; None of an idle one."""
    if not comparison.measures:
        return None
    rows: list[Row] = [
        {"series": series, "value": measure.name, "share": value}
        for measure in comparison.measures
        for series, value in ((BEFORE, measure.before), (AFTER, measure.after))
        if value is not None
    ]
    spec = share_bars(rows, COLORS)
    if comparison.unit == "value":
        spec["encoding"]["x"]["axis"] = {"tickCount": 5}
        spec["encoding"]["tooltip"][-1]["format"] = ".2f"
    head = ("documents with" if comparison.unit == "share" else "perplexity", BEFORE, AFTER)
    return Plot(f"{comparison.title}, before and after", spec, head, lines_of(comparison), comparison.note)


def lines_of(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return the lines of a table of a comparison."""
    form = ".2%" if comparison.unit == "share" else ".2f"
    after = ("-" if each.after is None else f"{each.after:{form}}" for each in comparison.measures)
    return [(each.name, f"{each.before:{form}}", then) for each, then in zip(comparison.measures, after, strict=True)]
