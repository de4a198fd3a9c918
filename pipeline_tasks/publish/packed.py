"""Opens a version's exported tokens and lineage, to train on them or to trace a token."""

import json
import mmap
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.store import storage

DType = Literal["uint16", "uint32"]

Data = bytes | memoryview | mmap.mmap | npt.NDArray[Any]
"""The bytes of a `.bin`: read, memory-mapped or in an array."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes of a `.bin`; `tokens` does not count the pads of the last sequence."""

    sequences: int
    length: int
    tokens: int
    pads: int


@dataclass(frozen=True, slots=True)
class Packed:
    """Sequences to train on: `tokens` is (sequences, length), a view of the `.bin`'s bytes without a copy."""

    counts: Counts
    tokens: npt.NDArray[np.unsignedinteger[Any]]
    tokenizer: str

    def __len__(self) -> int:
        """Return how many sequences there are."""
        return self.counts.sequences

    def sequence(self, at: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return sequence `at` without pads: `length` ids, fewer only for the last; IndexError past it."""
        if not 0 <= at < len(self):
            message = f"sequence {at}: there are {len(self)}, numbered from 0"
            raise IndexError(message)
        row: npt.NDArray[np.unsignedinteger[Any]] = self.tokens[at]
        return row[: self.counts.length - self.counts.pads] if at == len(self) - 1 else row

    def locate(self, position: int, lineage: pa.Table) -> tuple[int, dict[str, Any]]:
        """Return the sequence, and the lineage row of the piece, that have token `position` of the whole stream."""
        if not 0 <= position < self.counts.tokens:
            message = f"token {position}: there are {self.counts.tokens}, numbered from 0"
            raise IndexError(message)
        sequence, start = divmod(position, self.counts.length)
        numbers = lineage["sequence"].to_numpy() * self.counts.length + lineage["start"].to_numpy()
        at = int(np.searchsorted(numbers, position, side="right")) - 1
        row: dict[str, Any] = lineage.slice(max(at, 0), 1).to_pylist()[0]
        if row["sequence"] != sequence or not row["start"] <= start < row["start"] + row["length"]:
            message = f"token {position} has no piece in this lineage; give the lineage.parquet of the same version"
            raise ContractError(message)
        return sequence, row


def read_packed(index: bytes, data: Data) -> Packed:
    """Open a `.bin`, given as bytes, a memory map or an array, by its JSON index.

    ContractError if the index is not one, or the data has another size.
    """
    try:
        facts = json.loads(index)
        counts = Counts(*(facts[name] for name in ("sequences", "length", "tokens", "pads")))
        dtype, tokenizer = np.dtype(facts["dtype"]).newbyteorder("<"), str(facts["tokenizer"])
    except (ValueError, TypeError, KeyError) as error:
        message = f"this is not an index of packed tokens ({error!r}); give the .json of the same folder as the .bin"
        raise ContractError(message) from error
    size, wanted = np.frombuffer(data, np.uint8).size, counts.sequences * counts.length * dtype.itemsize
    if size != wanted:
        message = f"the data has {size} bytes and its index promises {wanted}; fetch it again"
        raise ContractError(message)
    return Packed(counts, np.frombuffer(data, dtype).reshape(counts.sequences, counts.length), tokenizer)


def read_published(root: str, version: Version) -> tuple[Packed, pa.Table]:
    """Open a version's tokens and lineage."""
    store = storage.connect(root)
    tokens = read_packed(store.read(f"{version.prefix}/tokens.json"), store.read(f"{version.prefix}/tokens.bin"))
    return tokens, pq.read_table(pa.BufferReader(store.read(f"{version.prefix}/lineage.parquet")))
