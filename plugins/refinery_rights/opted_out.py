"""Finds published documents that are opted out by what became known since: newer records, and newer robots.txt files.

Of each address the newest record of any snapshot counts, also one that was rejected: by `check_rights`, whose signals
are stored with it, or by `ingest` as unchanged, whose header fields are. Of each host the newest robots.txt counts, of
the snapshots of the root or of archives that are named.

Records and documents are read on an engine. What rejects is brought together here, sorted on this machine's disk, and
localized by workers, who look their own rows up in it.
"""

import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import reads_records
from pipeline_tasks.engines.each import HERE, On, Work
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.landing.listing import landing_of, list_snapshot
from pipeline_tasks.libraries import release
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import LOCAL, load_recipe
from pipeline_tasks.run.tasks.sorted_runs import in_order
from pipeline_tasks.schema import PAGE
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stage import Batches, Shard
from pipeline_tasks.stages import check_rights, ingest
from pipeline_tasks.stages.check_rights import ROBOTS_FILES, Params, RobotsFiles, said_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import newest
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.shards.segment import Segment, Segments
from pipeline_tasks.store.shards.segment_writer import store_segment
from pipeline_tasks.text.base.key_pages import KeyedFile
from pipeline_tasks.text.base.tables import last_of_runs
from pipeline_tasks.text.base.timestamps import sortable_timestamps
from pipeline_tasks.text.rights.signals import Signal
from pipeline_tasks.text.urls.keys import origins
from pipeline_tasks.text.urls.takedown import URL, keys_of

pc: Any = pyarrow.compute

CHECK_RIGHTS = check_rights.STAGE.name

VERB = "opted_out"
"""The verb over a whole root, as recipes name it in `run: engines:`."""

EVER = 10**14
"""A moment after all others, as `sortable_timestamps` has them."""


@dataclass(frozen=True, slots=True)
class OptedOut:
    """An address of published documents, and the signal that is against their use."""

    url: str
    signal: Signal


RESERVED = pa.schema(
    [
        pa.field("key", pa.string()),  # of an address
        pa.field("moment", pa.int64()),  # when its record was crawled
        *(pa.field(name, pa.string()) for name in Signal._fields),
    ]
)
"""Records with the signal of each that rejects."""

KEYS = pa.schema([RESERVED.field("key")])

BATCH_ROWS = 4096

RUN_BYTES = 128 << 20
"""Bytes of rows that are sorted in memory, where they are twice for a moment."""


Records = tuple[bool, Shard]
"""A shard of records: those that `ingest` rejected as unchanged, or those whose rights were checked."""


def opted_out(root: str, recipe: str = "", archives: Sequence[str] = (), on: On = HERE) -> list[OptedOut]:
    """Return the addresses of published documents that are opted out by now, sorted.

    By the policy of `recipe`, or of the newest version that was refined by one; `archives` are folders or files with
    robots.txt records. Signals are read once, robots.txt files once, and of all records and documents the address and
    the time; `on` says where. What rejects is sorted on this machine's disk; in memory are batches, and what is found.
    RecipeError without a policy, for one that rejects nothing, or archives without a robots.txt.
    """
    root = storage.absolute(root)
    versions = [version for name in _snapshot_recipes(root) for version in version_log.latest_by_snapshot(root, name)]
    checked = [read_manifest(root, each.manifests[CHECK_RIGHTS]) for each in versions if CHECK_RIGHTS in each.manifests]
    params = _policy(recipe, checked, root)
    work = Work(VERB, root, f"requests/{VERB}-{digest_of([release(), newest(root), params])}", on)
    signals: dict[str, Signal] = {}
    with _folder(work) as folder:
        files = _newest_files(root, checked, archives, folder)
        records = [(False, shard) for each in checked for shard in (*each.shards, *each.rejects)]
        records += [(True, shard) for shard in _unchanged(root, versions)]
        reserved = reserved_by(_signaled(work, records, params), partial(_newer, work, records, folder), folder)
        documents = [shard for each in versions for shard in read_manifest(root, each.refined).shards]
        for found in work.each(
            "documents",
            partial(_against_documents, root, folder, files, reserved, params),
            documents,
            key=lambda shard: [files.digest, reserved.digest, shard],
            weight=lambda shard: shard.bytes,
        ):
            for url, signal in found["against"]:
                signals.setdefault(url, Signal(*signal))
    work.forget()
    return [OptedOut(url, signals[url]) for url in sorted(signals)]


@contextmanager
def _folder(work: Work) -> Iterator[str]:
    """Give a folder of this driver that workers reach: on this machine, or for those of a cluster in the root."""
    store, folder = storage.connect(work.place), f"requests/{VERB}-{uuid.uuid4().hex}"
    try:
        with tempfile.TemporaryDirectory(prefix="refinery-") as here:
            yield here if work.on.engine == LOCAL else f"{work.place}/{folder}"
    finally:
        _keyed.cache_clear()  # files that are mapped take room after they are removed
        store.delete_many([entry.path for entry in store.list(folder)])


