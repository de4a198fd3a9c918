"""Lists the snapshots of a recipe: published, partial, retracted and stale, and runs that published nothing."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.cards import reads_records
from pipeline_tasks.counted import counted, or_dash
from pipeline_tasks.inspect.command import EVERY, add_snapshot, print_result, recipe_of, versions_of
from pipeline_tasks.inspect.unpublished import UnpublishedRun, readable_runs, say, unknown_line
from pipeline_tasks.inspect.versions.late_files import lacked_files, lacked_line, late_files, late_line
from pipeline_tasks.inspect.versions.outlived import Outlived, outlived, outlived_lines
from pipeline_tasks.inspect.versions.staleness import stale_now
from pipeline_tasks.ledger import recorded_recipes
from pipeline_tasks.publish.datasets.tokenizer_pin import read_pin
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Retraction, Version
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.report.summary import read_summary
from pipeline_tasks.store.reading import read_manifest

FACTS = (
    "number",
    "recipe",
    "snapshot",
    "documents",
    "tokens",
    "sequences",
    "prefix",
    "landing",
    "superseded",
    "superseded_path",
    "tokenizer",
)
"""Fields of a version in the JSON output."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root and the snapshot."""
    add_snapshot(parser, EVERY)


def answer(options: argparse.Namespace) -> int:
    """Print one line per snapshot; a named snapshot is printed alone, with the note on its newest run only."""
    root, recipe = options.root, recipe_of(options)
    runs, unknown = readable_runs(root, recipe, options.snapshot)
    say(unknown_line(unknown))
    notes = _with_runs({} if options.snapshot else _notes(root, recipe), runs)
    latest = version_log.latest_by_snapshot(root, recipe) if notes else versions_of(options)
    versions = [version for version in latest if options.snapshot in ("", version.snapshot)]
    retractions = version_log.retractions(root, recipe).values() if notes and not options.snapshot else ()
    facts = [_version_facts(version) | {"note": notes.get(version.snapshot, "")} for version in versions]
    left = [] if options.snapshot else [*outlived(root)]
    facts += [_retraction_facts(retraction, left) for retraction in retractions]
    facts += [_run_facts(run) for run in runs.values()]
    lines = [*status_lines(root, versions, notes), *tokenizer_lines(root, recipe)]
    if not options.snapshot:
        lines += [*dataset_lines(root, recipe), *outlived_lines(root, left), *_others(root, recipe)]
    print_result(options, facts, lines)
    return 0


def _notes(root: str, recipe: str) -> dict[str, str]:
    """Return notes by snapshot: when and why it was retracted, where it is stale, what came late, or what it lacks."""
    notes = {snapshot: retraction.account for snapshot, retraction in version_log.retractions(root, recipe).items()}
    for stale in stale_now(root, recipe):
        notes[stale.version.snapshot] = (
            f"stale from {stale.stage} on: earlier snapshots changed since; `refinery run` it again"
        )
    latest = version_log.latest_by_snapshot(root, recipe)
    for snapshot, names in late_files(root, latest).items():
        notes[snapshot] = "; ".join([*filter(None, [notes.get(snapshot)]), late_line(names)])
    for version in latest:
        summary = read_summary(root, version)
        if summary.generated:
            made = f"{summary.generated:,} of its documents are generated"
            notes[version.snapshot] = "; ".join([*filter(None, [notes.get(version.snapshot)]), made])
        if lacking := summary.lacking:
            way_out = "mend their cause, and `refinery run` it again"
            note = f"partial: {lacking} are quarantined with their partitions; {way_out}"
            notes[version.snapshot] = "; ".join([note, *filter(None, [notes.get(version.snapshot)])])
    for snapshot, lacked in lacked_files(root, latest).items():
        notes[snapshot] = "; ".join([lacked_line(lacked), *filter(None, [notes.get(snapshot)])])
    return notes


def _with_runs(notes: Mapping[str, str], runs: Mapping[str, UnpublishedRun]) -> dict[str, str]:
    """Return the notes with those on runs that published nothing: where and why each stopped, and what to do next."""
    of_runs = {name: f"not published: {run.account}; next step: {run.next_step}" for name, run in runs.items()}
    return {name: "; ".join(filter(None, [notes.get(name), of_runs.get(name)])) for name in sorted({*notes, *of_runs})}


def _run_facts(run: UnpublishedRun) -> dict[str, Any]:
    about = {"recipe": run.recipe, "snapshot": run.snapshot, "state": run.state, "stage": run.stage, "at": run.at}
    return about | {"reason": run.why, "next_step": run.next_step, "note": run.account}


def _version_facts(version: Version) -> dict[str, Any]:
    return {name: getattr(version, name) for name in FACTS}


def _retraction_facts(retraction: Retraction, left: Sequence[Outlived]) -> dict[str, Any]:
    about = {"recipe": retraction.recipe, "snapshot": retraction.snapshot, "note": retraction.account}
    own = [each for each in left if (each.source.recipe, each.source.snapshot) == (about["recipe"], about["snapshot"])]
    datasets = [
        {"recipe": each.version.recipe, "number": each.version.number, "documents": each.documents} for each in own
    ]
    about |= {"retracted_at": retraction.at, "reason": retraction.reason}
    return about | ({"still_in": datasets} if datasets else {})


def status_lines(root: str, versions: Sequence[Version], notes: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield one line per published snapshot, its note below it; last the notes of snapshots without a version."""
    yield (
        f"{'snapshot':<20}{'recipe':<10}{'version':>8}{'records':>10}{'documents':>11}"
        f"{'superseded':>12}{'tokens':>12}  published under"
    )
    rest = dict(notes or {})
    for version in versions:
        first = next(filter(reads_records, version.manifests), "")
        records = read_manifest(root, version.manifests[first]).rows_in if first else 0
        yield (
            f"{version.snapshot:<19} {version.recipe:<9} {version.number:>8}{records:>10,}{version.documents:>11,}"
            f"{version.superseded:>12,}{or_dash(version.tokens):>12}  {root}/{version.prefix}"
        )
        if version.snapshot in rest:
            yield f"{'':<20}{rest.pop(version.snapshot)}"
    for snapshot, note in sorted(rest.items()):
        yield f"{snapshot:<19} {note}"


def dataset_lines(root: str, recipe: str) -> Iterator[str]:
    """Yield the newest version of every training dataset of the root but `recipe`."""
    for version in version_log.built_versions(root):
        if version.recipe != recipe:
            counts = [counted(getattr(version, f"{noun}s"), noun) for noun in ("document", "token", "sequence")]
            yield f"dataset {version.recipe}@{version.number}: {', '.join(counts)}, {root}/{version.prefix}"


def _others(root: str, recipe: str) -> Iterator[str]:
    """Yield the other recipes that refine into the root: those that published, and those of runs, without trials."""
    names = {*version_log.recipes(root), *recorded_recipes(root)} - {recipe, *version_log.datasets(root)}
    if others := sorted(name for name in names if not is_trial(name)):
        yield f"other recipes: {', '.join(others)}; `--recipe NAME` shows one"


def tokenizer_lines(root: str, recipe: str) -> Iterator[str]:
    """Yield the tokenizer of the dataset, if one is pinned."""
    pin = read_pin(root, recipe)
    if pin:
        yield f"tokenizer of {recipe}: {pin}, {root}/{pin.path}"
