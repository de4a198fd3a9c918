"""Exports the tokens of all sequences end to end, with a JSON index and Megatron's index.

`tokens.bin` is little-endian, `uint16` if every id of the vocabulary fits and `uint32` if not; sequence i is tokens
[i * length, (i + 1) * length). `tokens.json` gives the type, the length, the counts and the tokenizer's digest.
`tokens.idx` gives the same in Megatron's layout, so that Megatron-LM and NeMo train from the same `tokens.bin`.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import ContractError
from pipeline_tasks.publish.exports.megatron_index import megatron_index_bytes
from pipeline_tasks.publish.exports.source import Source
from pipeline_tasks.publish.packed import Counts, DType


def write(source: Source, folder: Path) -> None:
    """Write `tokens.bin`, `tokens.json` and `tokens.idx`."""
    dtype = dtype_for(source.tokenizer.vocab_size)
    with (folder / "tokens.bin").open("wb") as out:
        counts = write_bin(source.sequences(), out, dtype)
    (folder / "tokens.json").write_bytes(index_bytes(counts, dtype, source.tokenizer.digest))
    (folder / "tokens.idx").write_bytes(megatron_index_bytes(counts, dtype))


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
    return Counts(rows, length, tokens, rows * length - tokens)


def _check_batch(batch: pa.RecordBatch, values: npt.NDArray[np.int32], length: int, dtype: DType) -> None:
    lengths = np.diff(batch["tokens"].offsets.to_numpy())
    first = batch["sequence"][0].as_py()
    if (lengths != length).any():
        message = f"sequences from {first} on are not all {length} tokens long; pack them again with one length"
        raise ContractError(message)
    if len(values) and (values.min() < 0 or values.max() > np.iinfo(dtype).max):
        message = f"sequences from {first} on have ids from {values.min()} to {values.max()}, which {dtype} cannot hold"
        raise ContractError(message)


def index_bytes(counts: Counts, dtype: DType, tokenizer: str) -> bytes:
    """Return the JSON index of a `.bin`; `tokenizer` is the digest of the vocabulary's definition."""
    facts = {**asdict(counts), "byte_order": "little", "dtype": dtype, "format": 1, "tokenizer": tokenizer}
    return json.dumps(facts, sort_keys=True, indent=1).encode() + b"\n"
