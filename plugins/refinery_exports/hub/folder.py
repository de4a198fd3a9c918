"""A folder as Hugging Face's Hub has a dataset: `datasets` and the Hub's viewer read it as it is.

Config `kept` (the default) has the documents of a version, of a training dataset those of `text-parquet`; config
`rejects` has what its stages, and those of the snapshots that it was composed of, did not keep, with `stage`, `reason`,
`evidence` and `outcome`. Each has one split, `train`, in files `data/<config>-00000-of-00012.parquet` (zstd, row groups
of at most about 100 MB of rows, page index, checksums; cut where contents are alike, so that the Hub stores what two
uploads share once). The head of `README.md` has the files, features and sizes, so that nothing is inferred;
`croissant.json` describes the files and their columns.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from refinery_exports.text.text_files import TableFormat

GROUP_BYTES = 100_000_000
"""Bytes of rows, as Arrow has them, of a row group: the viewer scans no larger ones than 300 MB."""


def write(tables: Iterator[pa.Table], schema: pa.Schema, path: Path) -> None:
    """Write rows of a schema into a file."""
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        write_page_index=True,
        write_page_checksum=True,
        use_content_defined_chunking=True,
    ) as writer:
        for group in groups(tables):
            writer.write_table(group, row_group_size=max(group.num_rows, 1))


def groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of each row group: it ends before the rows with which it would be larger than `GROUP_BYTES`."""
    waiting: list[pa.Table] = []
    weight = 0
    for table in tables:
        for part in _parts(table):
            if waiting and weight + part.nbytes > GROUP_BYTES:
                yield pa.concat_tables(waiting)
                waiting, weight = [], 0
            waiting.append(part)
            weight += part.nbytes
    if waiting:
        yield pa.concat_tables(waiting)


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    """Yield halves of a table, and of these halves, until none is larger than a row group, or each is a row."""
    if not table.num_rows:
        return
    if table.nbytes <= GROUP_BYTES or table.num_rows == 1:
        yield table
        return
    half = table.num_rows // 2
    yield from _parts(table.slice(0, half))
    yield from _parts(table.slice(half))


READING = """
from pathlib import Path

from datasets import load_dataset

kept = load_dataset(str(Path.cwd()), split="train")  # on the Hub, load_dataset("OWNER/NAME", split="train")
text = kept[0]["text"]
"""

FORMAT = TableFormat(write, shard_bytes=512 << 20, reading=READING)
