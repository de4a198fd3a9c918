"""The funnel of a version or an unpublished run: what came into each stage, what stayed, and why the rest did not."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.cards import has_sequences
from pipeline_tasks.gate.facts.sites import site_coverages
from pipeline_tasks.inspect.command import add_snapshot, committed_of, print_result
from pipeline_tasks.inspect.unpublished import UnpublishedRun, title_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.origins import generated_kept
from pipeline_tasks.profiles.removals import arrivals, losses
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE, LAND
from pipeline_tasks.run.idle_parts import idle_parts
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_in_order

BAR = 28
"""Characters of the longest bar."""

WORST = 3
"""Sources and sites that are named under a stage."""

WHOLE = 0.9
"""Coverage from which on a site is not named: texts have nearly all of what its pages say."""

NOTED = 0.05
"""Share of a stage's rows from which on a site is named, whatever it lost."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root and the snapshot."""
    add_snapshot(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the funnel; of a run that published nothing the stages so far, and where and why it stopped."""
    known = committed_of(options)
    steps = funnel(options.root, known.shown)
    facts = [{**step, "published": known.version is not None} for step in steps]
    stopped = [stopped_line(known.run)] if known.run and not known.version else []
    print_result(options, facts, [title_of(known.shown), *funnel_lines(steps), *stopped])
    return 0


def funnel(root: str, of: Version | UnpublishedRun) -> list[dict[str, Any]]:
    """Return one entry per stage, in order: rows in and kept, stored bytes, tokens, and counts by reason.

    `offspring_in` are generated texts that a stage made rows of, beside those that came in, and `generated` those of
    the kept rows that are such documents.
    """
    read = read_in_order(root, {stage: ref for stage, ref in of.manifests.items() if stage not in (LAND, COMPOSE)})
    return [_step(stage, manifest, of.manifests[stage]) for stage, manifest in read.items()]


def stopped_line(run: UnpublishedRun) -> str:
    """Return where and why a run stopped, where a refusal is explained, and what to do next."""
    docs = f" (all bounds: {run.root}/{run.refusal.page})" if run.refusal else ""
    return f"{run.account}{docs}; next step: {run.next_step}"


def _step(stage: str, manifest: Manifest, referred: str) -> dict[str, Any]:
    return {
        "stage": stage,
        "rows_in": manifest.rows_in,
        "offspring_in": manifest.offspring_in,
        "rows": manifest.rows,
        "generated": generated_kept(manifest),
        "bytes": manifest.bytes,
        "tokens": manifest.tokens,
        "rejected": dict(manifest.rejected),
        "quarantined": dict(manifest.quarantined),
        "losses": _worst(manifest.metrics),
        "coverage": _least_covered(manifest),
        "idle": [str(part) for part in idle_parts(manifest)],
        "sites": _largest_sites(manifest.metrics, manifest.rows_due),
        "manifest": path_of(referred),
    }


def _worst(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the sources and sites that lost most of their documents, of those with at least 1,000; at most three."""
    rows_in = arrivals(metrics)
    lost = {
        f"{kind} {name}": share
        for kind in ("source", "site")
        for name, share in losses(metrics, kind, own=False).items()
    }
    worst = sorted((name for name in lost if lost[name]), key=lambda name: (-lost[name], name))
    return [{"origin": name, "rows_in": rows_in[name], "lost": lost[name]} for name in worst[:WORST]]


def _least_covered(manifest: Manifest) -> dict[str, float]:
    """Return the coverage of the sites whose texts have least of their pages, at most three below `WHOLE`."""
    means = {site: mean.value for site, mean in site_coverages(manifest).items() if mean.value < WHOLE}
    return dict(sorted(means.items(), key=lambda pair: (pair[1], pair[0]))[:WORST])


def _largest_sites(metrics: Mapping[str, Any], rows_in: int) -> dict[str, float]:
    """Return the share of the rows of the sites that have the most, at most three."""
    shares = {name: count / rows_in for name, count in arrivals(metrics).items() if name.startswith("site ")}
    largest = sorted((name for name in shares if shares[name] >= NOTED), key=lambda name: (-shares[name], name))
    return {name.removeprefix("site "): shares[name] for name in largest[:WORST]}


def funnel_lines(steps: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the funnel as a table with bars, the reasons below their stage, most frequent first.

    The largest sites are named below the first stage that counts them.
    """
    most = max((step["rows_in"] + step["offspring_in"] for step in steps), default=1) or 1
    counting = next((step["stage"] for step in steps if step["sites"]), "")
    for step in steps:
        yield _stage_line(step, most)
        yield from _generated_lines(step)
        reasons = {**step["rejected"], **step["quarantined"]}
        for reason, count in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])):
            yield f"{'':<16}{'':>8}    {count:>8,} {reason}"
        for part in step["idle"]:
            yield f"{'':<16}{'':>8}    {part}"
        for loss in step["losses"]:
            yield f"{'':<16}{'':>8}    {loss['lost']:>8.1%} of {loss['rows_in']:,} of {loss['origin']}"
        for site, share in step["coverage"].items():
            yield f"{'':<16}{'':>8}    {share:>8.1%} of the sentences on pages of site {site} are in their texts"
        for site, share in step["sites"].items() if step["stage"] == counting else ():
            yield f"{'':<16}{'':>8}    {share:>8.1%} of the rows are of site {site}"


def _generated_lines(step: Mapping[str, Any]) -> Iterator[str]:
    if step["offspring_in"]:
        yield f"{'':<16}+{step['offspring_in']:>7,}    generated texts of them, each of which is a row"
    if step["generated"]:
        yield f"{'':<16}{'':>8}    {step['generated']:>8,} of those kept are generated"


def kept_share(step: Mapping[str, Any]) -> float | None:
    """Return the share of a stage's rows that it kept; None where rows become sequences, or are used several times."""
    due = step["rows_in"] + step["offspring_in"]
    if has_sequences(step["stage"]) or not due or step["rows"] > due:
        return None
    share: float = step["rows"] / due
    return share


def _stage_line(step: Mapping[str, Any], most: int) -> str:
    """Return the line of a stage."""
    rows_in, kept, packs = step["rows_in"], step["rows"], has_sequences(step["stage"])
    share = kept_share(step)
    shown = "      " if share is None else f"{share:6.1%}"
    unit = "sequences" if packs else "rows"
    bar = "█" * round(BAR * min(kept, most) / most)
    return f"{step['stage']:<16}{rows_in:>8,} in {kept:>8,} {unit:<9} {shown}  {bar}"
