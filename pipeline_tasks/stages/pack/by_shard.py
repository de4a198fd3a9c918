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
    documents = read_documents(docs)
    layout = (_fitted if params.method == "best_fit" else stretched)(documents.lengths, params.length)
    for batch in sequences(documents, layout):
        yield _judged(batch, params)


def _judged(batch: pa.RecordBatch, params: Params) -> pa.RecordBatch:
    """Return sequences; where tails are dropped, with the reason of each that is not full."""
    if params.tail != "drop":
        return batch
    full = np.asarray(batch["n_tokens"]) == params.length
    return reject(batch, pa.array(np.full(len(full), TAIL, object), pa.string(), mask=full))


class PackedDocuments(NamedTuple):
    """Documents in the order of packing: how many tokens each has, ids, and numbers of copies."""

    lengths: Numbers
    ids: pa.Array
    copies: npt.NDArray[np.int32]


def read_documents(docs: Batches) -> PackedDocuments:
    """Return the documents of a shard, without their tokens."""
    lengths, ids, copies = [], [], []
    for batch in docs:
        lengths.append(np.asarray(batch["n_tokens"], np.int64))
        ids.append(batch["id"])
        copies.append(copies_of(batch))
    return PackedDocuments(np.concatenate(lengths), pa.concat_arrays(ids), np.concatenate(copies))


def stretched(lengths: Numbers, length: int, start: int = 0, stop: int | None = None) -> Layout:
    """Return documents end to end, from token `start` to `stop`, cut after every `length` tokens.

    Only the last sequence may have room.
    """
    ends = np.cumsum(lengths)
    stop = (int(ends[-1]) if len(ends) else 0) if stop is None else stop
    begins = (ends - lengths)[lengths > 0]
    cuts = np.unique(np.concatenate([begins[(begins >= start) & (begins < stop)], np.arange(start, stop, length)]))
    documents = np.searchsorted(ends, cuts, side="right")
    doc_starts = cuts - (ends - lengths)[documents]
    at = cuts - start
    return Layout(
        documents, doc_starts, np.diff(cuts, append=stop), at // length, at % length, -(-(stop - start) // length)
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


def sequences(documents: PackedDocuments, layout: Layout, first: int = 0) -> Batches:
    """Yield the sequences of a layout, numbered from `first`, as rows of `PLACED`; at least one batch."""
    yield pa.RecordBatch.from_pylist([], schema=PLACED)
    for begin in range(0, layout.number, BATCH_ROWS):
        yield _rows(documents, layout, range(begin, min(begin + BATCH_ROWS, layout.number)), first)


def _rows(documents: PackedDocuments, layout: Layout, numbers: range, first: int) -> pa.RecordBatch:
    """Return some sequences of a layout as rows of `PLACED`."""
    begin, end = np.searchsorted(layout.sequences, [numbers.start, numbers.stop])
    sources, doc_starts, sizes, sequence, starts = (column[begin:end] for column in layout[:5])
    pieces = pa.StructArray.from_arrays(
        [
            documents.ids.take(pa.array(sources)),
            pa.array(doc_starts),
            pa.array(starts.astype(np.int32)),
            pa.array(sizes.astype(np.int32)),
            pa.array(documents.copies[sources]),
        ],
        fields=list(PIECE),
    )
    borders = np.searchsorted(sequence, np.arange(numbers.start, numbers.stop + 1)).astype(np.int32)
    columns = [
        pa.array(np.arange(numbers.start, numbers.stop) + first),
        pa.array(np.add.reduceat(sizes, borders[:-1])),
        pa.ListArray.from_arrays(pa.array(borders), pieces, type=PLACED.field("pieces").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PLACED)
