"""The funnel of a version: what came into each stage, what stayed, and why the rest did not."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.profiles.removals import arrivals, losses
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import STAGES
from pipeline_tasks.store.reading import read_manifest

BAR = 28
WORST = 3
"""Sources and sites that are named under a stage."""


def funnel(root: str, version: version_log.Version) -> list[dict[str, Any]]:
    """Return one entry per stage, in order: rows in and kept, stored bytes, tokens, and counts by reason."""
    steps = []
    for stage in (one for one in STAGES if one in version.manifests):
        made = read_manifest(root, version.manifests[stage])
        measures = made.metrics["kept"]
        steps.append(
            {
                "stage": stage,
                "rows_in": made.rows_in,
                "rows": made.rows,
                "bytes": made.bytes,
                "tokens": measures.get("n_tokens", {}).get("sum", 0),
                "rejected": dict(made.rejected),
                "quarantined": dict(made.quarantined),
                "losses": _worst(made.metrics),
                "manifest": version.manifests[stage],
            }
        )
    return steps


def _worst(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the sources and sites that lost most of their documents, of those with at least 1,000; at most three."""
    came = arrivals(metrics)
    lost = {
        f"{kind} {name}": one for kind in ("source", "site") for name, one in losses(metrics, kind, own=False).items()
    }
    worst = sorted((name for name in lost if lost[name]), key=lambda name: (-lost[name], name))
    return [{"origin": name, "rows_in": came[name], "lost": lost[name]} for name in worst[:WORST]]


def funnel_lines(steps: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the funnel as a table with bars; reasons stand under their stage, most frequent first."""
    most = max((step["rows_in"] for step in steps), default=1) or 1
    for step in steps:
        came, kept = step["rows_in"], step["rows"]
        bar = "█" * round(BAR * min(kept, most) / most)
        share = f"{kept / came:6.1%}" if came and step["stage"] != "pack" else "      "
        unit = "sequences" if step["stage"] == "pack" else "rows"
        yield f"{step['stage']:<16}{came:>8,} in {kept:>8,} {unit:<9} {share}  {bar}"
        reasons = {**step["rejected"], **step["quarantined"]}
        for reason, count in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])):
            yield f"{'':<16}{'':>8}    {count:>8,} {reason}"
        for one in step["losses"]:
            yield f"{'':<16}{'':>8}    {one['lost']:>8.1%} of {one['rows_in']:,} of {one['origin']}"


def status_lines(
    root: str, versions: Sequence[version_log.Version], notes: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield one line per published snapshot, with its count of superseded documents; `notes` is by snapshot."""
    yield (
        f"{'snapshot':<20}{'recipe':<10}{'version':>8}{'records':>10}{'documents':>11}"
        f"{'superseded':>12}{'tokens':>12}  published under"
    )
    notes = dict(notes or {})
    for one in versions:
        came = read_manifest(root, one.manifests["ingest"]).rows_in if "ingest" in one.manifests else 0
        yield (
            f"{one.snapshot:<20}{one.recipe:<10}{one.number:>8}{came:>10,}{one.documents:>11,}{one.superseded:>12,}"
            f"{one.tokens:>12,}  {root}/{one.prefix}"
        )
        if one.snapshot in notes:
            yield f"{'':<20}{notes.pop(one.snapshot)}"
    for snapshot, note in sorted(notes.items()):
        yield f"{snapshot:<20}{note}"
