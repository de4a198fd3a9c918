"""Megatron-LM's and NeMo's indexed datasets: `.bin` and `.idx` per shard.

Each sequence is a document, pads included: Megatron's `GPTDataset` permutes documents and cuts their stream into
samples, so a document per piece would undo the packing (`megatron/core/datasets/gpt_dataset.py`: an indexed dataset
"should be split by sequence"). With `--seq-length` as the dataset's length a sample is a sequence, and the first id
of the next one as the last label. Where pieces end is in the lineage.
"""

from pathlib import Path

import numpy as np

from pipeline_tasks.publish.exports.megatron_index import megatron_index_bytes
from pipeline_tasks.publish.packed import Counts, DType
from pipeline_tasks.publish.trainers.format import Format
from pipeline_tasks.publish.trainers.stretch import Stretch

READING = """
from megatron.core.datasets.indexed_dataset import IndexedDataset

dataset = IndexedDataset("data/shard-00000")
ids = dataset[0]  # a view of a map that is closed with the dataset
"""


def write(stretch: Stretch, folder: Path, stem: str) -> None:
    """Write `<stem>.bin` and `<stem>.idx`."""
    tokens = int(stretch.tokens.sum())
    counts = Counts(len(stretch), stretch.ids.shape[1], tokens, stretch.ids.size - tokens)
    dtype: DType = "uint16" if stretch.ids.itemsize == np.uint16().itemsize else "uint32"
    (folder / f"{stem}.bin").write_bytes(np.ascontiguousarray(stretch.ids).data)
    (folder / f"{stem}.idx").write_bytes(megatron_index_bytes(counts, dtype))


FORMAT = Format(write=write, shard_bytes=1 << 30, reading=READING)
