"""Clean text as JSON lines (zstd) or Parquet: a row per document, each once, in the order of the build's selection.

Columns are `id`, `text`, `url`, `title`, `language`, `source`, `snapshot`, `crawled_at` as far as the documents have
them, then every other text, number and boolean that was stored of a document (scores, signals, its place in the
landed file), those of the selection, such as `n_tokens` by the dataset's tokenizer, and `copies`: how often the build
uses the document.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute

from refinery_exports.exporting import Shards
from refinery_exports.format import DATA
from refinery_exports.formats import format_of
from refinery_exports.text.documents import Documents, Pair, read_documents
from refinery_exports.text.text_files import TextFormat, cut_tables

pc: Any = pyarrow.compute

DEFAULT_BYTES = 256 << 20
"""Bytes of text of a file if nobody says otherwise."""

TEXT_RATIO = 3
"""Bytes of text of a stored byte, at least: `stage.BUCKET_BYTES`."""


Group = tuple[int, tuple[Pair, ...]]
"""A number, and the pairs of shards whose documents are written together."""


def shards_of_texts(documents: Documents, name: str, shard_bytes: int) -> Shards:
    """Return the shards of the documents of a version, of one or more shards of the selection each."""
    groups: list[list[Pair]] = []
    weight = 0
    for pair in documents.pairs:
        weight += TEXT_RATIO * pair.texts.weight
        if not groups or weight > shard_bytes:
            groups.append([])
            weight = TEXT_RATIO * pair.texts.weight
        groups[-1].append(pair)
    writing = partial(write_documents, replace(documents, pairs=()), name, shard_bytes)
    return Shards(writing, [(number, tuple(group)) for number, group in enumerate(groups)], _weight)


def _weight(group: Group) -> int:
    return sum(pair.texts.weight for pair in group[1])


def write_documents(documents: Documents, name: str, shard_bytes: int, group: Group, folder: Path) -> Mapping[str, int]:
    """Write the documents of pairs of shards, in files of so many bytes of text; return what they have."""
    number, pairs = group
    format_ = cast("TextFormat", format_of(name))
    (folder / DATA).mkdir()
    counts = {"documents": 0, "tokens": 0, "uses": 0}
    tables = (_counted(table, counts) for pair in pairs for table in read_documents(documents, pair))
    for part, own in enumerate(cut_tables(tables, shard_bytes)):
        format_.write(iter(own), folder / DATA / f"documents-{number:05}-{part:03}.{format_.ending}")
    return counts


def _counted(table: pa.Table, counts: dict[str, int]) -> pa.Table:
    counts["documents"] += table.num_rows
    counts["tokens"] += pc.sum(table["n_tokens"]).as_py() or 0
    counts["uses"] += pc.sum(table["copies"]).as_py() or 0
    return table
