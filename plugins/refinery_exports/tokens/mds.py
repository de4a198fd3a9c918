"""MDS, as `mosaicml-streaming` reads it: a sample per sequence, and `index.json` at the place of the export.

A sample has `input_ids` (the sequence with its pads, in the type of the dataset), `cu_seqlens` (0 and the end of each
piece of a document; pads are the last piece) and `n_tokens` (ids that are no pads). The layout is that of the
library, version 0.10 (`streaming/base/format/mds/writer.py` and `encodings.py`): a 32-bit count, 32-bit offsets of
the samples, the columns as JSON, the samples. A sample is the sizes of its columns of variable size, and its columns
by name.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.training.index import DatasetIndex, StoredFile
from refinery_exports.format import DATA, Format, Written
from refinery_exports.stretch import Stretch

_ONE_AXIS = 1 << 2
"""The first byte of an array of one axis; its lowest bits are the type of the lengths that follow."""

_HASH = "sha256"

_MOST_BYTES = (1 << 32) - 1

READING = """
from streaming import StreamingDataset

dataset = StreamingDataset(local=".", batch_size=1, shuffle=False)  # of S3: remote="s3://...", local=a cache folder
ids, borders = dataset[0]["input_ids"], dataset[0]["cu_seqlens"]
"""


def write(stretch: Stretch, folder: Path, stem: str) -> None:
    """Write `<stem>.mds`."""
    samples = list(_samples(stretch))
    config = json.dumps(_config(stretch.ids.dtype.name, stretch.ids.shape[1]), sort_keys=True).encode()
    sizes = np.array([sum(map(len, sample)) for sample in samples])
    head = 4 + 4 * (len(samples) + 1) + len(config)
    offsets = np.concatenate([[head], head + np.cumsum(sizes)])
    if offsets[-1] > _MOST_BYTES:
        message = (
            f"{stem}.mds would have {offsets[-1]} bytes, and MDS counts to {_MOST_BYTES}; take a smaller --shard-size"
        )
        raise RecipeError(message)
    with (folder / f"{stem}.mds").open("wb") as out:
        out.write(np.array([len(samples)], "<u4").tobytes() + offsets.astype("<u4").tobytes() + config)
        out.writelines(part for sample in samples for part in sample)


def _samples(stretch: Stretch) -> Iterator[tuple[bytes, ...]]:
    """Yield the parts of each sample."""
    borders, offsets, tokens = stretch.borders.astype("<i4"), stretch.offsets.tolist(), stretch.tokens.tolist()
    ids = np.ascontiguousarray(stretch.ids)
    for row in range(len(stretch)):
        own = borders[offsets[row] : offsets[row + 1]]
        shape = _shape(len(own))
        size = (len(shape) + own.nbytes).to_bytes(4, "little")
        yield size, shape, own.tobytes(), ids[row].tobytes(), tokens[row].to_bytes(8, "little")


def _shape(length: int) -> bytes:
    """Return the shape of an array of one axis, its length in the smallest of three types."""
    code, size = next((code, size) for code, size in enumerate((1, 2, 4)) if length < 1 << (8 * size))
    return bytes([_ONE_AXIS | code]) + length.to_bytes(size, "little")


def _config(dtype: str, length: int) -> dict[str, Any]:
    """Return what every shard says of itself."""
    return {
        "column_encodings": ["ndarray:int32", f"ndarray:{dtype}:{length}", "int"],
        "column_names": ["cu_seqlens", "input_ids", "n_tokens"],
        "column_sizes": [None, np.dtype(dtype).itemsize * length, 8],
        "compression": None,
        "format": "mds",
        "hashes": [_HASH],
        "size_limit": None,
        "version": 2,
    }


def index(dataset: DatasetIndex, shards: Sequence[Written]) -> Mapping[str, bytes]:
    """Return `index.json`, which names the shards of the export."""
    config = _config(dataset.dtype, dataset.length)
    entries = [{**config, **_entry(shard)} for shard in shards]
    return {"index.json": json.dumps({"shards": entries, "version": 2}, sort_keys=True).encode()}


def _entry(shard: Written) -> dict[str, Any]:
    file = next(file for file in shard.files if file.path.startswith(f"{DATA}/"))
    return {"raw_data": _raw(file), "samples": shard.counts["sequences"], "zip_data": None}


def _raw(file: StoredFile) -> dict[str, Any]:
    return {"basename": file.path, "bytes": file.bytes, "hashes": {_HASH: file.sha256}}


FORMAT = Format(write=write, shard_bytes=64 << 20, reading=READING, index=index)
