"""The history that a snapshot saves, and the current winners of earlier snapshots' clusters."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.near_duplicates.tables import (
    EDGES,
    KNOWN_BANDS,
    KNOWN_EDGES,
    KNOWN_SIGNATURES,
    LINKS,
    LOST_BANDS,
    MOVES,
    SUPERSEDED,
    WINNERS,
    known_signatures,
)
from pipeline_tasks.stage import Batches, HistoryReader, Section
from pipeline_tasks.text.base.tables import batch_of, combined, empty_batch, read_table, run_starts
from pipeline_tasks.text.near.ranking import as_known, node_ids, precedes

pc: Any = pyarrow.compute


def sections(compared: str) -> dict[str, Section]:
    """Return the sections of history of a stage whose signatures have what is compared in that column."""
    return {
        "bands": Section(KNOWN_BANDS, "key", ("rank", "id")),
        "signatures": Section(known_signatures(compared), "id"),
        "superseded": Section(SUPERSEDED, "id"),
    }


def check_version(history: HistoryReader, likeness: Likeness, version: int) -> None:
    """Raise ContractError if a snapshot saved its history with other params, or of another model's vectors."""
    if history.first("history_version") not in {None, version}:
        message = (
            f"{likeness.stage}: an earlier snapshot saved its history with other params (signatures, model, "
            "similarity, threshold or policy) or by an older version of this stage; set the params as they were, or "
            "start a dataset without history under another recipe name"
        )
        raise ContractError(message)


# --- Saving ---------------------------------------------------------------------------------------------------


def lost_bands(outlines: Batches, losers: Batches) -> Batches:
    """Yield `LOST_BANDS`."""
    from pipeline_tasks.text.base.lookup import Lookup

    lost = Lookup(losers, "id")
    for batch in outlines:
        rows = lost.rows(batch.column("id"))
        outline = batch.take(pc.index_in(combined(rows.column("id")), value_set=batch.column("id")))
        keys = outline.column("keys")
        at = pc.list_parent_indices(keys)
        label = node_ids(combined(rows.column("winner"))).take(at)
        yield batch_of(LOST_BANDS, key=pc.list_flatten(keys), node=outline.column("node").take(at), label=label)


def save_bands(bands: Batches, lost: Batches, *, likeness: Likeness) -> Batches:
    """Yield `KNOWN_BANDS`: the rows of `BANDS`, each labeled by its document or, if that one lost, as in `lost`.

    Both are sorted by key and node, so the rows of `lost` are met in their order: those of a batch are among as many
    of the next ones as it has rows.
    """
    labels = _Ahead(lost)
    for batch in bands:
        node = batch.column("node")
        own, coming = node_ids(node), labels.next(batch.num_rows)
        losing = pc.is_in(own, value_set=combined(node_ids(coming.column("node"))))
        taken = labels.take(losing.true_count)
        yield batch_of(
            KNOWN_BANDS,
            key=batch.column("key"),
            **{name: pc.struct_field(node, name) for name in ("rank", "id", "snapshot")},
            label=pc.replace_with_mask(own, losing, combined(taken.column("label"))),
            history_version=pa.repeat(pa.scalar(likeness.history_version, pa.int64()), batch.num_rows),
        )
    if left := labels.rest():
        message = f"{likeness.stage}: {left} bands of duplicates are not in their bucket; run it again"
        raise ContractError(message)


class _Ahead:
    """A stream whose next rows are looked at before they are taken."""

    def __init__(self, batches: Batches) -> None:
        self._batches, self._waiting = batches, read_table([next(batches)])

    def next(self, rows: int) -> pa.Table:
        """Return the next rows, fewer at the end."""
        waiting = [self._waiting]
        count = self._waiting.num_rows
        while count < rows and (batch := next(self._batches, None)) is not None:
            waiting.append(pa.Table.from_batches([batch]))
            count += batch.num_rows
        self._waiting = pa.concat_tables(waiting)
        return self._waiting.slice(0, rows)

    def take(self, rows: int) -> pa.Table:
        """Return the next rows of those that were looked at, and go on behind them."""
        taken, self._waiting = self._waiting.slice(0, rows), self._waiting.slice(rows)
        return taken

    def rest(self) -> int:
        """Return how many rows are left."""
        left: int = self._waiting.num_rows + sum(batch.num_rows for batch in self._batches)
        return left


def save_signatures(signatures: Batches, losers: Batches, *, likeness: Likeness) -> Batches:
    """Yield `KNOWN_SIGNATURES`, by the names of history."""
    for batch, winner in _with_winners(signatures, losers):
        columns = {name: batch.column(name) for name in ("id", "keys", "compared", "history_version")}
        saved = batch_of(KNOWN_SIGNATURES, **columns, node=as_known(batch.column("node")), winner=winner)
        saved = pa.RecordBatch.from_arrays(saved.columns, schema=known_signatures(likeness.compared))
        signed = pc.greater(pc.binary_length(batch.column("compared")), 0)
        yield saved if pc.all(signed).as_py() else saved.filter(signed)


