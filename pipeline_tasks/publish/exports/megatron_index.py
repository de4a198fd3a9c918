"""Writes the index with which Megatron-LM and NeMo read packed sequences from a `.bin`."""

import struct

import numpy as np

from pipeline_tasks.publish.packed import Counts, DType

_MEGATRON_MAGIC = b"MMIDIDX\x00\x00"
_MEGATRON_CODES = {"uint16": 8, "uint32": 4}
"""Megatron-LM `indexed_dataset.DType`: 8 is uint16, 4 is int32, which ids below 2**31 share with uint32."""


def megatron_index_bytes(counts: Counts, dtype: DType) -> bytes:
    """Return the `.idx` that Megatron-LM's `IndexedDataset` reads with a `.bin`: each sequence is a document.

    Magic, version 1, type code, counts; then int32 lengths, int64 byte offsets, int64 document borders
    (`megatron/core/datasets/indexed_dataset.py`, `_IndexWriter`).
    """
    size = np.dtype(dtype).itemsize * counts.length
    header = struct.pack("<QBQQ", 1, _MEGATRON_CODES[dtype], counts.sequences, counts.sequences + 1)
    lengths = np.full(counts.sequences, counts.length, "<i4")
    offsets = np.arange(counts.sequences, dtype="<i8") * size
    borders = np.arange(counts.sequences + 1, dtype="<i8")
    return b"".join([_MEGATRON_MAGIC, header, lengths.tobytes(), offsets.tobytes(), borders.tobytes()])
