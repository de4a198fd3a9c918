"""Finds the documents of selected snapshots that another of them supersedes, a batch at a time.

What versions name as winners is sorted in runs on this machine's disk. Lines of winners are followed by lookups in it,
for those documents alone whose own winner is not selected.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.superseded import REPLACED, read_replaced, read_superseded_of
from pipeline_tasks.run.tasks.sorted_runs import in_order
from pipeline_tasks.stage import Batches
from pipeline_tasks.store.shards.segment import Segment
from pipeline_tasks.store.shards.segment_writer import store_segment
from pipeline_tasks.text.base.key_pages import KeyedFile
from pipeline_tasks.text.base.tables import Rows, run_numbers, run_starts, whole_numbers, whole_runs

LEAVING = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("snapshot", pa.string()),  # of the document that leaves
        pa.field("winner", pa.string()),  # the document that stays for it
        pa.field("winner_snapshot", pa.string()),
    ]
)
"""Documents that leave, sorted by id and snapshot, and the documents that stay for them."""

KEYS = ("id", "snapshot")

BATCH_ROWS = 4096
"""Rows whose lines of winners are followed together."""

RUN_BYTES = 128 << 20
"""Bytes of rows that are sorted in memory, where they are twice for a moment."""

Node = tuple[str, str]
"""A document: its id and its snapshot."""

Winners = Mapping[Node, Sequence[Node]]
"""Documents, and winners of each in order."""

_NAMED = LEAVING.append(pa.field("rank", pa.int64()))
"""Superseded documents with a winner of each, and the rank of the version that names it: the newest has 0."""


def superseded_within(root: str, recipe: str, snapshots: Sequence[str], until: int | None = None) -> Batches:
    """Yield the documents of selected snapshots that one of another selected snapshot supersedes: rows of `LEAVING`.

    A document whose winner was superseded in turn leaves if any document of that line is selected. `until` is the
    number of the last entry of the recipe's log that counts.
    """
    yield from left_by(named_winners(root, recipe, until), snapshots)


def named_winners(root: str, recipe: str, until: int | None) -> Iterator[pa.RecordBatch]:
    """Yield what each version names as superseded, the newest version first: rows of `LEAVING`, and its rank.

    A version supersedes near duplicates, and older pages of the same URL where its recipe compares URLs; several
    stages may supersede a document.
    """
    for rank, version in enumerate(reversed(version_log.latest_by_snapshot(root, recipe, until))):
        replaced = (batch.select(REPLACED) for batch in read_replaced(root, version))
        near = read_superseded_of(root, version, LEAVING.names) if version.superseded_path else ()
        for batches in (replaced, near):
            for batch in batches:
                yield ranked(batch, rank)


def ranked(batch: pa.RecordBatch, rank: int) -> pa.RecordBatch:
    """Return rows with the columns of `LEAVING`, whatever they are named, as a version of this rank names them."""
    columns = [column.cast(pa.string()) for column in batch.columns]
    return pa.RecordBatch.from_arrays([*columns, pa.array(np.full(batch.num_rows, rank))], schema=_NAMED)


def left_by(named: Iterable[pa.RecordBatch], snapshots: Sequence[str]) -> Batches:
    """Yield `LEAVING` over the selected `snapshots`, by the newest version that names a document as superseded."""
    rows = [pa.RecordBatch.from_pylist([], _NAMED)]
    ordered = in_order((batch for part in (rows, named) for batch in part), KEYS, BATCH_ROWS, RUN_BYTES)
    with tempfile.TemporaryDirectory(prefix="refinery-") as folder:
        stored = store_segment(folder, "winners", LEAVING, KEYS, _by_the_newest(ordered))
        wins, chosen = KeyedFile(f"{folder}/{stored.path}"), pa.array(snapshots, pa.string())
        for batch in _by_document(Segment(folder, stored, BATCH_ROWS)):
            yield from _left(batch.filter(pc.is_in(batch["snapshot"], value_set=chosen)), wins, chosen).to_batches()


def _by_the_newest(ordered: Batches) -> Batches:
    """Yield of each document the winners by the first version that names some."""
    for rows in whole_runs(ordered, *KEYS):
        starts, ranks = _documents(rows), whole_numbers(rows["rank"])
        firsts = ranks[starts][run_numbers(starts, rows.num_rows)]
        yield from rows.filter(pa.array(ranks == firsts)).select(LEAVING.names).to_batches()


def _documents(rows: pa.RecordBatch | pa.Table) -> Rows:
    """Return the first row of each document."""
    return run_starts(*(rows[name] for name in KEYS))


def _by_document(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Yield batches of which none ends before the last row of a document."""
    rest = pa.RecordBatch.from_pylist([], LEAVING)
    for batch in batches:
        whole = pa.concat_batches([rest, batch])
        last = int(_documents(whole)[-1]) if whole.num_rows else 0
        yield whole.slice(0, last)
        rest = whole.slice(last)
    yield rest


