"""Reads stretches of a training dataset: consecutive sequences, where documents end in them, and their lineage."""

import hashlib
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import CHUNK
from pipeline_tasks.training.erased import in_force
from pipeline_tasks.training.index import NAME, DatasetIndex, Shard, StoredFile, read_index

Ids = npt.NDArray[np.unsignedinteger[Any]]
Integers = npt.NDArray[np.int64]

WAY_OUT = "remove it and run `refinery build` again: the same version gets it back"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A published training dataset: the folder of its version below a root, and what its `dataset.json` says."""

    root: str
    prefix: str
    index: DatasetIndex

    def path(self, file: StoredFile) -> str:
        """Return the path of a file, relative to the root."""
        return posixpath.normpath(posixpath.join(self.prefix, file.path))


def open_dataset(root: str, prefix: str) -> Dataset:
    """Open the dataset of a version; ContractError if its `dataset.json` is gone or contradicts itself."""
    path = f"{prefix}/{NAME}"
    try:
        body = storage.connect(root).read(path)
    except FileNotFoundError as error:
        message = f"{root}/{path} was removed; run `refinery build` again: the same version gets it back"
        raise ContractError(message) from error
    return Dataset(root, prefix, in_force(read_index(body, f"{root}/{path}"), root, prefix))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sequences from number `first` of a dataset on, as they are stored.

    `ids` is (sequences, length) with pads, which only end a sequence. `counts` are the pieces of each sequence, with
    its pads as one, and `ends` is where each piece ends within its sequence. `lineage` has a row per piece of a
    document; its `sequence` counts from 0 within the stretch.
    """

    first: int
    ids: Ids
    counts: Integers
    ends: Integers
    tokens: Integers
    lineage: pa.Table

    def __len__(self) -> int:
        """Return how many sequences there are."""
        return len(self.ids)

    @property
    def offsets(self) -> Integers:
        """Return where the borders of each sequence begin in `borders`, and the end of the last."""
        return np.concatenate([[0], np.cumsum(self.counts + 1)])

    @property
    def borders(self) -> npt.NDArray[np.int32]:
        """Return the `cu_seqlens` of all sequences, one after the other: 0, and the ends of its pieces."""
        values = np.zeros(len(self.ends) + len(self), np.int32)
        own = np.repeat(np.arange(1, len(self) + 1), self.counts)
        values[np.arange(len(self.ends)) + own] = self.ends
        return values


def read_stretch(dataset: Dataset, first: int, stop: int) -> Stretch:
    """Read the sequences [first, stop) of a dataset.

    A file is compared with its digest by whoever reads its first sequence; together the stretches of a dataset check
    every byte. ContractError names a file that is damaged or gone.
    """
    parts = [_read(dataset, *span) for span in _spans(dataset.index, first, stop)]
    if len(parts) == 1:
        return replace(parts[0], first=first)
    rows = np.cumsum([0, *(len(part.ids) for part in parts)])
    lineages = [_shifted(part.lineage, at) for part, at in zip(parts, rows[:-1].tolist(), strict=True)]
    return Stretch(
        first=first,
        ids=np.concatenate([part.ids for part in parts]),
        counts=np.concatenate([part.counts for part in parts]),
        ends=np.concatenate([part.ends for part in parts]),
        tokens=np.concatenate([part.tokens for part in parts]),
        lineage=pa.concat_tables(lineages),
    )


def _spans(index: DatasetIndex, first: int, stop: int) -> Iterator[tuple[Shard, int, int]]:
    """Yield the shards that have sequences [first, stop), and which sequences of each."""
    before = 0
    for shard in index.shards:
        start, end = max(first - before, 0), min(stop - before, shard.sequences)
        if start < end:
            yield shard, start, end
        before += shard.sequences


