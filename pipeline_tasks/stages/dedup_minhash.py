"""Keeps one document of each cluster of near duplicates of all snapshots: MinHash proposes, exact overlap decides."""

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, HistoryReader, Section, Shards, Stage, reject, replace_column
from pipeline_tasks.text.near.ranking import POLICIES, SEPARATOR, Policy, decided, nodes, part

NEAR_DUPLICATE = "dedup_minhash:near_duplicate"
OLD = SEPARATOR
"""Last character of a node that an earlier snapshot remembered; it does not change how nodes sort."""

_SLICE = 256  # rows whose shingles are in memory at once: about a megabyte per million characters of text

pc: Any = pyarrow.compute
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Params:
    """How documents are signed, when two are near duplicates, and which of a cluster stays.

    Documents are sets of `ngram`s of folded words or, with `shingle: char`, of folded characters with one space between
    words (`text.shingles`). Two become a candidate pair when all `rows` minima of one of `bands` bands agree: with
    probability 1 - (1 - J**rows)**bands at Jaccard similarity J (14 x 8 as FineWeb: 0.92 at 0.8, 0.56 at 0.7). A
    candidate is an edge only when its exact `measure` is at least `threshold`: `jaccard`, or `containment`, the share
    of the smaller set that the larger one holds; 0 turns verification off.
    Of each connected cluster, over all snapshots, the first by `policy` stays: an ordered list of `quality` (highest
    value of the column `quality`), `newest`, `oldest`, `longest`, `source` (first of `sources` that is the document's
    source or the end of its host) and `lowest_id`, which always breaks the last tie. No snapshot is privileged: an
    earlier winner that is no longer the first is demoted, which the next dataset version tells.
    Members of a band are compared by stars, then pair by pair, until all that are not connected were compared, for at
    most `rounds` rounds of at most `pairs` comparisons per band (or one per new member, where that is more); what is
    left after that is counted in `unsettled_bands`.
    Up to `edges_in_memory` edges are clustered in one task, more by rounds of large-star and small-star; the answer
    is the same. `buckets` is how the memory of earlier snapshots is cut. It and whatever decides on edges and winners
    must stay the same as long as there is history. Memory per task is about one bucket's bands (1 kB per document).
    """

    ngram: int = 5
    shingle: Literal["word", "char"] = "word"
    bands: int = 14
    rows: int = 8
    threshold: float = 0.8
    measure: Literal["jaccard", "containment"] = "jaccard"
    policy: tuple[str, ...] = ("oldest", "lowest_id")
    sources: tuple[str, ...] = ()
    quality: str = "score"
    seed: int = 1
    rounds: int = 8
    pairs: int = 20_000
    buckets: int = 8
    edges_in_memory: int = 4_000_000


# --- Signing --------------------------------------------------------------------------------------------------


def sign(docs: Batches, *, params: Params) -> Batches:
    """Yield id, node (see `ranking.nodes`: the better document's sorts first), band keys and packed shingles.

    Documents of fewer than `ngram` words (or characters) have neither keys nor shingles: nobody is near to them.
    """
    from pipeline_tasks.text.near import minhash

    family = minhash.Family(params.ngram, params.bands, params.rows, params.seed, params.shingle)
    policy = Policy(params.policy, params.sources, params.quality)
    last = ""
    for batch in docs:
        _check_order(batch, last)
        _check_columns(batch, params)
        last = batch.column("id")[-1].as_py() if batch.num_rows else last
        keys, shingles = minhash.sign(batch.column("text"), family)
        yield _batch(id=batch.column("id"), node=nodes(batch, policy), keys=keys, shingles=shingles)


def _check_order(batch: pa.RecordBatch, last: str) -> None:
    ids = [last, *batch.column("id").to_pylist()]
    for before, after in pairwise(ids):
        if not before < after:
            message = (
                f"dedup_minhash: document {after} follows {before}; run dedup_exact before, with the same `buckets`"
            )
            raise ContractError(message)


def _check_columns(batch: pa.RecordBatch, params: Params) -> None:
    if "quality" in params.policy and params.quality not in batch.schema.names:
        message = (
            f"dedup_minhash: policy `quality` needs a column {params.quality!r}, and documents have "
            f"{', '.join(batch.schema.names)}; put the stage that writes it before, or name another by `quality:`"
        )
        raise RecipeError(message)


def outline(signed: Batches) -> Batches:
    """Yield id, node, band keys and the number of shingles: what most steps need of a signature, a tenth of it."""
    for batch in signed:
        sizes = pc.divide(pc.binary_length(batch.column("shingles")), 8)
        yield replace_column(batch.select(["id", "node", "keys"]), "size", sizes.cast(pa.int64()))


