"""Writes what a snapshot is in a minute's reading, with its plots: one HTML file, and each plot as SVG and PNG."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline_tasks.cards import has_sequences
from pipeline_tasks.counted import counted
from pipeline_tasks.gate.verdicts import Verdict, read_verdict
from pipeline_tasks.inspect import funnel
from pipeline_tasks.inspect.report.distributions import REFINED, before_and_after, distributions
from pipeline_tasks.inspect.report.judged_bounds import bounded_facts
from pipeline_tasks.inspect.report.shares import name_courses
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.plots.distributions import distribution
from pipeline_tasks.plots.drawing import png, svg
from pipeline_tasks.plots.funnel import funnel_plot
from pipeline_tasks.plots.plot import Plot
from pipeline_tasks.plots.room import room_plot
from pipeline_tasks.plots.shares import shares_plot
from pipeline_tasks.plots.times import stage_times
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import PUBLISH
from pipeline_tasks.report.comparison_plots import comparison_plot
from pipeline_tasks.report.comparisons import Comparison, comparisons
from pipeline_tasks.report.html import Child, Html, count, page, percent, section, shown, table, tag
from pipeline_tasks.store.reading import read_manifest

MOST_REASONS = 3
"""Reasons that the summary names, the most frequent ones."""

PAGE = "report.html"


@dataclass(frozen=True)
class Published:
    """A version, and what is known of its run."""

    root: str
    version: Version

    @cached_property
    def steps(self) -> Sequence[Mapping[str, Any]]:
        """The funnel."""
        return funnel.funnel(self.root, self.version)

    @cached_property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdicts by gate."""
        return {gate: read_verdict(self.root, path) for gate, path in self.version.verdicts.items() if path}

    @cached_property
    def costs(self) -> Sequence[Mapping[str, Any]]:
        """The cost of each stage, from the ledger; none where no run was recorded."""
        with Ledger.open(ledger_of(self.root)) as ledger:
            return list(ledger.query("cost", recipe=self.version.recipe, snapshot=self.version.snapshot))

    @cached_property
    def earlier(self) -> Sequence[Version]:
        """The versions of earlier snapshots."""
        return version_log.earlier(self.root, self.version.recipe, self.version.snapshot)


def write_plots(root: str, version: Version, folder: Path) -> Path:
    """Write the page and the plots of a version below `folder`, which is made; return the path of the page."""
    published = Published(root, version)
    folder.mkdir(parents=True, exist_ok=True)
    figures = []
    for name, plot in plots(published):
        drawn = svg(plot)
        (folder / f"{name}.svg").write_text(drawn, encoding="utf-8")
        (folder / f"{name}.png").write_bytes(png(plot))
        figures.append(_figure(plot, drawn))
    idle = [_idle(each) for each in comparisons(known_manifests(root, version)) if each.idle]
    body = [_opening(published), tag("div", *figures, *idle, css="pair")]
    (folder / PAGE).write_bytes(page(f"{version.recipe} {version.snapshot}", *body))
    return folder / PAGE


def plots(published: Published) -> Iterator[tuple[str, Plot]]:
    """Yield the plots of a version, each with the name of its file: what its page in the web UI shows, and changes."""
    root, version = published.root, published.version
    if plot := funnel_plot(published.steps):
        yield "funnel", plot
    for column, first, last, profiles in before_and_after(root, version):
        plot = distribution(last, column, profiles, REFINED)
        note = f"All documents that {first} read, and those that {last} kept."
        yield f"before_and_after_{_word(column)}", replace(plot, title=f"{plot.title}, before and after", note=note)
    for comparison in comparisons(known_manifests(root, version)):
        if plot := comparison_plot(comparison):
            yield f"compared_{_word(comparison.title)}", plot
    if plot := room_plot(bounded_facts(version.recipe, published.verdicts)):
        yield "room_to_bounds", plot
    yield from _over_days(published)
    if any(row["wall_seconds"] for row in published.costs):
        yield "time_of_stages", stage_times(published.costs)


