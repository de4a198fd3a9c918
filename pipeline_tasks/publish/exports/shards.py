"""Exports packed shards one by one: the tokens, the ends of documents in them, and the lineage of every piece.

The files of a shard follow from its sequences alone, and are named by their content: versions that share a packed shard
share its files. `.bin` has the ids, little-endian and without a header: sequence i of the shard is ids
[i * length, (i + 1) * length). `.ends` has, as ascending 64-bit numbers, the positions in that stream at which a piece
of a document ends, and the end of each sequence that has pads. `.lineage.parquet` has a row per piece, as `PIECES`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError
from pipeline_tasks.publish.exports.sequences import Packing, keys_of, not_packed
from pipeline_tasks.publish.exports.tokens import DType, write_bin
from pipeline_tasks.schema import PARENT
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stage import Shard, Shards
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.store.shards.file import end_with_names
from pipeline_tasks.store.shards.names import Names
from pipeline_tasks.text.base.key_pages import NAMES

pc: Any = pyarrow.compute

_ORIGIN = ("snapshot", "file", "offset", "record_id", "url", PARENT)

PIECES = pa.schema(
    [
        pa.field("sequence", pa.int64()),  # from 0 within the shard
        pa.field("start", pa.int32()),  # first token of the piece, counted in its sequence
        pa.field("length", pa.int32()),
        pa.field("id", pa.string()),
        pa.field("copy", pa.int32()),  # which use of the document it is, from 0
        pa.field("doc_start", pa.int64()),  # first token of the piece, counted in its document
        pa.field("snapshot", pa.string()),
        pa.field("file", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("record_id", pa.string()),
        pa.field("url", pa.string()),
    ]
)
"""One row per piece, by sequence and start; the last five columns, of `_ORIGIN`, locate the landed record."""

GENERATED_PIECES = PIECES.append(pa.field(PARENT, pa.string()))
"""The columns where documents may be generated ones: `parent` is null of those that are not."""

GROUP_ROWS = 1 << 16
"""Rows of a row group of a lineage."""

FILES = ("bin", "ends", "lineage.parquet")
"""Endings of the files of a shard."""


@dataclass(frozen=True, slots=True)
class PackedShard:
    """A packed shard, the shuffled shards whose documents it may have, and how ids are stored.

    `numbered` says whether documents have a column `copy`, `with_tokens` whether the packed shard has their tokens,
    `carried` whether its last sequence may go on in the next shards. `named` says whether its lineage has a filter over
    the names of its rows, as those of earlier releases have none.
    """

    root: str
    packed: Shard
    shuffled: Shards
    numbered: bool
    with_tokens: bool
    carried: bool
    length: int
    pad_id: int
    dtype: DType
    named: bool = True

    @property
    def identity(self) -> str:
        """What its files depend on: of a packed shard without tokens also its documents, the length and the pads."""
        if self.with_tokens:
            return self.packed.digest
        documents = [shard.digest for shard in self.shuffled]
        return digest_of([self.packed.digest, *documents, self.length, self.pad_id], 64)


def reached(shuffled: Shards, at: int, length: int, *, carried: bool) -> Shards:
    """Return the shuffled shards whose documents a packed shard may have: its own, and those that end its sequence.

    A document has at least one token.
    """
    stop, missing = at + 1, length if carried else 0
    while missing > 0 and stop < len(shuffled):
        missing -= shuffled[stop].rows
        stop += 1
    return shuffled[at:stop]


def write(shard: PackedShard, folder: Path) -> dict[str, int]:
    """Write the files of a packed shard into a local folder, as `shard.<ending>`; return its sequences and tokens."""
    packing = Packing(shard.root, shard.packed, shard.shuffled, shard.length, shard.pad_id, shard.carried)
    sequences = list(packing.batches())
    with (folder / "shard.bin").open("wb") as out:
        counts = write_bin(sequences, out, shard.dtype)
    pieces = _pieces(sequences)
    (folder / "shard.ends").write_bytes(_ends(sequences, pieces, shard.length).astype("<i8").tobytes())
    lineage = _with_origins(pieces, shard).combine_chunks()
    write_lineage(folder / "shard.lineage.parquet", lineage.to_batches(GROUP_ROWS), named=shard.named)
    return {"sequences": counts.sequences, "tokens": counts.tokens}


def write_lineage(local: Path, batches: Iterable[pa.RecordBatch], *, named: bool = True) -> None:
    """Write a lineage, a row group for each batch; with a filter over the names of its rows behind them if `named`."""
    first = next(rows := iter(batches), None)
    schema = PIECES if first is None or PARENT not in first.schema.names else GENERATED_PIECES
    names = Names(schema) if named else None
    with pa.OSFile(str(local), "wb") as file, pq.ParquetWriter(file, schema, write_page_checksum=True) as writer:
        for batch in chain(() if first is None else [first], rows):
            if names:
                names.add(batch)
            writer.write_batch(batch, row_group_size=GROUP_ROWS)
        if names:
            end_with_names(writer, file, names)


def is_named(lineage: pq.ParquetFile) -> bool:
    """Return whether a lineage has a filter over the names of its rows."""
    return NAMES.encode() in (lineage.metadata.metadata or {})


def _ends(sequences: Sequence[pa.RecordBatch], pieces: pa.Table, length: int) -> npt.NDArray[np.int64]:
    """Return the positions, in the stream of the shard, at which pieces end and padded sequences end."""
    start, size = (pieces[name].to_numpy().astype(np.int64) for name in ("start", "length"))
    tokens = np.concatenate([batch["n_tokens"].to_numpy() for batch in sequences])
    padded = np.flatnonzero(tokens < length)
    return np.unique(np.concatenate([pieces["sequence"].to_numpy() * length + start + size, (padded + 1) * length]))


def _pieces(sequences: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return the pieces of a shard, by sequence and start: the columns of `PIECES` without those of the origin."""
    tables, row = [], 0
    for batch in sequences:
        pieces = batch["pieces"].flatten()
        rows = np.repeat(np.arange(row, row + batch.num_rows), np.diff(batch["pieces"].offsets.to_numpy()))
        own = {name: pieces.field(name) for name in ("start", "length", "id", "copy", "doc_start")}
        tables.append(pa.table({"sequence": pa.array(rows, pa.int64()), **own}))
        row += batch.num_rows
    return pa.concat_tables(tables)


