"""Keeps one document of each cluster of near duplicates: banded MinHash proposes, exact Jaccard decides."""

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, Shards, Stage, replace_column, set_aside

NEAR_DUPLICATE = "dedup_minhash:near_duplicate"
POLICIES = ("oldest", "newest", "longest", "lowest_id")
PAST, NEW = "0", "1"
"""First character of a node: whatever an earlier snapshot published sorts, and so wins, before everything new."""

_WORST = 10**14 - 1
_SLICE = 256  # rows whose shingles are in memory at once: about a megabyte per million characters of text

pc: Any = pyarrow.compute
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Params:
    """How documents are signed, when two are near duplicates, and which of a cluster stays.

    Documents are sets of word `ngram`s (see `text.shingles`). Two become a candidate pair when all `rows` minima of
    one of `bands` bands agree: with probability 1 - (1 - J**rows)**bands at Jaccard similarity J (14 x 8 as FineWeb:
    0.92 at 0.8, 0.56 at 0.7). A candidate is an edge only when its exact Jaccard is at least `threshold`; 0 turns
    verification off. Of each connected cluster the first by `policy` stays (`oldest`, `newest`, `longest`,
    `lowest_id`; the last tie is always broken by id), but a document of an earlier snapshot always stays.
    Every member of a band is compared with the band's best document; those that are not its near duplicates are
    compared with the best among themselves, and so on for at most `rounds` rounds.
    Up to `edges_in_memory` edges are clustered in one task, more by rounds of large-star and small-star; the answer
    is the same. `buckets` is how the memory of earlier snapshots is cut: it and the signature parameters must stay
    the same as long as there is history. Memory per task is about one bucket's bands (1 kB per document).
    """

    ngram: int = 5
    bands: int = 14
    rows: int = 8
    threshold: float = 0.8
    policy: tuple[str, ...] = ("oldest", "lowest_id")
    seed: int = 1
    rounds: int = 8
    buckets: int = 8
    edges_in_memory: int = 4_000_000


# --- Signing --------------------------------------------------------------------------------------------------


def sign(docs: Batches, *, params: Params) -> Batches:
    """Yield id, node (rank, id and snapshot, sorting the winner first), band keys and packed shingles per document.

    Documents of fewer than `ngram` words have neither keys nor shingles, so they are nobody's near duplicate.
    """
    from pipeline_tasks.text import minhash

    family = minhash.Family(params.ngram, params.bands, params.rows, params.seed)
    last = ""
    for batch in docs:
        _check_order(batch, last)
        last = batch.column("id")[-1].as_py() if batch.num_rows else last
        keys, shingles = minhash.sign(batch.column("text"), family)
        yield _batch(id=batch.column("id"), node=_nodes(batch, params.policy), keys=keys, shingles=shingles)


def _check_order(batch: pa.RecordBatch, last: str) -> None:
    ids = [last, *batch.column("id").to_pylist()]
    for before, after in pairwise(ids):
        if not before < after:
            message = (
                f"dedup_minhash: document {after} follows {before}; run dedup_exact before, with the same `buckets`"
            )
            raise ContractError(message)


def _nodes(batch: pa.RecordBatch, policy: tuple[str, ...]) -> Any:  # noqa: ANN401 -- an Arrow array
    ranks = [_rank(batch, one) for one in policy if one != "lowest_id"]
    rank = pc.binary_join_element_wise(pa.scalar(NEW), *ranks, "") if ranks else pa.array([NEW] * batch.num_rows)
    snapshots = pc.replace_substring(batch.column("snapshot").fill_null(""), "\t", " ")
    return pc.binary_join_element_wise(rank, batch.column("id"), snapshots, "\t").cast(pa.large_string())


