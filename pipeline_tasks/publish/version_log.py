"""Dataset versions: an append-only log per recipe; each entry publishes one snapshot's manifests, or retracts them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import canonical
from pipeline_tasks.recipe import LAND
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store

NAMED = 5
"""Snapshots or recipes that an error names: the newest, or last by name."""


@dataclass(frozen=True, slots=True)
class Version:
    """One published version: which manifests, of which snapshot, and where its exported files are.

    `number` counts from 1 within the recipe; `prefix` is where the exported files are. The dataset is the documents of
    every snapshot's newest version, less those that any of these versions supersedes. This version supersedes
    `superseded` documents of earlier snapshots by `superseding` documents of its own; `superseded_path` is the file
    that lists them ("" if there are none).
    """

    number: int
    recipe: str
    snapshot: str
    landing: str
    manifests: Mapping[str, str]
    verdicts: Mapping[str, str]
    prefix: str
    documents: int
    tokens: int
    sequences: int
    superseded: int = 0
    superseding: int = 0
    superseded_path: str = ""


@dataclass(frozen=True, slots=True)
class Retraction:
    """An entry that takes a snapshot out of the dataset and out of the history of later snapshots.

    `retracts` are the numbers of its versions, whose files are not changed; `at` is the time, ISO 8601 in UTC.
    """

    number: int
    recipe: str
    snapshot: str
    retracts: tuple[int, ...] = field(default=())
    reason: str = ""
    at: str = ""

    @property
    def account(self) -> str:
        """The time and the reason as text: `retracted on 2026-11-21 14:30 UTC: spam`."""
        when = f" on {self.at[:16].replace('T', ' ')} UTC" if self.at else ""
        return f"retracted{when}{f': {self.reason}' if self.reason else ''}"


def version_path(recipe: str, number: int) -> str:
    """Return the path of a version's entry."""
    return f"datasets/{recipe}/{number:012d}.json"


def log(root: str, recipe: str) -> list[Version | Retraction]:
    """Return all entries of a recipe, oldest first."""
    store = storage.connect(root)
    entries = [entry for entry in store.list(f"datasets/{recipe}") if entry.path.endswith(".json")]
    return [_read(store, entry.path) for entry in entries]


def versions(root: str, recipe: str) -> list[Version]:
    """Return a recipe's versions, oldest first, with those of retracted snapshots."""
    return [entry for entry in log(root, recipe) if isinstance(entry, Version)]


def retractions(root: str, recipe: str) -> dict[str, Retraction]:
    """Return the current retractions by snapshot."""
    newest = _newest_by_snapshot(log(root, recipe))
    return {snapshot: entry for snapshot, entry in newest.items() if isinstance(entry, Retraction)}


def recipes(root: str) -> list[str]:
    """Return the recipes that have published into `root`."""
    return sorted({entry.path.split("/")[1] for entry in storage.connect(root).list("datasets")})


def _newest_by_snapshot(entries: Iterable[Version | Retraction]) -> dict[str, Version | Retraction]:
    return dict(sorted({entry.snapshot: entry for entry in entries}.items()))


def _read(store: Store, path: str) -> Version | Retraction:
    try:
        raw = json.loads(store.read(path))
        if "retracts" in raw:
            return Retraction(**raw | {"retracts": tuple(raw["retracts"])})
        return Version(**raw)
    except (ValueError, TypeError) as error:
        message = (
            f"{store.root}/{path} is not a dataset version of this release ({error}); restore it from a backup, "
            "or publish into another root if an earlier release wrote it"
        )
        raise ContractError(message) from error


def current(root: str, recipe: str, snapshot: str = "") -> Version:
    """Return the newest version of a recipe (of one snapshot, if named); RecipeError when there is none."""
    entries = log(root, recipe)
    newest = _newest_by_snapshot(entries)
    for entry in reversed(entries):
        published = isinstance(entry, Version) and isinstance(newest[entry.snapshot], Version)
        if published and snapshot in ("", entry.snapshot):
            return cast("Version", entry)
    raise RecipeError(_unpublished(root, recipe, snapshot, newest))