@lru_cache(maxsize=4)
def _keyed(folder: str, shard: Shard) -> KeyedFile:
    """Return the rows of a segment by key; a worker localizes it once."""
    return KeyedFile(storage.localize(f"{folder}/{shard.path}", shard.digest))


def _bytes(records: Records) -> int:
    return records[1].bytes


def _snapshot_recipes(root: str) -> list[str]:
    datasets = version_log.datasets(root)
    return [name for name in version_log.recipes(root) if name not in datasets]


def _policy(recipe: str, checked: Sequence[Manifest], root: str) -> Params:
    """Return the policy of a recipe, or of the newest manifest that has one; RecipeError if it rejects nothing."""
    if recipe:
        params, where = load_recipe(recipe).step(CHECK_RIGHTS).params, f"recipe {recipe}"
    elif checked:
        params, where = checked[-1].params, f"{CHECK_RIGHTS}/{checked[-1].fingerprint}"
    else:
        message = f"{root}: no version was refined by a recipe with {CHECK_RIGHTS}; name one by --recipe"
        raise RecipeError(message)
    policy: Params = bind(check_rights.STAGE, params, where)
    if not policy.signals_with("reject"):
        message = (
            f"{where} rejects no page by a signal, so nothing is to be taken down; name by --recipe one that does, as "
            f"`{CHECK_RIGHTS}: {{robots_txt: reject, noai: reject}}`"
        )
        raise RecipeError(message)
    return policy


def _last_by(batches: Iterable[pa.RecordBatch], schema: pa.Schema, order: Sequence[str], folder: str) -> Shard:
    """Store of rows the last of each value of the first column, by the others and then as they come."""
    rows = in_order(chain([pa.RecordBatch.from_pylist([], schema)], batches), order, BATCH_ROWS, RUN_BYTES)
    return store_segment(folder, "sorted", schema, order[:1], last_of_runs(rows, order[0]))


# --- Records -----------------------------------------------------------------------------------------------------


def reserved_by(signaled: Batches, newer: Callable[[Shard], Batches], folder: str) -> Shard:
    """Return by address the newest record with a signal that rejects, of addresses that have no newer record.

    `signaled` are the records with such a signal, rows of `RESERVED`. `newer` yields the keys of those in a segment of
    `folder` that have a newer record.
    """
    latest = _last_by(signaled, RESERVED, ("key", "moment"), folder)
    freed = _last_by(newer(latest) if latest.rows else (), KEYS, ("key",), folder)  # what was reserved is no longer
    free = _keyed(folder, freed)
    rows = (_without(batch, free) for batch in Segment(folder, latest, BATCH_ROWS))
    return store_segment(folder, "reserved", RESERVED, ("key",), rows)


def _without(batch: pa.RecordBatch, free: KeyedFile) -> pa.RecordBatch:
    return batch.filter(pc.invert(pc.is_in(batch["key"], value_set=free.rows(batch["key"])["key"])))


def _signaled(work: Work, records: Sequence[Records], params: Params) -> Batches:
    """Yield the records with a signal that rejects, other than those of robots.txt."""
    signals = partial(_signals_of, work.place, params)
    for found in work.each("signals", signals, records, key=list, weight=_bytes):
        yield pa.RecordBatch.from_pylist(found["rows"], RESERVED)


def _signals_of(root: str, params: Params, records: Records) -> dict[str, Any]:
    """Return the records of a shard with a signal that rejects: rows of `RESERVED`."""
    rejecting, agents = params.signals_with("reject"), frozenset(agent.lower() for agent in params.agents)
    rows: list[dict[str, Any]] = []
    for batch in _read(root, records, "metadata" if records[0] else "rights"):
        if records[0]:
            rows += _rejected(batch, check_rights.header_rights(batch["metadata"], agents), rejecting)
            continue
        own = batch.filter(pc.fill_null(pc.greater(pc.list_value_length(batch["rights"]), 0), fill_value=False))
        rights = [[Signal(**right) for right in row] for row in own["rights"].to_pylist()]
        rows += _rejected(own, [[each for each in row if each.source != "robots.txt"] for row in rights], rejecting)
    return {"rows": rows}


def _read(root: str, records: Records, *columns: str) -> Batches:
    """Yield address and time of the records of a shard, and more columns."""
    is_unchanged, shard = records
    reasons = ("reason",) if is_unchanged else ()
    for batch in read_shards(root, (shard,), ["url", "crawled_at", *reasons, *columns]):
        yield batch.filter(pc.equal(batch["reason"], ingest.UNCHANGED)) if is_unchanged else batch


def _unchanged(root: str, versions: Sequence[Version]) -> Iterator[Shard]:
    """Yield the shards of what `ingest` rejected, of versions whose rights were checked."""
    for version in versions:
        first = next(filter(reads_records, version.manifests if CHECK_RIGHTS in version.manifests else ()), "")
        yield from read_manifest(root, version.manifests[first]).rejects if first else ()


