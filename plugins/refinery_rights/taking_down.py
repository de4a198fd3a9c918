"""Records takedowns in their log and in the ledger: those that a person names, and records that a source has deleted.

A landing may have `_deleted.jsonl` beside its data: a line `{"url": URL}` or `{"id": ID}` for each record that is no
longer at the source. An id is that of the record at its source, which only its own landings know: it is looked up among
the published documents of the snapshots that the same recipe has landed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.landing.listing import PROMISE
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.lost_log import require_takedowns
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import record
from pipeline_tasks.sealed import require_digest
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.taken_down import LOG, Takedown, takedowns
from pipeline_tasks.text.urls.takedown import DOC, URL, Entry
from pipeline_tasks.text.urls.takedown_entries import valid_entries

pc: Any = pyarrow.compute

DELETED = "_deleted.jsonl"
"""The file of a landing that names records which its source has deleted."""

MOST_BYTES = 1 << 30
"""Bytes that it may have: ten million records."""

_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Deletions:
    """What a landing says its source has deleted: URLs, and ids of records; `recipe` is that of the source."""

    snapshot: str
    recipe: str
    urls: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The reason of the takedown."""
        source = f" {self.recipe}" if self.recipe else ""
        return f"deleted at the source{source}, as snapshot {self.snapshot} says"


def take_down(root: str, entries: Sequence[Entry], reason: str, *, undo: bool = False) -> Takedown | None:
    """Record a takedown in the log, then all of the log in the ledger; None if all of it holds already."""
    require_takedowns(root)
    recorded = record(root, entries, reason, undo=undo)
    with Ledger.open(ledger_of(root)) as ledger:
        ledger.record_takedowns(root, takedowns(root))
        ledger.record_log(root, LOG)
    return recorded


def read_deletions(landing: str) -> Deletions:
    """Return what a landing says was deleted, nothing if it says nothing.

    RecipeError for a place where no pull has landed, DigestMismatch or ContractError for a file that is not what the
    landing promises, or has a line that names no record.
    """
    store = storage.connect(landing)
    try:
        promise = json.loads(store.read(PROMISE))
        block = promise["source"]
        known = Deletions(str(promise["snapshot"]), str(block.get("recipe", "")))
        digests = {file["path"]: str(file["sha256"]) for file in block.get("beside", ())}
    except FileNotFoundError as error:
        message = f"{landing} has no {PROMISE}: no pull has landed there; name the folder of a snapshot"
        raise RecipeError(message) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{landing}/{PROMISE} is not of a pull; name the folder of a snapshot that one has landed"
        raise RecipeError(message) from error
    if DELETED not in digests:
        return known
    body = _body(landing, digests[DELETED])
    rows = [_row(line, number, landing) for number, line in enumerate(body.splitlines(), 1) if line.strip()]
    urls = tuple(dict.fromkeys(value for kind, value in rows if kind == URL))
    return Deletions(known.snapshot, known.recipe, urls, tuple(dict.fromkeys(v for kind, v in rows if kind != URL)))


def _body(landing: str, digest: str) -> bytes:
    store, where = storage.connect(landing), f"{landing}/{DELETED}"
    size = store.size(DELETED)
    if size is None:
        message = f"{where} is not there, and {PROMISE} promises it; restore it, or pull into a new landing"
        raise ContractError(message)
    if size > MOST_BYTES:
        message = f"{where} has {size:,} bytes, more than {MOST_BYTES:,}; take its records down in parts"
        raise ContractError(message)
    body = store.read(DELETED)
    require_digest(body, digest, where, "restore it, or pull into a new landing")
    return body


def _row(line: bytes, number: int, landing: str) -> tuple[str, str]:
    """Return a line as the kind of what it names, and its value; ContractError for one that names nothing."""
    try:
        row = json.loads(line)
        kind, value = next((name, row[name]) for name in (URL, "id") if row.get(name) is not None)
    except (ValueError, AttributeError, StopIteration) as error:
        message = f"{landing}/{DELETED}: line {number:,} is no object with an id or a url; tell who made it"
        raise ContractError(message) from error
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        message = f"{landing}/{DELETED}: line {number:,} has the {kind} {str(value)[:_SHOWN]!a}, which names no record"
        raise ContractError(message)
    return kind, str(value)


def entries_of(root: str, deletions: Deletions) -> tuple[tuple[Entry, ...], int]:
    """Return the entries of a takedown of what was deleted, and the number of ids that no published document has.

    ContractError for a URL that is none.
    """
    found = dict(_documents(root, deletions)) if deletions.ids else {}
    named = [*((URL, url) for url in deletions.urls), *((DOC, document) for document in found)]
    try:
        entries = valid_entries(named)
    except RecipeError as error:
        message = f"{DELETED} of snapshot {deletions.snapshot}: {error}"
        raise ContractError(message) from error
    return entries, len(set(deletions.ids) - set(found.values()))


def _documents(root: str, deletions: Deletions) -> Iterator[tuple[str, str]]:
    """Yield the ids of published documents of the source whose records were deleted, with the ids of their records."""
    ids = pa.array(deletions.ids, pa.string())
    datasets = version_log.datasets(root)
    for recipe in version_log.recipes(root):
        for version in version_log.latest_by_snapshot(root, recipe) if recipe not in datasets else ():
            if _recipe_of(version.landing) != deletions.recipe:
                continue
            for batch in read_shards(root, read_manifest(root, version.refined).shards, ["id", "record_id"]):
                taken = batch.filter(pc.is_in(batch["record_id"], ids))
                yield from zip(taken["id"].to_pylist(), taken["record_id"].to_pylist(), strict=True)


def _recipe_of(landing: str) -> str | None:
    """Return the recipe by which a snapshot landed; None if no pull has landed it, or it is gone."""
    try:
        promise: Mapping[str, Any] = json.loads(storage.connect(landing).read(PROMISE))
        return str(promise["source"].get("recipe", ""))
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def deletions_taken_down(root: str, landing: str) -> tuple[Takedown | None, int]:
    """Record what a landing says was deleted; return the entry (None for none new) and the ids that are not known."""
    deletions = read_deletions(landing)
    entries, unknown = entries_of(root, deletions)
    return (take_down(root, entries, deletions.reason) if entries else None), unknown
