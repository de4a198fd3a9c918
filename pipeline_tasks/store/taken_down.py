"""The log of takedowns, and what is taken down behind each of its entries.

Rows are in runs: segments sorted by key. Each entry names the run that has its rows, and how many runs before it stay
in force, so that what holds behind an entry follows from the log, and its chain says which bytes are the right ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.errors import ContractError, cause
from pipeline_tasks.manifest import shard_of
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.erasures import TAKEDOWNS
from pipeline_tasks.store.log_chain import ChainEntry, read_chain
from pipeline_tasks.store.shards.segment import Segment, Segments
from pipeline_tasks.text.urls.takedown import (
    KEYED,
    MAIL,
    MATCHING,
    ORDER,
    Entry,
    InMemory,
    TakenDown,
    are_last,
    changes,
    in_memory,
)

pc: Any = pyarrow.compute

LOG = TAKEDOWNS
FOLDER = LOG.folder
SEGMENTS = f"{FOLDER}/segments"
"""Where the runs are, and the rows of entries that have many, named by their content."""

FEW = 100
"""So many documents, URLs and sites are written into an entry of the log itself; of more it names a segment."""

BATCH_ROWS = 1 << 16


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


def freed(root: str, number: int, until: int | None = None) -> Iterator[pa.Table]:
    """Yield the rows that were taken down behind the first `number` entries of the log, and are not behind `until`."""
    then, now = taken_down(root, number), taken_down(root, until)
    for takedown in takedowns(root)[number:until]:
        for batch in rows_named(root, takedown) if takedown.undo else ():
            rows = then.held(batch["key"])
            yield without(rows, now.held(rows["key"]))


def without(rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return the rows whose key no other row has."""
    return rows.filter(pc.invert(pc.is_in(rows["key"], value_set=pc.unique(others["key"]))))