def spread(outlines: Batches) -> Batches:
    """Yield one (key, node) row per band of each document."""
    for batch in outlines:
        keys = batch.column("keys")
        yield _batch(key=pc.list_flatten(keys), node=batch.column("node").take(pc.list_parent_indices(keys)))


def keep(rows: Batches) -> Batches:
    """Yield rows as they come: what is wanted is `group`'s order."""
    yield from rows


# --- Candidates -----------------------------------------------------------------------------------------------


def meet(bands: Batches, *past: HistoryReader, family: int) -> Batches:
    """Yield the members of every band in which something can be compared: key, node, label; sorted by key and node.

    Remembered members are marked `OLD` and carry the winner of their cluster as `label`; new ones have none.
    """
    rows = _whole(bands)
    known = _known(past, np.unique(_ints(rows, "key")), family)
    _check_new(rows, known)
    known = known.set_column(known.schema.get_field_index("node"), "node", _aged(known.column("node")))
    rows = pa.concat_tables([rows.append_column("label", pa.nulls(rows.num_rows, pa.string())), known])
    _, group, counts = np.unique(_ints(rows, "key"), return_inverse=True, return_counts=True)
    shared = rows.filter(pa.array(counts[group] > 1))
    yield from _in_order(shared, "key", "node").to_batches() or [_empty(rows.schema)]


def _check_new(rows: pa.Table, known: pa.Table) -> None:
    again = pc.is_in(part(known.column("node"), 1), value_set=part(rows.column("node"), 1))
    if pc.any(again).as_py():
        one = part(known.column("node").filter(again), 1)[0]
        message = f"dedup_minhash: document {one} is new and remembered; run dedup_exact before, with the same history"
        raise ContractError(message)


def _known(past: tuple[HistoryReader, ...], keys: Positions, family: int) -> pa.Table:
    """Return the remembered (key, node, label) rows whose key is among `keys`."""
    wanted = pa.array(keys, pa.int64())
    schema = pa.schema([("key", pa.int64()), ("node", pa.large_string()), ("label", pa.string())])
    found = [schema.empty_table()]
    for one in past:
        _check_family(one, family)
        found.append(one.rows(wanted).select(schema.names))
    return pa.concat_tables(found)


_OTHER_FAMILY = (
    "dedup_minhash: an earlier snapshot was remembered with other params (signatures, measure, threshold, policy or "
    "buckets) or by an older version of this stage; set the params as they were, or start a dataset without history "
    "under another recipe name"
)


def _check_family(one: HistoryReader, family: int) -> None:
    if one.first("family") not in {None, family}:
        raise ContractError(_OTHER_FAMILY)


def link(met: Batches, *told: Batches, turn: int, params: Params) -> Batches:
    """Yield the pairs of a band to compare in this turn: member, member_node, center, center_node, key.

    `told` is what came of earlier turns (see `tell`). A member is never old, its center may be; which pairs
    are chosen `candidates.choose` says.
    """
    from pipeline_tasks.text.near.candidates import choose

    rows = _whole(met)
    members, centers, _ = choose(*_bands_of(rows, told), pairs=params.pairs, reach=_reach(params), star=turn == 0)
    ours, theirs = (rows.column("node").take(pa.array(side)) for side in (members, centers))
    yield _batch(
        member=part(ours, 1),
        member_node=ours,
        center=part(theirs, 1),
        center_node=theirs,
        key=rows.column("key").take(pa.array(members)),
    )


def unsettled(met: Batches, *told: Batches, params: Params) -> Batches:
    """Yield (id, key) for every new member of a band that was not compared with all that it is not connected to."""
    from pipeline_tasks.text.near.candidates import choose

    rows = _whole(met)
    _, _, left = choose(*_bands_of(rows, told), pairs=params.pairs, reach=_reach(params), star=False)
    found = rows.filter(pa.array(left))
    yield _batch(id=part(found.column("node"), 1), key=found.column("key"))


def _reach(params: Params) -> float:
    return 1 - params.threshold if params.measure == "jaccard" else float("inf")


def _bands_of(rows: pa.Table, told: tuple[Batches, ...]) -> Any:  # noqa: ANN401 -- (Bands, Results) of a heavy module
    """Return the members of bands, and what their comparisons gave, in terms of rows."""
    from pipeline_tasks.text.near.candidates import Bands, Results

    starts = np.append(_starts(rows, ("key",)), rows.num_rows)
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    old = _flags(pc.ends_with(rows.column("node"), OLD))
    bands = Bands(starts, _first_of_label(rows, group, old), old)
    names = pc.unique(rows.column("node"))
    places = group * (len(names) + 1) + _codes(rows.column("node"), names)
    sorted_places = np.argsort(places)
    results = pa.concat_tables([_TOLD.empty_table(), *(_whole(one).select(_TOLD.names) for one in told)])
    at = np.searchsorted(_ints(rows, "key"), _ints(results, "key"), side="left")
    order = np.argsort(at, kind="stable")
    results = results.take(pa.array(order))
    band = group[at[order]] if len(order) else np.zeros(0, np.int64)
    members, centers = (
        sorted_places[np.searchsorted(places, band * (len(names) + 1) + _codes(side, names), sorter=sorted_places)]
        for side in (results.column("member_node"), results.column("center_node"))
    )
    distances = np.asarray(1 - results.column("similarity").to_numpy(), np.float64)
    first = np.searchsorted(band, np.arange(len(starts)))
    return bands, Results(first, members, centers, distances, _flags(results.column("passed")))


