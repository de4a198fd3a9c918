"""Writes the tokens of sequences end to end, little-endian: `uint16` if all ids fit, else `uint32`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import ContractError

DType = Literal["uint16", "uint32"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes of what was written; `tokens` does not count pads."""

    sequences: int
    length: int
    tokens: int


def dtype_for(vocab_size: int) -> DType:
    """Return the smallest type that holds every id below `vocab_size`."""
    return "uint16" if vocab_size <= 1 << 16 else "uint32"


def write_bin(sequences: Iterable[pa.RecordBatch], out: BinaryIO, dtype: DType) -> Counts:
    """Write the tokens of `sequences` (rows of `pack`, in order) to `out`; return their counts.

    ContractError if sequences differ in length or an id does not fit `dtype`: a truncated id would be another token.
    """
    rows = tokens = length = 0
    for batch in sequences:
        if not batch.num_rows:
            continue
        values = batch["tokens"].flatten().to_numpy()
        length = length or len(batch["tokens"][0])
        _check_batch(batch, values, length, dtype)
        out.write(values.astype(np.dtype(dtype).newbyteorder("<")).tobytes())
        rows += batch.num_rows
        tokens += int(batch["n_tokens"].to_numpy().sum())
    return Counts(rows, length, tokens)


def _check_batch(batch: pa.RecordBatch, values: npt.NDArray[np.int32], length: int, dtype: DType) -> None:
    lengths = np.diff(batch["tokens"].offsets.to_numpy())
    first = batch["sequence"][0].as_py()
    if (lengths != length).any():
        message = f"sequences from {first} on are not all {length} tokens long; pack them again with one length"
        raise ContractError(message)
    if len(values) and (values.min() < 0 or values.max() > np.iinfo(dtype).max):
        message = f"sequences from {first} on have ids from {values.min()} to {values.max()}, which {dtype} cannot hold"
        raise ContractError(message)
