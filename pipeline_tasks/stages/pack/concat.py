"""Packs all shards end to end: documents are split at sequence borders, and only the last sequence is padded."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import ContractError
from pipeline_tasks.stage import Batches, Engine, Shards
from pipeline_tasks.stages.pack.sequences import PIECE, SEQUENCE, Params, copies_of

_STRETCH = SEQUENCE.append(pa.field("at", pa.int32()))  # first token of the stretch, counted in its sequence
_COUNT = pa.schema([pa.field("first", pa.string()), pa.field("copy", pa.int32()), pa.field("tokens", pa.int64())])


@dataclass(slots=True)
class Tail:
    """The tokens of a shard after the last sequence border, and their pieces."""

    position: int  # of the first token, in the stream of the whole run
    tokens: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]  # first token of each piece, counted in `tokens`
    doc_starts: npt.NDArray[np.int64]
    ids: pa.Array
    copies: npt.NDArray[np.int32]


# --- Splitting one shard --------------------------------------------------------------------------------------


def split_tokens(docs: Batches, position: int, length: int) -> Batches:
    """Yield the shard's tokens as `_STRETCH` rows, split at every multiple of `length` of the whole run's stream.

    The first and the last row may be shorter than `length`: their sequences continue in neighboring shards.
    """
    tail = Tail(position, np.empty(0, np.int32), *_no_starts(), pa.array([], pa.string()), np.empty(0, np.int32))
    for batch in docs:
        tail = _extended(tail, batch)
        offset = tail.position % length
        whole = (offset + len(tail.tokens)) // length * length - offset
        if whole > 0:
            yield _stretches(tail, whole, length)
            tail = _rest(tail, whole)
    yield _stretches(tail, len(tail.tokens), length)


def _no_starts() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return np.empty(0, np.int64), np.empty(0, np.int64)


def _extended(tail: Tail, batch: pa.RecordBatch) -> Tail:
    """Return `tail` with a batch of documents appended; documents without tokens have no piece."""
    offsets = batch["tokens"].offsets.to_numpy().astype(np.int64)
    tokens = batch["tokens"].values.to_numpy()[offsets[0] : offsets[-1]]
    filled = np.diff(offsets) > 0
    starts = (offsets[:-1] - offsets[0])[filled] + len(tail.tokens)
    ids = batch["id"].filter(pa.array(filled))
    return Tail(
        tail.position,
        np.concatenate([tail.tokens, tokens]),
        np.concatenate([tail.starts, starts]),
        np.concatenate([tail.doc_starts, np.zeros(len(starts), np.int64)]),
        pa.concat_arrays([tail.ids, ids]),
        np.concatenate([tail.copies, copies_of(batch)[filled]]),
    )


def _rest(tail: Tail, done: int) -> Tail:
    """Return `tail` without its first `done` tokens; a document that is split there continues."""
    if done == len(tail.tokens):
        return Tail(tail.position + done, tail.tokens[:0], *_no_starts(), tail.ids.slice(0, 0), tail.copies[:0])
    first = int(np.searchsorted(tail.starts, done, side="right")) - 1
    starts, doc_starts = tail.starts[first:] - done, tail.doc_starts[first:].copy()
    doc_starts[0] -= starts[0]
    starts[0] = 0
    return Tail(
        tail.position + done, tail.tokens[done:].copy(), starts, doc_starts, tail.ids.slice(first), tail.copies[first:]
    )


def _stretches(tail: Tail, stop: int, length: int) -> pa.RecordBatch:
    """Return the first `stop` tokens of `tail` as rows split at sequence borders, each with its pieces."""
    offset = tail.position % length
    rows = np.unique(np.concatenate([[0], np.arange(-offset % length, stop, length)])) if stop else _no_starts()[0]
    cuts = np.unique(np.concatenate([rows, tail.starts[tail.starts < stop]]))
    source = np.searchsorted(tail.starts, cuts, side="right") - 1
    pieces = pa.StructArray.from_arrays(
        [
            tail.ids.take(pa.array(source)),
            pa.array(tail.doc_starts[source] + cuts - tail.starts[source], pa.int64()),
            pa.array(((tail.position + cuts) % length).astype(np.int32)),
            pa.array(np.diff(cuts, append=stop).astype(np.int32)),
            pa.array(tail.copies[source]),
        ],
        fields=list(PIECE),
    )
    borders = np.append(rows, stop).astype(np.int32)
    piece_offsets = np.append(np.searchsorted(cuts, rows), len(cuts)).astype(np.int32)
    columns = [
        pa.array((tail.position + rows) // length, pa.int64()),
        pa.ListArray.from_arrays(pa.array(borders), pa.array(tail.tokens[:stop])),
        pa.array(np.diff(borders).astype(np.int64)),
        pa.ListArray.from_arrays(pa.array(piece_offsets), pieces, type=SEQUENCE.field("pieces").type),
        pa.array(((tail.position + rows) % length).astype(np.int32)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_STRETCH)


# --- The four kernels ------------------------------------------------------------------------------------------


def count(docs: Batches) -> Batches:
    """Yield one row: the shard's first document (null if it has none), which copy of it that is, and the tokens."""
    first, copy, tokens = None, 0, 0
    for batch in docs:
        if first is None and batch.num_rows:
            first, copy = batch["id"][0].as_py(), int(copies_of(batch)[0])
        offsets = batch["tokens"].offsets
        tokens += offsets[-1].as_py() - offsets[0].as_py()
    yield pa.RecordBatch.from_pylist([{"first": first, "copy": copy, "tokens": tokens}], schema=_COUNT)


