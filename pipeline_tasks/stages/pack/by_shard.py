"""Packs each shard by itself: by best fit, or end to end with the tail of each shard padded or dropped."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.stage import Batches, reject
from pipeline_tasks.stages.pack.sequences import PIECE, PLACED, TAIL, Params, copies_of

Numbers = npt.NDArray[np.int64]

BATCH_ROWS = 2048
"""Sequences that come in one batch."""


class Layout(NamedTuple):
    """The pieces of a shard by sequence and place: document, first token in it, size, sequence, place in that."""

    documents: Numbers
    doc_starts: Numbers
    sizes: Numbers
    sequences: Numbers
    starts: Numbers
    number: int


def pack_shard(docs: Batches, *, params: Params) -> Batches:
    """Yield the shard's sequences, numbered from 0, by `params.method`.

    Sequences have no tokens: these stay with the documents. With `tail: drop`, all rows have a column `reason`, and a
    last sequence that is not full is rejected for it.
    """
    shard = _read(docs)
    layout = (_fitted if params.method == "best_fit" else _stretched)(shard.lengths, params.length)
    yield _judged(pa.RecordBatch.from_pylist([], schema=PLACED), params)
    for first in range(0, layout.number, BATCH_ROWS):
        yield _judged(_sequences(shard, layout, range(first, min(first + BATCH_ROWS, layout.number))), params)


def _judged(sequences: pa.RecordBatch, params: Params) -> pa.RecordBatch:
    """Return sequences; where tails are dropped, with the reason of each that is not full."""
    if params.tail != "drop":
        return sequences
    full = np.asarray(sequences["n_tokens"]) == params.length
    return reject(sequences, pa.array(np.full(len(full), TAIL, object), pa.string(), mask=full))


class Shard(NamedTuple):
    """A shard's documents: how many tokens each has, ids, and numbers of copies."""

    lengths: Numbers
    ids: pa.Array
    copies: npt.NDArray[np.int32]


def _read(docs: Batches) -> Shard:
    lengths, ids, copies = [], [], []
    for batch in docs:
        lengths.append(np.asarray(batch["n_tokens"], np.int64))
        ids.append(batch["id"])
        copies.append(copies_of(batch))
    return Shard(np.concatenate(lengths), pa.concat_arrays(ids), np.concatenate(copies))


def _stretched(lengths: Numbers, length: int) -> Layout:
    """Return documents end to end, cut at every multiple of `length`: only the last sequence may have room."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.unique(np.concatenate([(ends - lengths)[lengths > 0], np.arange(0, total, length)]))
    documents = np.searchsorted(ends, cuts, side="right")
    doc_starts = cuts - (ends - lengths)[documents]
    return Layout(
        documents, doc_starts, np.diff(cuts, append=total), cuts // length, cuts % length, -(-total // length)
    )


def _fitted(lengths: Numbers, length: int) -> Layout:
    """Return the pieces of documents in as few sequences as best-fit decreasing finds.

    A document of at most `length` tokens is in one sequence. A longer one is cut into sequences of its own and a rest.
    Pieces of a sequence come in the order of their documents; sequences come in an order that depends on no length.
    """
    from pipeline_tasks.text.packing.best_fit import cut, fit, scatter

    documents, doc_starts, sizes = cut(lengths, length)
    bins, count = fit(sizes, length)
    sequences = scatter(count)[bins]
    order = np.argsort(sequences, kind="stable")  # pieces of a sequence stay in the order of their documents
    documents, doc_starts, sizes, sequences = (column[order] for column in (documents, doc_starts, sizes, sequences))
    ends = np.cumsum(sizes)
    firsts = np.searchsorted(sequences, np.arange(count))
    starts = ends - sizes - (ends - sizes)[firsts][sequences]
    return Layout(documents, doc_starts, sizes, sequences, starts, count)


def _sequences(shard: Shard, layout: Layout, numbers: range) -> pa.RecordBatch:
    """Return sequences of a layout as rows of `PLACED`."""
    begin, end = np.searchsorted(layout.sequences, [numbers.start, numbers.stop])
    documents, doc_starts, sizes, sequences, starts = (column[begin:end] for column in layout[:5])
    pieces = pa.StructArray.from_arrays(
        [
            shard.ids.take(pa.array(documents)),
            pa.array(doc_starts),
            pa.array(starts.astype(np.int32)),
            pa.array(sizes.astype(np.int32)),
            pa.array(shard.copies[documents]),
        ],
        fields=list(PIECE),
    )
    borders = np.searchsorted(sequences, np.arange(numbers.start, numbers.stop + 1)).astype(np.int32)
    columns = [
        pa.array(np.arange(numbers.start, numbers.stop)),
        pa.array(np.add.reduceat(sizes, borders[:-1])),
        pa.ListArray.from_arrays(pa.array(borders), pieces, type=PLACED.field("pieces").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PLACED)
