"""Renders the report's sections of numbers, which come from manifests, verdicts and the ledger."""

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pipeline_tasks.cards import has_sequences, of_stage, stage_card
from pipeline_tasks.counted import counted
from pipeline_tasks.gate.explaining import explain, note_of
from pipeline_tasks.gate.facts.sites import site_coverages
from pipeline_tasks.gate.judging import Failure
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.merging import quantile
from pipeline_tasks.profiles.origins import generated_kept
from pipeline_tasks.recipe import PUBLISH
from pipeline_tasks.report.comparison_plots import lines_of
from pipeline_tasks.report.comparisons import Comparison, comparisons
from pipeline_tasks.report.contents import Contents, profile_of
from pipeline_tasks.report.html import (
    Child,
    Html,
    bar,
    count,
    join,
    percent,
    section,
    shown,
    size,
    table,
    tag,
)
from pipeline_tasks.report.left_over import left_over
from pipeline_tasks.run.idle_parts import idle_parts
from pipeline_tasks.run.tasks.state_cost import SECONDS, StateCost
from pipeline_tasks.schema import SEAMS
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import clears_personal_data

NAMES_SHOWN = 12
"""Reasons or languages that a table names; the others share a line."""

GATE_HEAD = ("stage", "outcome", "fact", "observed", "bound", "why")
REASON_HEAD = ("stage", "reason", "rows", "", "share")


def opening(contents: Contents) -> Iterator[Html]:
    """Show the snapshot's name, its totals, and the earlier snapshots that are retracted."""
    title = tag("h1", f"{contents.recipe} · {contents.snapshot}")
    yield tag("header", title, tag("p", _summary(contents), css="dim"))
    for retraction in contents.retractions:
        yield tag("p", f"Earlier snapshot {shown(retraction.snapshot, 60)} was {shown(retraction.account, 400)}.")
    tiles = [tag("div", tag("b", value), tag("span", name), css="tile") for value, name in _totals(contents)]
    yield tag("div", *tiles, css="tiles")


def _summary(contents: Contents) -> str:
    manifests = list(contents.manifests.values())
    quarantined = sum(sum(manifest.quarantined.values()) for manifest in manifests)
    return (
        f"{len(manifests)} stages, {size(manifests[0].bytes_in if manifests else 0)} of crawl read. "
        f"Every record is accounted for: kept, rejected with a reason, or quarantined ({count(quarantined)})."
    )


def _totals(contents: Contents) -> Iterator[tuple[str, str]]:
    manifests = list(contents.manifests.values())
    if manifests:
        yield count(manifests[0].rows_in), "records in the crawl"
    documents = [manifest for manifest in manifests if not has_sequences(manifest.stage)]
    if documents:
        generated = generated_kept(documents[-1])
        yield count(documents[-1].rows - generated), "documents kept"
        if generated:
            yield count(generated), "generated documents kept"
    if mended := contents.last_with(SEAMS):
        seams = profile_of(mended, SEAMS)
        yield f"{seams['sum'] / max(seams['count'], 1):.2f}", f"seams per document after {mended.stage}"
    tokenized = contents.last_with("n_tokens")
    if tokenized:
        yield count(profile_of(tokenized, "n_tokens")["sum"]), "tokens"
    for packed in (manifest for manifest in manifests if has_sequences(manifest.stage)):
        yield count(packed.rows), "packed sequences"
    if contents.verdicts:
        yield _worst_outcome(contents), f"{len(contents.verdicts)} gates"
    if contents.costs:
        usd = sum(row["cost_usd"] for row in contents.costs)
        yield f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}", "at the ledger's prices"


def _worst_outcome(contents: Contents) -> str:
    outcomes = {verdict.outcome for verdict in contents.verdicts.values()}
    return "refused" if "refuse" in outcomes else "warned" if "warn" in outcomes else "passed"


def funnel(contents: Contents) -> Iterator[Html]:
    """Show how many rows each stage read and kept."""
    most = max((manifest.rows_due for manifest in contents.manifests.values()), default=0)
    rows = [_funnel_row(contents, manifest, most) for manifest in contents.manifests.values()]
    head = ("stage", "in", "kept", "", "share", "stored", "gate")
    lead = "Rows that each stage read and kept. All bars have the same scale."
    yield section("Funnel", lead, table(head, rows, numeric=(1, 2, 4, 5), wide=3))


