"""The log of takedowns, what is taken down after each of its entries, and the lists of it that manifests pin.

Rows are in runs: segments sorted by key. Each entry names the run that has its rows, and how many runs before it stay
in force, so that what holds behind an entry follows from the log, and its chain says which bytes are the right ones. A
list is one small object that names an entry and its runs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.errors import ContractError, cause
from pipeline_tasks.manifest import NAMED, shard_of
from pipeline_tasks.sealed import canonical, require_digest, sha256
from pipeline_tasks.stage import Shard, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import TAKEDOWNS
from pipeline_tasks.store.log_chain import ChainEntry, read_chain
from pipeline_tasks.store.once import Once
from pipeline_tasks.store.shards.segment import Segment, Segments
from pipeline_tasks.text.urls.takedown import (
    KEYED,
    MAIL,
    MATCHING,
    ORDER,
    InMemory,
    TakenDown,
    are_last,
    changes,
    in_memory,
    matched,
    of_rows,
)

LOG = TAKEDOWNS
FOLDER = LOG.folder
LISTS = f"{FOLDER}/lists"
"""Where the lists are that stages read, named by their content."""

SEGMENTS = f"{FOLDER}/segments"
"""Where the runs are, and the rows of entries that have many, named by their content."""

FEW = 100
"""So many documents, URLs and sites are written into an entry of the log itself; of more it names a segment."""

BATCH_ROWS = 1 << 16

Entry = tuple[str, str]
"""A kind (doc, url or site), and the id, URL or site as it was asked for."""


@dataclass(frozen=True, slots=True)
class Run:
    """Rows of an entry of the log and of some before it: those that the `keeps` first runs before it do not have.

    `matching` is how keys follow from what was asked for, and `counts` how many hold, by kind, of all runs in force.
    """

    keeps: int
    segment: Shard
    matching: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Takedown:
    """An entry of the log: what was taken down (or, with `undo`, is no longer), why, and when (ISO 8601 in UTC).

    One of many entries has none itself: they are `listed` in a segment, and `many` is their number. One of an earlier
    release has no `run`.
    """

    number: int
    entries: tuple[Entry, ...]
    reason: str
    at: str
    undo: bool = False
    many: int = field(default=0, metadata={OMITTED: 0})
    listed: Shard | None = field(default=None, metadata={OMITTED: None})
    run: Run | None = field(default=None, metadata={OMITTED: None})

    @property
    def stored(self) -> dict[str, Any]:
        """The fields of the entry as the log has them."""
        known = {each.name: (getattr(self, each.name), each.metadata) for each in fields(self)}
        return {name: value for name, (value, told) in known.items() if value != told.get(OMITTED, known)}

    @property
    def facts(self) -> dict[str, Any]:
        """It as JSON has it; one of many entries says how many."""
        names = ("number", "entries", "reason", "at", "undo", *(("many",) if self.many else ()))
        return {name: getattr(self, name) for name in names}

    @property
    def count(self) -> int:
        """How many documents, URLs and sites it names."""
        return self.many or len(self.entries)


def takedowns(root: str) -> list[Takedown]:
    """Return all takedowns, oldest first; ContractError unless their chain is whole."""
    return [takedown_of(root, entry) for entry in read_chain(root, LOG)]


def takedown_of(root: str, entry: ChainEntry) -> Takedown:
    """Return a takedown by the entry of its chain."""
    try:
        raw = {name: value for name, value in entry.fields.items() if name != "log"}
        raw["entries"] = tuple((kind, value) for kind, value in raw["entries"])
        if "listed" in raw:
            raw["listed"] = shard_of(raw["listed"])
        if "run" in raw:
            raw["run"] = Run(**{**raw["run"], "segment": shard_of(raw["run"]["segment"])})
        return Takedown(**raw)
    except (ValueError, TypeError, KeyError) as error:
        message = (
            f"{root}/{LOG.entry_path(entry.number)} is not a takedown of this release ({cause(error)}); {LOG.way_out}"
        )
        raise ContractError(message) from error


def rows_named(root: str, takedown: Takedown) -> Iterator[pa.RecordBatch]:
    """Yield what a takedown says of keys, as rows of `KEYED`; those of many entries are read batch by batch."""
    if takedown.listed and takedown.run and takedown.run.matching == MATCHING:
        yield from Segment(root, takedown.listed, BATCH_ROWS)
    else:
        yield from _rekeyed(root, takedown).to_batches()


def entries_named(root: str, takedown: Takedown) -> Iterator[Entry]:
    """Yield the documents, URLs and sites that a takedown names."""
    if takedown.listed is None:
        yield from takedown.entries
        return
    for batch in Segment(root, takedown.listed, BATCH_ROWS):
        for row in batch.to_pylist():
            kind = row["key"].partition(" ")[0]
            if kind != MAIL:
                yield kind, row["value"]


# --- What holds -----------------------------------------------------------------------------------------------


def taken_down(root: str, number: int | None = None) -> TakenDown:
    """Return what is taken down now, or was behind the first `number` entries of the log; no list is loaded.

    What the log says of a root whose last takedown is of an earlier release is read whole.
    """
    return held_behind(root, takedowns(root)[:number])


def held_behind(root: str, log: Sequence[Takedown]) -> TakenDown:
    """Return what is taken down behind a log."""
    runs = runs_of(log)
    if runs is None:
        return in_memory(replayed(root, log))
    if not runs:
        return TakenDown(InMemory(KEYED.empty_table()), {})
    return TakenDown(Segments(root, [run.segment for run in runs], BATCH_ROWS), runs[-1].counts)


def runs_of(log: Sequence[Takedown]) -> tuple[Run, ...] | None:
    """Return the runs in force behind a log, oldest first; None if its last entry has none that this release reads."""
    runs: tuple[Run, ...] = ()
    for takedown in log:
        if takedown.run:
            runs = (*runs[: takedown.run.keeps], takedown.run)
    if log and (log[-1].run is None or log[-1].run.matching != MATCHING):
        return None
    return runs


def segments_of(log: Sequence[Takedown]) -> Iterator[Shard]:
    """Yield the segments that hold what is taken down behind a log, and those of its entries of many."""
    yield from (run.segment for run in runs_of(log) or ())
    yield from (takedown.listed for takedown in log if takedown.listed)


def replayed(root: str, log: Sequence[Takedown]) -> pa.Table:
    """Return the newest row of each key, as its takedowns say it, one after the other; all are in memory.

    What takes down again what is, or allows again what is not taken down, says nothing: keys of an earlier release may
    have been others.
    """
    rows = (_rekeyed(root, takedown) for takedown in log)
    table = pa.concat_tables([KEYED.empty_table(), *rows]).combine_chunks()
    table = table.sort_by([(name, "ascending") for name in (*ORDER, "takedown")]).combine_chunks()
    undo, last = np.asarray(table["undo"]), are_last(table)
    first = np.append([True], last[:-1])[: len(last)]
    says = undo != (first | np.append([True], undo[:-1])[: len(undo)])
    said = table.filter(pa.array(says))
    return said.filter(pa.array(are_last(said)))


def _rekeyed(root: str, takedown: Takedown) -> pa.Table:
    entries = list(entries_named(root, takedown))
    return changes(entries, [takedown.number] * len(entries), undo=takedown.undo)


# --- Lists that manifests pin ---------------------------------------------------------------------------------


class Pinned(NamedTuple):
    """A list: the takedown whose log it is of, the digest of that entry ("" of an earlier release), and what it has.

    `bytes` is its size, and `shards` are its segments.
    """

    number: int
    entry: str
    taken: TakenDown
    shards: Shards
    bytes: int


def store_list(root: str, last: ChainEntry, runs: Iterable[Shard], counts: Mapping[str, int]) -> str:
    """Store the list of what is taken down behind an entry of the log; return its digest.

    It follows from the log alone: a list of the same entry is the same list, whoever stores it, and when.
    """
    facts = {"entry": last.digest, "takedown": last.number, "matching": MATCHING, "counts": dict(counts)}
    body = canonical({**facts, "segments": list(runs)})
    digest = sha256(body)
    storage.commit(storage.connect(root), f"{LISTS}/{digest[:NAMED]}.json", body)
    return digest


_PATHS: Once[str] = Once(lambda _: 1, 1 << 12)
"""The paths of lists that name segments, by root and digest."""


def list_path(root: str, digest: str) -> str:
    """Return the path of the list with a digest: one of an earlier release is a table of its rows."""

    def found() -> str:
        path = f"{LISTS}/{digest[:NAMED]}.json"
        if storage.connect(root).size(path) is None:
            raise FileNotFoundError(path)
        return path

    try:
        return _PATHS.get((root, digest), found)
    except FileNotFoundError:
        return f"{LISTS}/{digest[:NAMED]}.parquet"


def pinned_by(root: str, digest: str) -> Pinned:
    """Return the list with a digest; ContractError if it is damaged or gone."""
    path = list_path(root, digest)
    where = f"{root}/{path}"
    try:
        body = storage.connect(root).read(path)
    except FileNotFoundError as error:
        message = f"{where}: no such list of takedowns; restore it from a backup"
        raise ContractError(message) from error
    require_digest(body, digest, where, "restore it from a backup")
    if path.endswith(".parquet"):
        rows = pq.read_table(pa.BufferReader(body)).to_pylist()
        return Pinned(max((row["takedown"] for row in rows), default=0), "", of_rows(rows), (), len(body))
    facts = json.loads(body)
    shards = tuple(map(shard_of, facts["segments"]))
    taken = TakenDown(Segments(root, shards, BATCH_ROWS), facts["counts"])
    return Pinned(facts["takedown"], facts["entry"], matched(taken, facts["matching"]), shards, len(body))


_SEGMENTS: Once[Shards] = Once(len, 1 << 12)


def segments_named(uri: str, digest: str) -> Shards:
    """Return the segments that the list at a URI names, none of one that has its rows itself; it is read once."""

    def read() -> Shards:
        folder, _, name = uri.rpartition("/")
        body = storage.connect(folder).read(name)
        require_digest(body, digest, uri, "restore it from a backup")
        return tuple(map(shard_of, json.loads(body)["segments"]))

    return _SEGMENTS.get(digest, read) if uri.endswith(".json") else ()
