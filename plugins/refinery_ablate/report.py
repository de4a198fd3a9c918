"""Writes a comparison as one HTML page that opens offline: the outcome first, and what cannot be said last."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline_tasks.counted import counted
from pipeline_tasks.plots.drawing import svg
from pipeline_tasks.plots.plot import Plot
from pipeline_tasks.publish.datasets.card import MOST_GROUPS
from pipeline_tasks.report.html import Child, Html, count, page, percent, section, shown, table, tag
from refinery_ablate.arms.versions import ArmVersion, arm_version
from refinery_ablate.held_out import HeldOut
from refinery_ablate.job import ARMS, Plan
from refinery_ablate.plots import curves_plot, forest_plot
from refinery_ablate.sizes import SMOKE, size_of
from refinery_ablate.statistics import BETTER, SAME, UNDECIDED, WORSE, Difference, detectable, seeds_for
from refinery_ablate.verdict import Verdict, hours_of

PAGE = "report.html"

LOOKS = {BETTER: "pass", WORSE: "refuse", UNDECIDED: "warn", SAME: "dim"}
"""The class of the style for each outcome."""

MORE = (1, 2, 4, 8)
"""How many times the seeds of the comparison a table of prices has."""

FINER = 2
"""A difference that is so many times smaller than the smallest one seen has its price told as well."""


def write_report(folder: Path, verdict: Verdict, held_out: HeldOut, least: int, usd_per_hour: float = 0.0) -> Path:
    """Write the page of a comparison that is judged; return its path.

    `least` are the held-out documents from which on a group is compared by itself.
    """
    plan = verdict.plan
    versions = [arm_version(arm) for arm in plan.arms]
    curves = [figure(curves_plot(folder, plan, rate)) for rate in sorted(plan.rates, reverse=True)]
    sections = [
        _opening(verdict),
        _intervals(verdict),
        figure(forest_plot(verdict.differences, verdict.groups)),
        tag("div", *curves, css="pair"),
        _data(plan, versions),
        _held_out(verdict),
        _noise(verdict, usd_per_hour),
        _unsaid(verdict, held_out, least),
    ]
    names = [_short(arm.name) for arm in plan.arms]
    path = folder / PAGE
    path.write_bytes(page(f"{names[1]} beside {names[0]}", *sections))
    return path


def _short(name: str) -> str:
    return shown(name.rstrip("/").rpartition("/")[2], 80)


def figure(plot: Plot) -> Html:
    """Return a plot with its numbers as a table."""
    numbers = table(plot.head, [[str(value) for value in row] for row in plot.rows], range(1, 4))
    drawn = Html(svg(plot).replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1))
    alternative = tag("details", tag("summary", "Numbers"), numbers)
    return section(plot.title, plot.note, tag("div", drawn, css="card", style="background:#fff"), alternative)


# --- The outcome --------------------------------------------------------------------------------------------------


def _opening(verdict: Verdict) -> Html:
    plan = verdict.plan
    names = [_short(arm.name) for arm in plan.arms]
    outcome = tag("b", verdict.outcome, css=LOOKS[verdict.outcome], style="font-size:1.15rem")
    runs = len(plan.seeds) * len(plan.rates) * len(ARMS)
    tiles = (
        (outcome, "b is, beside a"),
        (f"{_decisive(verdict).value:+.4f}", "bits per byte, b - a"),
        (plan.size, "size of the models"),
        (count(plan.tokens), "tokens of each run"),
        (f"{runs}", f"runs, {counted(len(plan.seeds), 'seed')} each"),
    )
    shown_tiles = [
        tag("div", value if isinstance(value, Html) else tag("b", value), tag("span", said), css="tile")
        for value, said in tiles
    ]
    title = tag("h1", f"{names[1]} beside {names[0]}")
    arms = tag("p", f"a is {names[0]}, b is {names[1]}.", css="dim")
    smoke = [tag("p", SMOKED, css="warn")] if plan.size == SMOKE else []
    return tag(
        "header",
        title,
        arms,
        *smoke,
        *(tag("p", line) for line in words(verdict)),
        tag("div", *shown_tiles, css="tiles"),
    )


SMOKED = (
    "A model of the size smoke shows that the comparison works. Its outcome says nothing of models that anybody uses."
)


def words(verdict: Verdict) -> Iterator[str]:
    """Yield what a comparison says, in sentences."""
    compared = _decisive(verdict)
    change = percent(abs(compared.value), verdict.means[0])
    interval = f"95 % interval {compared.low:+.4f} to {compared.high:+.4f}"
    if verdict.outcome in (BETTER, WORSE):
        fewer = "fewer" if compared.value < 0 else "more"
        yield (
            f"Models that b trains need {abs(compared.value):.4f} bits per byte {fewer} than those of a on held-out "
            f"documents, {change} ({interval}). b is {verdict.outcome}, and every learning rate points the same way."
        )
    elif verdict.outcome == SAME:
        yield (
            f"No difference was seen: {compared.value:+.4f} bits per byte, {interval}. That is no proof of equality. "
            f"A difference of {verdict.detectable:.4f} would have been seen in four of five comparisons, "
            "as far as seeds alone decide."
        )
    elif compared.excludes_zero:
        yield (
            f"Not decidable: at the larger rate b differs by {compared.value:+.4f} bits per byte ({interval}), and at "
            "another rate the difference has the other sign. The answer depends on how a model is trained."
        )
    else:
        yield (
            f"Not decidable: at the larger rate no difference is seen ({compared.value:+.4f} bits per byte, "
            f"{interval}), and at another rate there is one. The answer depends on how a model is trained."
        )


def _decisive(verdict: Verdict) -> Difference:
    return verdict.differences[max(verdict.differences)]


def _intervals(verdict: Verdict) -> Html:
    rows = [
        (
            f"{rate:g}",
            *(f"{value:+.4f}" for value in (compared.value, compared.low, compared.high)),
            _error(compared.seeds),
            _error(compared.documents),
        )
        for rate, compared in sorted(verdict.differences.items(), reverse=True)
    ]
    lead = (
        f"Bits per byte on held-out documents at the larger rate: {verdict.means[0]:.4f} for a and "
        f"{verdict.means[1]:.4f} for b; fewer are better. The larger rate decides, and the others may object."
    )
    head = ("learning rate", "b - a", "low", "high", "error of seeds", "error of documents")
    return section("Interval by learning rate", lead, table(head, rows, numeric=range(1, 6)))


def _error(value: float) -> str:
    return f"{value:.4f}"


# --- The arms -----------------------------------------------------------------------------------------------------


def _data(plan: Plan, versions: Sequence[ArmVersion | None]) -> Html:
    rows: list[Sequence[Child]] = []
    for name, arm, published in zip(ARMS, plan.arms, versions, strict=True):
        documents = count(published.version.documents) if published else "unknown"
        read = f"{plan.tokens / arm.tokens:.2f}" if arm.tokens else "-"
        where = tag("code", shown(arm.name, 300))
        rows.append((f"{name}: {_short(arm.name)}", where, documents, count(arm.tokens), count(arm.sequences), read))
    head = ("arm", "dataset", "documents", "tokens", "sequences", "times read")
    lead = (
        "What models were trained on. Each run reads the same number of tokens, from the beginning again where an arm "
        "has fewer."
    )
    return section("Both arms", lead, table(head, rows, numeric=(2, 3, 4, 5)), *_groups(versions))


def _groups(versions: Sequence[ArmVersion | None]) -> Iterator[Html]:
    """Yield tokens and documents of both arms by the groups of their mixtures, where their roots have them."""
    if not all(versions):
        yield tag("p", "The root of an arm is not here, so that its documents and groups are not known.", css="dim")
        return
    by_arm = [{row["group"]: row for row in published.groups()} for published in versions if published]
    if not all(by_arm):
        return
    names = sorted(
        {*by_arm[0], *by_arm[1]}, key=lambda name: -max(rows[name]["taken"] for rows in by_arm if name in rows)
    )
    none = {"documents": 0, "taken": 0}
    rows = [
        (
            shown(name, 60) or "(none)",
            *(count(arm.get(name, none)["documents"]) for arm in by_arm),
            *(count(arm.get(name, none)["taken"]) for arm in by_arm),
        )
        for name in names[:MOST_GROUPS]
    ]
    head = ("group of the mixture", "documents of a", "documents of b", "tokens of a", "tokens of b")
    yield tag("h3", "By group")
    yield table(head, rows, numeric=range(1, 5))


def _held_out(verdict: Verdict) -> Html:
    shared, every = verdict.shared, verdict.shared["documents"]
    rows = [
        ("all", count(every), percent(every, every)),
        *(
            (f"in {name}, and left out", count(known), percent(known, every))
            for name, known in zip(ARMS, shared["in"], strict=True)
        ),
        ("in neither, and scored", count(shared["left"]), percent(shared["left"], every)),
    ]
    lead = "A document that either arm has is scored for none, so that both are measured on the same unseen texts."
    return section("Held-out documents", lead, table(("documents", "", "share"), rows, numeric=(1, 2)))


# --- What can be seen ---------------------------------------------------------------------------------------------


def _noise(verdict: Verdict, usd_per_hour: float) -> Html:
    plan, compared = verdict.plan, _decisive(verdict)
    now = len(plan.seeds)
    needed = seeds_for(verdict.deviation, verdict.detectable / FINER, len(plan.rates))
    rows = [
        (
            f"{seeds} (this comparison)" if seeds == now else f"{seeds}",
            f"{detectable(verdict.deviation, seeds, len(plan.rates)):.4f}",
            hours_of(verdict.seconds * seeds * len(plan.rates) * len(ARMS), usd_per_hour),
        )
        for seeds in sorted({*(times * now for times in MORE), needed})
    ]
    lead = (
        f"Runs of one arm that differ in the seed alone have a standard deviation of {verdict.deviation:.4f} bits per "
        f"byte. {counted(now, 'seed')} of each arm show differences from {verdict.detectable:.4f} on with a chance "
        "of 80 %."
    )
    documents = (
        f"The choice of held-out documents adds a standard error of {compared.documents:.4f}, which more seeds do not "
        "lower; more held-out documents do."
    )
    head = ("seeds of each arm", "smallest difference seen", "all runs")
    return section(
        "Noise, and the price of seeing more", lead, table(head, rows, numeric=(1,)), tag("p", documents, css="dim")
    )


def _unsaid(verdict: Verdict, held_out: HeldOut, least: int) -> Html:
    lines = [tag("li", line) for line in unsaid(verdict, held_out, least)]
    return section("What cannot be said", "", tag("ul", *lines))


def unsaid(verdict: Verdict, held_out: HeldOut, least: int) -> Iterator[str]:
    """Yield what does not follow from a comparison."""
    plan, size = verdict.plan, size_of(verdict.plan.size)
    if plan.size == SMOKE:
        yield SMOKED
    else:
        yield (
            f"Models have {size.parameters / 1e6:,.0f} million parameters without those of the vocabulary. Orders of "
            "recipes by such models agree with larger ones often, and not always."
        )
    yield f"Runs end after {plan.tokens:,} tokens. Which arm is better after many more is not measured."
    repeated = [name for name, arm in zip(ARMS, plan.arms, strict=True) if plan.tokens > arm.tokens]
    if repeated:
        yield (
            f"{' and '.join(repeated)} had fewer tokens than a run reads, and repeated them. An arm that keeps more "
            "documents repeats less, and this is part of the difference."
        )
    else:
        yield "Both arms had tokens enough. What it is worth that one of them has more is not measured."
    yield "Bits per byte measure how well texts are predicted, and not what a model can do after it is tuned."
    small = [*small_groups(held_out.domains, "domain", least), *small_groups(held_out.languages, "language", least)]
    if small:
        named = shown(", ".join(small), 500)
        yield f"Groups with fewer than {least} documents are not compared by themselves: {named}."
    yield "Texts of other domains and languages than the held-out ones are not judged at all."


def small_groups(names: Sequence[str], kind: str, least: int) -> Iterator[str]:
    """Yield groups of held-out documents with fewer than `least`, each with how many it has."""
    for name, documents in sorted(Counter(names).items()):
        if documents < least:
            yield f"{kind} {name} ({documents})"
