"""Says what has landed from each source, what has not ended, and whether its hosts are asked: nothing is requested."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.landing.listing import PROMISE, PULL
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from refinery_sources.budget import Circuit, circuits
from refinery_sources.pull import QUERY, RECEIPT
from refinery_sources.recipe import SourceRecipe, hosts_of


@dataclass(frozen=True, slots=True)
class LandedSource:
    """A snapshot that a pull has landed: its folder, its files, bytes and rows (None if unknown), and when (UTC).

    `truncated` is the number of records that were cut at the source, None if nobody has counted them.
    """

    folder: str
    recipe: str
    at: str
    files: int
    bytes: int
    rows: int | None
    cursor: str
    terms: Mapping[str, str]
    query: Mapping[str, Any]
    truncated: int | None = None


@dataclass(frozen=True, slots=True)
class UnfinishedPull:
    """A pull that has not ended: its folder, the files that are complete, all of them (None if unknown), and bytes.

    `at` is when the last of what it has brought was written, and `begun` the first (UTC).
    """

    folder: str
    recipe: str
    at: str
    complete: int
    files: int | None
    bytes: int
    query: Mapping[str, Any]
    begun: str

    @property
    def rate(self) -> float | None:
        """Bytes per second of its complete files, None before there are any."""
        seconds = (datetime.fromisoformat(self.at) - datetime.fromisoformat(self.begun)).total_seconds()
        return self.bytes / seconds if seconds > 0 and self.bytes else None


Brought = LandedSource | UnfinishedPull
"""What a pull has brought to a folder."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A source: its recipe (None if it is not known here), what has landed of it, the newest first, and its hosts."""

    name: str
    recipe: SourceRecipe | None
    landed: tuple[LandedSource, ...]
    unfinished: tuple[UnfinishedPull, ...]
    circuits: tuple[Circuit, ...]

    @property
    def newest(self) -> LandedSource | None:
        """The snapshot that landed last, None without one."""
        return self.landed[0] if self.landed else None

    @property
    def kind(self) -> str:
        """The kind of the source."""
        if self.recipe:
            return self.recipe.kind
        known: list[Brought] = [*self.landed, *self.unfinished]
        return str(known[0].query.get("source", "")) if known else ""


def standings(landings: str, recipes: Sequence[SourceRecipe]) -> list[Standing]:
    """Return the sources of recipes, and of what has landed below `landings` by others, which come last.

    The name of what was pulled without a recipe is "".
    """
    store = storage.connect(landings)
    pulled = list(storage.each(store, partial(_found, store), store.folders()))
    landed = sorted((one for one in pulled if isinstance(one, LandedSource)), key=_when, reverse=True)
    begun = sorted((one for one in pulled if isinstance(one, UnfinishedPull)), key=_when, reverse=True)
    known = {recipe.name: recipe for recipe in recipes}
    brought: list[Brought] = [*landed, *begun]
    others = sorted({one.recipe for one in brought} - known.keys())
    known_hosts = circuits()
    return [
        _standing(
            name,
            known.get(name),
            [one for one in landed if one.recipe == name],
            [one for one in begun if one.recipe == name],
            known_hosts,
        )
        for name in [*known, *others]
    ]


def _when(one: Brought) -> tuple[str, str]:
    return one.at, one.folder


def _standing(
    name: str,
    recipe: SourceRecipe | None,
    landed: Sequence[LandedSource],
    begun: Sequence[UnfinishedPull],
    known_hosts: Sequence[Circuit],
) -> Standing:
    brought: list[Brought] = [*landed[:1], *begun]
    queries = [recipe.source.query()] if recipe else [one.query for one in brought]
    hosts = {host for query in queries for host in hosts_of(query)}
    shown = tuple(circuit for circuit in known_hosts if circuit.host in hosts)
    return Standing(name, recipe, tuple(landed), tuple(begun), shown)


def _found(store: Store, folder: str) -> Brought | None:
    """Return what a pull has brought to a folder; None where none has, or where it cannot be read."""
    try:
        promise = _read(store, f"{folder}/{PROMISE}")
        if promise is not None:
            return _landed(folder, promise) if "source" in promise else None
        note = _read(store, f"{folder}/{QUERY}")
        return None if note is None else _unfinished(store, folder, note)
    except (ValueError, KeyError, TypeError, AttributeError, RefineryError):
        return None  # `refine` names what is wrong with it


def _read(store: Store, path: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(store.read(path)))
    except FileNotFoundError:
        return None


def _landed(folder: str, promise: Mapping[str, Any]) -> LandedSource:
    block = promise["source"]
    names = ("files", "bytes", "cursor", "terms", "query")
    known = {name: block[name] for name in names}
    return LandedSource(
        folder=folder,
        recipe=block.get("recipe", ""),
        at=block["pulled"],
        rows=block.get("rows"),
        truncated=_truncated(block),
        **known,
    )


def _truncated(block: Mapping[str, Any]) -> int | None:
    """Return the records that were cut at the source, as the landing or its files count them."""
    if "truncated" in block:
        return int(block["truncated"])
    counts = [facts["truncated"] for facts in block.get("facts", {}).values() if "truncated" in facts]
    return sum(counts) if counts else None


def _unfinished(store: Store, folder: str, note: Mapping[str, Any]) -> UnfinishedPull:
    entries = list(store.list(f"{folder}/"))
    complete = set(_complete(entry.path.removeprefix(f"{folder}/") for entry in entries))
    there = [entry for entry in entries if entry.path.removeprefix(f"{folder}/") in complete]
    first, last = (_clock(pick(entry.modified for entry in entries)) for pick in (min, max))
    size = sum(entry.bytes for entry in there)
    recipe = note.get("recipe", "")
    return UnfinishedPull(folder, recipe, last, len(there), note.get("files"), size, note["query"], first)


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _complete(paths: Iterator[str]) -> Iterator[str]:
    """Yield the names of the files that have a receipt."""
    for path in paths:
        if path.startswith(PULL) and path.endswith(RECEIPT):
            yield path.removeprefix(PULL).removesuffix(RECEIPT)
