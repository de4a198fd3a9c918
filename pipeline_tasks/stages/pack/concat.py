"""Packs all shards end to end: documents are split at sequence borders, and only the last sequence is padded."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_tasks.errors import ContractError
from pipeline_tasks.stage import Batches, Engine, Shards
from pipeline_tasks.stages.pack.by_shard import PackedDocuments, read_documents, sequences, stretched
from pipeline_tasks.stages.pack.sequences import Params
from pipeline_tasks.text.base.tables import gathered

COLUMNS = ("id", "copy", "n_tokens")
"""Columns of documents that are read: their tokens stay where they are."""

_HEAD = pa.struct([pa.field("id", pa.string()), pa.field("copy", pa.int32()), pa.field("n_tokens", pa.int64())])
_COUNT = pa.schema([pa.field("tokens", pa.int64()), pa.field("head", pa.list_(_HEAD))])


def count(docs: Batches, *, params: Params) -> Batches:
    """Yield one row: the shard's tokens, and the documents at its beginning that a sequence of `length` can reach."""
    documents = read_documents(docs)
    ends = np.cumsum(documents.lengths)
    reached = int(np.searchsorted(ends, params.length)) + 1
    head = pa.StructArray.from_arrays(
        [documents.ids[:reached], pa.array(documents.copies[:reached]), pa.array(documents.lengths[:reached])],
        fields=list(_HEAD),
    )
    tokens = pa.array([int(ends[-1]) if len(ends) else 0], pa.int64())
    rows = pa.ListArray.from_arrays(pa.array([0, len(head)], pa.int32()), head, type=_COUNT.field("head").type)
    yield pa.RecordBatch.from_arrays([tokens, rows], schema=_COUNT)


def pack_documents(docs: Batches, own: Batches, counts: Batches, *, params: Params) -> Batches:
    """Yield the sequences that begin in this shard, in order; the last may end with documents of later shards."""
    documents = read_documents(docs)
    before, after = _around(own, counts)
    position = sum(before)
    total = int(documents.lengths.sum())
    skipped = -position % params.length  # tokens at the beginning that are of a sequence of an earlier shard
    stop = total
    if skipped < total:
        documents = _continued(documents, after, -(position + total) % params.length)
        stop = int(documents.lengths.sum())
    layout = stretched(documents.lengths, params.length, min(skipped, stop), stop)
    yield from sequences(documents, layout, first=-(-position // params.length))


def _around(own: Batches, counts: Batches) -> tuple[list[int], list[pa.RecordBatch]]:
    """Return the tokens of each shard before this one, and the rows of those after it.

    ContractError if several shards begin with the same document: then none can tell which of them it is.
    """
    [row], rows = _rows(own), _rows(counts)
    first = _first(row)
    if first is None:  # a shard without documents has no place, and needs none
        return [], []
    places = [at for at, row in enumerate(rows) if _first(row) == first]
    if len(places) != 1:
        message = (
            f"pack: document {first[0]} is in several shards; ids must be unique: run dedup_exact before this stage"
        )
        raise ContractError(message)
    return [row["tokens"][0].as_py() for row in rows[: places[0]]], rows[places[0] + 1 :]


def _rows(counts: Batches) -> list[pa.RecordBatch]:
    return [batch.slice(at, 1) for batch in counts for at in range(batch.num_rows)]


def _first(row: pa.RecordBatch) -> tuple[str, int] | None:
    """Return the first document of a shard, and which copy of it that is."""
    head: Any = row["head"].flatten()
    return (head.field("id")[0].as_py(), head.field("copy")[0].as_py()) if len(head) else None


def _continued(documents: PackedDocuments, after: Sequence[pa.RecordBatch], missing: int) -> PackedDocuments:
    """Return documents with those of later shards that have the next `missing` tokens, or all that there are."""
    parts = [documents]
    for row in after:
        if not missing:
            break
        head: Any = row["head"].flatten()
        lengths = np.asarray(head.field("n_tokens"), np.int64)
        taken = np.clip(missing - (np.cumsum(lengths) - lengths), 0, lengths)
        missing -= int(taken.sum())
        parts.append(PackedDocuments(taken, head.field("id"), np.asarray(head.field("copy"), np.int32)))
    return PackedDocuments(
        np.concatenate([part.lengths for part in parts]),
        pa.concat_arrays([part.ids for part in parts]),
        np.concatenate([part.copies for part in parts]),
    )


def pack_concat(shards: Shards, params: Params, on: Engine) -> Shards:
    """Count the tokens of each shard, then lay out the sequences that begin in it.

    A sequence belongs to the shard in which it begins, so shards in order are sequences in order.
    """
    counts = on.map(partial(count, params=params), shards, reads=COLUMNS)
    whole = on.map(gathered, counts[:1], broadcast=counts)
    return on.map(partial(pack_documents, params=params), shards, counts, broadcast=whole, reads=COLUMNS)