def _rank(batch: pa.RecordBatch, policy: str) -> Any:  # noqa: ANN401 -- an Arrow array
    """Return 14 digits per document that sort the better one first; an unknown date is the worst."""
    if policy == "longest":
        numbers = pc.subtract(_WORST, batch.column("chars"))
    else:
        digits = pc.replace_substring_regex(batch.column("crawled_at").fill_null(""), r"\D", "")
        dates = pc.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, 14), 14, "0").cast(pa.int64())
        numbers = pc.if_else(pc.equal(digits, ""), _WORST, dates if policy == "oldest" else pc.subtract(_WORST, dates))
    return pc.utf8_lpad(numbers.cast(pa.string()), 14, "0")


def spread(signed: Batches) -> Batches:
    """Yield one (key, node) row per band of each document."""
    for batch in signed:
        keys = batch.column("keys")
        yield _batch(key=pc.list_flatten(keys), node=batch.column("node").take(pc.list_parent_indices(keys)))


def keep(rows: Batches) -> Batches:
    """Yield rows as they come: what is wanted is `group`'s order."""
    yield from rows


# --- Candidates -----------------------------------------------------------------------------------------------


def link(bands: Batches, *past: Batches, turn: int, family: int) -> Batches:
    """Pair every document of a band with the band's center: a star, never a clique, never a sample.

    In turn t the center is the band's t-th document of earlier snapshots, or when those are used up the best
    of the new ones that are left. Yields member, member_node, center, center_node, key.
    """
    rows = _whole(bands)
    keys, starts, counts = np.unique(_ints(rows, "key"), return_index=True, return_counts=True)
    known = _known(past, keys, family)
    first = np.searchsorted(_ints(known, "key"), keys, side="left")
    known_left = np.searchsorted(_ints(known, "key"), keys, side="right") - first > turn
    group = np.repeat(np.arange(len(keys)), counts)
    member = known_left[group] | (np.arange(len(group)) != starts[group])
    centers = np.where(known_left, first + turn, known.num_rows + starts)
    nodes = pa.concat_tables([known.select(["node"]), rows.select(["node"])]).column("node")
    picked = np.flatnonzero(member)
    ours, theirs = nodes.take(pa.array(known.num_rows + picked)), nodes.take(pa.array(centers[group[picked]]))
    yield _batch(
        member=_part(ours, 1),
        member_node=ours,
        center=_part(theirs, 1),
        center_node=theirs,
        key=rows.column("key").take(pa.array(picked)),
    )


def _known(past: tuple[Batches, ...], keys: Positions, family: int) -> pa.Table:
    """Return the remembered (key, node) rows whose key is among `keys`, sorted."""
    wanted = pa.array(keys, pa.int64())
    found = [pa.Table.from_batches([], schema=pa.schema([("key", pa.int64()), ("node", pa.large_string())]))]
    for stream in past:
        for batch in stream:
            _check_family(batch, family)
            found.append(
                pa.Table.from_batches([batch.select(["key", "node"])]).filter(
                    pc.is_in(batch.column("key"), value_set=wanted)
                )
            )
    table = pa.concat_tables(found)
    return table.take(pc.sort_indices(table, sort_keys=[("key", "ascending"), ("node", "ascending")]))


def _check_family(batch: pa.RecordBatch, family: int) -> None:
    named = {"key", "node", "family"} <= set(batch.schema.names)
    if not named or (batch.num_rows and batch.column("family")[0].as_py() != family):
        message = (
            "dedup_minhash: an earlier snapshot was signed with another ngram, bands, rows, seed or buckets; "
            "set them as they were in the recipe, or start without history"
        )
        raise ContractError(message)


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
    from pipeline_tasks.text.lookup import Lookup

    home = Lookup(signed, "id")
    for batch in _sliced(pairs):
        found = home.rows(batch.column("member").unique())
        at = pc.index_in(batch.column("member"), value_set=found.column("id"))
        told = found.take(at)
        whole = batch.append_column("shingles", _one(told, "shingles"))
        yield whole.append_column("bands", _one(told, "keys"))


