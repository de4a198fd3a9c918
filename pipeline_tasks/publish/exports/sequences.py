"""Reads packed sequences with their tokens, which those of best-fit packing take from the documents behind them."""

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
    """Packed shards, the shard of documents that each was packed from, and the params of packing."""

    root: str
    packed: Shards
    documents: Shards
    length: int
    pad_id: int

    def batches(self) -> Batches:
        """Yield the sequences in their order: rows of `stages.pack.sequences.SEQUENCE`.

        Of packed shards without tokens, the tokens of the documents of one are in memory.
        """
        for at, shard in enumerate(self.packed):
            yield from self._of_shard(shard, self.documents[at : at + 1])

    def _of_shard(self, shard: Shard, documents: Shards) -> Batches:
        tokens: _Tokens | None = None
        for batch in read_shards(self.root, [shard]):
            if "tokens" in batch.schema.names:
                yield batch
                continue
            tokens = tokens or _read_tokens(self.root, documents)
            rows = max(BATCH_TOKENS // self.length, 1)
            for first in range(0, max(batch.num_rows, 1), rows):
                yield self._laid_out(batch.slice(first, rows), tokens, f"{self.root}/{shard.path}")

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
        ends = pa.array(np.arange(batch.num_rows + 1, dtype=np.int32) * self.length)
        return batch.add_column(1, "tokens", pa.ListArray.from_arrays(ends, pa.array(values)))


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
            missing = keys[pc.index(pc.is_null(at), True).as_py()].as_py().partition(":")[0]
            raise not_packed(where, missing)
        begins: Numbers = self.starts[at.to_numpy()]
        return begins


def not_packed(where: str, document: str) -> ContractError:
    """Return the error for a document that packed sequences have and the documents behind them have not."""
    message = (
        f"{where}: document {document} is not among the documents in the order of packing; "
        "remove the folders of pack and shuffle, and build again"
    )
    return ContractError(message)


def _read_tokens(root: str, documents: Shards) -> _Tokens:
    values, keys, lengths = [], [], []
    for batch in read_shards(root, documents, ["id", "copy", "tokens"]):
        offsets = batch["tokens"].offsets.to_numpy()
        values.append(batch["tokens"].values.to_numpy()[offsets[0] : offsets[-1]])
        lengths.append(np.diff(offsets))
        copies = batch["copy"] if "copy" in batch.schema.names else pa.array(np.zeros(batch.num_rows, np.int32))
        keys.append(keys_of(batch["id"], copies))
    ends = np.cumsum(np.concatenate(lengths), dtype=np.int64)
    return _Tokens(np.concatenate(values), pa.concat_arrays(keys), np.concatenate([[0], ends]))


def keys_of(ids: Any, copies: Any) -> Any:  # noqa: ANN401 -- Arrow arrays, chunked or not
    """Return the id and the copy of each document as one text."""
    return pc.binary_join_element_wise(ids.cast(pa.string()), copies.cast(pa.string()), ":")
