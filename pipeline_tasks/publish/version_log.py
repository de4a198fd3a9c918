"""Dataset versions: an append-only log per recipe; each entry publishes one snapshot's manifests, or retracts them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import canonical
from pipeline_tasks.recipe import LAND
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store

NAMED = 5
"""Snapshots or recipes that a refusal names: the newest, or last by name."""


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
    """From here on a snapshot is as if it had never been: no history, no part of the dataset; `reason` says why.

    `retracts` are the numbers of its versions, which stay as they are; `at` is when, ISO 8601 in UTC.
    """

    number: int
    recipe: str
    snapshot: str
    retracts: tuple[int, ...] = field(default=())
    reason: str = ""
    at: str = ""

    @property
    def account(self) -> str:
        """When and why, for a person: `retracted on 2026-11-21 14:30 UTC: spam`."""
        when = f" on {self.at[:16].replace('T', ' ')} UTC" if self.at else ""
        return f"retracted{when}{f': {self.reason}' if self.reason else ''}"


def version_path(recipe: str, number: int) -> str:
    """Return where a version's entry is kept."""
    return f"datasets/{recipe}/{number:012d}.json"


def log(root: str, recipe: str) -> list[Version | Retraction]:
    """Return all entries of a recipe, oldest first."""
    store = storage.connect(root)
    entries = [one for one in store.list(f"datasets/{recipe}") if one.path.endswith(".json")]
    return [_read(store, entry.path) for entry in entries]


def versions(root: str, recipe: str) -> list[Version]:
    """Return a recipe's versions, oldest first, those of retracted snapshots too."""
    return [one for one in log(root, recipe) if isinstance(one, Version)]


def retractions(root: str, recipe: str) -> dict[str, Retraction]:
    """Return the snapshots that are retracted now, each with the entry that says so."""
    last = {one.snapshot: one for one in log(root, recipe)}
    return {snapshot: one for snapshot, one in sorted(last.items()) if isinstance(one, Retraction)}


def recipes(root: str) -> list[str]:
    """Return the recipes that have published into `root`."""
    return sorted({one.path.split("/")[1] for one in storage.connect(root).list("datasets")})


def _read(store: Store, path: str) -> Version | Retraction:
    try:
        raw = json.loads(store.read(path))
        if "retracts" in raw:
            return Retraction(**raw | {"retracts": tuple(raw["retracts"])})
        return Version(**raw)
    except (ValueError, TypeError) as error:
        message = f"{store.root}/{path} is not a dataset version ({error}); restore it from a backup"
        raise ContractError(message) from error


def current(root: str, recipe: str, snapshot: str = "") -> Version:
    """Return the newest version of a recipe (of one snapshot, if named); RecipeError when there is none."""
    entries = log(root, recipe)
    gone = {one.snapshot: one for one in entries}
    found = [one for one in entries if snapshot in ("", one.snapshot) and isinstance(gone[one.snapshot], Version)]
    if not found:
        raise RecipeError(_nothing(root, recipe, snapshot, gone))
    return next(one for one in reversed(found) if isinstance(one, Version))


def _nothing(root: str, recipe: str, snapshot: str, last: Mapping[str, Version | Retraction]) -> str:
    """Say why there is no version to show, and what there is; `last` is the last entry of every snapshot."""
    gone = [one for _, one in sorted(last.items()) if isinstance(one, Retraction) and snapshot in ("", one.snapshot)]
    if gone:
        return "; ".join(_gone(root, one) for one in gone[-NAMED:])
    what = f"snapshot {snapshot} of recipe {recipe}" if snapshot else f"recipe {recipe}"
    there = sorted(name for name, one in last.items() if isinstance(one, Version)) if last else recipes(root)
    known = f" (published: {', '.join(there[-NAMED:])})" if there else ""
    return f"{root}: {what} has not been published{known}; publish it with `refinery run --input ... --output {root}`"


def _gone(root: str, one: Retraction) -> str:
    back = f"refinery retract --undo {one.snapshot} {root} --recipe {one.recipe}"
    return f"{root}: snapshot {one.snapshot} of recipe {one.recipe} was {one.account}; `{back}` brings it back"


def latest_by_snapshot(root: str, recipe: str) -> list[Version]:
    """Return the newest version of every snapshot that is not retracted, by snapshot."""
    newest = {one.snapshot: one for one in log(root, recipe)}
    return [one for _, one in sorted(newest.items()) if isinstance(one, Version)]


def earlier(root: str, recipe: str, snapshot: str) -> list[Version]:
    """Return the newest version of every snapshot before this one: a run sees nothing of its own day or later.

    Snapshots are ordered as text, so that dates and `CC-MAIN-2026-45` come in order of time.
    """
    return [one for one in latest_by_snapshot(root, recipe) if one.snapshot < snapshot]


def append(root: str, entry: Mapping[str, Any]) -> Version:
    """Publish an entry as the next version; an entry equal to its snapshot's newest version is that version.

    RecipeError if the snapshot is retracted and the entry comes from the same landed files.
    """
    while True:
        there = log(root, str(entry["recipe"]))
        last = next((one for one in reversed(there) if one.snapshot == entry["snapshot"]), None)
        if isinstance(last, Version) and asdict(last) == asdict(Version(number=last.number, **entry)):
            return last
        refuse_retracted(root, str(entry["recipe"]), str(entry["snapshot"]), str(entry["manifests"].get(LAND)))
        version = Version(number=_next(there), **entry)
        if _put(root, version):
            return version


def refuse_retracted(root: str, recipe: str, snapshot: str, land: str) -> None:
    """Raise RecipeError if the snapshot is retracted and `land` is the manifest of the very files that it had."""
    gone = retractions(root, recipe).get(snapshot)
    if gone is None:
        return
    if any(one.manifests.get(LAND) == land for one in versions(root, recipe) if one.number in gone.retracts):
        message = f"{_gone(root, gone)}; to refine it anew, land other files than those that were retracted"
        raise RecipeError(message)


def retract(root: str, recipe: str, snapshot: str, reason: str = "") -> Retraction:
    """Retract a snapshot; the entry that is there if it is retracted already. RecipeError if it was never published."""
    while True:
        there = log(root, recipe)
        mine = [one for one in there if one.snapshot == snapshot]
        if not mine:
            names = sorted({one.snapshot for one in there})
            message = (
                f"{root}: recipe {recipe} has published no snapshot {snapshot!r}; "
                f"it has {', '.join(names) or 'published nothing'}"
            )
            raise RecipeError(message)
        if isinstance(mine[-1], Retraction):
            return mine[-1]
        numbers = tuple(one.number for one in mine if isinstance(one, Version))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Retraction(_next(there), recipe, snapshot, numbers, reason, now)
        if _put(root, entry):
            return entry


def restore(root: str, recipe: str, snapshot: str) -> Version:
    """Publish the last version of a retracted snapshot again; RecipeError if it is not retracted."""
    while True:
        there = log(root, recipe)
        if snapshot not in retractions(root, recipe):
            message = f"{root}: snapshot {snapshot!r} of recipe {recipe} is not retracted; there is nothing to undo"
            raise RecipeError(message)
        last = [one for one in there if isinstance(one, Version) and one.snapshot == snapshot][-1]
        version = replace(last, number=_next(there))
        if _put(root, version):
            return version


def _next(there: list[Version | Retraction]) -> int:
    return (there[-1].number if there else 0) + 1


def _put(root: str, entry: Version | Retraction) -> bool:
    """Append an entry, if no other took its number first."""
    return storage.connect(root).create(version_path(entry.recipe, entry.number), canonical(entry))