def judge(met: Batches, signed: Batches, *past: Batches, threshold: float) -> Batches:
    """Compare each member with its center, at the center's home: exact Jaccard, and how many bands they share."""
    from pipeline_tasks.text import minhash
    from pipeline_tasks.text.lookup import Lookup

    homes = [Lookup(one, "id") for one in (signed, *past)]
    for batch in _sliced(met):
        wanted = batch.column("center").unique()
        found = pa.concat_tables([home.rows(wanted).select(["id", "keys", "shingles"]) for home in homes])
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
        theirs = _one(found.take(at), "keys")
        shared = _bands(batch.column("bands"), batch.num_rows) == _bands(theirs, batch.num_rows)
        told = batch.select(["member", "member_node", "center", "center_node", "keys"])
        told = told.append_column("jaccard", pa.array(similarity, pa.float64()))
        told = told.append_column("shared", pa.array(shared.sum(axis=1), pa.int64()))
        yield told.append_column("passed", pa.array(similarity >= threshold))


def _bands(lists: Any, rows: int) -> npt.NDArray[Any]:  # noqa: ANN401 -- an Arrow array
    return np.asarray(lists.flatten().to_numpy(zero_copy_only=False)).reshape(rows, -1 if rows else 1)


def failed(judged: Batches) -> Batches:
    """Yield the bands that each refused member still has to be compared in."""
    for batch in judged:
        left = batch.filter(pc.invert(batch.column("passed")))
        keys = left.column("keys")
        yield _batch(key=pc.list_flatten(keys), node=left.column("member_node").take(pc.list_parent_indices(keys)))


def ends(judged: Batches) -> Batches:
    """Yield every verified edge from both its ends: id, node, other (a node), jaccard, shared."""
    for batch in judged:
        edges = batch.filter(batch.column("passed"))
        for one, other in (("member", "center"), ("center", "member")):
            yield _batch(
                id=edges.column(one),
                node=edges.column(f"{one}_node"),
                other=edges.column(f"{other}_node"),
                jaccard=edges.column("jaccard"),
                shared=edges.column("shared"),
            )


# --- Clusters -------------------------------------------------------------------------------------------------


def unite(_: Batches, edges: Batches) -> Batches:
    """Yield (node, other): the first node of the cluster for every node but the first, of all edges at once."""
    from pipeline_tasks.text.clusters import lowest_of_cluster

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


def labels(clusters: Batches) -> Batches:
    """Yield (id, winner) for every new document that is not the first of its cluster."""
    for batch in clusters:
        nodes, others = batch.column("node"), batch.column("other")
        lost = batch.filter(pc.and_(pc.less(others, nodes), pc.starts_with(nodes, NEW)))
        yield _batch(id=_part(lost.column("node"), 1), winner=lost.column("other"))


# --- Decision -------------------------------------------------------------------------------------------------


def best(edges: Batches) -> Batches:
    """Yield the strongest edge of each document; of equals, the one to the better document."""
    rows = _whole(edges)
    starts = _starts(rows, ("id",))
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, rows.num_rows)))
    ranked = np.lexsort((np.arange(rows.num_rows), -rows.column("jaccard").to_numpy(), group))
    yield _batch(
        **{name: _one(rows, name).take(pa.array(ranked[starts])) for name in ("id", "other", "jaccard", "shared")}
    )


def count(stars: Batches) -> Batches:
    """Yield (id, bands) for each document that still had bands to be compared in when the rounds were over."""
    ids, bands = np.unique(_whole(stars).column("member").to_numpy().astype(str), return_counts=True)
    yield _batch(id=pa.array(ids.tolist(), pa.string()), bands=pa.array(bands, pa.int64()))


