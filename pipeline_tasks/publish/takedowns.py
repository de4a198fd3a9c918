"""Takedowns: an append-only log of documents, URLs and sites that must not be used, and the lists that stages read."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.cards import has_param, has_sequences, reads_landed, refines
from pipeline_tasks.errors import ContractError, RecipeError, cause
from pipeline_tasks.manifest import Manifest, in_order
from pipeline_tasks.publish.datasets.origin import DIGEST
from pipeline_tasks.recipe import COMPOSE, LAND, TAKEDOWN
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.sealed import require_digest, split_reference
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import TAKEDOWNS, begun, completed
from pipeline_tasks.store.log_chain import ChainEntry, append, next_number, read_chain
from pipeline_tasks.store.once import Once
from pipeline_tasks.store.reading import read_once, read_shards, whole_line
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.text.urls.addresses import canonical_url
from pipeline_tasks.text.urls.sites import is_public_suffix
from pipeline_tasks.text.urls.takedown import DOC, LIST, SITE, URL, evidence, keys_of, of_rows

LOG = TAKEDOWNS
FOLDER = LOG.folder
LISTS = f"{FOLDER}/lists"
"""Where the lists are that stages read, named by their content."""

PINNED = "taken_down"
"""Key of a landing's and of a composition's resources: the digest of the list that held when it was committed."""

MATCHING = "3"
"""How rows are compared with a list and what is left of them, stored in it: another way is another list."""


Entry = tuple[str, str]
"""A kind (doc, url or site), and the id, URL or site as it was asked for."""

_ID = re.compile(r"[0-9a-f]{32}")
_NO = r"\s/?#@:*,;|<>()\[\]{}\"'`\\%"
"""Characters that no host has: `*.example.com` and `a.example,b.example` name no site."""

_SITE = re.compile(rf"(?!.*\.\.)([^{_NO}]+\.[^{_NO}]*[^{_NO}.\d][^{_NO}]*|\d+(\.\d+){{3}}|localhost)")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://\S", re.IGNORECASE)
_BARE = re.compile(r"(\[[0-9a-f:.]+\]|[^\s/?#:]+\.[^\s/?#:.]+\.?|localhost)(:\d+)?([/?#]\S*)?", re.IGNORECASE)
_FORMS = {DOC: "the id of a document, 32 hex digits", URL: "a URL", SITE: "a host, as `example.com`"}
_NAMED = 100

_FEW = 3
"""Lost entries that an error names."""


@dataclass(frozen=True, slots=True)
class Takedown:
    """An entry of the log: what was taken down (or, with `undo`, is no longer), why, and when (ISO 8601 in UTC)."""

    number: int
    entries: tuple[Entry, ...]
    reason: str
    at: str
    undo: bool = False


def takedowns(root: str) -> list[Takedown]:
    """Return all takedowns, oldest first; ContractError unless their chain is whole."""
    return _takedowns(root, read_chain(root, LOG))


def _takedowns(root: str, chain: Iterable[ChainEntry]) -> list[Takedown]:
    return [_takedown(root, entry) for entry in chain]


def _takedown(root: str, entry: ChainEntry) -> Takedown:
    try:
        fields = {name: value for name, value in entry.fields.items() if name != "log"}
        return Takedown(**{**fields, "entries": tuple((kind, value) for kind, value in fields["entries"])})
    except (ValueError, TypeError, KeyError) as error:
        message = (
            f"{root}/{LOG.entry_path(entry.number)} is not a takedown of this release ({cause(error)}); {LOG.way_out}"
        )
        raise ContractError(message) from error


def valid_entries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries without repetition, sorted; RecipeError for one that names no document, URL or site."""
    pairs = [(kind, with_scheme(value.strip()) if kind == URL else value.strip()) for kind, value in entries]
    for (kind, value), key in zip(pairs, keys_of(pairs), strict=True):
        if not _is_named(kind, value, key):
            message = f"{kind} {value[:_NAMED]!r} has to be {_FORMS[kind]}"
            raise RecipeError(message)
        if kind == SITE and is_public_suffix(key):
            message = f"site {value[:_NAMED]!r} is a public suffix, below which anybody has a site; name the site"
            raise RecipeError(message)
    return tuple(sorted(set(pairs)))


def with_scheme(written: str) -> str:
    """Return an address without a scheme with one, which is as good as any other; what is no address as it is."""
    bare = written.removeprefix("//")
    return f"http://{bare}" if _BARE.fullmatch(bare) else written


def _is_named(kind: str, value: str, key: str) -> bool:
    if kind == DOC:
        return bool(_ID.fullmatch(value.lower()))
    if kind == URL:
        return bool(_SCHEME.match(canonical_url(value))) and bool(key)
    return bool(_SITE.fullmatch(value.strip(".")))


