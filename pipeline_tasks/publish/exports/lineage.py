"""Exports the lineage: the document, and the landed record, behind every stretch of tokens."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError
from pipeline_tasks.publish.exports.source import Source

LINEAGE = pa.schema(
    [
        pa.field("sequence", pa.int64()),
        pa.field("start", pa.int32()),  # first token of the piece, counted in its sequence
        pa.field("length", pa.int32()),
        pa.field("id", pa.string()),
        pa.field("doc_start", pa.int64()),  # first token of the piece, counted in its document
        pa.field("snapshot", pa.string()),
        pa.field("file", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("record_id", pa.string()),
        pa.field("url", pa.string()),
    ]
)
"""One row per piece, by sequence and start; the last five columns locate the landed record."""

_ORIGIN = ("snapshot", "file", "offset", "record_id", "url")


def write(source: Source, folder: Path) -> None:
    """Write `lineage.parquet`: one row per stretch of a document in a sequence, with its landed record.

    It has no empty row group: `datasets` fails on one. Pages have checksums, as readers fetch single row groups.
    """
    with pq.ParquetWriter(folder / "lineage.parquet", LINEAGE, write_page_checksum=True) as writer:
        for batch in lineage_batches(source.sequences(), source.documents()):
            if batch.num_rows:
                writer.write_batch(batch)


def lineage_batches(
    sequences: Iterable[pa.RecordBatch], documents: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield `LINEAGE` rows for `sequences`, with origins from the packed `documents`; both in the order of packing.

    Both are read once and in parallel, so memory does not grow with the data. ContractError if a piece's document is
    missing, which means that the two are not of the same run.
    """
    origins = _Origins(documents)
    yield pa.RecordBatch.from_pylist([], schema=LINEAGE)
    for batch in sequences:
        yield _lineage(batch, origins)


def _lineage(batch: pa.RecordBatch, origins: "_Origins") -> pa.RecordBatch:
    pieces = batch["pieces"].flatten()
    counts = np.diff(batch["pieces"].offsets.to_numpy())
    ids = pieces.field("id")
    columns = {
        "sequence": pa.array(np.repeat(batch["sequence"].to_numpy(), counts)),
        "start": pieces.field("start"),
        "length": pieces.field("length"),
        "id": ids,
        "doc_start": pieces.field("doc_start"),
        **origins.of(ids.to_pylist(), pieces.field("doc_start").to_pylist()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in LINEAGE.names], schema=LINEAGE)


class _Origins:
    """Reads documents in order, and returns the origins of pieces that come in the same order."""

    def __init__(self, documents: Iterable[pa.RecordBatch]) -> None:
        self._documents: Iterator[dict[str, Any]] = (
            row for batch in documents for row in batch.select(["id", *_ORIGIN]).to_pylist()
        )
        self._current: dict[str, Any] = {"id": None}

    def of(self, ids: list[str], doc_starts: list[int]) -> dict[str, pa.Array]:
        """Return the origin columns of pieces, given their documents' ids and their first tokens in them."""
        rows = [self._origin(id_, doc_start) for id_, doc_start in zip(ids, doc_starts, strict=True)]
        return {name: pa.array([row[name] for row in rows], LINEAGE.field(name).type) for name in _ORIGIN}

    def _origin(self, id_: str, doc_start: int) -> dict[str, Any]:
        if self._current["id"] == id_ and doc_start:
            return self._current
        for row in self._documents:
            if row["id"] == id_:
                self._current = row
                return row
        message = f"document {id_} is not among the documents in the order of packing; give the documents of its run"
        raise ContractError(message)