def sift(
    docs: Batches, signed: Batches, lost: Batches, edges: Batches, unsettled: Batches, *, policy: tuple[str, ...]
) -> Batches:
    """Set aside every document but the winner of its cluster; append `shingles` and `unsettled_bands`."""
    from pipeline_tasks.text.lookup import Lookup

    sets, losers, strongest, left = (Lookup(one, "id") for one in (signed, lost, edges, unsettled))
    marked = 0
    for batch in docs:
        ids: Any = batch.column("id")
        sizes = pc.binary_length(sets.rows(ids).column("shingles")).combine_chunks()
        sized = replace_column(batch, "shingles", pc.divide(sizes, 8).cast(pa.int64()))
        open_bands = _by_id(left.rows(ids))
        counted = [open_bands[one]["bands"] if one in open_bands else 0 for one in ids.to_pylist()]
        measured = replace_column(sized, "unsettled_bands", pa.array(counted, pa.int64()))
        winners, proofs = _by_id(losers.rows(ids)), _by_id(strongest.rows(ids))
        marked += len(winners)
        told = [
            _evidence(winners[one]["winner"], proofs[one], policy) if one in winners else None
            for one in ids.to_pylist()
        ]
        reasons = pa.array([NEAR_DUPLICATE if one else None for one in told], pa.string())
        yield set_aside(measured, reasons, pa.array(told, pa.string()))
    if losers.finish() != marked:
        message = (
            "dedup_minhash: some duplicates are not in their bucket; run dedup_exact before, with the same `buckets`"
        )
        raise ContractError(message)


def _by_id(rows: pa.Table) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows.to_pylist()}


def _evidence(winner: str, edge: dict[str, Any], policy: tuple[str, ...]) -> str:
    """Return canonical JSON: who stays, and the document whose similarity to this one was measured."""
    _, won, snapshot = winner.split("\t")
    proof = {
        "winner": won,
        "snapshot": snapshot,
        "near": edge["other"].split("\t")[1],
        "jaccard": round(edge["jaccard"], 6),
        "bands": edge["shared"],
        "policy": list(policy),
    }
    return json.dumps(proof, sort_keys=True, separators=(",", ":"))


# --- Memory ---------------------------------------------------------------------------------------------------


def memorize(signed: Batches, lost: Batches, *, family: int) -> Batches:
    """Yield the signatures of documents that stay and have one, as later snapshots will see them."""
    from pipeline_tasks.text.lookup import Lookup

    losers = Lookup(lost, "id")
    for batch in signed:
        gone = pc.is_in(batch.column("id"), value_set=losers.rows(batch.column("id")).column("id"))
        stays = batch.filter(pc.and_(pc.invert(gone), pc.greater(pc.binary_length(batch.column("shingles")), 0)))
        known = replace_column(stays, "node", pc.utf8_replace_slice(stays.column("node"), 0, 1, PAST))
        yield replace_column(known, "family", pa.array([family] * stays.num_rows, pa.int64()))


def index(bands: Batches, *, family: int) -> Batches:
    """Yield (key, node) rows with the family they were signed by."""
    for batch in bands:
        yield replace_column(batch, "family", pa.array([family] * batch.num_rows, pa.int64()))