def _funnel_row(contents: Contents, manifest: Manifest, most: int) -> Sequence[Child]:
    idle = (tag("div", str(part), css="dim title") for part in idle_parts(manifest))
    of_texts = (tag("div", line, css="dim title") for line in _generated_lines(manifest))
    name = join((manifest.stage, tag("div", stage_card(manifest.stage).title, css="dim title"), *of_texts, *idle))
    gate = _gate(contents, manifest.stage)
    if has_sequences(manifest.stage):
        kept = f"{count(manifest.rows)} seq."
        return (name, count(manifest.rows_in), kept, Html(""), "", size(manifest.bytes), gate)
    share = percent(manifest.rows, manifest.rows_due)
    bars = bar(manifest.rows, most)
    return (name, count(manifest.rows_in), count(manifest.rows), bars, share, size(manifest.bytes), gate)


def _generated_lines(manifest: Manifest) -> Iterator[str]:
    """Say which rows did not come in, and which of those kept are generated."""
    if manifest.offspring_in:
        yield f"and {counted(manifest.offspring_in, 'generated text')} of these rows, each of which became a row"
    if generated := generated_kept(manifest):
        yield f"{count(generated)} of those kept are generated"


def _gate(contents: Contents, stage: str) -> Html:
    """Return the outcome of a stage's gate, with a link to its page."""
    verdict = contents.verdicts.get(stage)
    if verdict is None:
        return tag("span", "-", css="dim")
    href = posixpath.relpath(verdict.page, contents.out)
    return tag("a", tag("span", verdict.outcome, css=verdict.outcome), href=href)


def gates(contents: Contents) -> Iterator[Html]:
    """Show the bounds that were broken, and the refusals that a person overrode."""
    verdicts = contents.verdicts.values()
    if not verdicts:
        return
    rows = [row for gate in (*contents.manifests, PUBLISH) for row in _verdict_rows(contents, gate)]
    passed = sum(verdict.outcome == "pass" for verdict in verdicts)
    met = sum(verdict.evaluated - len(verdict.failures) - len(verdict.undecided) for verdict in verdicts)
    pages = "Data Docs" if all(verdict.docs for verdict in verdicts) else "verdicts"
    lead = (
        f"{passed} of {len(verdicts)} gates passed; {met} expectations were met. "
        f"The outcomes in the funnel link to their {pages}."
    )
    yield section("Gates", lead, *([table(GATE_HEAD, rows, numeric=(3, 4))] if rows else []))


def _verdict_rows(contents: Contents, stage: str) -> Iterator[Sequence[Child]]:
    verdict = contents.verdicts.get(stage)
    if verdict is None:
        return
    if verdict.override:
        yield (stage, _gate(contents, stage), "", "", "", f"Overridden by a person: {shown(verdict.override)}")
    for failure in verdict.failures:
        observed = "-" if failure.observed is None else f"{failure.observed:,.4g}"
        fact = tag("span", tag("code", failure.column), css="word")
        yield (stage, _gate(contents, stage), fact, observed, _bounds(failure), note_of(failure))
    if verdict.undecided:
        undecided = explain((), verdict.undecided)[0]
        yield (stage, _gate(contents, stage), "", "", "", undecided)


def _bounds(failure: Failure) -> str:
    limits = (("≥", failure.bound.get("min_value")), ("≤", failure.bound.get("max_value")))
    return " and ".join(f"{sign} {value:,.4g}" for sign, value in limits if value is not None)


def reasons(contents: Contents) -> Iterator[Html]:
    """Show how many rows each stage rejected or quarantined, by reason."""
    rows = [row for manifest in contents.manifests.values() for row in _reason_rows(manifest)]
    if rows:
        lead = "The first rule that a row failed, by stage, and its share of the rows that the stage read."
        yield section("Why rows were rejected", lead, table(REASON_HEAD, rows, numeric=(2, 4), wide=3))


def _reason_rows(manifest: Manifest) -> Iterator[Sequence[Child]]:
    ranked = _most_frequent({**manifest.rejected, **manifest.quarantined})
    for rank, (reason, rejected) in enumerate(ranked):
        stage = tag("span", "" if rank else manifest.stage, css="word")
        bars = bar(rejected, ranked[0][1], "bare")
        yield (stage, tag("code", reason), count(rejected), bars, percent(rejected, manifest.rows_due))


