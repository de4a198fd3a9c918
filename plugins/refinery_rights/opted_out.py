"""Finds published documents that are opted out by what became known since: newer records, and newer robots.txt files.

Of each address the newest record of any snapshot counts, also one that was rejected: by `check_rights`, whose signals
are stored with it, or by `ingest` as unchanged, whose header fields are. Of each host the newest robots.txt counts, of
the snapshots of the root or of archives that are named.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from pipeline_tasks.schema import PAGE, Array
from pipeline_tasks.stage import HistoryReader, Shards
from pipeline_tasks.stages import check_rights, ingest
from pipeline_tasks.stages.check_rights import ROBOTS_FILES, Params, RobotsFiles, said_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.shards.segment import Segments
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


@dataclass(frozen=True, slots=True)
class _State:
    """The newest record of an address: when it was crawled, and the signal of it that rejects, if there is one."""

    moment: int
    signal: Signal | None


class _Files:
    """The robots.txt files of several places, looked up by origin as in the history of one."""

    def __init__(self, root: str, saved: Shards, read: pa.Table) -> None:
        self._saved: HistoryReader | None = Segments(root, saved) if saved else None
        self._read = read

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self._read.to_batches()

    def first(self, column: str) -> object:
        """Return the value of the first row that was read."""
        return self._read[column][0].as_py() if self._read.num_rows else None

    def rows(self, wanted: Array) -> pa.Table:
        """Return the files of the origins that are wanted."""
        own = self._read.filter(pc.is_in(self._read["origin"], value_set=wanted))
        saved = [self._saved.rows(wanted).select(ROBOTS_FILES.names)] if self._saved else []
        return pa.concat_tables([own, *saved])


def opted_out(root: str, recipe: str = "", archives: Sequence[str] = ()) -> list[OptedOut]:
    """Return the addresses of published documents that are opted out by now, sorted.

    By the policy of `recipe`, or of the newest version that was refined by one; `archives` are folders or files with
    robots.txt records. RecipeError without a policy, for one that rejects nothing, or archives without a robots.txt.
    """
    versions = [version for name in _snapshot_recipes(root) for version in version_log.latest_by_snapshot(root, name)]
    checked = [read_manifest(root, each.manifests[CHECK_RIGHTS]) for each in versions if CHECK_RIGHTS in each.manifests]
    params = _policy(recipe, checked, root)
    rejecting = params.signals_with("reject")
    saved = tuple(shard for manifest in checked for shard in manifest.history["robots"])
    hosts = _hosts(root, versions) if archives else pa.array([], pa.string())
    files = _Files(root, saved, _read_files(archives, hosts))
    newest = _newest_records(root, versions, checked, params, rejecting)
    signals: dict[str, Signal] = {}
    for batch in _documents(root, versions, ["url", "crawled_at"]):
        for url, signal in _against(batch, files, newest, params, rejecting):
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


def _documents(root: str, versions: Iterable[Version], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for version in versions:
        yield from read_shards(root, read_manifest(root, version.refined).shards, columns)


def _hosts(root: str, versions: Iterable[Version]) -> pa.Array:
    """Return the origins of all documents."""
    hosts = [pc.unique(origins(batch["url"])) for batch in _documents(root, versions, ["url"])]
    return pa.chunked_array(hosts, pa.string()).unique().drop_null()


# --- Records -----------------------------------------------------------------------------------------------------


def _newest_records(
    root: str, versions: Sequence[Version], checked: Sequence[Manifest], params: Params, rejecting: Sequence[str]
) -> dict[str, _State]:
    """Return by key of its address the newest record, of addresses of which a record has a signal that rejects."""
    newest: dict[str, _State] = {}
    known = partial(_records, root, versions, checked, params)
    for keyed in known():
        for key, moment, signals in keyed:
            signal = check_rights.first(signals, rejecting)
            if signal and (key not in newest or newest[key].moment <= moment):
                newest[key] = _State(moment, signal)
    for keyed in known() if newest else ():
        for key, moment, signals in keyed:
            if key in newest and newest[key].moment < moment:  # what was reserved is no longer
                newest[key] = _State(moment, check_rights.first(signals, rejecting))
    return newest


Keyed = Iterator[tuple[str, int, list[Signal]]]


def _records(root: str, versions: Sequence[Version], checked: Sequence[Manifest], params: Params) -> Iterator[Keyed]:
    """Yield key, moment and signals of records, a batch at a time, without those of robots.txt."""
    for manifest in checked:
        for shards in (manifest.shards, manifest.rejects):
            for batch in read_shards(root, shards, ["url", "crawled_at", "rights"]):
                rights = [[Signal(**right) for right in row] for row in batch["rights"].to_pylist()]
                yield _keyed(batch, [[each for each in row if each.source != "robots.txt"] for row in rights])
    agents = frozenset(agent.lower() for agent in params.agents)
    for version in versions:
        first = next(filter(reads_records, version.manifests if CHECK_RIGHTS in version.manifests else ()), "")
        rejects = read_manifest(root, version.manifests[first]).rejects if first else ()
        for batch in read_shards(root, rejects, ["url", "crawled_at", "metadata", "reason"]):
            again = batch.filter(pc.equal(batch["reason"], ingest.UNCHANGED))
            yield _keyed(again, list(check_rights.header_rights(again["metadata"], agents)))


def _keyed(batch: pa.RecordBatch, signals: Sequence[list[Signal]]) -> Keyed:
    keys = keys_of((URL, url or "") for url in batch["url"].to_pylist())
    moments = sortable_timestamps(batch["crawled_at"]).to_pylist()
    return ((key, moment, each) for key, moment, each in zip(keys, moments, signals, strict=True) if key)


# --- robots.txt --------------------------------------------------------------------------------------------------


def _read_files(archives: Sequence[str], hosts: pa.Array) -> pa.Table:
    """Return the robots.txt files of archives that are of these hosts."""
    rows = [ROBOTS_FILES.empty_table()]
    for uri in archives:
        count = 0
        for files in _robots_files(uri):
            count += files.num_rows
            rows.append(pa.Table.from_batches([files.filter(pc.is_in(files["origin"], value_set=hosts))]))
        if not count:
            message = (
                f"{uri} has no robots.txt; name files that have, as `refinery pull cc --kind robotstxt` lands them"
            )
            raise RecipeError(message)
    return pa.concat_tables(rows)


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
    batch: pa.RecordBatch, files: HistoryReader, newest: Mapping[str, _State], params: Params, rejecting: Sequence[str]
) -> Iterator[tuple[str, Signal]]:
    """Yield the addresses of documents that a signal is against, with the strongest."""
    urls, hosts = batch["url"].to_pylist(), origins(batch["url"])
    known = RobotsFiles(files, pc.unique(hosts).drop_null(), params.agents)
    moments = sortable_timestamps(batch["crawled_at"]).to_pylist()
    keys = keys_of((URL, url or "") for url in urls)
    for url, host, moment, key in zip(urls, hosts.to_pylist(), moments, keys, strict=True):
        state = newest.get(key)
        of_record = [state.signal] if state and state.signal and state.moment >= moment else []
        of_host = said_of(url, known.in_force(host, EVER)).signals if host else []
        signal = check_rights.first([*of_host, *of_record], rejecting)
        if url and signal:
            yield url, signal


def reason_of(addresses: Sequence[OptedOut]) -> str:
    """Return the reason of a takedown of these addresses: signals with the number of addresses."""
    counts = Counter(address.signal.signal for address in addresses)
    return f"opted out since: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}"
