"""Connect edges into clusters, in memory or by rounds of large-star and small-star, and name the losers of each."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.near_duplicates.tables import LINKS, LOSERS, STRONGEST
from pipeline_tasks.stage import Batches
from pipeline_tasks.text.base.tables import Rows, batch_of, combined, flags, read_table, run_numbers, run_starts
from pipeline_tasks.text.near.ranking import is_known, node_ids, precedes

pc: Any = pyarrow.compute


def connect_components(_: Batches, edges: Batches) -> Batches:
    """Yield the `LINKS` of every node but the first of each cluster to that first node, of all edges at once."""
    from pipeline_tasks.text.near.clusters import lowest_of_cluster

    rows = read_table(batch.select(["node", "other"]) for batch in edges)
    nodes, codes = _distinct(pa.concat_arrays([combined(rows.column(side)) for side in ("node", "other")]))
    lowest = lowest_of_cluster(codes[: rows.num_rows], codes[rows.num_rows :], len(nodes))
    led = np.flatnonzero(lowest != np.arange(len(nodes)))
    yield _links(nodes.take(pa.array(led)), nodes.take(pa.array(lowest[led])))


def _distinct(nodes: pa.StructArray) -> tuple[pa.StructArray, Rows]:
    """Return the distinct nodes, the best first, and the place of each of `nodes` among them."""
    encoded = combined(pc.struct_field(nodes, "id")).dictionary_encode()
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    _, first = np.unique(codes, return_index=True)
    distinct = nodes.take(pa.array(first))
    order = pc.sort_indices(pa.table({"node": distinct}), sort_keys=[("node", "ascending")]).to_numpy()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return distinct.take(pa.array(order)), place[codes]


def large_star(edges: Batches) -> Batches:
    """Connect each larger neighbor of a node to the smallest of the node and its neighbors."""
    nodes, others, starts, group = _neighbors(edges)
    first_node, first_other = nodes.take(pa.array(starts)), others.take(pa.array(starts))
    smaller = np.arange(len(starts)) + len(starts) * flags(precedes(first_other, first_node))
    smallest = pa.concat_arrays([first_node, first_other]).take(pa.array(smaller))
    larger = np.flatnonzero(flags(precedes(nodes, others)))
    yield _links(others.take(pa.array(larger)), smallest.take(pa.array(group[larger])))


def small_star(edges: Batches) -> Batches:
    """Connect a node and its neighbors, all of them smaller, to the smallest; yields each edge from both ends."""
    nodes, others, starts, group = _neighbors(edges)
    smallest = others.take(pa.array(starts))
    rest = np.setdiff1d(np.arange(len(group)), starts)
    tied = pa.concat_arrays([nodes.take(pa.array(starts)), others.take(pa.array(rest))])
    to = pa.concat_arrays([smallest, smallest.take(pa.array(group[rest]))])
    yield _links(pa.concat_arrays([tied, to]), pa.concat_arrays([to, tied]))


def _neighbors(edges: Batches) -> tuple[pa.StructArray, pa.StructArray, Rows, Rows]:
    """Return nodes and others of the distinct edges, the first row of each node, and each row's node by number."""
    rows = read_table(edges)
    rows = rows.take(pa.array(run_starts(rows.column("id"), node_ids(rows.column("other")))))
    starts = run_starts(rows.column("id"))
    node, other = (combined(rows.column(side)) for side in ("node", "other"))
    return node, other, starts, run_numbers(starts, rows.num_rows)


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
    """Yield `STRONGEST` of `EDGES` sorted by id, other, near and via; of equal edges, the first."""
    rows = read_table(edges)
    starts = run_starts(rows.column("id"))
    group = run_numbers(starts, rows.num_rows)
    similarity = combined(rows.column("similarity")).to_numpy(zero_copy_only=False)
    ranked = np.lexsort((np.arange(rows.num_rows), -similarity, group))
    best = rows.take(pa.array(ranked[starts]))
    columns = {name: best.column(name) for name in ("id", "via", "similarity", "shared_bands")}
    yield batch_of(STRONGEST, **columns, near=node_ids(best.column("near")))