_TOLD = pa.schema(
    [
        ("key", pa.int64()),
        ("member_node", pa.large_string()),
        ("center_node", pa.large_string()),
        ("similarity", pa.float64()),
        ("passed", pa.bool_()),
    ]
)


def _first_of_label(rows: pa.Table, group: Positions, old: npt.NDArray[np.bool_]) -> Positions:
    """Return, per row, the first row of its band whose cluster is known to be the same: itself, if it is new."""
    classes = np.arange(rows.num_rows)
    labels = pc.unique(rows.column("label"))
    place = group * (len(labels) + 1) + _codes(rows.column("label"), labels)
    _, first, which = np.unique(place[old], return_index=True, return_inverse=True)
    classes[old] = np.flatnonzero(old)[first[which]]
    return classes


def _codes(values: Any, names: Any) -> Positions:  # noqa: ANN401 -- Arrow arrays
    """Return the place of each value among `names`, which has them all but null."""
    return np.asarray(pc.index_in(values, value_set=names).fill_null(len(names)).to_numpy()).astype(np.int64)


# --- Verification ---------------------------------------------------------------------------------------------


def pair(stars: Batches) -> Batches:
    """Yield each (member, center) pair once, with the keys of the bands that propose it."""
    rows = _whole(stars)
    starts = _starts(rows, ("member", "center"))
    bounds = pa.array(np.append(starts, rows.num_rows), pa.int32())
    keys = pa.ListArray.from_arrays(bounds, rows.column("key").combine_chunks())
    once = rows.select(["member", "member_node", "center", "center_node"]).take(pa.array(starts))
    yield from once.append_column("keys", keys).to_batches() or [_empty(once.append_column("keys", keys).schema)]


def attach(pairs: Batches, signed: Batches) -> Batches:
    """Append the member's shingles and bands to each pair, at the member's home."""
    from pipeline_tasks.text.base.lookup import Lookup

    home = Lookup(signed, "id")
    for batch in _sliced(pairs):
        found = home.rows(batch.column("member").unique())
        at = pc.index_in(batch.column("member"), value_set=found.column("id"))
        told = found.take(at)
        whole = batch.append_column("shingles", _one(told, "shingles"))
        yield whole.append_column("bands", _one(told, "keys"))


def judge(met: Batches, signed: Batches, *past: HistoryReader, params: Params) -> Batches:
    """Compare each member with its center, at the center's home: exact overlap, and how many bands they share.

    A remembered center also tells the winner of its cluster, as its memory knew it (`label`).
    """
    from pipeline_tasks.text.base.lookup import Lookup
    from pipeline_tasks.text.near import minhash

    home = Lookup(signed, "id")
    for batch in _sliced(met):
        centers, old = batch.column("center"), pc.ends_with(batch.column("center_node"), OLD)
        known = [one.rows(centers.filter(old).unique()) for one in past]  # a new one would cost a page and not be there
        found = pa.concat_tables(map(_remembered, [home.rows(centers.unique()), *known]))
        at = pc.index_in(batch.column("center"), value_set=found.column("id"))
        if at.null_count:
            lost = batch.column("center").filter(pc.is_null(at))[0]
            message = (
                f"dedup_minhash: document {lost} is not in its bucket; run dedup_exact before, with the same `buckets`"
            )
            raise ContractError(message)
        rows = at.to_numpy(zero_copy_only=False).astype(np.int64)
        here = np.arange(batch.num_rows)
        similarity = minhash.jaccard(batch.column("shingles"), here, _one(found, "shingles"), rows)
        theirs = found.take(at)
        if params.measure == "containment":
            similarity = _contained(similarity, batch.column("shingles"), _one(theirs, "shingles"))
        shared = _bands(batch.column("bands"), batch.num_rows) == _bands(_one(theirs, "keys"), batch.num_rows)
        told = batch.select(["member", "member_node", "center", "center_node", "keys"])
        told = told.append_column("label", _one(theirs, "winner"))
        told = told.append_column("similarity", pa.array(similarity, pa.float64()))
        told = told.append_column("shared", pa.array(shared.sum(axis=1), pa.int64()))
        yield told.append_column("passed", pa.array(similarity >= params.threshold))


