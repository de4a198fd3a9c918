"""From signatures to the documents that are kept: find and verify pairs, connect them with history, keep the first."""

from functools import partial

from pipeline_tasks.near_duplicates.candidates import (
    candidate_pairs,
    distinct_pairs,
    match_bands,
    unsettled_bands,
)
from pipeline_tasks.near_duplicates.components import (
    connect_components,
    large_star,
    resolve_winners,
    small_star,
    strongest_edges,
)
from pipeline_tasks.near_duplicates.evidence import count_unsettled, reject_losers
from pipeline_tasks.near_duplicates.history import (
    current_winners,
    distinct_winners,
    edges_to_winners,
    known_edges,
    links_of_moves,
    lost_bands,
    moves_of_winners,
    next_winners,
    save_bands,
    save_signatures,
    save_superseded,
)
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.near_duplicates.signing import outline_signatures, spread_bands
from pipeline_tasks.near_duplicates.tables import LINKS, MEMBER_SIGNATURES, OUTLINES, as_grouped
from pipeline_tasks.near_duplicates.verification import (
    attach_members,
    member_signatures,
    new_edges,
    new_members,
    pair_results,
    verify_pairs,
)
from pipeline_tasks.stage import Engine, Kernel, Layer, Shards
from pipeline_tasks.text.base.tables import unchanged

CONNECTED = 1 << 17
"""Edges that one task connects at most, however many params allow: each takes 0.6 KB of its memory, 80 MB in all."""


def keep_first(documents: Shards, sign: Kernel, reads: tuple[str, ...], likeness: Likeness, on: Engine) -> Shards:
    """Sign documents, connect those that are alike with those of history, keep the first of each cluster, save all.

    `documents` are in buckets by `id`; `sign` gives their `tables.SIGNATURES` from the columns that it `reads`.

    The graph is all pairs of documents, of this and of all earlier snapshots, that share a band and whose exact
    similarity is at least `threshold`; clusters are its connected components, and each keeps its first document by
    policy. Where no band is left unsettled (`unsettled_bands`, profiled) clusters are exactly those, so what k
    snapshots keep, less what later ones supersede, is what one snapshot of everything would keep, in whatever order
    they come. Nothing depends on shards, buckets, batches, workers or engine.
    docs/decisions/0009 works the cases through.

    Cost: documents are read twice (to sign, to reject) and never shuffled; bands are shuffled once; what is compared
    travels only for candidate pairs, once per pair. Of history only the pages are read that can have a band
    of a new document, a document to compare it with, or a cluster that it joins.
    """
    signatures = on.map(sign, documents, reads=reads)
    outlines = on.map(outline_signatures, signatures, reads=tuple(OUTLINES.names))
    bands = _grouped(on.map(spread_bands, outlines), likeness, on, by="key", order=("node",))
    edges, unsettled = _edges(bands, signatures, likeness, on)
    losers, superseded, strongest = _losers(edges, likeness, on)
    lost = _grouped(on.map(lost_bands, outlines, losers), likeness, on, by="key", order=("node",))
    on.save_history("bands", bands, lost, kernel=partial(save_bands, likeness=likeness))
    on.save_history("signatures", signatures, losers, kernel=partial(save_signatures, likeness=likeness))
    on.save_history("superseded", superseded, strongest, kernel=save_superseded)
    rejecting, tables = partial(reject_losers, likeness=likeness), (outlines, losers, strongest, unsettled)
    return on.map(rejecting, documents, *tables, layer=Layer(reads=("id",), stores=likeness.measures))


def _grouped(rows: Shards, likeness: Likeness, on: Engine, *, by: str, order: tuple[str, ...]) -> Shards:
    return on.group(as_grouped, rows, by=by, order=order, buckets=likeness.buckets)


