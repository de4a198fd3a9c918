"""Megatron-LM's and NeMo's indexed datasets: `.bin` and `.idx` per shard.

Each sequence is a document, pads included: Megatron's `GPTDataset` permutes documents and cuts their stream into
samples, so a document per piece would undo the packing (`megatron/core/datasets/gpt_dataset.py`: an indexed dataset
"should be split by sequence"). With `--seq-length` as the dataset's length a sample is a sequence, and the first id
of the next one as the last label. Where pieces end is in the lineage.
"""

import struct
from pathlib import Path

import numpy as np

from pipeline_tasks.publish.exports.tokens import DType
from refinery_exports.format import Format
from refinery_exports.stretch import Stretch

READING = """
from megatron.core.datasets.indexed_dataset import IndexedDataset

dataset = IndexedDataset("data/shard-00000")
ids = dataset[0]  # a view of a map that is closed with the dataset
"""


_MAGIC = b"MMIDIDX\x00\x00"
_CODES = {"uint16": 8, "uint32": 4}
"""Megatron-LM `indexed_dataset.DType`: 8 is uint16, 4 is int32, which ids below 2**31 share with uint32."""


def write(stretch: Stretch, folder: Path, stem: str) -> None:
    """Write `<stem>.bin` and `<stem>.idx`."""
    dtype: DType = "uint16" if stretch.ids.itemsize == np.uint16().itemsize else "uint32"
    (folder / f"{stem}.bin").write_bytes(np.ascontiguousarray(stretch.ids).data)
    (folder / f"{stem}.idx").write_bytes(index_bytes(len(stretch), stretch.ids.shape[1], dtype))


def index_bytes(sequences: int, length: int, dtype: DType) -> bytes:
    """Return the `.idx` that Megatron-LM's `IndexedDataset` reads with a `.bin`: each sequence is a document.

    Magic, version 1, type code, counts; then int32 lengths, int64 byte offsets, int64 document borders
    (`megatron/core/datasets/indexed_dataset.py`, `_IndexWriter`).
    """
    size = np.dtype(dtype).itemsize * length
    header = struct.pack("<QBQQ", 1, _CODES[dtype], sequences, sequences + 1)
    lengths = np.full(sequences, length, "<i4")
    offsets = np.arange(sequences, dtype="<i8") * size
    borders = np.arange(sequences + 1, dtype="<i8")
    return b"".join([_MAGIC, header, lengths.tobytes(), offsets.tobytes(), borders.tobytes()])


FORMAT = Format(write=write, shard_bytes=1 << 30, reading=READING, dtypes={"uint32": "int32"})
