"""Reject every document but the winner of its cluster, with the proof of each removal."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_tasks.near_duplicates.id_order import out_of_place
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.near_duplicates.tables import OPEN_BANDS
from pipeline_tasks.stage import Batches, reject, replace_column
from pipeline_tasks.text.base.tables import batch_of, rows_by, run_starts, whole_runs
from pipeline_tasks.text.near.ranking import deciding_preference


def count_unsettled(unsettled: Batches) -> Batches:
    """Yield `OPEN_BANDS` of `UNSETTLED` sorted by id."""
    for rows in whole_runs(unsettled, "id"):  # a document has a row of each band at most
        starts = run_starts(rows.column("id"))
        bands = np.diff(np.append(starts, rows.num_rows))
        yield batch_of(OPEN_BANDS, id=rows.column("id").take(pa.array(starts)), bands=pa.array(bands, pa.int64()))


def reject_losers(
    documents: Batches,
    outlines: Batches,
    losers: Batches,
    strongest: Batches,
    unsettled: Batches,
    *,
    likeness: Likeness,
) -> Batches:
    """Reject every document but the winner of its cluster; append sizes and bands that are left unsettled.

    Their columns are those of `likeness.measures`.
    """
    from pipeline_tasks.text.base.lookup import Lookup

    sizes, lost, edges, open_bands = (Lookup(batches, "id") for batches in (outlines, losers, strongest, unsettled))
    (size, unsettled_count), rejected = likeness.measures, 0
    for batch in documents:
        ids: Any = batch.column("id")
        sized = replace_column(batch, size, sizes.rows(ids).column("size").combine_chunks())
        open_ = rows_by(open_bands.rows(ids), "id")
        counts = [open_[id_]["bands"] if id_ in open_ else 0 for id_ in ids.to_pylist()]
        measured = replace_column(sized, unsettled_count, pa.array(counts, pa.int64()))
        defeats, proofs = rows_by(lost.rows(ids), "id"), rows_by(edges.rows(ids), "id")
        rejected += len(defeats)
        evidence = [
            _evidence(defeats[id_], proofs[id_], likeness) if id_ in defeats else None for id_ in ids.to_pylist()
        ]
        reasons = pa.array([likeness.rejected if proof else None for proof in evidence], pa.string())
        yield reject(measured, reasons, pa.array(evidence, pa.string()))
    if lost.finish() != rejected:
        raise out_of_place(likeness.stage, "some duplicates are not in their bucket")


def _evidence(defeat: Mapping[str, Any], edge: Mapping[str, Any], likeness: Likeness) -> str:
    """Return canonical JSON: the kept document, the deciding preference, and the document compared with this one."""
    winner, loser = defeat["winner"], defeat["node"]
    order = (*(column for column, _ in likeness.prefer), *likeness.policy)
    proof = {
        "winner": winner["id"],
        "snapshot": winner["snapshot"],
        "near": edge["near"],
        likeness.similarity: round(edge["similarity"], 6),
        "bands": edge["shared_bands"],
        "policy": list(order),
        "by": deciding_preference(winner["rank"], loser["rank"], order),
    }
    return json.dumps(proof, sort_keys=True, separators=(",", ":"))