def parse_lines(lines: Iterable[str], where: str) -> list[Entry]:
    """Return the entries of a file: a document's id, a URL or a site in each line; `#` begins a comment.

    RecipeError names a line that is none of these.
    """
    entries: list[Entry] = []
    values = [re.sub(r"(^|\s)#.*", "", line).strip() for line in lines]
    keys = keys_of((URL, value) for value in values)
    for number, (value, key) in enumerate(zip(values, keys, strict=True), 1):
        if not value:
            continue
        kinds = [kind for kind in (DOC, URL, SITE) if _is_named(kind, value, key)]
        if not kinds:
            message = (
                f"{where}: line {number}: {value[:_NAMED]!r} is no id of a document (32 hex digits), URL (with its "
                "scheme) or site (a host)"
            )
            raise RecipeError(message)
        entries.append((kinds[0], value))
    return entries


def record(root: str, entries: Sequence[Entry], reason: str, *, undo: bool = False) -> Takedown | None:
    """Append those of `entries` that change something; None, and no entry, if all hold already.

    RecipeError for the undoing of what was never taken down.
    """
    while True:
        chain = read_chain(root, LOG)
        log = _takedowns(root, chain)
        if undo:
            _require_ever(root, log, entries)
            _require_not_erased(root, log, entries)
        held = _keys(rows_of(log))
        changing = tuple(entry for entry, key in _keyed(entries) if (key in held) == undo)
        if not changing:
            return None
        now = datetime.now(UTC).isoformat(timespec="seconds")
        takedown = Takedown(next_number(chain), changing, reason, now, undo)
        if append(root, LOG, chain, asdict(takedown)):
            return takedown


def require_ever(root: str, entries: Sequence[Entry]) -> None:
    """Raise RecipeError for an entry that was never taken down, or was erased since: there is nothing to undo."""
    log = takedowns(root)
    _require_ever(root, log, entries)
    _require_not_erased(root, log, entries)


def _require_ever(root: str, log: Iterable[Takedown], entries: Sequence[Entry]) -> None:
    ever = _keys(rows_of(takedown for takedown in log if not takedown.undo))
    for (kind, value), key in _keyed(entries):
        if key not in ever:
            message = f"{root}: {kind} {value} was not taken down; there is nothing to undo"
            raise RecipeError(message)


def _require_not_erased(root: str, log: Iterable[Takedown], entries: Sequence[Entry]) -> None:
    """Raise RecipeError for an entry that an erasure has completed: blank rows would come back in its place."""
    until = completed(root)
    since = {_key(row): row["takedown"] for row in rows_of(log)}
    for (kind, value), key in _keyed(entries):
        if since.get(key, until + 1) <= until:
            message = (
                f"{root}: {kind} {value} was erased, and what is left of its rows is blank: it stays taken down. "
                "Refine its snapshots into another root to have it again"
            )
            raise RecipeError(message)


