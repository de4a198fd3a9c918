"""Retracts a snapshot, or restores it, and refines again the later snapshots whose history changed."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pipeline_tasks.cards import copies_of
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.flow.running import RunOptions, run
from pipeline_tasks.gate.checks import check_overrides, gate_names
from pipeline_tasks.inspect.command import add_recipe, add_refining, overrides_of, print_lines, recipe_of
from pipeline_tasks.inspect.versions.outlived import outlived, outlived_lines
from pipeline_tasks.inspect.versions.staleness import StaleVersion, stale_now, stale_versions
from pipeline_tasks.landing import listing
from pipeline_tasks.landing.landed import text_field_of
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.nearest import nearest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Retraction, Version, stages_that
from pipeline_tasks.publish.takedowns import taken_down_of
from pipeline_tasks.recipe import BUILD, LAND, is_trial, load_recipe
from pipeline_tasks.stage import LANDING, Shards
from pipeline_tasks.store.log_chain import dataset_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.storage import absolute
from pipeline_tasks.upkeep.followers import follow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the snapshot, the root, the reason, and how to refine again."""
    parser.add_argument("snapshot", help="the snapshot to retract")
    add_recipe(parser)
    parser.add_argument("--reason", default="", help="why; kept in the dataset's log")
    parser.add_argument("--undo", action="store_true", help="restore a retracted snapshot")
    parser.add_argument("--dry-run", action="store_true", help="only list what would be refined again")
    add_refining(parser)


def answer(options: argparse.Namespace) -> int:
    """Retract (or restore) the snapshot and refine later snapshots again; return the exit code.

    The files of later snapshots are checked first, then the retraction is recorded, then the snapshots are refined in
    order. If interrupted, the same command continues from there. Datasets that still have its documents are named last.
    """
    root, snapshot, overrides = absolute(options.root), options.snapshot, overrides_of(options)
    recipe = options.recipe or recipe_of(options)  # a name, or the YAML file that the snapshot was run with
    name = recipe if recipe in version_log.recipes(root) else load_recipe(recipe).name
    stale = later(root, name, snapshot, undo=options.undo)
    proof = _taken_down(root, name, snapshot) if options.undo else ""
    lines = [opening(root, name, snapshot, undo=options.undo), *reason_lines(root, name, options)]
    print_lines([*lines, *taken_down_lines(snapshot, proof), *plan_lines(snapshot, stale)])
    if options.undo:
        _require_allowed(root, name, snapshot, proof)
    _require_refinable(
        root, recipe, [*_last(root, name, snapshot if proof else ""), *(due.version for due in stale)], overrides
    )
    if options.dry_run:
        return 0
    with Ledger.open(ledger_of(root)) as ledger:
        record(root, name, snapshot, options.reason, undo=options.undo, ledger=ledger)
    code = _refined_again(root, name, recipe, options, overrides)
    print_lines([*follow(root), *outlived_lines(root, outlived(root))])
    return code


def _refined_again(root: str, name: str, recipe: str, options: argparse.Namespace, overrides: Mapping[str, str]) -> int:
    """Refine again what a retraction or its undoing left due, in order; return the first exit code that is not 0."""
    snapshot = options.snapshot
    again = RunOptions("", root, recipe=recipe, engine=options.engine, override=overrides, builds=False)
    if options.undo:
        proof = _taken_down(root, name, snapshot)  # also what was recorded at this moment
        _require_allowed(root, name, snapshot, proof, restored=True)
        for version in _last(root, name, snapshot if proof else ""):
            if code := _refine_again(root, name, version, again):
                return code
    while (following := next_due(root, name, snapshot)) is not None:
        if code := _refine_again(root, name, following.version, again):
            return code
    return 0


def _require_refinable(root: str, recipe: str, due: Sequence[Version], overrides: Mapping[str, str]) -> None:
    """Raise RecipeError, before anything is recorded, unless recipe, overridden gates and all files are there."""
    if due or overrides:
        check_overrides(overrides, gate_names(load_recipe(recipe)))
    for version in due:
        landed(root, version)


def _last(root: str, name: str, snapshot: str) -> list[Version]:
    """Return the last version of a snapshot, retracted or not; none for ""."""
    return [version for version in version_log.versions(root, name) if version.snapshot == snapshot][-1:]