def _edges(bands: Shards, signatures: Shards, likeness: Likeness, on: Engine) -> tuple[Shards, Shards]:
    """Return the edges to new and known documents, and the bands of each document that are left unsettled."""
    matching = partial(match_bands, likeness=likeness)
    members = on.map(matching, bands, *on.history("bands"))
    ids = _grouped(on.map(new_members, members), likeness, on, by="id", order=())
    signed = on.map(member_signatures, signatures, ids, reads=tuple(MEMBER_SIGNATURES.names))
    results: list[Shards] = []
    verified: Shards = ()
    for turn in range(likeness.rounds):
        pairs = on.map(partial(candidate_pairs, turn=turn, likeness=likeness), members, *results)
        if turn and not _rows(pairs):
            break
        verified_now = _verified(pairs, signed, likeness, on)
        verified += verified_now
        results.append(
            _grouped(on.map(pair_results, verified_now), likeness, on, by="key", order=("member_at", "center_at"))
        )
    unsettled = on.map(partial(unsettled_bands, likeness=likeness), members, *results)
    counts = on.group(count_unsettled, unsettled, by="id", order=("key",), buckets=likeness.buckets)
    return on.map(new_edges, verified) + _edges_to_history(verified, likeness, on), counts


def _verified(pairs: Shards, signed: Shards, likeness: Likeness, on: Engine) -> Shards:
    """Return the pairs of one round with their exact similarity: shingles travel from the member to the center."""
    distinct = on.group(distinct_pairs, pairs, by="member", order=("center", "key"), buckets=likeness.buckets)
    attached = _grouped(on.map(attach_members, distinct, signed), likeness, on, by="center", order=("member",))
    return on.map(partial(verify_pairs, likeness=likeness), attached, signed, *on.history("signatures"))


def _edges_to_history(verified: Shards, likeness: Likeness, on: Engine) -> Shards:
    """Return the edges to known documents as edges to the winners that their clusters have today."""
    superseded = on.history("superseded")
    if not superseded:
        return ()
    order = ("member_node", "center_node")
    edges = _grouped(on.map(known_edges, verified), likeness, on, by="id", order=order)
    moves: Shards = ()
    followed = [on.map(partial(distinct_winners, of="label"), edges)]
    while True:
        following = partial(moves_of_winners, followed=len(followed) - 1)
        moved = on.map(following, followed[-1], *followed[:-1], *superseded)
        if not _rows(moved):
            break
        moves += moved
        winners = on.map(next_winners, moved)
        followed.append(on.group(distinct_winners, winners, by="id", order=("node",), buckets=likeness.buckets))
    if not moves:
        return on.map(edges_to_winners, edges)
    links = _clusters(on.map(links_of_moves, moves), likeness, on)
    return on.map(edges_to_winners, edges, _grouped(on.map(current_winners, links), likeness, on, by="id", order=()))


def _losers(edges: Shards, likeness: Likeness, on: Engine) -> tuple[Shards, Shards, Shards]:
    """Return the new documents that lose, the earlier winners that do, and the strongest edge of each, by id."""
    links = _clusters(edges, likeness, on)
    new, known = (
        _grouped(on.map(partial(resolve_winners, known=known), links), likeness, on, by="id", order=())
        for known in (False, True)
    )
    order = ("other", "near", "via")
    return new, known, on.group(strongest_edges, edges, by="id", order=order, buckets=likeness.buckets)


def _clusters(edges: Shards, likeness: Likeness, on: Engine) -> Shards:
    """Return the links of every node but the first of each cluster to that first node."""
    if _rows(edges) <= min(likeness.edges_in_memory, CONNECTED):
        return on.map(connect_components, edges[:1], broadcast=edges)
    return _stars(on.map(unchanged, edges, reads=tuple(LINKS.names)), likeness.buckets, on)


def _stars(edges: Shards, buckets: int, on: Engine) -> Shards:
    """Turn every cluster into a star around its first node, by large-star and small-star until nothing changes.

    Kiveris et al., Connected Components in MapReduce and Beyond (SoCC 2014): both steps keep the clusters as they
    are, and only a forest of stars stays as it is. What a step writes depends on the set of edges only, so equal
    digests prove the fixpoint; there is no limit of rounds that could end it early.
    """
    while True:
        large = on.group(large_star, edges, by="id", order=("other",), buckets=buckets)
        small = on.group(small_star, large, by="id", order=("other",), buckets=buckets)
        if [shard.digest for shard in small] == [shard.digest for shard in edges]:
            return small
        edges = small


def _rows(shards: Shards) -> int:
    return sum(shard.rows for shard in shards)
