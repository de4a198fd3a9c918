"""Finds published documents that are opted out by what became known since: newer records, and newer robots.txt files.

Of each address the newest record of any snapshot counts, also one that was rejected: by `check_rights`, whose signals
are stored with it, or by `ingest` as unchanged, whose header fields are. Of each host the newest robots.txt counts, of
the snapshots of the root or of archives that are named.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import reads_records
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.landing.listing import landing_of, list_snapshot
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.tasks.sorted_runs import in_order
from pipeline_tasks.schema import PAGE
from pipeline_tasks.stage import Batches, Shard
from pipeline_tasks.stages import check_rights, ingest
from pipeline_tasks.stages.check_rights import ROBOTS_FILES, Params, RobotsFiles, said_of
from pipeline_tasks.store import storage
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

BATCH_ROWS = 4096

RUN_BYTES = 128 << 20
"""Bytes of rows that are sorted in memory, where they are twice for a moment."""


def opted_out(root: str, recipe: str = "", archives: Sequence[str] = ()) -> list[OptedOut]:
    """Return the addresses of published documents that are opted out by now, sorted.

    By the policy of `recipe`, or of the newest version that was refined by one; `archives` are folders or files with
    robots.txt records. Signals are read once, robots.txt files once, and of all records and documents the address and
    the time. What rejects is sorted on this machine's disk; in memory are batches, and what is found. RecipeError
    without a policy, for one that rejects nothing, or archives without a robots.txt.
    """
    versions = [version for name in _snapshot_recipes(root) for version in version_log.latest_by_snapshot(root, name)]
    checked = [read_manifest(root, each.manifests[CHECK_RIGHTS]) for each in versions if CHECK_RIGHTS in each.manifests]
    params = _policy(recipe, checked, root)
    signals: dict[str, Signal] = {}
    with tempfile.TemporaryDirectory(prefix="refinery-") as folder:
        files = _newest_files(root, checked, archives, folder)
        signaled, dated = _signaled(root, versions, checked, params), _dated(root, versions, checked)
        reserved = reserved_by(signaled, dated, folder)
        for batch in _documents(root, versions):
            for url, signal in _against(batch, files, reserved, params):
                signals.setdefault(url, signal)
    return [OptedOut(url, signals[url]) for url in sorted(signals)]


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


def _documents(root: str, versions: Iterable[Version]) -> Batches:
    for version in versions:
        yield from read_shards(root, read_manifest(root, version.refined).shards, ["url", "crawled_at"])


def _last_by(batches: Iterable[pa.RecordBatch], schema: pa.Schema, order: Sequence[str], folder: str) -> Shard:
    """Store of rows the last of each value of the first column, by the others and then as they come."""
    rows = in_order(chain([pa.RecordBatch.from_pylist([], schema)], batches), order, BATCH_ROWS, RUN_BYTES)
    return store_segment(folder, "sorted", schema, order[:1], last_of_runs(rows, order[0]))


# --- Records -----------------------------------------------------------------------------------------------------


def reserved_by(signaled: Batches, dated: Batches, folder: str) -> KeyedFile:
    """Return by address the newest record with a signal that rejects, of addresses that have no newer record.

    `signaled` are the records with such a signal, rows of `RESERVED`, and `dated` has address and time of all.
    """
    newest = _last_by(signaled, RESERVED, ("key", "moment"), folder)
    known = KeyedFile(f"{folder}/{newest.path}")
    newer = _newer(dated, known) if newest.rows else ()
    freed = _last_by(newer, pa.schema([RESERVED.field("key")]), ("key",), folder)  # what was reserved is no longer
    free = KeyedFile(f"{folder}/{freed.path}")
    rows = (_without(batch, free) for batch in Segment(folder, newest, BATCH_ROWS))
    return KeyedFile(f"{folder}/{store_segment(folder, 'reserved', RESERVED, ('key',), rows).path}")


def _without(batch: pa.RecordBatch, free: KeyedFile) -> pa.RecordBatch:
    return batch.filter(pc.invert(pc.is_in(batch["key"], value_set=free.rows(batch["key"])["key"])))


def _signaled(root: str, versions: Sequence[Version], checked: Sequence[Manifest], params: Params) -> Batches:
    """Yield the records with a signal that rejects, other than those of robots.txt."""
    rejecting = params.signals_with("reject")
    for manifest in checked:
        for batch in read_shards(root, (*manifest.shards, *manifest.rejects), ["url", "crawled_at", "rights"]):
            own = batch.filter(pc.fill_null(pc.greater(pc.list_value_length(batch["rights"]), 0), fill_value=False))
            rights = [[Signal(**right) for right in row] for row in own["rights"].to_pylist()]
            signals = [[each for each in row if each.source != "robots.txt"] for row in rights]
            yield _rejected(own, signals, rejecting)
    agents = frozenset(agent.lower() for agent in params.agents)
    for batch in _unchanged(root, versions, "metadata"):
        yield _rejected(batch, check_rights.header_rights(batch["metadata"], agents), rejecting)


def _unchanged(root: str, versions: Sequence[Version], *columns: str) -> Batches:
    """Yield the records that `ingest` rejected as unchanged, of versions whose rights were checked."""
    for version in versions:
        first = next(filter(reads_records, version.manifests if CHECK_RIGHTS in version.manifests else ()), "")
        rejects = read_manifest(root, version.manifests[first]).rejects if first else ()
        for batch in read_shards(root, rejects, ["url", "crawled_at", "reason", *columns]):
            yield batch.filter(pc.equal(batch["reason"], ingest.UNCHANGED))


def _dated(root: str, versions: Sequence[Version], checked: Sequence[Manifest]) -> Batches:
    """Yield address and time of all records."""
    for manifest in checked:
        yield from read_shards(root, (*manifest.shards, *manifest.rejects), ["url", "crawled_at"])
    yield from _unchanged(root, versions)


def _rejected(batch: pa.RecordBatch, signals: Iterable[Sequence[Signal]], rejecting: Sequence[str]) -> pa.RecordBatch:
    """Return the rows that have an address and a signal that rejects: rows of `RESERVED`."""
    strongest = [check_rights.first(each, rejecting) for each in signals]
    rows = [
        {"key": key, "moment": moment, **signal._asdict()}
        for key, moment, signal in zip(_keys(batch), _moments(batch), strongest, strict=True)
        if key and signal
    ]
    return pa.RecordBatch.from_pylist(rows, RESERVED)


def _newer(records: Batches, known: KeyedFile) -> Batches:
    """Yield the keys of records that are newer than the one that is known of their address."""
    for batch in records:
        keys = pa.array(_keys(batch), pa.string())
        rows = known.rows(keys)
        reserved = rows["moment"].combine_chunks().take(pc.index_in(keys, value_set=rows["key"]))
        is_newer = pc.greater(pa.array(_moments(batch), pa.int64()), reserved)
        yield pa.record_batch([keys.filter(is_newer)], schema=pa.schema([RESERVED.field("key")]))


def _keys(batch: pa.RecordBatch) -> list[str]:
    return keys_of((URL, url or "") for url in batch["url"].to_pylist())


def _moments(batch: pa.RecordBatch) -> list[int]:
    moments: list[int] = sortable_timestamps(batch["crawled_at"]).to_pylist()
    return moments


# --- robots.txt --------------------------------------------------------------------------------------------------


def _newest_files(root: str, checked: Sequence[Manifest], archives: Sequence[str], folder: str) -> KeyedFile:
    """Return by origin the newest robots.txt file of the root and of archives."""
    saved = tuple(shard for manifest in checked for shard in manifest.history["robots"])
    own = (batch.select(ROBOTS_FILES.names) for batch in (Segments(root, saved) if saved else ()))
    order = ("origin", "fetched", "file", "offset")
    shard = _last_by(chain(_read_files(archives), own), ROBOTS_FILES, order, folder)
    return KeyedFile(f"{folder}/{shard.path}")


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