def _unpublished(root: str, recipe: str, snapshot: str, newest: Mapping[str, Version | Retraction]) -> str:
    """Return the message for a recipe or snapshot without a version: retracted, or never published."""
    retracted = [
        entry for entry in newest.values() if isinstance(entry, Retraction) and snapshot in ("", entry.snapshot)
    ]
    if retracted:
        return "; ".join(_retracted(root, entry) for entry in retracted[-NAMED:])
    subject = f"snapshot {snapshot} of recipe {recipe}" if snapshot else f"recipe {recipe}"
    names = [name for name, entry in newest.items() if isinstance(entry, Version)] if newest else recipes(root)
    published = f" (published: {', '.join(names[-NAMED:])})" if names else ""
    return (
        f"{root}: {subject} has not been published{published}; "
        f"publish it with `refinery run --input ... --output {root}`"
    )


def _retracted(root: str, entry: Retraction) -> str:
    undo = f"refinery retract --undo {entry.snapshot} {root} --recipe {entry.recipe}"
    return f"{root}: snapshot {entry.snapshot} of recipe {entry.recipe} was {entry.account}; `{undo}` brings it back"


def latest_by_snapshot(root: str, recipe: str) -> list[Version]:
    """Return the newest version of every snapshot that is not retracted, by snapshot."""
    return [entry for entry in _newest_by_snapshot(log(root, recipe)).values() if isinstance(entry, Version)]


def earlier(root: str, recipe: str, snapshot: str) -> list[Version]:
    """Return the newest version of every snapshot before this one: a run sees nothing of its own day or later.

    Snapshots are ordered as text, so that dates and `CC-MAIN-2026-45` come in order of time.
    """
    return [version for version in latest_by_snapshot(root, recipe) if version.snapshot < snapshot]


def append(root: str, fields: Mapping[str, Any]) -> Version:
    """Publish `fields` (those of `Version` but `number`) as the next version of their recipe.

    Returns the snapshot's newest version instead if it has the same fields. RecipeError if the snapshot is retracted
    and the fields come from the same landed files.
    """
    recipe, snapshot = str(fields["recipe"]), str(fields["snapshot"])
    while True:
        entries = log(root, recipe)
        newest = _newest_by_snapshot(entries).get(snapshot)
        if isinstance(newest, Version) and asdict(newest) == asdict(Version(number=newest.number, **fields)):
            return newest
        refuse_retracted(root, recipe, snapshot, str(fields["manifests"].get(LAND)))
        version = Version(number=_next_number(entries), **fields)
        if _create(root, version):
            return version


def refuse_retracted(root: str, recipe: str, snapshot: str, land: str) -> None:
    """Raise RecipeError if the snapshot is retracted and `land` is the manifest of the same landed files."""
    retraction = retractions(root, recipe).get(snapshot)
    if retraction is None:
        return
    retracted = [version for version in versions(root, recipe) if version.number in retraction.retracts]
    if any(version.manifests.get(LAND) == land for version in retracted):
        message = f"{_retracted(root, retraction)}; to refine it anew, land other files than those that were retracted"
        raise RecipeError(message)


def retract(root: str, recipe: str, snapshot: str, reason: str = "") -> Retraction:
    """Retract a snapshot; return the existing entry if it is retracted. RecipeError if it was never published."""
    while True:
        entries = log(root, recipe)
        own = [entry for entry in entries if entry.snapshot == snapshot]
        if not own:
            names = ", ".join(sorted({entry.snapshot for entry in entries})) or "published nothing"
            message = f"{root}: recipe {recipe} has published no snapshot {snapshot!r}; it has {names}"
            raise RecipeError(message)
        if isinstance(own[-1], Retraction):
            return own[-1]
        numbers = tuple(entry.number for entry in own if isinstance(entry, Version))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        retraction = Retraction(_next_number(entries), recipe, snapshot, numbers, reason, now)
        if _create(root, retraction):
            return retraction


def restore(root: str, recipe: str, snapshot: str) -> Version:
    """Publish the last version of a retracted snapshot again; RecipeError if it is not retracted."""
    while True:
        entries = log(root, recipe)
        if snapshot not in retractions(root, recipe):
            message = f"{root}: snapshot {snapshot!r} of recipe {recipe} is not retracted; there is nothing to undo"
            raise RecipeError(message)
        last = [entry for entry in entries if isinstance(entry, Version) and entry.snapshot == snapshot][-1]
        version = replace(last, number=_next_number(entries))
        if _create(root, version):
            return version


def _next_number(entries: Sequence[Version | Retraction]) -> int:
    return (entries[-1].number if entries else 0) + 1


def _create(root: str, entry: Version | Retraction) -> bool:
    """Append an entry; False if another process has taken its number."""
    return storage.connect(root).create(version_path(entry.recipe, entry.number), canonical(entry))