def _read(dataset: Dataset, shard: Shard, start: int, stop: int) -> Stretch:
    """Read the sequences [start, stop) of a shard."""
    length = dataset.index.length
    body = _bytes(dataset, shard.bin, start * dataset.index.row_bytes, stop * dataset.index.row_bytes)
    ids = np.frombuffer(body, np.dtype(dataset.index.dtype).newbyteorder("<")).reshape(stop - start, length)
    everywhere = np.frombuffer(_bytes(dataset, shard.ends, 0, shard.ends.bytes), "<i8")
    bounds = everywhere.searchsorted([start * length, stop * length], "right")
    positions = everywhere[bounds[0] : bounds[1]].astype(np.int64) - start * length
    rows = (positions - 1) // length
    lineage = _shifted(_lineage(dataset, shard, start, stop), -start)
    tokens = _tokens(lineage, stop - start)
    if not np.array_equal(positions, _expected_ends(lineage, tokens, length)):
        message = (
            f"{dataset.root}/{dataset.path(shard.ends)}: the pieces of sequences {start} to {stop - 1} are not those "
            f"of {dataset.path(shard.lineage)}; run `refinery verify {dataset.root}`, and build again"
        )
        raise ContractError(message)
    counts = np.bincount(rows, minlength=stop - start).astype(np.int64)
    return Stretch(0, ids, counts, positions - rows * length, tokens, lineage)


def _tokens(lineage: pa.Table, sequences: int) -> Integers:
    """Return the ids of each sequence that are no pads."""
    own, lengths = lineage["sequence"].to_numpy(), lineage["length"].to_numpy()
    return np.bincount(own, weights=lengths, minlength=sequences).astype(np.int64)


def _expected_ends(lineage: pa.Table, tokens: Integers, length: int) -> Integers:
    """Return where pieces end by the lineage, and sequences with pads."""
    own, start, size = (lineage[name].to_numpy().astype(np.int64) for name in ("sequence", "start", "length"))
    padded = np.flatnonzero(tokens < length)
    return np.unique(np.concatenate([own * length + start + size, (padded + 1) * length]))


def _shifted(lineage: pa.Table, by: int) -> pa.Table:
    at = lineage.schema.get_field_index("sequence")
    numbers = pa.array(lineage["sequence"].to_numpy() + by, pa.int64())
    return lineage.set_column(at, lineage.schema.field(at), numbers)


def _bytes(dataset: Dataset, file: StoredFile, start: int, stop: int) -> bytes | bytearray:
    """Return bytes [start, stop) of a file; the whole file is checked if they are its first."""
    path = dataset.path(file)
    try:
        if start:
            return storage.connect(dataset.root).read_ranges(path, [(start, stop)])[0]
        return _checked(dataset.root, path, file, stop)
    except FileNotFoundError as error:
        message = f"{dataset.root}/{path} was removed, and {dataset.prefix}/{NAME} names it; run `refinery build` again"
        raise ContractError(message) from error


def _checked(root: str, path: str, file: StoredFile, keep: int) -> bytearray:
    """Return the first bytes of a file, all of which are read; ContractError unless it has its digest."""
    hasher, kept, size = hashlib.sha256(), bytearray(), 0
    with storage.connect(root).open(path) as stream:
        while chunk := stream.read(CHUNK):
            hasher.update(chunk)
            kept += chunk[: max(keep - size, 0)]
            size += len(chunk)
    if hasher.hexdigest() != file.sha256:
        message = (
            f"{root}/{path}: SHA-256 of its {size} bytes is {hasher.hexdigest()}, and {NAME} promises {file.sha256} "
            f"({file.bytes} bytes); it was changed after it was published; {WAY_OUT}"
        )
        raise ContractError(message)
    return kept


def _lineage(dataset: Dataset, shard: Shard, start: int, stop: int) -> pa.Table:
    """Return the rows of the pieces of sequences [start, stop) of a shard, of the row groups that can have them."""
    if not start:
        _bytes(dataset, shard.lineage, 0, 0)
    path = dataset.path(shard.lineage)
    try:
        with storage.connect(dataset.root).open(path) as stream:
            pieces = pq.ParquetFile(stream, page_checksum_verification=True)
            ranks = range(pieces.metadata.num_row_groups)
            near = [rank for rank in ranks if _meets(pieces.metadata.row_group(rank), start, stop)]
            table = pieces.read_row_groups(near).replace_schema_metadata()
    except RefineryError:
        raise
    except (pa.ArrowException, OSError) as error:  # pyarrow raises either for a damaged file
        message = f"{dataset.root}/{path} is damaged or gone ({error}); {WAY_OUT}"
        raise ContractError(message) from error
    bounds = table["sequence"].to_numpy().searchsorted([start, stop])
    return table.slice(bounds[0], bounds[1] - bounds[0])


def _meets(group: pq.RowGroupMetaData, start: int, stop: int) -> bool:
    """Return whether a row group can have pieces of sequences [start, stop); `sequence` is its first column."""
    bounds = group.column(0).statistics
    return bounds is None or (bounds.min < stop and bounds.max >= start)
