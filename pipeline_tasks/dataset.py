"""Dataset versions: an append-only log per recipe, each entry one snapshot's manifests; its tail is `current`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipeline_tasks import storage
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import canonical


@dataclass(frozen=True, slots=True)
class Version:
    """One published version: which manifests, of which snapshot, and where its exported files lie.

    `number` counts from 1 within the recipe; `home` is the prefix of the exported files.
    """

    number: int
    recipe: str
    snapshot: str
    landing: str
    manifests: Mapping[str, str]
    verdicts: Mapping[str, str]
    home: str
    documents: int
    tokens: int
    sequences: int


def version_path(recipe: str, number: int) -> str:
    """Return where a version's entry is kept."""
    return f"datasets/{recipe}/{number:012d}.json"


def versions(root: str, recipe: str) -> list[Version]:
    """Return a recipe's versions, oldest first."""
    store = storage.connect(root)
    entries = [one for one in store.list(f"datasets/{recipe}") if one.path.endswith(".json")]
    return [_read(store, entry.path) for entry in entries]


def recipes(root: str) -> list[str]:
    """Return the recipes that have published into `root`."""
    return sorted({one.path.split("/")[1] for one in storage.connect(root).list("datasets")})


def _read(store: storage.Store, path: str) -> Version:
    try:
        return Version(**json.loads(store.read(path)))
    except (ValueError, TypeError) as error:
        message = f"{store.root}/{path} is not a dataset version ({error}); restore it from a backup"
        raise ContractError(message) from error


def current(root: str, recipe: str, snapshot: str = "") -> Version:
    """Return the newest version of a recipe (of one snapshot, if named); RecipeError when there is none."""
    found = [one for one in versions(root, recipe) if snapshot in ("", one.snapshot)]
    if not found:
        what = f"snapshot {snapshot} of recipe {recipe}" if snapshot else f"recipe {recipe}"
        message = f"{root}: {what} has not been published; publish it with `refinery run --output {root}`"
        raise RecipeError(message)
    return found[-1]


def latest_by_snapshot(root: str, recipe: str) -> list[Version]:
    """Return the newest version of every snapshot, by snapshot."""
    newest = {one.snapshot: one for one in versions(root, recipe)}
    return [newest[snapshot] for snapshot in sorted(newest)]


def earlier(root: str, recipe: str, snapshot: str) -> list[Version]:
    """Return the newest version of every snapshot before this one: a run sees nothing of its own day or later.

    Snapshots are ordered as text, so that dates and `CC-MAIN-2026-45` come in order of time.
    """
    return [one for one in latest_by_snapshot(root, recipe) if one.snapshot < snapshot]


def append(root: str, entry: Mapping[str, Any]) -> Version:
    """Publish an entry as the next version; an entry equal to its snapshot's newest version is that version."""
    store = storage.connect(root)
    while True:
        there = versions(root, str(entry["recipe"]))
        same = [one for one in there if one.snapshot == entry["snapshot"]]
        if same and asdict(same[-1]) == {**entry, "number": same[-1].number}:
            return same[-1]
        version = Version(number=(there[-1].number if there else 0) + 1, **entry)
        if store.create(version_path(version.recipe, version.number), canonical(version)):
            return version