def _remembered(rows: pa.Table) -> pa.Table:
    """Return id, keys, shingles and winner of signed rows; new ones have no winner yet."""
    if "winner" not in rows.schema.names:
        rows = rows.append_column("winner", pa.nulls(rows.num_rows, pa.large_string()))
    return rows.select(["id", "keys", "shingles", "winner"])


def _contained(jaccard: npt.NDArray[np.float64], one: Any, other: Any) -> npt.NDArray[np.float64]:  # noqa: ANN401 -- Arrow arrays
    """Return the share of the smaller set that is in the larger: the overlap is J (a + b) / (1 + J), a whole number."""
    sizes = [np.asarray(pc.binary_length(side).to_numpy(zero_copy_only=False)) // 8 for side in (one, other)]
    both = np.rint(jaccard * (sizes[0] + sizes[1]) / (1 + jaccard))
    return np.asarray(both / np.maximum(np.minimum(*sizes), 1), np.float64)


def _bands(lists: Any, rows: int) -> npt.NDArray[Any]:  # noqa: ANN401 -- an Arrow array
    return np.asarray(lists.flatten().to_numpy(zero_copy_only=False)).reshape(rows, -1 if rows else 1)


def tell(judged: Batches) -> Batches:
    """Yield what came of each comparison, once for every band that asked for it."""
    for batch in judged:
        keys = batch.column("keys")
        told = batch.select(["member_node", "center_node", "similarity", "passed"]).take(pc.list_parent_indices(keys))
        yield told.append_column("key", pc.list_flatten(keys))


def ends(judged: Batches) -> Batches:
    """Yield every edge between new documents from both its ends: id, node, other, near, via, similarity, shared.

    `via` and `near` are the two documents that were compared (an id, and a node), `via` on the side of `node`.
    """
    for batch in judged:
        edges = batch.filter(pc.and_(batch.column("passed"), pc.is_null(batch.column("label"))))
        for one, other in (("member", "center"), ("center", "member")):
            yield _batch(
                id=edges.column(one),
                node=edges.column(f"{one}_node"),
                other=edges.column(f"{other}_node"),
                near=edges.column(f"{other}_node"),
                via=edges.column(one),
                similarity=edges.column("similarity"),
                shared=edges.column("shared"),
            )


# --- Clusters of earlier snapshots ----------------------------------------------------------------------------


def touch(judged: Batches) -> Batches:
    """Yield every edge to a remembered document, with the winner that its memory knew: id (the winner's) and label."""
    for batch in judged:
        edges = batch.filter(pc.and_(batch.column("passed"), pc.is_valid(batch.column("label"))))
        told = edges.select(["member", "member_node", "center", "center_node", "label", "similarity", "shared"])
        yield told.append_column("id", part(edges.column("label"), 1))


def labels(touched: Batches) -> Batches:
    """Yield each remembered winner once: id, node."""
    rows = _whole(touched)
    once = rows.take(pa.array(_starts(rows, ("id",))))
    yield _batch(id=_one(once, "id"), node=_one(once, "label"))


def follow(winners: Batches, *rest: Any, seen: int) -> Batches:  # noqa: ANN401 -- Batches, then Remembered
    """Yield (id, node, winner) for winners that a later snapshot demoted; the first `seen` of `rest` were followed."""
    from pipeline_tasks.text.base.lookup import Lookup

    done = [Lookup(one, "id") for one in rest[:seen]]
    for batch in winners:
        ids = batch.column("id")
        for one in done:
            ids = ids.filter(pc.invert(pc.is_in(ids, value_set=one.rows(ids).column("id"))))
        for memory in rest[seen:]:
            yield from memory.rows(ids).select(_HOP.names).to_batches() or [_empty(_HOP)]


_HOP = pa.schema([("id", pa.string()), ("node", pa.large_string()), ("winner", pa.large_string())])


def reached(hops: Batches) -> Batches:
    """Yield the winners that demoted ones lost to, to be followed in their turn: id, label."""
    for batch in hops:
        yield _batch(id=part(batch.column("winner"), 1), label=batch.column("winner"))


def both_ways(hops: Batches) -> Batches:
    """Yield (node, other) and (other, node) for each demotion."""
    for batch in hops:
        yield _batch(node=batch.column("node"), other=batch.column("winner"))
        yield _batch(node=batch.column("winner"), other=batch.column("node"))


def current(clusters: Batches) -> Batches:
    """Yield (id, winner) for every remembered winner that is none any more."""
    for batch in clusters:
        lost = batch.filter(pc.less(batch.column("other"), batch.column("node")))
        yield _batch(id=part(lost.column("node"), 1), winner=lost.column("other"))


def settle(touched: Batches, *moved: Batches) -> Batches:
    """Yield each edge to a remembered document as one to the winner of its cluster today, from both its ends."""
    from pipeline_tasks.text.base.lookup import Lookup

    tables = [Lookup(one, "id") for one in moved]
    for batch in touched:
        label = batch.column("label")
        for table in tables:
            found = table.rows(batch.column("id").unique())
            at = pc.index_in(batch.column("id"), value_set=found.column("id"))
            label = pc.coalesce(_one(found, "winner").take(at), label)
        winner = _aged(label)
        told = {"similarity": batch.column("similarity"), "shared": batch.column("shared")}
        member, center = batch.column("member_node"), batch.column("center_node")
        yield _batch(
            id=batch.column("member"), node=member, other=winner, near=center, via=batch.column("member"), **told
        )
        yield _batch(id=part(label, 1), node=winner, other=member, near=member, via=batch.column("center"), **told)


# --- Clusters -------------------------------------------------------------------------------------------------


def unite(_: Batches, edges: Batches) -> Batches:
    """Yield (node, other): the first node of the cluster for every node but the first, of all edges at once."""
    from pipeline_tasks.text.near.clusters import lowest_of_cluster

    rows = pa.Table.from_batches(list(edges)).select(["node", "other"])
    names = pc.unique(pa.chunked_array([*rows.column("node").chunks, *rows.column("other").chunks], pa.large_string()))
    names = names.take(pc.sort_indices(names))
    codes = [pc.index_in(rows.column(side), value_set=names).to_numpy().astype(np.int64) for side in ("node", "other")]
    lowest = lowest_of_cluster(codes[0], codes[1], len(names))
    led = np.flatnonzero(lowest != np.arange(len(names)))
    yield _batch(node=names.take(pa.array(led)), other=names.take(pa.array(lowest[led])))


def large_star(edges: Batches) -> Batches:
    """Tie each larger neighbor of a node to the smallest of the node and its neighbors."""
    rows, starts, group = _neighbors(edges)
    nodes, others = _one(rows, "node"), _one(rows, "other")
    smallest = pc.min_element_wise(nodes.take(pa.array(starts)), others.take(pa.array(starts)))
    larger = np.flatnonzero(pc.greater(others, nodes).to_numpy(zero_copy_only=False))
    yield _batch(node=others.take(pa.array(larger)), other=smallest.take(pa.array(group[larger])))


def small_star(edges: Batches) -> Batches:
    """Tie a node and its neighbors, all of them smaller, to the smallest; yields each edge from both ends."""
    rows, starts, group = _neighbors(edges)
    nodes, others = _one(rows, "node"), _one(rows, "other")
    smallest = others.take(pa.array(starts))
    rest = np.setdiff1d(np.arange(rows.num_rows), starts)
    tied = pa.concat_arrays([nodes.take(pa.array(starts)), others.take(pa.array(rest))])
    to = pa.concat_arrays([smallest, smallest.take(pa.array(group[rest]))])
    yield _batch(node=pa.concat_arrays([tied, to]), other=pa.concat_arrays([to, tied]))


def _neighbors(edges: Batches) -> tuple[pa.Table, Positions, Positions]:
    """Return distinct edges, the first row of each node, and each row's node by number."""
    rows = _whole(edges)
    rows = rows.select(["node", "other"]).take(pa.array(_starts(rows, ("node", "other"))))
    starts = _starts(rows, ("node",))
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, rows.num_rows)))
    return rows, starts, group