# --- The stage ------------------------------------------------------------------------------------------------


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Sign, link by band, verify, cluster, keep the first of each cluster, remember what stays.

    The result depends on the set of documents and of remembered documents only: not on shards, buckets, batches,
    workers or engine. Every edge is verified, so no document leaves without one other of at least `threshold`
    similarity. Where no band is left unsettled (`unsettled_bands`, measured), no two documents that stay share a band
    and are near duplicates: the better of the two was the band's center while the other was compared. Two members
    of a band neither of which was ever its center are compared in their other bands only, so a cluster can be
    smaller than the closure of all similar pairs, never larger.

    Cost: text is read twice (signing, sifting) and never shuffled; bands (14 rows per document) are shuffled once;
    shingles travel only for candidate pairs, one set per pair. History is read in order and never shuffled
    (its bands and its signatures once a round).
    """
    _check_policy(params.policy)
    family, past = family_of(params), by_snapshot(on.history, 2 * params.buckets)
    home = shards if len(shards) == params.buckets else _homed(shards, params, on)
    signed = on.map(partial(sign, params=params), home)
    edges, unsettled = _verified(signed, past, params, on)
    lost = _lost(edges, params, on)
    strongest = on.group(best, edges, by="id", order=("other",), buckets=params.buckets)
    memory = on.map(partial(memorize, family=family), signed, lost)
    bands = on.group(
        partial(index, family=family), on.map(spread, memory), by="key", order=("node",), buckets=params.buckets
    )
    on.remember(bands + memory)
    return on.map(partial(sift, policy=params.policy), home, signed, lost, strongest, unsettled)


def _homed(shards: Shards, params: Params, on: Engine) -> Shards:
    return on.group(keep, shards, by="id", order=("snapshot", "file", "offset"), buckets=params.buckets)


def _verified(signed: Shards, past: list[Shards], params: Params, on: Engine) -> tuple[Shards, Shards]:
    """Return the verified edges, and the bands that were still unsettled when the rounds were over."""
    known_bands = [one[: params.buckets] for one in past]
    known_signed = [one[params.buckets :] for one in past]
    bands = on.group(keep, on.map(spread, signed), by="key", order=("node",), buckets=params.buckets)
    edges: Shards = ()
    for turn in range(params.rounds + 1):
        stars = on.map(partial(link, turn=turn, family=family_of(params)), bands, *known_bands)
        if turn == params.rounds or (turn and not _rows(stars)):
            break
        pairs = on.group(pair, stars, by="member", order=("center", "key"), buckets=params.buckets)
        sent = on.map(attach, pairs, signed)
        met = on.group(keep, sent, by="center", order=("member",), buckets=params.buckets)
        judged = on.map(partial(judge, threshold=params.threshold), met, signed, *known_signed)
        edges += on.map(ends, judged)
        bands = on.group(keep, on.map(failed, judged), by="key", order=("node",), buckets=params.buckets)
    return edges, on.group(count, stars, by="member", order=("key",), buckets=params.buckets)


def _lost(edges: Shards, params: Params, on: Engine) -> Shards:
    """Return (id, winner) of every document that is not the first of its cluster, at home."""
    in_memory = _rows(edges) <= params.edges_in_memory
    clusters = on.map(unite, edges[:1], beside=edges) if in_memory else _stars(edges, params.buckets, on)
    return on.group(keep, on.map(labels, clusters), by="id", order=("winner",), buckets=params.buckets)


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


def _check_policy(policy: tuple[str, ...]) -> None:
    for one in policy:
        if one not in POLICIES:
            message = f"dedup_minhash: policy {one!r} is not one of {', '.join(POLICIES)}"
            raise RecipeError(message)


def family_of(params: Params) -> int:
    """Return the number that marks comparable memory: signature parameters and buckets."""
    name = f"{params.ngram} {params.bands} {params.rows} {params.seed} {params.buckets}"
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


def by_snapshot(history: Shards, each: int) -> list[Shards]:
    """Cut the memory of earlier snapshots into one run of `each` shards per snapshot."""
    if len(history) % each:
        message = (
            f"dedup_minhash: {len(history)} remembered shards cannot be {each} per snapshot; "
            "set `buckets` as it was in the earlier snapshots, or start without history"
        )
        raise ContractError(message)
    return [history[start : start + each] for start in range(0, len(history), each)]


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


def _part(nodes: Any, at: int) -> Any:  # noqa: ANN401 -- Arrow arrays
    """Return the rank (0), id (1) or snapshot (2) of nodes."""
    return pc.list_element(pc.split_pattern(nodes, "\t"), at).cast(pa.string())


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


STAGE = Stage(
    name="dedup_minhash",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, pa.field("shingles", pa.int64()), pa.field("unsettled_bands", pa.int64())]),
    version=1,
    splits=False,
    measures=("shingles", "unsettled_bands"),
    fires=(NEAR_DUPLICATE,),
    title="near duplicates out",
)
