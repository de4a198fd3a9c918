"""Says what became of the files of each type: from stage to stage, and of all of them from the first to the last."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.plots.funnel import counts_documents
from pipeline_tasks.profiles.file_types import NO_TYPE, OfType, rows_by_type
from pipeline_tasks.report.contents import Contents
from pipeline_tasks.report.html import Child, Html, bar, count, join, percent, section, table, tag

Types = Mapping[str, OfType]
"""What became of the rows of each type, the most frequent first; those of no known type last."""

UNKNOWN = "of no known type"
"""What rows without a type are called: other files, and records that are no file."""

MOST = 4
"""Reasons of a type that the report names."""

HEAD = ("type", "in", "kept", "", "share", "rejected", "quarantined", "most frequent reasons")


def types_by_stage(manifests: Mapping[str, Manifest]) -> dict[str, Types]:
    """Return the types of each stage that counts documents and knows their types, in the order of the manifests."""
    known = {stage: rows_by_type(manifest) for stage, manifest in manifests.items() if counts_documents(stage)}
    return {stage: types for stage, types in known.items() if types}


def types_of_all(stages: Sequence[Types]) -> Types:
    """Return what became of the rows of each type from the first of some stages to the last."""
    kept: Counter[str] = Counter()
    removed: dict[str, Counter[str]] = {}
    for types in stages:
        for name, of_type in types.items():
            removed.setdefault(name, Counter()).update(of_type.removed)
    for name, of_type in (stages[-1] if stages else {}).items():
        kept[name] = of_type.kept
    whole = {name: OfType(kept[name], dict(reasons)) for name, reasons in removed.items()}
    return dict(sorted(whole.items(), key=lambda pair: (pair[0] == NO_TYPE, -pair[1].rows_in, pair[0])))


def ranked(of_type: OfType) -> list[tuple[str, int]]:
    """Return the reasons of a type with their rows, the most frequent first."""
    return sorted(of_type.removed.items(), key=lambda pair: (-pair[1], pair[0]))


def all_types(types: Types) -> OfType:
    """Return what became of the rows of all types together."""
    removed: Counter[str] = Counter()
    for of_type in types.values():
        removed.update(of_type.removed)
    return OfType(sum(of_type.kept for of_type in types.values()), dict(removed))


def quarantined(of_type: OfType) -> int:
    """Return how many rows of a type were quarantined."""
    return sum(rows for reason, rows in of_type.removed.items() if reason.startswith("error:"))


def types(contents: Contents) -> Iterator[Html]:
    """Show what became of the files of each type, from the crawl to the documents that are kept."""
    stages = types_by_stage(contents.manifests)
    whole = types_of_all([*stages.values()])
    if not whole:
        return
    first, *_, last = [*stages, *stages]
    most = max(of_type.rows_in for of_type in whole.values())
    lead = (
        f"Bytes say the type of a file. Of each type: what came into {first}, and what {last} kept. Every other row "
        "was rejected with a reason, or quarantined."
    )
    rows = [_row(name, of_type, most) for name, of_type in whole.items()]
    rows += [_row("all", all_types(whole), most)]
    yield section("Files by type", lead, table(HEAD, rows, numeric=(1, 2, 4, 5, 6), wide=7))


def _row(name: str, of_type: OfType, most: int) -> tuple[Child, ...]:
    aside = quarantined(of_type)
    reasons = ranked(of_type)
    named = [join((tag("code", reason), f" {count(rows)}")) for reason, rows in reasons[:MOST]]
    named += [Html(f"{len(reasons) - MOST} others")] if len(reasons) > MOST else []
    return (
        tag("span", name or UNKNOWN, css="word"),
        count(of_type.rows_in),
        count(of_type.kept),
        bar(of_type.kept, most),
        percent(of_type.kept, of_type.rows_in),
        count(of_type.rows_in - of_type.kept - aside),
        count(aside),
        join(named, ", "),
    )