def _most_frequent(tally: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the most frequent names with their counts, and all the others in one line."""
    ranked = sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))
    if len(ranked) <= NAMES_SHOWN + 1:
        return ranked
    rest = ranked[NAMES_SHOWN:]
    return [*ranked[:NAMES_SHOWN], (f"{len(rest)} others", sum(value for _, value in rest))]


def coverage(contents: Contents) -> Iterator[Html]:
    """Show which share of their pages' sentences texts have, and the sites whose texts have least."""
    manifest = contents.last_with("coverage")
    if manifest is None:
        return
    least, half = (quantile(profile_of(manifest, "coverage"), at) for at in (0.05, 0.5))
    sites = sorted(site_coverages(manifest).items(), key=lambda pair: (pair[1].value, pair[0]))[:NAMES_SHOWN]
    rows = [
        (tag("span", shown(site, 60), css="word"), bar(known.value, 1), f"{known.value:.1%}") for site, known in sites
    ]
    lead = (
        f"Half of the texts have {half:.0%} or more of what their pages say in sentences outside of links, menus and "
        f"footers, and a twentieth {least:.0%} or less. Comments of readers count. Of the sites with most pages, these "
        "have least."
    )
    yield section(
        "What texts have of their pages",
        lead,
        *([table(("site", "", "in texts"), rows, numeric=(2,), wide=1)] if rows else []),
    )


def distributions(contents: Contents) -> Iterator[Html]:
    """Show languages, lengths and quality scores of the kept documents, each after the last stage that profiled it."""
    cards = [*_languages(contents), *_lengths(contents), *_scores(contents)]
    if cards:
        yield section("Distributions", "Documents that were kept.", tag("div", *cards, css="pair"))


def _languages(contents: Contents) -> Iterator[Html]:
    if manifest := contents.last_with("language"):
        pairs = _most_frequent(profile_of(manifest, "language")["bins"])
        yield _bars(f"Languages after {manifest.stage}", pairs)


def _lengths(contents: Contents) -> Iterator[Html]:
    if manifest := contents.last_with("chars"):
        profile = profile_of(manifest, "chars")
        median = f"half have {count(quantile(profile, 0.5))} characters or more"
        yield _bars(f"Length after {manifest.stage}: {median}", _octaves(profile))


def _scores(contents: Contents) -> Iterator[Html]:
    if manifest := contents.last_with("score"):
        yield _bars(f"Quality score after {manifest.stage}", _tenths(profile_of(manifest, "score")))


def _bars(title: str, pairs: Sequence[tuple[str, int]]) -> Html:
    most, total = max(value for _, value in pairs), sum(value for _, value in pairs)
    rows = [
        (tag("span", shown(name, 40), css="word"), count(value), bar(value, most, "blue bare"), percent(value, total))
        for name, value in pairs
    ]
    return tag("div", tag("h3", title), table(("", "documents", "", "share"), rows, numeric=(1, 3), wide=2))


def _octaves(profile: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return counts by power of two, from the first to the last that has documents."""
    counts: Counter[int] = Counter()
    for key, value in profile["bins"].items():
        counts[max(int(key), 1).bit_length() - 1] += value
    ranks = range(min(counts), max(counts) + 1)
    return [(f"{count(2**rank)}-{count(2 ** (rank + 1) - 1)}", counts[rank]) for rank in ranks]


def _tenths(profile: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return counts by tenth, from the first to the last that has documents."""
    counts: Counter[int] = Counter()
    for key, value in profile["bins"].items():
        counts[min(int(key) // 10, 9)] += value
    ranks = range(min(counts), max(counts) + 1)
    return [(f"{rank / 10:.1f}-{(rank + 1) / 10:.1f}", counts[rank]) for rank in ranks]


def tokens(contents: Contents) -> Iterator[Html]:
    """Show how many tokens there are after each stage that counts them."""
    rows = [
        _token_row(manifest) for manifest in contents.manifests.values() if profile_of(manifest, "n_tokens")["count"]
    ]
    if rows:
        head = ("after", "tokens", "in", "tokens each", "stored")
        yield section("Tokens", "Tokens are conserved from mix to pack.", table(head, rows, numeric=(1, 2, 3, 4)))


def _token_row(manifest: Manifest) -> Sequence[Child]:
    profile = profile_of(manifest, "n_tokens")
    unit = "sequences" if has_sequences(manifest.stage) else "documents"
    each = f"{profile['sum'] / profile['count']:,.1f}"
    return (manifest.stage, count(profile["sum"]), f"{count(manifest.rows)} {unit}", each, size(manifest.bytes))


def personal_data(contents: Contents) -> Iterator[Html]:
    """Show how much personal data of each kind was removed."""
    manifest = of_stage(contents.manifests, clears_personal_data)
    if manifest is None:
        return
    counted = [name for name in stage_card(manifest.stage).profiled if name.startswith(PII)]
    kinds = [name for name in counted if profile_of(manifest, name)["count"]]
    rows = [_personal_row(name, profile_of(manifest, name)) for name in kinds]
    if rows:
        head = ("kind", "removed", "documents with any", "per 1,000 documents")
        lead = "Counts only: no evidence has the removed values."
        yield section("Personal data", lead, table(head, rows, numeric=(1, 2, 3)))


PII = "pii_"
"""What the names of columns begin with that count personal data."""


def _personal_row(name: str, profile: Mapping[str, Any]) -> Sequence[Child]:
    documents = profile["count"] - profile["bins"].get("0", 0)
    rate = f"{1000 * profile['sum'] / profile['count']:,.1f}"
    return (name.removeprefix(PII), count(profile["sum"]), count(documents), rate)


def before_and_after(contents: Contents) -> Iterator[Html]:
    """Show what documents had before and after the stages that judge or change them, or what is idle."""
    cards = [_compared(comparison) for comparison in comparisons(contents.manifests, left_over(contents))]
    yield section(
        "Before and after",
        "Documents before and after the stages that judge or scrub them; of two bars the first is before.",
        tag("div", *cards, css="pair"),
    )


def _compared(comparison: Comparison) -> Html:
    title = tag("h3", comparison.title)
    if comparison.idle:
        return tag("div", title, tag("p", comparison.idle, css="dim"))
    most = max(max(each.before, each.after or 0.0) for each in comparison.measures)
    rows = [
        (name, before, after, join((bar(each.before, most, "bare"), bar(each.after or 0.0, most, "blue bare"))))
        for (name, before, after), each in zip(lines_of(comparison), comparison.measures, strict=True)
    ]
    note = tag("p", comparison.note, css="dim")
    return tag("div", title, note, table(("", "before", "after", ""), rows, numeric=(1, 2), wide=3))


def cost(contents: Contents) -> Iterator[Html]:
    """Show what each stage took, from the ledger."""
    if contents.costs:
        head = ("stage", "engine", "wall clock", "CPU", "GPU", "cost")
        rows = [_cost_row(row) for row in contents.costs]
        lines = [*_hardware_lines(contents.hardware), *_waits_lines(contents.models)]
        notes = [tag("p", line, css="dim") for line in lines]
        yield section("Cost", "As recorded in the ledger.", table(head, rows, numeric=(2, 3, 4, 5)), *notes)


def _hardware_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what computed the scores of each model, with shares of the documents."""
    for (stage, computed), parts in groupby(rows, key=lambda row: (row["stage"], row["computed"])):
        shares = ", ".join(f"{row['hardware']} ({row['share'] or 0:.0%} of the documents)" for row in parts)
        yield f"{stage}: {computed} was computed by {shares}."


def _waits_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield who waited for whom in each stage with models: actors for tasks, or tasks for actors."""
    for row in rows:
        seconds = {name: row[f"{name}_seconds"] for name in SECONDS}
        yield f"{row['stage']}: {StateCost(actors=row['actors'], **seconds).line}."


def _cost_row(row: Mapping[str, Any]) -> Sequence[Child]:
    seconds = (row["wall_seconds"], row["cpu_hours"] * 3600, row["gpu_hours"] * 3600)
    return (row["stage"], row["engine"], *(f"{value:,.1f} s" for value in seconds), f"${row['cost_usd']:,.4f}")


def manifests(contents: Contents) -> Iterator[Html]:
    """Show where each stage's manifest is."""
    rows = [(stage, tag("code", path_of(contents.paths[stage]))) for stage in contents.manifests]
    lead = "A stage's output is named by its fingerprint; the paths are relative to the root."
    yield section("Manifests", lead, table(("stage", "manifest"), rows))