def _newer(work: Work, records: Sequence[Records], folder: str, known: Shard) -> Batches:
    """Yield the keys of a segment's addresses that have a newer record."""
    keys = partial(_newer_of, work.place, folder, known)
    for found in work.each("newer", keys, records, key=lambda each: [known.digest, *each], weight=_bytes):
        yield pa.record_batch([pa.array(found["keys"], pa.string())], schema=KEYS)


def _newer_of(root: str, folder: str, known: Shard, records: Records) -> dict[str, Any]:
    """Return the keys of a segment's addresses of which a shard has a newer record."""
    batches = newer_than(_keyed(folder, known), _read(root, records))
    return {"keys": sorted({key for keys in batches for key in keys.to_pylist()})}


def _rejected(
    batch: pa.RecordBatch, signals: Iterable[Sequence[Signal]], rejecting: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows that have an address and a signal that rejects: rows of `RESERVED`."""
    strongest = [check_rights.first(each, rejecting) for each in signals]
    for key, moment, signal in zip(_keys(batch), _moments(batch), strongest, strict=True):
        if key and signal:
            yield {"key": key, "moment": moment, **signal._asdict()}


def newer_than(known: KeyedFile, records: Batches) -> Iterator[pa.Array]:
    """Yield the keys of records that are newer than the one that is known of their address."""
    for batch in records:
        keys = pa.array(_keys(batch), pa.string())
        rows = known.rows(keys)
        reserved = rows["moment"].combine_chunks().take(pc.index_in(keys, value_set=rows["key"]))
        yield keys.filter(pc.greater(pa.array(_moments(batch), pa.int64()), reserved))


def _keys(batch: pa.RecordBatch) -> list[str]:
    return keys_of((URL, url or "") for url in batch["url"].to_pylist())


def _moments(batch: pa.RecordBatch) -> list[int]:
    moments: list[int] = sortable_timestamps(batch["crawled_at"]).to_pylist()
    return moments


# --- robots.txt --------------------------------------------------------------------------------------------------


def _newest_files(root: str, checked: Sequence[Manifest], archives: Sequence[str], folder: str) -> Shard:
    """Return by origin the newest robots.txt file of the root and of archives."""
    saved = tuple(shard for manifest in checked for shard in manifest.history["robots"])
    own = (batch.select(ROBOTS_FILES.names) for batch in (Segments(root, saved) if saved else ()))
    order = ("origin", "fetched", "file", "offset")
    return _last_by(chain(_read_files(archives), own), ROBOTS_FILES, order, folder)


def _read_files(archives: Sequence[str]) -> Batches:
    """Yield the robots.txt files of archives."""
    for uri in archives:
        count = 0
        for files in _robots_files(uri):
            count += files.num_rows
            yield files
        if not count:
            message = (
                f"{uri} has no robots.txt; name files that have, as `refinery pull cc --kind robotstxt` lands them"
            )
            raise RecipeError(message)


def _robots_files(uri: str) -> Iterator[pa.RecordBatch]:
    listing = list_snapshot(uri)
    for name, *_ in listing.files:
        with storage.open_landed(f"{landing_of(uri)}/{name}") as stream:
            pages = ingest.select_pages(
                read_records(name, stream, snapshot=listing.snapshot), params=ingest.Params(rights=True)
            )
            kept = (batch.filter(pc.is_null(batch["reason"])).select([*PAGE.names, "status"]) for batch in pages)
            yield from check_rights.robots_files(check_rights.read_signals(kept, agents=()))


# --- Documents ---------------------------------------------------------------------------------------------------


def _against_documents(
    root: str, folder: str, files: Shard, reserved: Shard, params: Params, shard: Shard
) -> dict[str, Any]:
    """Return the addresses of a shard's documents that a signal is against, each with the strongest."""
    keyed = _keyed(folder, files), _keyed(folder, reserved)
    batches = read_shards(root, (shard,), ["url", "crawled_at"])
    return {"against": [found for batch in batches for found in _against(batch, *keyed, params)]}


def _against(
    batch: pa.RecordBatch, files: KeyedFile, reserved: KeyedFile, params: Params
) -> Iterator[tuple[str, Signal]]:
    """Yield the addresses of documents that a signal is against, with the strongest."""
    urls, hosts, keys = batch["url"].to_pylist(), origins(batch["url"]), _keys(batch)
    known, rejecting = (
        RobotsFiles(files.rows, pc.unique(hosts).drop_null(), params.agents),
        params.signals_with("reject"),
    )
    states = {row["key"]: row for row in reserved.rows(pa.array(keys, pa.string())).to_pylist()}
    for url, host, moment, key in zip(urls, hosts.to_pylist(), _moments(batch), keys, strict=True):
        row = states.get(key)
        of_record = [Signal(*(row[name] for name in Signal._fields))] if row and row["moment"] >= moment else []
        of_host = said_of(url, known.in_force(host, EVER)).signals if host else []
        signal = check_rights.first([*of_host, *of_record], rejecting)
        if url and signal:
            yield url, signal


def reason_of(addresses: Sequence[OptedOut]) -> str:
    """Return the reason of a takedown of these addresses: signals with the number of addresses."""
    counts = Counter(address.signal.signal for address in addresses)
    return f"opted out since: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}"