def _left(batch: pa.RecordBatch, wins: KeyedFile, chosen: pa.Array) -> pa.Table:
    """Return the documents of a batch, all of selected snapshots, that leave, each with its winner."""
    group = run_numbers(_documents(batch), batch.num_rows)
    is_itself = pc.and_(pc.equal(batch["winner"], batch["id"]), pc.equal(batch["winner_snapshot"], batch["snapshot"]))
    stays = pc.and_not(pc.is_in(batch["winner_snapshot"], value_set=chosen), is_itself).to_numpy(zero_copy_only=False)
    groups, rows = np.unique(group[stays], return_index=True)
    direct = batch.take(pa.array(np.flatnonzero(stays)[rows]))
    unsure = batch.filter(pa.array(~np.isin(group, groups)))
    found = followed(_winners(unsure), partial(_looked_up, wins), frozenset(chosen.to_pylist()))
    columns = zip(*((*loser, *winner) for loser, winner in found.items()), strict=True)
    later = [pa.array(column, pa.string()) for column in columns] or LEAVING.empty_table().columns
    both = pa.concat_tables([pa.Table.from_batches([direct]), pa.table(later, schema=LEAVING)])
    return both.sort_by([(name, "ascending") for name in KEYS])


def followed(
    first: Winners, winners_of: Callable[[Iterable[Node]], Winners], chosen: frozenset[str]
) -> dict[Node, Node]:
    """Return of documents the first one of a selected snapshot on the lines that lead from them, where there is one.

    `first` are their own winners. All lines go one document further at a time, by one lookup for all of them.
    """
    found: dict[Node, Node] = {}
    seen = {loser: {loser} for loser in first}
    fronts = {loser: list(winners) for loser, winners in first.items()}
    while fronts:
        for loser, front in fronts.items():
            fresh = [node for node in dict.fromkeys(front) if node not in seen[loser]]
            seen[loser].update(fresh)
            selected = next((node for node in fresh if node[1] in chosen), None)
            if selected is not None:
                found[loser] = selected
            fronts[loser] = fresh if selected is None else []
        known = winners_of({node for front in fronts.values() for node in front})
        further = {loser: [node for at in front for node in known.get(at, ())] for loser, front in fronts.items()}
        fronts = {loser: front for loser, front in further.items() if front}
    return found


def _looked_up(wins: KeyedFile, nodes: Iterable[Node]) -> Winners:
    """Return the winners of documents, and of others with their ids."""
    ids = pa.array({id_ for id_, _ in nodes}, pa.string())
    return _winners(wins.rows(ids)) if len(ids) else {}


def _winners(rows: pa.RecordBatch | pa.Table) -> Winners:
    winners: dict[Node, list[Node]] = {}
    for id_, snapshot, *winner in zip(*(rows[name].to_pylist() for name in LEAVING.names), strict=True):
        winners.setdefault((id_, snapshot), []).append((winner[0], winner[1]))
    return winners