def losers(clusters: Batches, *, old: bool) -> Batches:
    """Yield (id, node, winner) for every new document, or every winner of old, that is not the first of its cluster."""
    for batch in clusters:
        nodes_, others = batch.column("node"), batch.column("other")
        aged = pc.ends_with(nodes_, OLD)
        lost = batch.filter(pc.and_(pc.less(others, nodes_), aged if old else pc.invert(aged)))
        yield _batch(id=part(lost.column("node"), 1), node=lost.column("node"), winner=lost.column("other"))


# --- Decision -------------------------------------------------------------------------------------------------


def best(edges: Batches) -> Batches:
    """Yield the strongest edge of each document; of equals, the one to the better document."""
    rows = _whole(edges)
    starts = _starts(rows, ("id",))
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, rows.num_rows)))
    ranked = np.lexsort((np.arange(rows.num_rows), -rows.column("similarity").to_numpy(), group))
    names = ("id", "near", "via", "similarity", "shared")
    yield _batch(**{name: _one(rows, name).take(pa.array(ranked[starts])) for name in names})


def count(left: Batches) -> Batches:
    """Yield (id, bands) for each document that has bands which were not settled when the rounds were over."""
    ids, bands = np.unique(_whole(left).column("id").to_numpy().astype(str), return_counts=True)
    yield _batch(id=pa.array(ids.tolist(), pa.string()), bands=pa.array(bands, pa.int64()))