def _over_days(published: Published) -> Iterator[tuple[str, Plot]]:
    """Yield what is plotted beside earlier snapshots; nothing of the first."""
    root, version = published.root, published.version
    for column, course in name_courses(root, version, published.earlier):
        if plot := shares_plot(column, course):
            yield f"shares_over_days_{_word(column)}", plot
    if published.earlier:
        for stage, column, profiles in distributions(root, version, published.earlier):
            yield f"over_days_{_word(column)}", distribution(stage, column, profiles)


def known_manifests(root: str, version: Version) -> dict[str, Manifest]:
    """Return the manifests of a version by stage."""
    return {stage: read_manifest(root, path) for stage, path in version.manifests.items()}


def _word(column: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", column.lower())


def _figure(plot: Plot, drawn: str) -> Html:
    numbers = table(plot.head, [[str(value) for value in row] for row in plot.rows], range(1, len(plot.head)))
    alternative = tag("details", tag("summary", "Numbers"), numbers)
    fitted = Html(drawn.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1))
    return section(plot.title, plot.note, tag("div", fitted, css="card", style="background:#fff"), alternative)


def _idle(comparison: Comparison) -> Html:
    return section(f"{comparison.title}, before and after", comparison.idle)


# --- The minute --------------------------------------------------------------------------------------------------


def _opening(published: Published) -> Html:
    version = published.version
    title = tag("h1", f"{version.recipe} · {version.snapshot}")
    lines = [tag("p", line) for line in summary(published)]
    notes = [tag("li", note) for note in gate_notes(published.verdicts)]
    heading = (title, tag("p", f"Version {version.number}", css="dim"))
    return tag("header", *heading, *lines, *([tag("ul", *notes)] if notes else []))


def summary(published: Published) -> Iterator[Child]:
    """Yield what a snapshot is, one sentence or two each: rows, reasons, gates, change, cost."""
    version, steps = published.version, published.steps
    records = steps[0]["rows_in"] if steps else 0
    generated = next((step["generated"] for step in reversed(steps) if not has_sequences(step["stage"])), 0)
    pages = version.documents - generated
    more = f", of which {count(generated)} more were generated" if generated else ""
    yield f"{count(records)} records became {counted(pages, 'document')} ({percent(pages, records)}){more}."
    yield from _reasons(steps, records)
    if published.earlier:
        before = published.earlier[-1]
        yield f"Compared with {before.snapshot}: {_change(version.documents, before.documents)} documents."
    if published.costs:
        slowest = max(published.costs, key=lambda row: row["wall_seconds"])
        usd = sum(row["cost_usd"] for row in published.costs)
        price = f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"
        yield f"It cost {price} at the ledger's prices; most of its time went into {slowest['stage']}."
    if verdicts := published.verdicts.values():
        passed = sum(verdict.outcome == "pass" for verdict in verdicts)
        yield f"{passed} of {counted(len(verdicts), 'gate')} passed without a warning."


def _reasons(steps: Sequence[Mapping[str, Any]], records: int) -> Iterator[str]:
    removed = [
        (rows, reason, step["stage"])
        for step in steps
        for reason, rows in (*step["rejected"].items(), *step["quarantined"].items())
    ]
    removed.sort(key=lambda entry: (-entry[0], entry[1]))
    if removed:
        named = [f"{reason} ({percent(rows, records)})" for rows, reason, _ in removed[:MOST_REASONS]]
        yield f"Most of the rest was removed as {', '.join(named)}."


def gate_notes(verdicts: Mapping[str, Verdict]) -> Iterator[str]:
    """Yield what gates warned of or refused, and why a person let it pass."""
    for gate, verdict in verdicts.items():
        for failure in verdict.failures:
            where = gate if gate != PUBLISH else "publication"
            yield f"{failure.severity.capitalize()} at {where}, {failure.column}: {failure.why}"
        if verdict.override:
            yield f"A person let {gate} pass: {shown(verdict.override, 400)}."


def _change(now: int, before: int) -> str:
    return f"{(now - before) / before:+.1%}" if before else "more"
