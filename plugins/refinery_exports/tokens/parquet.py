"""Parquet, as `datasets` reads it: a row per sequence.

`input_ids` are its ids with pads, `cu_seqlens` is 0 and the end of each piece of a document (pads are the last piece),
and `n_tokens` counts the ids that are no pads. Row groups have about 128 MB of ids.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery_exports.format import Format
from refinery_exports.stretch import Stretch

SCHEMA = pa.schema(
    [
        pa.field("input_ids", pa.list_(pa.int32())),
        pa.field("cu_seqlens", pa.list_(pa.int32())),
        pa.field("n_tokens", pa.int32()),
    ]
)

GROUP_BYTES = 128_000_000
"""Bytes of ids of a row group, as 32-bit numbers; they are what a reader has in memory at least."""

READING = """
from datasets import load_dataset

dataset = load_dataset("parquet", data_files="data/*.parquet", split="train")
ids, borders = dataset[0]["input_ids"], dataset[0]["cu_seqlens"]
"""


def write(stretch: Stretch, folder: Path, stem: str) -> None:
    """Write `<stem>.parquet`."""
    rows = max(1, GROUP_BYTES // (4 * stretch.ids.shape[1]))
    borders, offsets = stretch.borders, stretch.offsets
    with pq.ParquetWriter(
        folder / f"{stem}.parquet", SCHEMA, compression="zstd", use_dictionary=False, write_page_checksum=True
    ) as writer:
        for start in range(0, len(stretch), rows):
            stop = min(start + rows, len(stretch))
            ids = stretch.ids[start:stop].astype(np.int32)
            own = offsets[start : stop + 1]
            columns = [
                _lists(np.arange(stop - start + 1) * ids.shape[1], ids.reshape(-1)),
                _lists(own - own[0], borders[own[0] : own[-1]]),
                pa.array(stretch.tokens[start:stop].astype(np.int32)),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), row_group_size=rows)


def _lists(offsets: np.ndarray, values: np.ndarray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))


FORMAT = Format(
    write=write,
    shard_bytes=256 << 20,
    reading=READING,
    pattern="*.parquet",
    dtypes={"uint16": "int32", "uint32": "int32"},
)