def sift(docs: Batches, outlines: Batches, lost: Batches, edges: Batches, left: Batches, *, params: Params) -> Batches:
    """Set aside every document but the winner of its cluster; append `shingles` and `unsettled_bands`."""
    from pipeline_tasks.text.base.lookup import Lookup

    sizes, beaten, strongest, open_ = (Lookup(one, "id") for one in (outlines, lost, edges, left))
    marked = 0
    for batch in docs:
        ids: Any = batch.column("id")
        sized = replace_column(batch, "shingles", _one(sizes.rows(ids), "size"))
        open_bands = _by_id(open_.rows(ids))
        counted = [open_bands[one]["bands"] if one in open_bands else 0 for one in ids.to_pylist()]
        measured = replace_column(sized, "unsettled_bands", pa.array(counted, pa.int64()))
        defeats, proofs = _by_id(beaten.rows(ids)), _by_id(strongest.rows(ids))
        marked += len(defeats)
        told = [_evidence(defeats[one], proofs[one], params) if one in defeats else None for one in ids.to_pylist()]
        reasons = pa.array([NEAR_DUPLICATE if one else None for one in told], pa.string())
        yield reject(measured, reasons, pa.array(told, pa.string()))
    if beaten.finish() != marked:
        message = (
            "dedup_minhash: some duplicates are not in their bucket; run dedup_exact before, with the same `buckets`"
        )
        raise ContractError(message)


def _by_id(rows: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows.to_pylist()}


def _evidence(defeat: dict[str, Any], edge: dict[str, Any], params: Params) -> str:
    """Return canonical JSON: who stays and by which preference, and the document that was compared with this one."""
    _, won, snapshot = defeat["winner"].removesuffix(OLD).split(SEPARATOR)
    proof = {
        "winner": won,
        "snapshot": snapshot,
        "near": edge["near"].split(SEPARATOR)[1],
        params.measure: round(edge["similarity"], 6),
        "bands": edge["shared"],
        "policy": list(params.policy),
        "by": decided(defeat["winner"], defeat["node"], params.policy),
    }
    return json.dumps(proof, sort_keys=True, separators=(",", ":"))


# --- Memory ---------------------------------------------------------------------------------------------------


def memorize(signed: Batches, lost: Batches, *, family: int) -> Batches:
    """Yield what later snapshots will see of every signed document: signature, node, and the winner of its cluster."""
    for batch in _led(signed, lost):
        known = replace_column(batch, "family", pa.array([family] * batch.num_rows, pa.int64()))
        yield known.filter(pc.greater(pc.binary_length(batch.column("shingles")), 0))


def index(outlines: Batches, lost: Batches, *, family: int) -> Batches:
    """Yield one (key, node, label) row per band of each signed document; `label` is the id of its winner."""
    for batch in _led(outlines, lost):
        keys = batch.column("keys")
        at = pc.list_parent_indices(keys)
        yield _batch(
            key=pc.list_flatten(keys),
            node=batch.column("node").take(at),
            label=part(batch.column("winner"), 1).take(at),
            family=pa.array([family] * len(at), pa.int64()),
        )


def _led(documents: Batches, lost: Batches) -> Batches:
    """Append to each document the winner of its cluster: itself, if it did not lose."""
    from pipeline_tasks.text.base.lookup import Lookup

    beaten = Lookup(lost, "id")
    for batch in documents:
        found = beaten.rows(batch.column("id"))
        at = pc.index_in(batch.column("id"), value_set=found.column("id"))
        won = _bare(_one(found, "winner").take(at))
        yield replace_column(batch, "winner", pc.coalesce(won, batch.column("node")))


def demote(lost: Batches, edges: Batches) -> Batches:
    """Yield every earlier winner that is none any more, who took its place, and the strongest edge that tied them.

    `via`, of the loser's cluster, and `near` are the documents that were compared.
    """
    from pipeline_tasks.text.base.lookup import Lookup

    strongest = Lookup(edges, "id")
    for batch in lost:
        proofs = strongest.rows(batch.column("id"))
        proofs = proofs.take(pc.index_in(batch.column("id"), value_set=proofs.column("id")))
        yield _batch(
            id=batch.column("id"),
            node=_bare(batch.column("node")),
            winner=_bare(batch.column("winner")),
            **{name: _one(proofs, name) for name in ("near", "via", "similarity", "shared")},
        )


def _aged(nodes_: Any) -> Any:  # noqa: ANN401 -- Arrow arrays
    """Return nodes with the mark of what was remembered."""
    return pc.binary_join_element_wise(nodes_, pa.scalar(OLD, pa.large_string()), pa.scalar("", pa.large_string()))


def _bare(nodes_: Any) -> Any:  # noqa: ANN401 -- Arrow arrays
    """Return nodes without that mark."""
    return pc.replace_substring_regex(nodes_, f"{OLD}$", "")


