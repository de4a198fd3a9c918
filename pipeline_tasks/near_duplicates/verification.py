"""Compare candidate pairs exactly, and turn those that are similar enough into edges between new documents."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.near_duplicates.history import check_version
from pipeline_tasks.near_duplicates.id_order import out_of_place
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.near_duplicates.tables import (
    DISTINCT_PAIRS,
    EDGES,
    MEMBER_IDS,
    MEMBER_SIGNATURES,
    PROPOSALS,
    RESULTS,
    SIGNED_PAIRS,
    VERIFIED_PAIRS,
)
from pipeline_tasks.stage import Batches, HistoryReader
from pipeline_tasks.text.base.tables import batch_of, combined, sliced, whole_numbers
from pipeline_tasks.text.near.ranking import NODE, is_known, node_ids

if TYPE_CHECKING:
    from pipeline_tasks.text.base.lookup import Lookup

pc: Any = pyarrow.compute

PAIRS_IN_MEMORY = 256
"""Pairs whose shingles or vectors are in memory at once: about a megabyte per million characters of text."""


def new_members(members: Batches) -> Batches:
    """Yield the `MEMBER_IDS` of `MEMBERS`."""
    for batch in members:
        new = batch.filter(pc.invert(is_known(batch.column("node"))))
        yield batch_of(MEMBER_IDS, id=node_ids(new.column("node")).unique())


def member_signatures(signatures: Batches, members: Batches) -> Batches:
    """Yield the `MEMBER_SIGNATURES` of members: of few documents, and each round of pairs reads these alone."""
    from pipeline_tasks.text.base.lookup import Lookup

    wanted = Lookup(members, "id")
    for batch in signatures:
        ids = combined(wanted.rows(batch.column("id")).column("id"))
        yield batch.select(MEMBER_SIGNATURES.names).filter(pc.is_in(batch.column("id"), value_set=ids))


def attach_members(pairs: Batches, signatures: Batches) -> Batches:
    """Yield `SIGNED_PAIRS` of `DISTINCT_PAIRS`, in the bucket of the member."""
    from pipeline_tasks.text.base.lookup import Lookup

    here = Lookup(signatures, "id")
    for batch in sliced(pairs, PAIRS_IN_MEMORY):
        rows = here.rows(batch.column("member").unique())
        signed = rows.take(pc.index_in(batch.column("member"), value_set=combined(rows.column("id"))))
        columns = {name: batch.column(name) for name in DISTINCT_PAIRS.names}
        yield batch_of(SIGNED_PAIRS, **columns, compared=signed.column("compared"), bands=signed.column("keys"))


def verify_pairs(pairs: Batches, signatures: Batches, *history: HistoryReader, likeness: Likeness) -> Batches:
    """Yield `VERIFIED_PAIRS` of `SIGNED_PAIRS`, in the bucket of the center: exact similarity, and bands in common.

    ContractError if history has signatures of another version than this snapshot's.
    """
    from pipeline_tasks.text.base.lookup import Lookup

    here = Lookup(_comparable(signatures, history, likeness), "id")
    for batch in sliced(pairs, PAIRS_IN_MEMORY):
        centers = _centers(batch, here, history, likeness)
        at = pc.index_in(batch.column("center"), value_set=combined(centers.column("id")))
        if at.null_count:
            missing = batch.column("center").filter(pc.is_null(at))[0]
            raise out_of_place(likeness.stage, f"document {missing} is not in its bucket")
        similarity = _similarity(batch.column("compared"), combined(centers.column("compared")), at, likeness)
        bands, center_bands = (
            _matrix(keys, batch.num_rows) for keys in (batch.column("bands"), combined(centers.column("keys")).take(at))
        )
        yield batch_of(
            VERIFIED_PAIRS,
            **{name: batch.column(name) for name in DISTINCT_PAIRS.names},
            label=centers.column("winner").take(at),
            similarity=pa.array(similarity, pa.float64()),
            shared_bands=pa.array((bands == center_bands).sum(axis=1), pa.int64()),
            passed=pa.array(similarity >= likeness.threshold),
        )


def _comparable(signatures: Batches, history: tuple[HistoryReader, ...], likeness: Likeness) -> Batches:
    """Yield signatures; ContractError if one is of another version than those that history has."""
    checked = False
    for batch in signatures:
        if batch.num_rows and not checked:
            for reader in history:
                check_version(reader, likeness, batch.column("history_version")[0].as_py())
            checked = True
        yield batch


def _centers(batch: pa.RecordBatch, here: "Lookup", history: tuple[HistoryReader, ...], likeness: Likeness) -> pa.Table:
    """Return id, keys, winner and what is compared of the centers; a new center has no winner yet."""
    centers, names = batch.column("center"), ["id", "keys", "compared", "winner"]
    stored = [likeness.compared if name == "compared" else name for name in names]
    new = here.rows(centers.unique())
    new = new.append_column(pa.field("winner", NODE), pa.nulls(new.num_rows, NODE))
    # A new center is not in history: a lookup of its id would read a page for nothing.
    known = centers.filter(is_known(batch.column("center_node"))).unique()
    return pa.concat_tables(
        [new.select(names), *(reader.rows(known).select(stored).rename_columns(names) for reader in history)]
    )


def _similarity(ours: pa.Array, theirs: pa.Array, at: pa.Array, likeness: Likeness) -> npt.NDArray[np.float64]:
    """Return the exact similarity of each of `ours` and row `at` of `theirs`, of which many may be the same."""
    if likeness.similarity == "cosine":
        from pipeline_tasks.text.near import vectors

        return vectors.cosine(ours, theirs.take(at))
    from pipeline_tasks.text.near import minhash

    similarity = minhash.jaccard(ours, np.arange(len(ours)), theirs, whole_numbers(at.cast(pa.int64())))
    return _containment(similarity, ours, theirs.take(at)) if likeness.similarity == "containment" else similarity


def _containment(jaccard: npt.NDArray[np.float64], shingles: pa.Array, others: pa.Array) -> npt.NDArray[np.float64]:
    """Return the share of the smaller set that is in the larger: the overlap is J (a + b) / (1 + J), a whole number."""
    from pipeline_tasks.text.near.shingle_sets import sizes as sizes_of

    sizes = [sizes_of(side) for side in (shingles, others)]
    overlap = np.rint(jaccard * (sizes[0] + sizes[1]) / (1 + jaccard))
    return np.asarray(overlap / np.maximum(np.minimum(*sizes), 1), np.float64)


def _matrix(keys: pa.ListArray, rows: int) -> npt.NDArray[Any]:
    """Return lists of equal length as a matrix with one list per row."""
    return np.asarray(keys.flatten().to_numpy(zero_copy_only=False)).reshape(rows, -1 if rows else 1)


def pair_results(verified: Batches) -> Batches:
    """Yield `RESULTS` of `VERIFIED_PAIRS`."""
    for batch in verified:
        results = batch.select(["similarity", "passed"]).take(pc.list_parent_indices(batch.column("keys")))
        columns = {name: results.column(name) for name in results.schema.names}
        proposals = {one: pc.list_flatten(batch.column(name)) for name, one in PROPOSALS.items()}
        yield batch_of(RESULTS, **proposals, **columns)


def new_edges(verified: Batches) -> Batches:
    """Yield the `EDGES` between new documents."""
    for batch in verified:
        edges = batch.filter(pc.and_(batch.column("passed"), pc.is_null(batch.column("label"))))
        for side, other in (("member", "center"), ("center", "member")):
            yield batch_of(
                EDGES,
                id=edges.column(side),
                node=edges.column(f"{side}_node"),
                other=edges.column(f"{other}_node"),
                near=edges.column(f"{other}_node"),
                via=edges.column(side),
                similarity=edges.column("similarity"),
                shared_bands=edges.column("shared_bands"),
            )
