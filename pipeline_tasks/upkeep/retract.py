"""Takes a snapshot back: the dataset becomes what it would be if that snapshot had never been."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.landing import listing
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.ledger import Ledger
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.recipe import STAGES, stage_card
from pipeline_tasks.stage import LANDING, Shards
from pipeline_tasks.store.reading import read_manifest, read_shards

COMPARED = "dedup_minhash"
"""The stage whose documents are compared before and after: the last that looks at other snapshots for them."""


@dataclass(frozen=True, slots=True)
class Redo:
    """A version that was made with another past than there is now, and the first stage that would differ."""

    version: Version
    stage: str


# --- What was made with another past ----------------------------------------------------------------------------


def stale(root: str, recipe: str) -> list[Redo]:
    """Return the versions, by snapshot, whose stages know another past than what is published before them now."""
    return _stale(root, version_log.latest_by_snapshot(root, recipe))


def _stale(root: str, there: Sequence[Version]) -> list[Redo]:
    made = {
        (version.number, stage): read_manifest(root, version.manifests[stage])
        for version in there
        for stage in STAGES
        if stage in version.manifests and stage_card(stage).reads_history
    }
    found = [Redo(version, _first_stale(version, there[:rank], made)) for rank, version in enumerate(there)]
    return [one for one in found if one.stage]


def _first_stale(version: Version, earlier: Sequence[Version], made: Mapping[tuple[int, str], Manifest]) -> str:
    """Return the first stage whose history is not what the earlier versions saved, "" if there is none."""
    for stage in (one for one in STAGES if (version.number, one) in made):
        past = [made[one.number, stage] for one in earlier if (one.number, stage) in made]
        known = made[version.number, stage].parents[1:]
        if list(known) != [one.fingerprint for one in past if one.history]:
            return stage
    return ""


def later(root: str, recipe: str, snapshot: str, *, undo: bool = False) -> list[Redo]:
    """Return what must be refined again, by snapshot, once `snapshot` is retracted (or brought back, with `undo`).

    A day after one of these is refined again too, even if only that day's new version makes it differ.
    RecipeError if the snapshot was never published.
    """
    there = {one.snapshot: one for one in version_log.latest_by_snapshot(root, recipe)}
    old = {one.snapshot: one for one in version_log.versions(root, recipe)}
    if snapshot not in old:
        others = f"published here: {', '.join(version_log.recipes(root)) or 'nothing'}"
        known = f"it has {', '.join(sorted(old))}" if old else others
        message = f"{root}: recipe {recipe} has published no snapshot {snapshot!r}; {known}"
        raise RecipeError(message)
    there.pop(snapshot, None)
    if undo:
        there[snapshot] = old[snapshot]
    found = _stale(root, [one for _, one in sorted(there.items())])
    return [one for one in found if one.version.snapshot > snapshot]


def due(root: str, recipe: str, snapshot: str) -> Redo | None:
    """Return the first snapshot after `snapshot` that is to be refined again now, None when all is as it should be."""
    return next((one for one in stale(root, recipe) if one.version.snapshot > snapshot), None)


def record(root: str, recipe: str, snapshot: str, reason: str = "", *, undo: bool = False, ledger: Ledger) -> None:
    """Write into the dataset's log that a snapshot is retracted, or is back, unless it says so; then into the ledger.

    Where the ledger missed what the log says, it is told again.
    """
    if not undo:
        ledger.record_retraction(version_log.retract(root, recipe, snapshot, reason))
        return
    if snapshot in version_log.retractions(root, recipe):
        version_log.restore(root, recipe, snapshot)
    ledger.record_version(version_log.current(root, recipe, snapshot))


def landed(root: str, version: Version) -> str:
    """Return where to land a version's files from; RecipeError unless they are still there, and no others."""
    made = read_manifest(root, version.manifests["land"])
    files = {shard.path.removeprefix(LANDING): shard.bytes for shard in made.shards}
    uris = [version.landing, *([f"{version.landing}/{name}" for name in files] if len(files) == 1 else [])]
    wrong = "they are not the files that it was made of"
    for uri in uris:
        try:
            landed = listing.list_snapshot(uri, version.snapshot)
        except (RefineryError, OSError) as error:
            wrong = str(error)
            continue
        if {name: size for name, size, _ in landed.files} == files:
            return uri
    message = (
        f"snapshot {version.snapshot} must be refined again from {version.landing}, and cannot be: {wrong}. "
        "Bring its files back, and run this command again"
    )
    raise RecipeError(message)


# --- For a person -----------------------------------------------------------------------------------------------


def opening(root: str, recipe: str, snapshot: str, *, undo: bool) -> str:
    """Return what is about to be done, or that the log says so already and only later snapshots may be left to do."""
    gone = version_log.retractions(root, recipe).get(snapshot)
    what = f"{snapshot} of recipe {recipe} in {root}"
    if undo:
        return f"bringing back {what}, {gone.account}" if gone else f"{what} is not retracted"
    return f"{what} was {gone.account}" if gone else f"retracting {what}"


def told(snapshot: str, found: Sequence[Redo]) -> Iterator[str]:
    """Yield what will be refined again."""
    for one in found:
        yield f"  {one.version.snapshot}: refined again from {one.stage} on (now version {one.version.number})"
    if not found:
        yield f"  nothing after {snapshot} has to be refined again"


def compared(root: str, before: Version, after: Version) -> Iterator[str]:
    """Yield how many documents came back, and went, between two versions of a snapshot."""
    line = f"  {after.snapshot}: version {before.number} -> {after.number}"
    if COMPARED not in before.manifests or COMPARED not in after.manifests:
        yield line
        return
    back, gone = changes(root, before, after)
    yield f"{line}; {back:,} documents came back, {gone:,} went; {after.superseded:,} of earlier snapshots superseded"


def changes(root: str, before: Version, after: Version) -> tuple[int, int]:
    """Count the documents that only the later version keeps, and those that only the earlier one did."""
    old, new = (read_manifest(root, one.manifests[COMPARED]).shards for one in (before, after))
    cut: list[tuple[Shards, Shards]] = [(old, new)]
    if len(old) == len(new):  # the same buckets: a document is in the same one
        cut = [((one,), (other,)) for one, other in zip(old, new, strict=True)]
    counts = [_moved(_ids(root, one), _ids(root, other)) for one, other in cut]
    return sum(back for back, _ in counts), sum(gone for _, gone in counts)


def _moved(before: set[str], after: set[str]) -> tuple[int, int]:
    return len(after - before), len(before - after)


def _ids(root: str, shards: Shards) -> set[str]:
    return {one for batch in read_shards(root, shards, ["id"]) for one in batch.column("id").to_pylist()}
