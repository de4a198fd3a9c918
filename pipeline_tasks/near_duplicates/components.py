"""Connect edges into clusters, in memory or by rounds of large-star and small-star, and name the losers of each."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.near_duplicates.tables import LINKS, LOSERS, STRONGEST
from pipeline_tasks.stage import Batches
from pipeline_tasks.text.base.tables import (
    RUN_ROWS,
    Flags,
    Rows,
    batch_of,
    combined,
    flags,
    run_numbers,
    run_starts,
    tables_of,
)
from pipeline_tasks.text.near.ranking import is_known, node_ids, precedes

pc: Any = pyarrow.compute


def connect_components(_: Batches, edges: Batches) -> Batches:
    """Yield the `LINKS` of every node but the first of each cluster to that first node, of all edges at once.

    Edges come from both ends, and one is enough. Of edges only numbers are kept, and their nodes nearly once each.
    """
    from pipeline_tasks.text.near.clusters import lowest_of_cluster

    one_way = (batch.filter(precedes(batch.column("node"), batch.column("other"))) for batch in edges)
    kept: list[pa.StructArray] = []
    numbers: list[Rows] = []
    for rows in tables_of(one_way):
        ends = pa.concat_arrays([combined(rows.column(side)) for side in ("node", "other")])
        first, codes = _first_of_each(ends)
        numbers.append(codes.reshape(2, -1) + sum(map(len, kept)))
        kept.append(ends.take(pa.array(first)))
    nodes, places = _distinct(pa.concat_arrays(kept))
    kept.clear()
    lefts, rights = places[np.concatenate(numbers, axis=1)]
    lowest = lowest_of_cluster(lefts, rights, len(nodes))
    led = np.flatnonzero(lowest != np.arange(len(nodes)))
    for start in range(0, max(len(led), 1), RUN_ROWS):
        some = led[start : start + RUN_ROWS]
        yield _links(nodes.take(pa.array(some)), nodes.take(pa.array(lowest[some])))


def _first_of_each(nodes: pa.StructArray) -> tuple[Rows, Rows]:
    """Return the first row of each distinct node, and the number of each row's node among those."""
    encoded = combined(pc.struct_field(nodes, "id")).dictionary_encode()
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    return np.unique(codes, return_index=True)[1], codes


def _distinct(nodes: pa.StructArray) -> tuple[pa.StructArray, Rows]:
    """Return the distinct nodes, the best first, and the place of each of `nodes` among them."""
    first, codes = _first_of_each(nodes)
    distinct = nodes.take(pa.array(first))
    order = pc.sort_indices(pa.table({"node": distinct}), sort_keys=[("node", "ascending")]).to_numpy()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return distinct.take(pa.array(order)), place[codes]


def large_star(edges: Batches) -> Batches:
    """Connect each larger neighbor of a node to the smallest of the node and its neighbors."""
    for nodes, others, first_others, _ in _neighbors(edges):
        smaller = flags(precedes(first_others, nodes))
        both = pa.concat_arrays([nodes, first_others])
        larger = np.flatnonzero(flags(precedes(nodes, others)))
        smallest = both.take(pa.array(larger + len(nodes) * smaller[larger]))
        yield _links(others.take(pa.array(larger)), smallest)


def small_star(edges: Batches) -> Batches:
    """Connect a node and its neighbors, all of them smaller, to the smallest; yields each edge from both ends."""
    for nodes, others, smallest, is_first in _neighbors(edges):
        rows = np.arange(len(nodes))
        tied = pa.concat_arrays([nodes, others]).take(pa.array(rows + len(nodes) * ~is_first))
        ends = np.stack([rows, rows + len(nodes)], axis=1).ravel()  # of each edge, one after the other
        both, reverse = pa.concat_arrays([tied, smallest]), pa.concat_arrays([smallest, tied])
        yield _links(both.take(pa.array(ends)), reverse.take(pa.array(ends)))


Neighbors = tuple[pa.StructArray, pa.StructArray, pa.StructArray, Flags]


def _neighbors(edges: Batches) -> Iterator[Neighbors]:
    """Yield the distinct edges of a batch: nodes, others, the first other of each node, and which rows are that one.

    A node may have more neighbors than memory has room for: of those before, the first and the last are kept.
    """
    before = None  # the first row of the last node, and its last row
    for batch in edges:
        rows = pa.Table.from_batches([*(before or []), batch.select(["id", "node", "other"])]).combine_chunks()
        distinct = run_starts(rows.column("id"), node_ids(rows.column("other")))
        starts = run_starts(rows.column("id"))
        first = starts[run_numbers(starts, rows.num_rows)]
        known = 2 if before else 0
        new = distinct[distinct >= known]
        if rows.num_rows:
            at = [int(starts[-1]), rows.num_rows - 1]
            before = [rows.slice(row, 1).to_batches()[0] for row in at]
        node, other = (combined(rows.column(side)) for side in ("node", "other"))
        yield node.take(pa.array(new)), other.take(pa.array(new)), other.take(pa.array(first[new])), first[new] == new


def _links(nodes: pa.StructArray, others: pa.StructArray) -> pa.RecordBatch:
    return batch_of(LINKS, id=node_ids(nodes), node=nodes, other=others)


def resolve_winners(links: Batches, *, known: bool) -> Batches:
    """Yield the `LOSERS` of finished clusters: new documents, or with `known` winners of earlier snapshots."""
    for batch in links:
        node, other = batch.column("node"), batch.column("other")
        chosen = is_known(node) if known else pc.invert(is_known(node))
        lost = batch.filter(pc.and_(precedes(other, node), chosen))
        yield batch_of(LOSERS, id=lost.column("id"), node=lost.column("node"), winner=lost.column("other"))


def strongest_edges(edges: Batches) -> Batches:
    """Yield `STRONGEST` of `EDGES` sorted by id, other, near and via; of equal edges, the first.

    A document may have more edges than memory has room for: of those before, the strongest is kept.
    """
    before: list[pa.RecordBatch] = []
    for batch in edges:
        best = _strongest(pa.Table.from_batches([*before, batch]).combine_chunks())
        before = best.slice(max(best.num_rows - 1, 0)).to_batches()
        yield _as_strongest(best.slice(0, max(best.num_rows - 1, 0)))
    for last in before:
        yield _as_strongest(last)


def _strongest(rows: pa.Table) -> pa.Table:
    starts = run_starts(rows.column("id"))
    group = run_numbers(starts, rows.num_rows)
    similarity = combined(rows.column("similarity")).to_numpy(zero_copy_only=False)
    ranked = np.lexsort((np.arange(rows.num_rows), -similarity, group))
    return rows.take(pa.array(ranked[starts])).combine_chunks()


def _as_strongest(best: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    columns = {name: best.column(name) for name in ("id", "via", "similarity", "shared_bands")}
    return batch_of(STRONGEST, **columns, near=node_ids(best.column("near")))
