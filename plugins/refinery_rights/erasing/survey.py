"""Finds the objects below a root that have a document that is taken down, and what is to be done with each.

Tables are asked by their filters (`name_index`), and those that may have one are read. Exports are read if something
that their version was made of may have one, and all other objects if anything that they could say is known.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RefineryError, Transient, cause
from pipeline_tasks.publish.exported import FILES
from pipeline_tasks.recipe import PUBLISH
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import FOLDER as ERASURES
from pipeline_tasks.store.erasures import Erased, Stored, erased_by_path
from pipeline_tasks.store.protocol import Entry, Store
from pipeline_tasks.store.shards.name_index import NameIndex
from pipeline_tasks.store.shards.table import Table, open_table
from pipeline_tasks.store.taken_down import FOLDER as TAKEDOWNS
from pipeline_tasks.text.urls.takedown import hosts_of
from pipeline_tasks.upkeep.followers import follower_prefixes
from pipeline_tasks.upkeep.vacuum import export_of
from refinery_rights.erasing import caches, exports, packed, tables
from refinery_rights.erasing.documents import Documents
from refinery_rights.erasing.samples import LARGEST, Probes, unpacked

pc: Any = pyarrow.compute

Tables: TypeAlias = dict[str, Table]

REWRITE, REMOVE = "rewrite", "remove"

KEEPS = (TAKEDOWNS, ERASURES)
"""Prefixes that are not looked at: the order to forget, and what came of it, which have no text."""

COUNTS = ("/receipts/", "/partitions/", "/heads/", "/pages/", "/summaries/", "/earlier/")
"""Parts of the paths of JSON objects that have names, digests and counts alone, as manifests have."""

REMOVED = (".html", "requests/", "alerts/")
"""Ends and prefixes of objects that are removed when they have a document: pages that are written again, messages."""


@dataclass(frozen=True, slots=True)
class Work:
    """An object that has a document: how many rows, bytes, what is done with it, and how."""

    path: str
    action: str
    rows: int
    bytes: int
    do: Callable[[], Erased]


@dataclass(slots=True)
class Survey:
    """What was found: the documents, what is to be done in order, and what is not erased, with the reason.

    `unfinished` are half-written files, and uploads to a bucket, of processes that were killed, which were removed.
    `texts` are the keys of what the documents say, as caches have them. `names_in` are the paths of objects that stay
    and have the name of a host that is taken down.
    """

    root: str
    documents: Documents
    known: tables.Identities
    probes: Probes = field(default_factory=Probes)
    texts: set[str] = field(default_factory=set)
    work: list[Work] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    names_in: list[str] = field(default_factory=list)
    objects: int = 0
    bytes: int = 0


def survey(root: str, documents: Documents, *, alone: bool = False) -> Survey:
    """Find all objects of a root that have something of documents.

    What is no table comes first in the order of work: it is found by what tables say, which is gone when these are
    rewritten. With `alone` no other process writes to the root, and half-written files are those of killed ones.
    """
    found = Survey(root, documents, tables.Identities(root))
    store = storage.connect(root)
    entries = [entry for entry in store.list("") if entry.path.partition("/")[0] not in KEEPS]
    found.objects, found.bytes = len(entries), sum(entry.bytes for entry in entries)
    index = NameIndex(root, {entry.path: entry.bytes for entry in entries if entry.bytes and _has_names(entry.path)})
    opened = _opened(found, entries, index.having(documents.names), {})
    for table in opened.values():
        if tables.names_documents(table):
            _guarded(found, table.shard.path, partial(_learn, found, table))
    having = index.having(documents.names)
    shards = _packed(found, having)
    for lineage in [each for each in shards if each in having]:
        _guarded(found, lineage, partial(_learn_pieces, found, lineage))
        if lineage in found.left:
            del shards[lineage]
    having = index.having(documents.names)
    opened = _opened(found, entries, having, opened)
    for table in opened.values():
        if tables.names_documents(table):
            _guarded(found, table.shard.path, partial(_learn_others, found, table))
    found.probes.urls |= documents.urls
    found.probes.hosts |= hosts_of(documents.taken)
    others = [entry for entry in entries if entry.path not in opened and entry.path not in index.paths - having]
    _plan_others(found, store, others, partial(exports.may_have, root, index.paths, having))
    _plan_caches(found, store, [entry for entry in entries if caches.is_cached(entry.path)])
    _plan_packed(found, entries, shards or _packed(found, having), having)
    for path, table in opened.items():
        _guarded(found, path, partial(_plan_table, found, table))
    _plan_unfinished(found, store, alone=alone)
    return found


def _guarded(found: Survey, path: str, look: Callable[[], None]) -> None:
    """Look at an object; one that cannot be read is not erased, and is named."""
    try:
        look()
    except Transient:
        raise
    except (RefineryError, FileNotFoundError, pa.ArrowException, OSError) as error:
        found.left[path] = f"it cannot be read ({cause(error)}); restore or remove it"


def _has_names(path: str) -> bool:
    return _is_table(path) or (packed.is_named(path) and path.endswith(packed.LINEAGE))


def _opened(found: Survey, entries: Iterable[Entry], having: Collection[str], opened: Mapping[str, Table]) -> Tables:
    """Open the tables that may have a document and are not open yet; return all, in the order of entries."""
    named = [entry for entry in entries if entry.path in having and _is_table(entry.path)]
    more = dict(_tables(found, [entry for entry in named if entry.path not in {*opened, *found.left}]))
    return {entry.path: table for entry in named if (table := more.get(entry.path) or opened.get(entry.path))}


def _packed(found: Survey, having: Iterable[str]) -> dict[str, packed.Packed]:
    """Return the packed shards by their lineages, if one of these may have a document, or tokens are looked for."""
    is_needed = found.probes.tokens or any(path.endswith(packed.LINEAGE) for path in having)
    return packed.packed_shards(found.root) if is_needed else {}


def _tables(found: Survey, entries: Iterable[Entry]) -> Iterator[tuple[str, Table]]:
    for entry in entries:
        if entry.bytes:
            opened: list[Table] = []
            _guarded(found, entry.path, partial(_open, found.root, entry.path, opened))
            yield from ((entry.path, table) for table in opened)


def _open(root: str, path: str, opened: list[Table]) -> None:
    opened.append(open_table(root, path))


def _is_table(path: str) -> bool:
    """Return whether an object is a table of rows that a stage wrote, or a cache or compaction of such."""
    own = not path.startswith((*follower_prefixes(), f"{PUBLISH}/"))
    return own and path.endswith((".parquet", ".segment"))


def _learn(found: Survey, table: Table) -> None:
    for said in tables.learn(found.known, table, found.documents):
        if isinstance(said, str):
            found.probes.add(said)
            found.texts |= caches.keys_of(said)
        else:
            found.probes.add_tokens(said)


def _learn_pieces(found: Survey, lineage: str) -> None:
    for batch in packed.pieces(found.root, lineage):
        found.documents.learn(batch)


def _learn_others(found: Survey, table: Table) -> None:
    for batch in found.known.of(table):
        found.documents.learn_others(batch)


def _plan_table(found: Survey, table: Table) -> None:
    gone = tables.gone(found.known, table, found.documents, found.texts)
    if gone and (rows := tables.count(found.root, table, gone)):
        do = partial(tables.rewrite, found.root, table, gone, rows)
        found.work.append(Work(table.shard.path, REWRITE, rows, table.shard.bytes, do))


def _plan_packed(
    found: Survey, entries: Iterable[Entry], shards: dict[str, packed.Packed], having: Collection[str]
) -> None:
    sizes = {entry.path: entry.bytes for entry in entries if packed.is_named(entry.path)}
    for shard in [each for each in shards.values() if each.lineage in having]:
        _guarded(found, shard.bin, partial(_plan_packed_shard, found, shard, sizes))
    known = packed.bins_of(shards) | erased_by_path(found.root).keys()
    for path in sorted(sizes.keys() - known):
        if path in having:
            _guarded(found, path, partial(_plan_lineage, found, path, sizes[path]))
        elif (
            path.endswith(".bin")
            and found.probes.tokens
            and found.probes.tokens_in(storage.connect(found.root).read(path))
        ):
            found.left[path] = (
                "no version names it: finish the build that wrote it, or `refinery keep vacuum` removes it"
            )


def _plan_packed_shard(found: Survey, shard: packed.Packed, sizes: Mapping[str, int]) -> None:
    spans = packed.spans_of(found.root, shard, found.documents)
    if spans:
        do = partial(packed.rewrite_ids, found.root, shard, spans, len(spans))
        found.work.append(Work(shard.bin, REWRITE, len(spans), sizes[shard.bin], do))
    _plan_lineage(found, shard.lineage, sizes[shard.lineage])


def _plan_lineage(found: Survey, lineage: str, size: int) -> None:
    rows = packed.count(found.root, lineage, found.documents)
    if rows:
        do = partial(packed.rewrite_lineage, found.root, lineage, found.documents, rows)
        found.work.append(Work(lineage, REWRITE, rows, size, do))


def _plan_others(found: Survey, store: Store, entries: Iterable[Entry], may_have: Callable[[str], bool]) -> None:
    """Look at what is no table: exports are removed as a whole, pages and messages one by one."""
    exported: dict[str, list[Entry]] = {}
    for entry in entries:
        if export := export_of(entry.path):
            exported.setdefault(export, []).append(entry)
        elif not _counts(entry.path):
            _guarded(found, entry.path, partial(_plan_other, found, store, entry))
        elif found.probes.hosts and entry.path.endswith(".json"):
            _guarded(found, entry.path, partial(_note_names, found, store.read, entry.path))
    for export, files in exported.items():
        if may_have(export):
            _guarded(found, files[0].path, partial(_plan_export, found, store, files))


def _counts(path: str) -> bool:
    """Return whether an object has no content of documents, or is looked at as something else."""
    name = path.rpartition("/")[2]
    is_count = path.endswith(".json") and (name.startswith("manifest.") or any(part in path for part in COUNTS))
    return is_count or packed.is_named(path) or path.startswith((*follower_prefixes(), "tokenizers/"))


def _plan_other(found: Survey, store: Store, entry: Entry) -> None:
    if "/scratch/" in entry.path:
        found.left[entry.path] = (
            "a run shuffles by it, or was killed: finish the run, or `refinery keep vacuum` removes it"
        )
        return
    if entry.bytes > LARGEST:
        found.left[entry.path] = f"it has more than {LARGEST:,} bytes and is no table: look at it"
        return
    if not found.probes.any:
        return
    is_removed = entry.path.endswith(REMOVED[:1]) or entry.path.startswith(REMOVED[1:])
    if not found.probes.are_in(body := store.read(entry.path), urls=is_removed):
        _note_names(found, lambda _: body, entry.path)
        return
    if is_removed:
        found.work.append(_removal(store, entry, 1))
    else:
        found.left[entry.path] = "it has text of a document, and nothing writes it again: look at it"


def _note_names(found: Survey, read: Callable[[str], bytes], path: str) -> None:
    """Note an object that stays, and has the name of a host that is taken down."""
    if found.probes.has_host(unpacked(read(path)).decode("utf-8", "replace")):
        found.names_in.append(path)


def _plan_export(found: Survey, store: Store, files: list[Entry]) -> None:
    """Plan the removal of an export that has a document; its list of files goes first: without it, it is not whole.

    Exports of tokens have a lineage in Parquet, and those of texts are rows: no text has to be looked for, which
    another document may quote.
    """
    rows = sum(_rows_in(found, batch) for entry in files for batch in exports.exported_rows(store, entry))
    if rows:
        for entry in sorted(files, key=lambda entry: (not entry.path.endswith(f"/{FILES}"), entry.path)):
            found.work.append(_removal(store, entry, rows))


def _plan_caches(found: Survey, store: Store, entries: Sequence[Entry]) -> None:
    """Plan the removal of segments of caches that have something of a document; what names one goes first."""
    segments = {entry.path: entry for entry in entries if entry.path.endswith(".segment") and found.texts}
    names = (
        caches.names_of(found.root, [entry for entry in entries if entry.path.endswith(".json")]) if segments else {}
    )
    sizes = {entry.path: entry for entry in entries}
    for path, entry in segments.items():
        _guarded(
            found, path, partial(_plan_segment, found, store, [sizes[names[path]]] if path in names else [], entry)
        )


def _plan_segment(found: Survey, store: Store, names: Sequence[Entry], segment: Entry) -> None:
    rows = caches.count(found.root, segment.path, found.texts)
    found.work += [_removal(store, entry, rows) for entry in (*names, segment) if rows]


def _rows_in(found: Survey, batch: pa.RecordBatch) -> int:
    return int(batch.num_rows - found.documents.matched(batch).null_count)


def _removal(store: Store, entry: Entry, rows: int) -> Work:
    def remove() -> Erased:
        body = store.read(entry.path)
        return Erased(Stored(entry.path, len(body), sha256(body)), None, rows)

    return Work(entry.path, REMOVE, rows, entry.bytes, remove)


def _plan_unfinished(found: Survey, store: Store, *, alone: bool) -> None:
    for entry in store.unfinished(""):
        if alone:
            store.delete(entry.path)
            found.unfinished.append(entry.path)
        else:
            found.left[entry.path] = (
                "a process that was killed, or still writes, has it half-written; where none runs, --alone removes it"
            )