def border_stretches(docs: Batches, own: Batches, counts: Batches, *, params: Params) -> Batches:
    """Yield a row without tokens at the shard's position, then its stretches of sequences that cross its borders."""
    position = _position(own, counts)
    marker = {"sequence": position // params.length, "tokens": [], "n_tokens": 0, "pieces": []}
    yield pa.RecordBatch.from_pylist([{**marker, "at": position % params.length}], schema=_STRETCH)
    for batch in split_tokens(docs, position, params.length):
        partial_rows = np.asarray(batch["n_tokens"]) < params.length
        if partial_rows.any():
            yield batch.filter(pa.array(partial_rows))


def _position(own: Batches, counts: Batches) -> int:
    """Return the position of the shard in the stream: the tokens of all shards before it."""
    [row] = _count_rows(own)
    rows = _count_rows(counts)
    first, firsts = _first(row), [_first(row) for row in rows]
    if row["first"] is None:  # a shard without documents has no position
        return 0
    if firsts.count(first) != 1:
        message = (
            f"pack: document {first[0]} is in several shards; ids must be unique: run dedup_exact before this stage"
        )
        raise ContractError(message)
    return sum(row["tokens"] for row in rows[: firsts.index(first)])


def _first(row: dict[str, Any]) -> tuple[str, int]:
    return row["first"], row["copy"]


def _count_rows(batches: Batches) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def join_stretches(stretches: Batches, *, params: Params) -> Batches:
    """Yield the sequences that cross shards, joined from their sorted stretches; the last one is padded."""
    yield pa.RecordBatch.from_pylist([], schema=SEQUENCE)
    for sequence, rows in groupby(_rows(stretches), key=lambda row: row["sequence"]):
        whole = _joined(sequence, list(rows), params)
        if whole["n_tokens"]:
            yield pa.RecordBatch.from_pylist([whole], schema=SEQUENCE)


def _rows(stretches: Batches) -> Iterator[dict[str, Any]]:
    for batch in stretches:
        for number in range(batch.num_rows):
            row = batch.slice(number, 1)
            yield {**row.drop_columns(["tokens"]).to_pylist()[0], "tokens": row["tokens"].flatten().to_numpy()}


def _joined(sequence: int, rows: list[dict[str, Any]], params: Params) -> dict[str, Any]:
    tokens = np.concatenate([row["tokens"] for row in rows])
    expected = 0
    for row in rows:
        if row["n_tokens"] and row["at"] != expected:
            message = (
                f"pack: sequence {sequence} has a hole at {expected}; this is a defect, report it with the manifest"
            )
            raise ContractError(message)
        expected += row["n_tokens"]
    return {
        "sequence": sequence,
        "tokens": np.pad(tokens, (0, params.length - len(tokens)), constant_values=params.pad_id),
        "n_tokens": len(tokens),
        "pieces": [piece for row in rows for piece in row["pieces"]],
    }


def write_sequences(docs: Batches, stretches: Batches, joined: Batches, *, params: Params) -> Batches:
    """Yield every sequence that begins in this shard, in order: those inside it, then the one that crosses its end."""
    marker = next(stretches)
    position = marker["sequence"][0].as_py() * params.length + marker["at"][0].as_py()
    end = position
    for batch in split_tokens(docs, position, params.length):
        end += int(np.asarray(batch["n_tokens"]).sum())
        yield batch.filter(pa.array(np.asarray(batch["n_tokens"]) == params.length)).drop_columns(["at"])
    for batch in joined:
        begins = np.asarray(batch["sequence"]) * params.length
        yield batch.filter(pa.array((position <= begins) & (begins < end)))


def pack_concat(shards: Shards, params: Params, on: Engine) -> Shards:
    """Compute the position of each shard, join the sequences that cross shards, and write the sequences of each shard.

    A sequence belongs to the shard in which it begins, so shards in order are sequences in order.
    """
    counts = on.map(count, shards)
    stretches = on.map(partial(border_stretches, params=params), shards, counts, broadcast=counts)
    joined = on.group(
        partial(join_stretches, params=params), stretches, by="sequence", order=("at", "n_tokens"), buckets=1
    )
    return on.map(partial(write_sequences, params=params), shards, stretches, broadcast=joined)