# --- The stage ------------------------------------------------------------------------------------------------


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Sign, link by band, verify, cluster with what is remembered, keep the first of each cluster, remember all.

    The graph is all pairs of documents, of this and of all earlier snapshots, that share a band and whose exact
    similarity is at least `threshold`; clusters are its connected components, and each keeps its first document by
    policy. Where no band is left unsettled (`unsettled_bands`, measured) clusters are exactly those, so what k
    snapshots keep, less what later ones demote, is what one snapshot of everything would keep, in whatever order they
    come. Nothing depends on shards, buckets, batches, workers or engine.
    docs/decisions/0009 works the cases through.

    Cost: text is read twice (signing, sifting) and never shuffled; bands (14 rows per document) are shuffled once;
    shingles travel only for candidate pairs, one set per pair. Of history only the pages are read that can hold a band
    of a new document, a document to compare it with, or a cluster that it joins.
    """
    _check_policy(params)
    family = family_of(params)
    home = shards if len(shards) == params.buckets else _homed(shards, params, on)
    signed = on.map(partial(sign, params=params), home)
    outlines = on.map(outline, signed)
    edges, left = _verified(signed, outlines, params, on)
    lost, demoted, strongest = _lost(edges, params, on)
    bands = on.map(partial(index, family=family), outlines, lost)
    on.save_history("bands", _grouped(bands, on, params, by="key", order=("node",)))
    on.save_history("signatures", signed, lost, kernel=partial(memorize, family=family))
    on.save_history("superseded", demoted, strongest, kernel=demote)
    return on.map(partial(sift, params=params), home, outlines, lost, strongest, left)


def _homed(shards: Shards, params: Params, on: Engine) -> Shards:
    return _grouped(shards, on, params, by="id", order=("snapshot", "file", "offset"))


def _grouped(rows: Shards, on: Engine, params: Params, *, by: str, order: tuple[str, ...]) -> Shards:
    return on.group(keep, rows, by=by, order=order, buckets=params.buckets)


def _verified(signed: Shards, outlines: Shards, params: Params, on: Engine) -> tuple[Shards, Shards]:
    """Return the edges to what is new or remembered, and the bands that were unsettled when the rounds were over."""
    bands = _grouped(on.map(spread, outlines), on, params, by="key", order=("node",))
    met = on.map(partial(meet, family=family_of(params)), bands, *on.history("bands"))
    told: list[Shards] = []
    judged: Shards = ()
    for turn in range(params.rounds):
        stars = on.map(partial(link, turn=turn, params=params), met, *told)
        if turn and not _rows(stars):
            break
        pairs = on.group(pair, stars, by="member", order=("center", "key"), buckets=params.buckets)
        sent = _grouped(on.map(attach, pairs, signed), on, params, by="center", order=("member",))
        news = on.map(partial(judge, params=params), sent, signed, *on.history("signatures"))
        judged += news
        told.append(_grouped(on.map(tell, news), on, params, by="key", order=("member_node", "center_node")))
    left = on.group(
        count, on.map(partial(unsettled, params=params), met, *told), by="id", order=("key",), buckets=params.buckets
    )
    return on.map(ends, judged) + _remembered_edges(judged, params, on), left


def _remembered_edges(judged: Shards, params: Params, on: Engine) -> Shards:
    """Return the edges to remembered documents as edges to the winners that their clusters have today."""
    superseded = on.history("superseded")
    if not superseded:
        return ()
    touched = _grouped(on.map(touch, judged), on, params, by="id", order=("member_node", "center_node"))
    hops: Shards = ()
    seen = [on.map(labels, touched)]
    while True:
        moved = on.map(partial(follow, seen=len(seen) - 1), seen[-1], *seen[:-1], *superseded)
        if not _rows(moved):
            break
        hops += moved
        seen.append(on.group(labels, on.map(reached, moved), by="id", order=("label",), buckets=params.buckets))
    if not hops:
        return on.map(settle, touched)
    clusters = _clusters(on.map(both_ways, hops), params, on)
    return on.map(settle, touched, _grouped(on.map(current, clusters), on, params, by="id", order=("winner",)))


def _lost(edges: Shards, params: Params, on: Engine) -> tuple[Shards, Shards, Shards]:
    """Return, at home, the new documents that lose, the earlier winners that do, and the strongest edge of each."""
    clusters = _clusters(edges, params, on)
    new, old = (
        _grouped(on.map(partial(losers, old=one), clusters), on, params, by="id", order=("winner",))
        for one in (False, True)
    )
    order = ("other", "near", "via")
    return new, old, on.group(best, edges, by="id", order=order, buckets=params.buckets)


def _clusters(edges: Shards, params: Params, on: Engine) -> Shards:
    """Return (node, other) with the first node of the cluster for every node but the first."""
    in_memory = _rows(edges) <= params.edges_in_memory
    return on.map(unite, edges[:1], broadcast=edges) if in_memory else _stars(edges, params.buckets, on)


def _stars(edges: Shards, buckets: int, on: Engine) -> Shards:
    """Turn every cluster into a star around its first node, by large-star and small-star until nothing changes.

    Kiveris et al., Connected Components in MapReduce and Beyond (SoCC 2014): both steps keep the clusters as they
    are, and only a forest of stars stays as it is. What a step writes depends on the set of edges only, so equal
    digests prove the fixpoint; there is no limit of rounds that could end it early.
    """
    while True:
        pulled = on.group(large_star, edges, by="node", order=("other",), buckets=buckets)
        tied = on.group(small_star, pulled, by="node", order=("other",), buckets=buckets)
        if [one.digest for one in tied] == [one.digest for one in edges]:
            return tied
        edges = tied


def _rows(shards: Shards) -> int:
    return sum(one.rows for one in shards)


def _check_policy(params: Params) -> None:
    for one in params.policy:
        if one not in POLICIES:
            message = f"dedup_minhash: policy {one!r} is not one of {', '.join(POLICIES)}"
            raise RecipeError(message)
    if ("source" in params.policy) != bool(params.sources):
        message = "dedup_minhash: `sources` (a list, the best first) and the policy `source` need each other"
        raise RecipeError(message)


def family_of(params: Params) -> int:
    """Return the number that marks comparable memory: whatever decides on signatures, edges and winners."""
    how = (
        params.ngram,
        params.shingle,
        params.bands,
        params.rows,
        params.seed,
        params.buckets,
        params.measure,
        params.threshold,
    )
    name = json.dumps([how, params.policy, params.sources, params.quality])
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


# --- Arrow ----------------------------------------------------------------------------------------------------


def _batch(**columns: Any) -> pa.RecordBatch:  # noqa: ANN401 -- Arrow arrays
    arrays = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _whole(batches: Batches) -> pa.Table:
    return pa.Table.from_batches(list(batches)).combine_chunks()


def _one(rows: pa.Table, name: str) -> Any:  # noqa: ANN401 -- an Arrow array
    return rows.column(name).combine_chunks()


def _ints(rows: pa.Table, name: str) -> Positions:
    return np.asarray(rows.column(name).to_numpy())


def _in_order(rows: pa.Table, *names: str) -> pa.Table:
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in names])).combine_chunks()


def _flags(column: Any) -> npt.NDArray[np.bool_]:  # noqa: ANN401 -- an Arrow array
    return np.asarray(
        column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    )


def _starts(rows: pa.Table, names: tuple[str, ...]) -> Positions:
    """Return the positions where a row differs from the one before it in any of `names`."""
    if rows.num_rows == 0:
        return np.zeros(0, np.int64)
    differs = np.zeros(rows.num_rows, bool)
    differs[0] = True
    for name in names:
        column = rows.column(name)
        differs[1:] |= pc.not_equal(column.slice(1), column.slice(0, rows.num_rows - 1)).to_numpy()
    return np.flatnonzero(differs)


def _sliced(batches: Batches) -> Batches:
    for batch in batches:
        for start in range(0, max(batch.num_rows, 1), _SLICE):
            yield batch.slice(start, _SLICE)


BANDS = pa.schema(
    [
        pa.field("key", pa.int64()),
        pa.field("node", pa.large_string()),
        pa.field("label", pa.string()),
        pa.field("family", pa.int64()),
    ]
)
"""The band index: one row per band of each signed document; `label` is the id of its cluster's winner."""