def _with_winners(documents: Batches, losers: Batches) -> Iterator[tuple[pa.RecordBatch, pa.StructArray]]:
    """Yield batches with the winner of each document's cluster: the document itself unless it lost."""
    from pipeline_tasks.text.base.lookup import Lookup

    lost = Lookup(losers, "id")
    for batch in documents:
        rows = lost.rows(batch.column("id"))
        at = pc.index_in(batch.column("id"), value_set=combined(rows.column("id")))
        winner = pc.coalesce(combined(rows.column("winner")).take(at), batch.column("node"))
        yield batch, as_known(winner)


def save_superseded(losers: Batches, strongest: Batches) -> Batches:
    """Yield `SUPERSEDED` of the winners of earlier snapshots that lost."""
    from pipeline_tasks.text.base.lookup import Lookup

    edges = Lookup(strongest, "id")
    for batch in losers:
        rows = edges.rows(batch.column("id"))
        rows = rows.take(pc.index_in(batch.column("id"), value_set=combined(rows.column("id"))))
        yield batch_of(
            SUPERSEDED,
            id=batch.column("id"),
            node=batch.column("node"),
            winner=as_known(batch.column("winner")),
            **{name: rows.column(name) for name in ("near", "via", "similarity", "shared_bands")},
        )


# --- Clusters of earlier snapshots ----------------------------------------------------------------------------


def known_edges(verified: Batches) -> Batches:
    """Yield `KNOWN_EDGES` of verified pairs."""
    for batch in verified:
        edges = batch.filter(pc.and_(batch.column("passed"), pc.is_valid(batch.column("label"))))
        columns = {name: edges.column(name) for name in KNOWN_EDGES.names if name != "id"}
        yield batch_of(KNOWN_EDGES, id=node_ids(edges.column("label")), **columns)


def distinct_winners(rows: Batches, *, of: str = "node") -> Batches:
    """Yield the distinct `WINNERS` of rows sorted by id; `of` is the column of the node with that id."""
    last = None  # the id of the row before: any document of a day may be like one winner
    for batch in rows:
        first = batch.take(pa.array(run_starts(batch.column("id"))))
        new = first.slice(1) if first.num_rows and first.column("id")[0].as_py() == last else first
        last = first.column("id")[-1].as_py() if first.num_rows else last
        yield batch_of(WINNERS, id=new.column("id"), node=new.column(of))


def moves_of_winners(winners: Batches, *followed_and_history: Any, followed: int) -> Batches:  # noqa: ANN401 -- Batches, then readers
    """Yield the `MOVES` of `WINNERS` that were superseded later; those of the first `followed` streams are known."""
    from pipeline_tasks.text.base.lookup import Lookup

    done = [Lookup(batches, "id") for batches in followed_and_history[:followed]]
    for batch in winners:
        ids = batch.column("id")
        for table in done:
            ids = ids.filter(pc.invert(pc.is_in(ids, value_set=combined(table.rows(ids).column("id")))))
        for reader in followed_and_history[followed:]:
            yield from reader.rows(ids).select(MOVES.names).to_batches() or [empty_batch(MOVES)]


def next_winners(moves: Batches) -> Batches:
    """Yield the `WINNERS` that superseded others."""
    for batch in moves:
        yield batch_of(WINNERS, id=node_ids(batch.column("winner")), node=batch.column("winner"))


def current_winners(links: Batches) -> Batches:
    """Yield the `MOVES` of every winner of an earlier snapshot to the winner of its cluster today."""
    for batch in links:
        lost = batch.filter(precedes(batch.column("other"), batch.column("node")))
        yield batch_of(MOVES, id=lost.column("id"), node=lost.column("node"), winner=lost.column("other"))


def links_of_moves(moves: Batches) -> Batches:
    """Yield the `LINKS` of each of `MOVES`, from both ends."""
    for batch in moves:
        for side, other in (("node", "winner"), ("winner", "node")):
            node = batch.column(side)
            yield batch_of(LINKS, id=node_ids(node), node=node, other=batch.column(other))


def edges_to_winners(edges: Batches, *moves: Batches) -> Batches:
    """Yield `EDGES`, from both ends, between each new document of `KNOWN_EDGES` and the winner today of the cluster."""
    from pipeline_tasks.text.base.lookup import Lookup

    tables = [Lookup(batches, "id") for batches in moves]
    for batch in edges:
        winner = batch.column("label")
        for table in tables:
            rows = table.rows(batch.column("id").unique())
            at = pc.index_in(batch.column("id"), value_set=combined(rows.column("id")))
            winner = pc.coalesce(combined(rows.column("winner")).take(at), winner)
        member, via = batch.column("member_node"), batch.column("member")
        proof = {name: batch.column(name) for name in ("similarity", "shared_bands")}
        yield batch_of(EDGES, id=via, node=member, other=winner, near=batch.column("center_node"), via=via, **proof)
        yield batch_of(
            EDGES, id=node_ids(winner), node=winner, other=member, near=member, via=batch.column("center"), **proof
        )
