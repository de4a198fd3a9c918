"""Cuts the sequences of a dataset into shards of a chosen size, and writes one with its lineage."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq

from pipeline_tasks.errors import RecipeError
from refinery_exports.exporting import Shards
from refinery_exports.format import DATA, LINEAGE, Format
from refinery_exports.formats import format_of
from refinery_exports.stretch import Dataset, read_stretch

GROUP_ROWS = 1 << 16
"""Pieces of a row group of a lineage."""


Span = tuple[int, tuple[int, int]]
"""The number of a shard, and its sequences [first, stop)."""


def shards_of_tokens(dataset: Dataset, name: str, shard_bytes: int) -> Shards:
    """Return the shards of a dataset in the format of this name; RecipeError if it is empty."""
    if not dataset.index.sequences:
        message = f"{dataset.root}/{dataset.prefix}: the dataset has no sequences to export; build one that has"
        raise RecipeError(message)
    spans = list(enumerate(pairwise(cuts(dataset.index.sequences, dataset.index.row_bytes, shard_bytes))))
    row_bytes = dataset.index.row_bytes
    return Shards(partial(write_shard, dataset, name), spans, lambda item: (item[1][1] - item[1][0]) * row_bytes)


def cuts(sequences: int, row_bytes: int, shard_bytes: int) -> Iterator[int]:
    """Yield where shards of at most so many bytes of ids begin, and the end; they differ by a sequence at most."""
    most = max(1, shard_bytes // row_bytes)
    shards = -(-sequences // most)
    yield from (shard * sequences // shards for shard in range(shards + 1))


def write_shard(dataset: Dataset, name: str, shard: Span, folder: Path) -> Mapping[str, int]:
    """Write a shard of sequences below a local folder; return its sequences, tokens and pads."""
    number, span = shard
    stretch = read_stretch(dataset, *span)
    for below in (DATA, LINEAGE):
        (folder / below).mkdir()
    stem = f"shard-{number:05}"
    cast("Format", format_of(name)).write(stretch, folder / DATA, stem)
    with pq.ParquetWriter(
        folder / LINEAGE / f"{stem}.parquet", stretch.lineage.schema, write_page_checksum=True
    ) as writer:
        writer.write_table(stretch.lineage, row_group_size=GROUP_ROWS)
    tokens = int(stretch.tokens.sum())
    return {"sequences": len(stretch), "tokens": tokens, "pads": stretch.ids.size - tokens}
