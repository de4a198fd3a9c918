"""Exports the lineage: the document, and the landed record, behind every stretch of tokens."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

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
        for batch in lineage_batches(source.pieces(), source.documents(("id", *_ORIGIN))):
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
    columns = {
        "sequence": pa.array(np.repeat(batch["sequence"].to_numpy(), counts)),
        **{name: pieces.field(name) for name in ("start", "length", "id", "doc_start")},
        **origins.of(pieces.field("id").to_pylist(), pieces.field("doc_start").to_pylist()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in LINEAGE.names], schema=LINEAGE)


class _Origins:
    """Reads documents in order, and returns the origins of pieces that come in the same order.

    Documents are in memory from that of the last piece on: the next piece may continue it.
    """

    def __init__(self, documents: Iterable[pa.RecordBatch]) -> None:
        self._documents = iter(documents)
        self._window = pa.schema([LINEAGE.field(name) for name in ("id", *_ORIGIN)]).empty_table()
        self._ids: list[str] = []
        self._at = -1  # the document of the last piece

    def of(self, ids: list[str], doc_starts: list[int]) -> dict[str, pa.Array]:
        """Return the origin columns of pieces, given their documents' ids and their first tokens in them."""
        rows = pa.array([self._row(id_, doc_start) for id_, doc_start in zip(ids, doc_starts, strict=True)], pa.int64())
        origins = {name: self._window[name].take(rows).combine_chunks() for name in _ORIGIN}
        if len(rows):
            self._window, self._ids, self._at = self._window.slice(self._at), self._ids[self._at :], 0
        return origins

    def _row(self, id_: str, doc_start: int) -> int:
        """Return the row of a piece's document in the window: the current one, or the next of this id."""
        if doc_start and self._ids and self._ids[self._at] == id_:
            return self._at
        self._at += 1
        while True:
            with contextlib.suppress(ValueError):
                self._at = self._ids.index(id_, self._at)
                return self._at
            self._at = len(self._ids)
            self._extend(id_)

    def _extend(self, missing: str) -> None:
        """Take the next batch of documents into the window; ContractError if there is none, and one is missing."""
        batch = next(self._documents, None)
        if batch is None:
            message = (
                f"document {missing} is not among the documents in the order of packing; give the documents of its run"
            )
            raise ContractError(message)
        table = pa.Table.from_batches([batch]).select(self._window.column_names).cast(self._window.schema)
        self._window = pa.concat_tables([self._window, table])
        self._ids += table["id"].to_pylist()
