"""Rewrites published packed shards: tokens of erased documents become pads, and their lineage loses their addresses.

All other tokens stay where they are: a training run goes on at the same place, and its batches are the same but for the
erased tokens. These have no label (`training.batch.IGNORED`), as the log of erasures says which they are.
"""

import hashlib
import posixpath
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError
from pipeline_tasks.publish.exports.shards import GROUP_ROWS, write_lineage
from pipeline_tasks.recipe import PUBLISH
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import Erased, Span, Stored, current
from pipeline_tasks.training.index import NAME, Shard, StoredFile, read_index
from pipeline_tasks.upkeep.rewriting.rows import blanked, saying
from refinery_rights.erasing.documents import Documents

pc: Any = pyarrow.compute

PACKED = f"{PUBLISH}/shards"
"""Prefix of the files of packed shards, which versions share."""

LINEAGE = ".lineage.parquet"


class Packed(NamedTuple):
    """A packed shard by the paths of its files now, and how its ids are stored."""

    shard: Shard
    bin: str
    lineage: str
    length: int
    dtype: str
    pad_id: int


def packed_shards(root: str) -> dict[str, Packed]:
    """Return the packed shards that datasets below a root name, by the paths of their lineages now."""
    store, found = storage.connect(root), {}
    for entry in store.list(PUBLISH):
        prefix, _, name = entry.path.rpartition("/")
        if name == NAME and prefix.count("/") == 1:
            index = read_index(store.read(entry.path), f"{root}/{entry.path}")
            for shard in index.shards:
                bin_, lineage = (current(root, _path(prefix, file)) for file in (shard.bin, shard.lineage))
                if bin_ and lineage:
                    found[lineage] = Packed(shard, bin_, lineage, index.length, index.dtype, index.pad_id)
    return found


def _path(prefix: str, file: StoredFile) -> str:
    return posixpath.normpath(posixpath.join(prefix, file.path))


def pieces(root: str, path: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a lineage; ContractError if it is damaged."""
    with storage.connect(root).open(path) as stream:
        yield from pq.ParquetFile(stream, page_checksum_verification=True).iter_batches()


def spans_of(root: str, packed: Packed, documents: Documents) -> tuple[Span, ...]:
    """Return the stretches of tokens of erased documents in the stream of a packed shard that are no pads yet."""
    spans: list[Span] = []
    for batch in pieces(root, packed.lineage):
        own = batch.filter(pc.is_valid(documents.matched(batch)))
        for sequence, start, length in zip(*(own.column(at).to_pylist() for at in range(3)), strict=True):
            first = sequence * packed.length + start
            spans.append((first, first + length))
    ids = _ids(root, packed) if spans else None
    return tuple(span for span in spans if ids is not None and (ids[slice(*span)] != packed.pad_id).any())


def count(root: str, lineage: str, documents: Documents) -> int:
    """Return how many pieces of erased documents a lineage still has the address of."""
    return sum(saying(batch, documents.matched(batch)) for batch in pieces(root, lineage))


def rewrite_lineage(root: str, lineage: str, documents: Documents, rows: int) -> Erased:
    """Store a lineage again without the addresses of erased documents."""
    with (
        storage.connect(root).open(lineage) as stream,
        tempfile.TemporaryDirectory(prefix="refinery-") as folder,
    ):
        file = pq.ParquetFile(stream, page_checksum_verification=True)
        local = Path(folder) / "lineage"
        whole = file.iter_batches(batch_size=GROUP_ROWS)
        write_lineage(local, (blanked(batch, documents.matched(batch)) for batch in whole))
        return _stored(root, lineage, local, LINEAGE, rows)


def rewrite_ids(root: str, packed: Packed, spans: tuple[Span, ...], rows: int) -> Erased:
    """Store the ids of a packed shard again with pads in place of spans."""
    ids = _ids(root, packed)
    for start, stop in spans:
        ids[start:stop] = packed.pad_id
    with tempfile.TemporaryDirectory(prefix="refinery-") as folder:
        local = Path(folder) / "bin"
        local.write_bytes(ids.tobytes())
        erased = _stored(root, packed.bin, local, ".bin", rows)
    return Erased(erased.before, erased.after, rows, spans)


def _ids(root: str, packed: Packed) -> np.ndarray[Any, np.dtype[Any]]:
    body = storage.connect(root).read(packed.bin)
    ids = np.frombuffer(body, np.dtype(packed.dtype).newbyteorder("<")).copy()
    if len(ids) != packed.shard.sequences * packed.length:
        message = f"{root}/{packed.bin} was cut short; restore it from a backup, or build again"
        raise ContractError(message)
    return ids


def _stored(root: str, path: str, local: Path, ending: str, rows: int) -> Erased:
    """Store a file beside the one that it takes the place of, named by its content."""
    store = storage.connect(root)
    body = store.read(path)
    with local.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    after = Stored(f"{PACKED}/{digest[:32]}{ending}", local.stat().st_size, digest)
    store.put_file(after.path, local, digest)
    return Erased(Stored(path, len(body), sha256(body)), after, rows)


def is_named(path: str) -> bool:
    """Return whether a path is that of a file of a packed shard."""
    return path.startswith(f"{PACKED}/")


def bins_of(shards: dict[str, Packed]) -> frozenset[str]:
    """Return the paths of the files of packed shards that datasets name."""
    return frozenset(path for packed in shards.values() for path in (packed.bin, packed.lineage))
