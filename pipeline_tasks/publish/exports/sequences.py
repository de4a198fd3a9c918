"""Reads the sequences of a packed shard, with tokens from the documents that they were packed from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError
from pipeline_tasks.stage import Batches, Shard, Shards
from pipeline_tasks.store.reading import read_shards

pc: Any = pyarrow.compute

BATCH_TOKENS = 1 << 22
"""Tokens of the sequences that come in one batch: 16 MiB of them."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Packing:
    """A packed shard, the documents that it was packed from, and the params of packing.

    With `carried`, its sequences may go on in the next shards: `documents` are all shards from that on in which the
    first sequence begins. Else they are of the shard that it was packed from.
    """

    root: str
    packed: Shard
    documents: Shards
    length: int
    pad_id: int
    carried: bool

    def batches(self) -> Batches:
        """Yield the sequences in their order: rows of `stages.pack.sequences.SEQUENCE`.

        In memory are the tokens of all documents, or with `carried` those of one batch. A shard of a release that
        stored tokens is read as it is.
        """
        where, tokens = f"{self.root}/{self.packed.path}", None
        stream = _Stream(read_shards(self.root, self.documents, ["id", "copy", "tokens"]))
        for batch in read_shards(self.root, [self.packed]):
            if "tokens" in batch.schema.names:
                yield batch
                continue
            if not self.carried:
                tokens = tokens or _read_tokens(self.root, self.documents[:1])
            rows = max(BATCH_TOKENS // self.length, 1)
            for first in range(0, max(batch.num_rows, 1), rows):
                part = batch.slice(first, rows)
                yield self._laid_out(part, tokens, where) if tokens else self._cut(part, stream, where)

    def _cut(self, batch: pa.RecordBatch, stream: "_Stream", where: str) -> pa.RecordBatch:
        """Return sequences with the next tokens of the stream, of which only the last may have pads."""
        pieces = batch["pieces"].flatten()
        values = stream.take(pieces, int(np.asarray(batch["n_tokens"]).sum()), where)
        missing = batch.num_rows * self.length - len(values)
        return self._with_tokens(batch, np.pad(values, (0, missing), constant_values=self.pad_id))

    def _with_tokens(self, batch: pa.RecordBatch, values: npt.NDArray[np.int32]) -> pa.RecordBatch:
        ends = pa.array(np.arange(batch.num_rows + 1, dtype=np.int32) * self.length)
        return batch.add_column(1, "tokens", pa.ListArray.from_arrays(ends, pa.array(values)))

    def _laid_out(self, batch: pa.RecordBatch, tokens: "_Tokens", where: str) -> pa.RecordBatch:
        """Return sequences with the tokens of their pieces, each at its place."""
        from pipeline_tasks.text.packing.best_fit import lay_out

        pieces = batch["pieces"].flatten()
        starts, sizes, doc_starts = (
            np.asarray(pieces.field(name), np.int64) for name in ("start", "length", "doc_start")
        )
        rows = np.repeat(np.arange(batch.num_rows), np.diff(batch["pieces"].offsets.to_numpy()))
        begins = tokens.begins(keys_of(pieces.field("id"), pieces.field("copy")), where) + doc_starts
        values = np.full(batch.num_rows * self.length, self.pad_id, np.int32)
        lay_out(tokens.values, begins, sizes, rows * self.length + starts, values)
        return self._with_tokens(batch, values)


class _Stream:
    """The tokens of documents end to end, in the order of packing, of which a caller takes what comes next."""

    def __init__(self, documents: Batches) -> None:
        self._documents = documents
        self._values = np.empty(0, np.int32)  # tokens that nobody took
        self._keys = pa.array([], pa.string())  # documents of which nobody took the first token
        self._starts = np.empty(0, np.int64)  # their first tokens, counted in `_values`
        self._begun = False

    def take(self, pieces: pa.StructArray, tokens: int, where: str) -> npt.NDArray[np.int32]:
        """Return the next tokens, which are those of `pieces`; the first pieces say where the stream begins.

        ContractError if the documents are not those of the pieces, in their order.
        """
        keys, doc_starts = keys_of(pieces.field("id"), pieces.field("copy")), np.asarray(pieces.field("doc_start"))
        if len(keys) and not self._begun:
            self._begin(keys[0].as_py(), int(doc_starts[0]), where)
        lengths = np.asarray(pieces.field("length"), np.int64)
        new, starts = keys.filter(pa.array(doc_starts == 0)), (np.cumsum(lengths) - lengths)[doc_starts == 0]
        while len(self._values) < tokens or len(self._keys) < len(new):
            self._read(keys[-1].as_py(), where)
        same = np.asarray(pc.equal(new, self._keys[: len(new)])) & (starts == self._starts[: len(new)])
        if not same.all():
            raise not_packed(where, _document(new[int(np.argmin(same))].as_py()))
        taken, self._values = self._values[:tokens], self._values[tokens:]
        self._keys, self._starts = self._keys[len(new) :], self._starts[len(new) :] - tokens
        return taken

    def _begin(self, key: str, doc_start: int, where: str) -> None:
        """Leave out what is before a token of a document, which is in a sequence of an earlier shard."""
        while (at := pc.index(self._keys, key).as_py()) < 0:
            self._read(key, where)
        start = int(self._starts[at]) + doc_start
        at += doc_start > 0
        self._values, self._keys, self._starts = self._values[start:], self._keys[at:], self._starts[at:] - start
        self._begun = True

    def _read(self, missing: str, where: str) -> None:
        """Read the next batch of documents; those without tokens have no piece."""
        batch = next(self._documents, None)
        if batch is None:
            raise not_packed(where, _document(missing))
        values, keys, lengths = _columns(batch)
        filled = lengths > 0
        starts = (np.cumsum(lengths) - lengths)[filled] + len(self._values)
        self._values = np.concatenate([self._values, values])
        self._keys = pa.concat_arrays([self._keys, keys.filter(pa.array(filled))])
        self._starts = np.concatenate([self._starts, starts])


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of documents, end to end, the key of each document, and where it begins."""

    values: npt.NDArray[np.int32]
    keys: pa.Array
    starts: Numbers

    def begins(self, keys: pa.Array, where: str) -> Numbers:
        """Return where the documents of these keys begin; ContractError for one that is not there."""
        at = pc.index_in(keys, self.keys)
        if at.null_count:
            raise not_packed(where, _document(keys[pc.index(pc.is_null(at), True).as_py()].as_py()))
        begins: Numbers = self.starts[at.to_numpy()]
        return begins


def not_packed(where: str, document: str) -> ContractError:
    """Return the error for a document that packed sequences have and the documents behind them have not."""
    message = (
        f"{where}: document {document} is not among the documents in the order of packing; "
        "remove the folders of pack and shuffle, and build again"
    )
    return ContractError(message)


def _document(key: str) -> str:
    return key.partition(":")[0]


def _read_tokens(root: str, documents: Shards) -> _Tokens:
    values, keys, lengths = zip(
        *(_columns(batch) for batch in read_shards(root, documents, ["id", "copy", "tokens"])), strict=True
    )
    ends = np.cumsum(np.concatenate(lengths), dtype=np.int64)
    return _Tokens(np.concatenate(values), pa.concat_arrays(keys), np.concatenate([[0], ends]))


def _columns(batch: pa.RecordBatch) -> tuple[npt.NDArray[np.int32], pa.Array, Numbers]:
    """Return the tokens of a batch of documents end to end, the key of each document, and how many tokens it has."""
    offsets = batch["tokens"].offsets.to_numpy().astype(np.int64)
    values = batch["tokens"].values.to_numpy()[offsets[0] : offsets[-1]]
    copies = batch["copy"] if "copy" in batch.schema.names else pa.array(np.zeros(batch.num_rows, np.int32))
    return values, keys_of(batch["id"], copies), np.diff(offsets)


def keys_of(ids: pa.Array | pa.ChunkedArray, copies: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the id and the copy of each document as one text."""
    return pc.binary_join_element_wise(ids.cast(pa.string()), copies.cast(pa.string()), ":")
