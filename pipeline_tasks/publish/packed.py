"""Opens exported tokens, to train on them or to find a token's document."""

import json
import mmap
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import ContractError

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

    def sequence_of(self, position: int) -> int:
        """Return the sequence that has token `position` of the whole stream; IndexError if there is no such token."""
        if not 0 <= position < self.tokens:
            message = f"token {position}: there are {self.tokens}, numbered from 0"
            raise IndexError(message)
        return position // self.length


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
        sequence = self.counts.sequence_of(position)
        return sequence, piece_of(position, self.counts, lineage)


def piece_of(position: int, counts: Counts, lineage: pa.Table) -> dict[str, Any]:
    """Return the lineage row of the piece that has token `position`; ContractError if `lineage` has none."""
    sequence, start = divmod(position, counts.length)
    numbers = lineage["sequence"].to_numpy() * counts.length + lineage["start"].to_numpy()
    at = int(np.searchsorted(numbers, position, side="right")) - 1
    rows: list[dict[str, Any]] = lineage.slice(max(at, 0), 1).to_pylist()
    for row in rows:
        if row["sequence"] == sequence and row["start"] <= start < row["start"] + row["length"]:
            return row
    message = f"token {position} has no piece in this lineage; give the lineage.parquet of the same version"
    raise ContractError(message)


def read_index(index: bytes) -> tuple[Counts, np.dtype[Any], str]:
    """Return the counts, the type and the tokenizer's digest of a `.bin` from its JSON index."""
    try:
        facts = json.loads(index)
        counts = Counts(*(facts[name] for name in ("sequences", "length", "tokens", "pads")))
        return counts, np.dtype(facts["dtype"]).newbyteorder("<"), str(facts["tokenizer"])
    except (ValueError, TypeError, KeyError) as error:
        message = f"this is not an index of packed tokens ({error!r}); give the .json of the same folder as the .bin"
        raise ContractError(message) from error


def read_packed(index: bytes, data: Data) -> Packed:
    """Open a `.bin`, given as bytes, a memory map or an array, by its JSON index.

    ContractError if the index is not one, or the data has another size.
    """
    counts, dtype, tokenizer = read_index(index)
    size, wanted = np.frombuffer(data, np.uint8).size, counts.sequences * counts.length * dtype.itemsize
    if size != wanted:
        message = f"the data has {size} bytes and its index promises {wanted}; fetch it again"
        raise ContractError(message)
    return Packed(counts, np.frombuffer(data, dtype).reshape(counts.sequences, counts.length), tokenizer)