def _taken_down(root: str, name: str, snapshot: str) -> str:
    """Return the evidence for a document of a snapshot that is taken down now, "" without any.

    It is that of the last version of a snapshot that is retracted, or was: an undoing may go on that was interrupted.
    """
    retracted = {entry.snapshot for entry in version_log.log(root, name) if isinstance(entry, Retraction)}
    for version in _last(root, name, snapshot if snapshot in retracted else ""):
        return taken_down_of(root, {stage: read_manifest(root, path) for stage, path in version.manifests.items()})
    return ""


def _require_allowed(root: str, name: str, snapshot: str, proof: str, *, restored: bool = False) -> None:
    """Raise RecipeError if a retracted build or trial has documents that were taken down since: they would come back.

    A takedown that is recorded at the same moment sees the restored version, or is seen once it is `restored`. A
    snapshot that is no trial is refined again without them.
    """
    way_out = "run the trial again" if is_trial(name) else ""
    way_out = "`refinery build` publishes the dataset anew" if snapshot == BUILD else way_out
    if proof and way_out and (restored or snapshot in version_log.retractions(root, name)):
        [newest] = _last(root, name, snapshot)
        state = "restored, and" if restored else "not restored, as it"
        message = (
            f"{root}: version {newest.number} of {name} is {state} has documents that were taken down since ({proof}). "
            f"Without them: {way_out}; `refinery takedown --undo` allows them"
        )
        raise RecipeError(message)


def _refine_again(root: str, recipe: str, before: Version, options: RunOptions) -> int:
    """Refine a version's snapshot again and print what changed; return the exit code."""
    text_field = text_field_of(read_manifest(root, before.manifests[LAND]))
    again = replace(options, input=landed(root, before), snapshot=before.snapshot, text_field=text_field)
    if code := run(again):
        sys.stderr.write("refinery: later snapshots are not refined yet; the same command continues from there\n")
        return code
    after = version_log.current(root, recipe, before.snapshot)
    _require_change(before, after)
    print_lines([comparison(root, before, after)])
    return 0


def _require_change(before: Version, after: Version) -> None:
    if after.number == before.number:
        message = (
            f"snapshot {before.snapshot} was refined again and did not change, although its history did; "
            "was it run with another recipe? Name that one with --recipe"
        )
        raise RecipeError(message)


# --- What has to be refined again -------------------------------------------------------------------------------


def later(root: str, recipe: str, snapshot: str, *, undo: bool = False) -> list[StaleVersion]:
    """Return what has to be refined again once `snapshot` is retracted (or restored, with `undo`), in order.

    A later snapshot that reads the new version of one of these is refined again as well: `next_due` finds it then.
    RecipeError if the snapshot was never published.
    """
    live = {version.snapshot: version for version in version_log.latest_by_snapshot(root, recipe)}
    published = {version.snapshot: version for version in version_log.versions(root, recipe)}
    if snapshot not in published:
        recipes = f"published here: {', '.join(version_log.recipes(root)) or 'nothing'}"
        known = f"it has {', '.join(sorted(published))}" if published else recipes
        meant = nearest(snapshot, published) if published else nearest(recipe, version_log.recipes(root))
        message = f"{root}: recipe {recipe} has published no snapshot {snapshot!r}{meant}; {known}"
        raise RecipeError(message)
    live.pop(snapshot, None)
    if undo:
        live[snapshot] = published[snapshot]
    stale = stale_versions(root, [version for _, version in sorted(live.items())])
    return [version for version in stale if version.version.snapshot > snapshot]


def next_due(root: str, recipe: str, snapshot: str) -> StaleVersion | None:
    """Return the first snapshot after `snapshot` that has to be refined again now, None if there is none."""
    return next((version for version in stale_now(root, recipe) if version.version.snapshot > snapshot), None)


def record(root: str, recipe: str, snapshot: str, reason: str = "", *, undo: bool = False, ledger: Ledger) -> None:
    """Record in the dataset's log that a snapshot is retracted or restored, unless it is already; then in the ledger.

    The ledger is written in either case, so that a ledger that missed an entry of the log gets it now.
    """
    if not undo:
        ledger.record_retraction(version_log.retract(root, recipe, snapshot, reason))
    else:
        if snapshot in version_log.retractions(root, recipe):
            version_log.restore(root, recipe, snapshot)
        ledger.record_version(version_log.current(root, recipe, snapshot))
    ledger.record_log(root, dataset_log(recipe))