SIGNATURES = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("node", pa.large_string()),
        pa.field("keys", pa.list_(pa.field("element", pa.int64()))),  # as Parquet names it
        pa.field("shingles", pa.large_binary()),
        pa.field("winner", pa.large_string()),
        pa.field("family", pa.int64()),
    ]
)
"""A signed document, and the winner of its cluster."""

SUPERSEDED = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("node", pa.large_string()),
        pa.field("winner", pa.large_string()),
        pa.field("near", pa.large_string()),
        pa.field("via", pa.string()),
        pa.field("similarity", pa.float64()),
        pa.field("shared", pa.int64()),
    ]
)
"""An earlier winner that this snapshot supersedes, and the strongest edge that tied it to the new winner's cluster."""

STAGE = Stage(
    name="dedup_minhash",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, pa.field("shingles", pa.int64()), pa.field("unsettled_bands", pa.int64())]),
    version=2,
    splits=False,
    history={
        "bands": Section(BANDS, key="key", order=("node",)),
        "signatures": Section(SIGNATURES, key="id"),
        "superseded": Section(SUPERSEDED, key="id"),
    },
    profiled=("shingles", "unsettled_bands", "origins", "clusters", "similarity"),
    reasons=(NEAR_DUPLICATE,),
    title="near duplicates out",
)