def _keyed(entries: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    """Return each entry with its kind and key."""
    return [(entry, (entry[0], key)) for entry, key in zip(entries, keys_of(entries), strict=True)]


def current_rows(root: str) -> list[dict[str, Any]]:
    """Return what is taken down now, as rows of `LIST`."""
    return rows_of(takedowns(root))


def rows_of(log: Iterable[Takedown]) -> list[dict[str, Any]]:
    """Return what is taken down after entries of the log, as rows of `LIST`."""
    held: dict[Entry, dict[str, Any]] = {}
    for takedown in log:
        for (kind, value), key in zip(takedown.entries, keys_of(takedown.entries), strict=True):
            if takedown.undo:
                held.pop((kind, key), None)
            else:
                row = {"kind": kind, "key": key, "value": value, "takedown": takedown.number}
                held.setdefault((kind, key), row)
    return [held[entry] for entry in sorted(held)]


def _keys(rows: Iterable[Mapping[str, Any]]) -> set[Entry]:
    """Return kinds and keys, which follow from what was asked for: an earlier release wrote other keys into lists."""
    named = [(row["kind"], row["value"]) for row in rows]
    return {(kind, key) for (kind, _), key in zip(named, keys_of(named), strict=True)}


def _key(row: Mapping[str, Any]) -> Entry:
    [key] = _keys([row])
    return key


def pinned_list(root: str) -> dict[str, str]:
    """Store the list that holds now, and return it as the resources of a manifest: nothing if it is empty."""
    rows = current_rows(root)
    if not rows:
        return {}
    writer = ShardWriter(LIST, {"refinery.matching": MATCHING})
    writer.write(pa.RecordBatch.from_pylist(rows, schema=LIST))
    return {PINNED: writer.store(root, LISTS).digest}


def holds(root: str, resources: Mapping[str, str]) -> bool:
    """Return whether all that the list of a manifest's resources names is taken down now, as nothing does without one.

    ContractError if the list is damaged or gone.
    """
    return PINNED not in resources or _keys(_listed(root, resources)) <= _keys(current_rows(root))


def _listed(root: str, resources: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rows of the list that a manifest's resources pin; ContractError if it is damaged or gone."""
    rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(read_list(root, resources))).to_pylist()
    return rows


def read_list(root: str, resources: Mapping[str, str]) -> bytes:
    """Return the bytes of the list that a manifest's resources pin; ContractError if it is damaged or gone."""
    where = list_of(root, resources)
    try:
        body = storage.connect(root).read(where.removeprefix(f"{root}/"))
    except FileNotFoundError as error:
        message = f"{where}: no such list of takedowns; restore it from a backup"
        raise ContractError(message) from error
    require_digest(body, resources[PINNED], where, "restore it from a backup")
    return body


def unrecorded(root: str, log: Iterable[Takedown], landing: Manifest) -> str:
    """Return what a log of takedowns lacks of the list that a landing pins, "" if it has all of it.

    A list that is gone is only evidence that there was some takedown.
    """
    entries = list(log)
    if PINNED not in landing.resources:
        return ""
    ever = _keys(rows_of(takedown for takedown in entries if not takedown.undo))
    try:
        rows = _listed(root, landing.resources)
    except ContractError:
        return "" if entries else "every entry"
    lost = [f"{row['kind']} {row['value']} of entry {row['takedown']}" for row in rows if _key(row) not in ever]
    return ", ".join(lost[:_FEW]) + (f" and {len(lost) - _FEW} more" if lost[_FEW:] else "")


def pins_of(manifest: Manifest) -> dict[str, str]:
    """Return the list that a landing, a composition or a stage was made with, as resources; nothing without one."""
    digest = manifest.resources.get(PINNED) or str(manifest.params.get(PINNED) or "").removeprefix(DIGEST)
    return {PINNED: digest} if digest else {}


def list_of(root: str, resources: Mapping[str, str]) -> str:
    """Return the URI of the list that a manifest's resources pin, "" for none."""
    return f"{root}/{LISTS}/{resources[PINNED][:32]}.parquet" if PINNED in resources else ""


def taken_down_of(root: str, by_stage: Mapping[str, Manifest]) -> str:
    """Return the evidence for a document of a build, or of a snapshot, that is taken down now, "" if it has none."""
    documents, rows = documents_of(by_stage), current_rows(root)
    pinned = pins_of(by_stage.get(LAND, documents))
    if not rows or (pinned and _keys(rows) <= _keys(_listed(root, pinned))):
        return ""  # all that is on the list now was on the one that each document was compared with
    taken = of_rows(rows)
    for batch in read_shards(root, documents.shards, ["id", "url"]):
        proofs = evidence(taken, batch["url"], batch["id"]).drop_null()
        if len(proofs):
            return str(proofs[0].as_py())
    return ""


def documents_of(by_stage: Mapping[str, Manifest]) -> Manifest:
    """Return the manifest with the documents that leave: those that a build packs, or of a refined snapshot."""
    ordered = in_order(by_stage)
    if COMPOSE in by_stage:
        return [manifest for stage, manifest in ordered.items() if not has_sequences(stage)][-1]
    return [manifest for stage, manifest in ordered.items() if stage != LAND and refines(stage)][-1]


def with_taken_down(request: RefineRequest) -> RefineRequest:
    """Return a request with the list of what was taken down as its param, for a stage that reads one.

    `ingest` and `extract` read that of their landing, `select` that of its composition: all tasks of a run read the
    same. `takedown` reads the one that holds now. A request that names a list, or "" for none, is left as it is.
    """
    if PINNED in request.params:
        return request
    if request.stage == TAKEDOWN:
        resources: Mapping[str, str] = pinned_list(request.root)
    elif has_param(request.stage, PINNED):
        resources = beginning(request.root, request.parent).resources
    else:
        return request
    path = list_of(request.root, resources)
    return replace(request, params={**request.params, PINNED: path}) if path else request


def require_current(request: RefineRequest) -> None:
    """Raise ContractError for a stage that reads landed files by a list without what an erasure has completed.

    It would write what was erased: no erasure reaches landed files. Later stages read what it left of its rows.
    """
    until = begun(request.root)
    if not until or not reads_landed(request.stage):
        return
    pins = beginning(request.root, request.parent).resources
    erased = _keys(row for row in current_rows(request.root) if row["takedown"] <= until)
    if not erased <= _keys(_listed(request.root, pins) if PINNED in pins else ()):
        message = (
            f"{request.root}: this run landed before documents were taken down that have been erased since (takedown "
            f"{until}), and {request.stage} would write them again. Start the snapshot's run again from its landing"
        )
        raise ContractError(message)


_BEGINNINGS: Once[Manifest] = Once(lambda beginning: 1 + len(beginning.history_shards), 1 << 16)
"""Manifests that begin runs, without their shards, by root and the reference of what was made of them."""


def beginning(root: str, referred: str) -> Manifest:
    """Return the landing or composition, without its shards, that begins the run of a stage which has this parent.

    RecipeError if it is gone. A process looks for it once.
    """

    def found() -> Manifest:
        return replace(whole_line(root, read_once(root, referred)[0])[-1], covers=(), shards=())

    return _BEGINNINGS.get((root, referred), found) if split_reference(referred)[1] else found()