def landed(root: str, version: Version) -> str:
    """Return the input URI of a version; RecipeError unless it still has exactly the files of the manifest."""
    manifest = read_manifest(root, version.manifests[LAND])
    files = Counter[str]()
    for shard in manifest.shards:
        files[shard.path.removeprefix(LANDING)] += shard.bytes
    uris = [version.landing, *([f"{version.landing}/{name}" for name in files] if len(files) == 1 else [])]
    problem = "they are not the files that it was made of"
    for uri in uris:
        try:
            snapshot = listing.list_snapshot(uri, version.snapshot)
        except (RefineryError, OSError) as error:
            problem = str(error)
            continue
        if {name: size for name, size, _ in snapshot.files} == files:
            return uri
    message = (
        f"snapshot {version.snapshot} has to be refined again from {version.landing}, and cannot be: {problem}. "
        "Bring its files back, and run this command again"
    )
    raise RecipeError(message)


# --- Lines -----------------------------------------------------------------------------------------------


def opening(root: str, recipe: str, snapshot: str, *, undo: bool) -> str:
    """Return what is about to be recorded, or that the log has it already."""
    retraction = version_log.retractions(root, recipe).get(snapshot)
    subject = f"{snapshot} of recipe {recipe} in {root}"
    if undo:
        return f"restoring {subject}, {retraction.account}" if retraction else f"{subject} is not retracted"
    return f"{subject} was {retraction.account}" if retraction else f"retracting {subject}"


def reason_lines(root: str, recipe: str, options: argparse.Namespace) -> Iterator[str]:
    """Yield what becomes of a reason that cannot be recorded: the log keeps the first."""
    retraction = version_log.retractions(root, recipe).get(options.snapshot)
    if options.reason and options.undo:
        yield "  --reason is not recorded with --undo"
    elif options.reason and retraction and retraction.reason != options.reason:
        yield "  --reason is not recorded: the log keeps the first; use --undo, and retract again with another"


def taken_down_lines(snapshot: str, proof: str) -> Iterator[str]:
    """Yield that a restored snapshot is refined again without what was taken down since, of which `proof` is one."""
    if proof and snapshot != BUILD:
        yield f"  {snapshot}: refined again itself, without what was taken down since ({proof})"


def plan_lines(snapshot: str, stale: Sequence[StaleVersion]) -> Iterator[str]:
    """Yield what will be refined again."""
    for due in stale:
        yield f"  {due.version.snapshot}: refined again from {due.stage} on (now version {due.version.number})"
    if not stale:
        yield f"  nothing after {snapshot} has to be refined again"


def comparison(root: str, before: Version, after: Version) -> str:
    """Return how many documents were added and removed between two versions of a snapshot.

    They are those of the last stage that compares them with other snapshots' by clusters.
    """
    line = f"  {after.snapshot}: version {before.number} -> {after.number}"
    near = stages_that(root, after, lambda stage: copies_of(stage).over_snapshots and stage in before.manifests)
    if not near:
        return line
    added, removed = changes(root, before, after, near[-1])
    superseded = f"{after.superseded:,} of earlier snapshots superseded"
    return f"{line}; {counted(added, 'document')} added, {removed:,} removed; {superseded}"


def changes(root: str, before: Version, after: Version, stage: str) -> tuple[int, int]:
    """Count the documents of a stage that only the later version keeps, and those that only the earlier one did."""
    old, new = (read_manifest(root, version.manifests[stage]).shards for version in (before, after))
    pairs: list[tuple[Shards, Shards]] = [(old, new)]
    if len(old) == len(new):  # as many buckets: a document is in the same one, so buckets are compared one by one
        pairs = [((old_shard,), (new_shard,)) for old_shard, new_shard in zip(old, new, strict=True)]
    counts = [_moved(_ids(root, old_shards), _ids(root, new_shards)) for old_shards, new_shards in pairs]
    return sum(added for added, _ in counts), sum(removed for _, removed in counts)


def _moved(before: set[str], after: set[str]) -> tuple[int, int]:
    return len(after - before), len(before - after)


def _ids(root: str, shards: Shards) -> set[str]:
    return {row_id for batch in read_shards(root, shards, ["id"]) for row_id in batch.column("id").to_pylist()}
