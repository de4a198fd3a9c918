"""Writes documents into files: as JSON lines (zstd), or as Parquet."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

pc: Any = pyarrow.compute

GROUP_BYTES = 128_000_000
"""Bytes of text at which a row group of Parquet ends."""

Tables = Iterator[pa.Table]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A format of documents; its fields are as those of `format.Format`. `write` writes tables into one file."""

    write: Callable[[Tables, Path], None]
    ending: str
    reading: str
    pattern: str


@dataclass(frozen=True, slots=True)
class TableFormat:
    """A format of all rows of versions, kept or not. `write` writes the rows of a file, which have a schema.

    `shard_bytes` is about what the rows of a file take, as Arrow has them, if nobody says otherwise.
    """

    write: Callable[[Tables, pa.Schema, Path], None]
    shard_bytes: int
    reading: str


def cut_tables(tables: Tables, most: int) -> Iterator[list[pa.Table]]:
    """Yield the tables of each file: a file ends at the first document with which its texts reach `most` bytes."""
    waiting: list[pa.Table] = []
    weight = 0
    for table in tables:
        for start, stop, size in _cuts(table, most, weight):
            waiting.append(table.slice(start, stop - start))
            weight += size
            if weight >= most:
                yield waiting
                waiting, weight = [], 0
    if waiting:
        yield waiting


def _cuts(table: pa.Table, most: int, weight: int) -> Iterator[tuple[int, int, int]]:
    """Yield the rows of a table that come into one file each, and the bytes of their texts."""
    sizes = pc.fill_null(pc.binary_length(table["text"]), 0).to_pylist()
    start = spent = 0
    for row, size in enumerate(sizes):
        spent += size
        if weight + spent >= most:
            yield start, row + 1, spent
            start, spent, weight = row + 1, 0, 0
    if start < len(sizes):
        yield start, len(sizes), spent


def _write_jsonl(tables: Tables, path: Path) -> None:
    import orjson

    with pa.OSFile(str(path), "wb") as file, pa.CompressedOutputStream(file, "zstd") as out:
        for table in tables:
            out.write(b"".join(orjson.dumps(row) + b"\n" for row in table.to_pylist()))


def _write_parquet(tables: Tables, path: Path) -> None:
    with ExitStack() as stack:
        writer: Any = None
        for group in cut_tables(tables, GROUP_BYTES):
            table = pa.concat_tables(group)
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema, compression="zstd", write_page_checksum=True)
                stack.enter_context(writer)
            writer.write_table(table, row_group_size=max(table.num_rows, 1))


_READING = """
from datasets import load_dataset{needs}

dataset = load_dataset("{reader}", data_files="data/*.{ending}", split="train")
text = dataset[0]["text"]
"""

JSON_LINES = TextFormat(
    _write_jsonl,
    "jsonl.zst",
    _READING.format(reader="json", ending="jsonl.zst", needs="  # and `pip install zstandard`"),
    "*.jsonl.zst",
)

PARQUET = TextFormat(
    _write_parquet, "parquet", _READING.format(reader="parquet", ending="parquet", needs=""), "*.parquet"
)