def _with_origins(pieces: pa.Table, shard: PackedShard) -> pa.Table:
    """Return pieces with the landed records of their documents: rows of `PIECES`.

    The documents are those of the first shuffled shard; a sequence that crosses shards has some of later ones.
    ContractError if a document is missing, or is there twice.
    """
    keys = _keys(pieces)
    documents = _documents(shard, keys)
    at = pc.index_in(keys, _keys(documents))
    if at.null_count:
        missing = pieces["id"][pc.index(pc.is_null(at), True).as_py()].as_py()
        where = f"{shard.root}/{shard.packed.path}"
        raise not_packed(where, missing)
    origins = {name: documents[name].take(at) for name in _ORIGIN if name in documents.column_names}
    columns = {**{name: pieces[name] for name in pieces.column_names}, **origins}
    schema = GENERATED_PIECES if PARENT in columns else PIECES
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _documents(shard: PackedShard, keys: pa.ChunkedArray) -> pa.Table:
    """Return the shuffled documents of a packed shard: shards in order, until all keys are there."""
    columns = ["id", *(["copy"] if shard.numbered else []), *_ORIGIN]
    tables: list[pa.Table] = []
    for shuffled in shard.shuffled:
        tables += [_numbered(batch) for batch in read_shards(shard.root, [shuffled], columns)]
        known = _keys(pa.concat_tables(tables))
        if len(known.unique()) < len(known):
            message = (
                f"{shard.root}/{shard.packed.path}: a document is there twice; ids must be unique: "
                "put dedup_exact into the recipe that refines"
            )
            raise ContractError(message)
        if len(keys) == pc.sum(pc.is_in(keys, known)).as_py():
            break
    return pa.concat_tables(tables)


def _numbered(batch: pa.RecordBatch) -> pa.Table:
    table = pa.Table.from_batches([batch])
    if "copy" not in table.column_names:
        table = table.append_column("copy", pa.array(np.zeros(table.num_rows, np.int32)))
    return table.select([name for name in ("id", "copy", *_ORIGIN) if name in table.column_names])


def _keys(table: pa.Table) -> pa.ChunkedArray:
    """Return the key of each row's document."""
    return keys_of(table["id"], table["copy"])


def digests(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the ending, bytes and SHA-256 of each file of a shard in a folder."""
    for ending in FILES:
        path = folder / f"shard.{ending}"
        with path.open("rb") as stream:
            yield ending, path.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()
