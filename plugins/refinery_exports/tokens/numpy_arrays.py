"""Flat arrays of NumPy, as OLMo-core reads those of dolma: raw ids, and a table of where documents are.

`<shard>.npy` is a memory map of the ids of all sequences end to end, pads included, in the type of the dataset; in
spite of its name it has no header. `<shard>.csv.gz` has a line per piece of a document without a heading: `start`,
`end`, `id`, `src` and `loc`, as `MemmapMetadata` in `python/dolma/tokenizer/data_types.py` of dolma;
`iter_document_indices` in `src/olmo_core/data/utils.py` of OLMo-core reads the first two. `src` is the snapshot and
landed file, `loc` the offset in there. No line has pads.
"""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from refinery_exports.format import Format
from refinery_exports.stretch import Stretch

pc: Any = pyarrow.compute

GZIP_LEVEL = 6

READING = """
import numpy

shard = numpy.memmap("data/shard-00000.npy", "{dtype}", "r").reshape(-1, {length})
documents = numpy.loadtxt("data/shard-00000.csv.gz", int, delimiter=",", usecols=(0, 1), ndmin=2)
ids, borders = shard[0], documents[documents[:, 0] < {length}]
"""


def write(stretch: Stretch, folder: Path, stem: str) -> None:
    """Write `<stem>.npy` and `<stem>.csv.gz`."""
    (folder / f"{stem}.npy").write_bytes(np.ascontiguousarray(stretch.ids).data)
    (folder / f"{stem}.csv.gz").write_bytes(gzip.compress(_documents(stretch), GZIP_LEVEL, mtime=0))


def _documents(stretch: Stretch) -> bytes:
    """Return the lines of all pieces."""
    lineage, length = stretch.lineage, stretch.ids.shape[1]
    starts = lineage["sequence"].to_numpy() * length + lineage["start"].to_numpy()
    table = pa.table(
        {
            "start": starts,
            "end": starts + lineage["length"].to_numpy(),
            "id": lineage["id"],
            "src": pc.binary_join_element_wise(lineage["snapshot"], lineage["file"], "/"),
            "loc": lineage["offset"],
        }
    )
    out = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, out, pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed"))
    return bytes(out.getvalue())


FORMAT = Format(write=write, shard_bytes=1 << 30, reading=READING)
