"""Names the documents of a recipe's dataset that have a vector, by its log of versions and what was taken down."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.publish.datasets.leaving import superseded_within
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.schema import EMBEDDING, EMBEDDING_MODEL, KNOWN_BY, PARENT, Array
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.taken_down import takedowns, taken_down
from pipeline_tasks.text.near.vectors import KIND
from pipeline_tasks.text.urls.sites import sites
from pipeline_tasks.text.urls.takedown import TakenDown, evidence

pc: Any = pyarrow.compute

FACTS = pa.schema(
    [
        pa.field("snapshot", pa.string()),
        pa.field("id", pa.string()),
        pa.field("url", pa.string()),
        pa.field("site", pa.string()),  # registered domain of the URL
        pa.field("title", pa.string()),
        pa.field("crawled_at", pa.string()),
        pa.field("language", pa.string()),
        pa.field("chars", pa.int64()),
        pa.field("score", pa.float64()),
        pa.field("document_type", pa.string()),
        pa.field("topic", pa.string()),
        pa.field(PARENT, pa.string()),  # of a generated document the one that it was made of
    ]
)
"""What is known of a document besides its vector, null where its recipe has no stage that says so; there is no text."""


@dataclass(frozen=True, slots=True)
class Left:
    """What left the dataset: ids of superseded documents by snapshot, and the list of what was taken down."""

    superseded: Mapping[str, pa.Array]
    taken: TakenDown

    def has(self, snapshot: str, rows: pa.RecordBatch) -> pa.Array:
        """Return whether each document of a snapshot left."""
        return pc.or_(pc.is_valid(evidence(self.taken, rows)), self._is_superseded(snapshot, rows))

    def of(self, rows: pa.RecordBatch | pa.Table) -> pa.Array:
        """Return whether each document, of any snapshot, left."""
        mask: Array = pc.is_valid(evidence(self.taken, rows))
        for snapshot in rows["snapshot"].unique().to_pylist():
            here = pc.and_(pc.equal(rows["snapshot"], snapshot), self._is_superseded(snapshot, rows))
            mask = pc.or_(mask, here)
        return mask

    def _is_superseded(self, snapshot: str, rows: pa.RecordBatch | pa.Table) -> Array:
        """Return whether each document, or its parent, is superseded as one of a snapshot."""
        names = [name for name in ("id", PARENT) if name in rows.schema.names]
        known = self.superseded.get(snapshot, pa.array([], pa.string()))
        return reduce(pc.or_, (pc.is_in(rows[name], value_set=known) for name in names))


@dataclass(frozen=True, slots=True)
class Dataset:
    """The dataset of a recipe as of entry `entry` of its log, and entry `takedown` of that of takedowns.

    `versions` are the newest of each snapshot that is not retracted.
    """

    root: str
    recipe: str
    entry: int
    takedown: int
    versions: Mapping[str, Version]
    left: Left

    def left_as_of(self, entry: int, takedown: int) -> Left:
        """Return what had left at earlier entries of both logs."""
        snapshots = [version.snapshot for version in version_log.latest_by_snapshot(self.root, self.recipe, entry)]
        return _left(self.root, self.recipe, snapshots, entry, takedown)


def dataset_of(root: str, recipe: str) -> Dataset:
    """Return the dataset of a recipe as its log has it now."""
    entry, taken = len(version_log.log(root, recipe)), len(takedowns(root))
    versions = {version.snapshot: version for version in version_log.latest_by_snapshot(root, recipe, entry)}
    return Dataset(root, recipe, entry, taken, versions, _left(root, recipe, list(versions), entry, taken))


def _left(root: str, recipe: str, snapshots: Sequence[str], entry: int, takedown: int) -> Left:
    superseded: dict[str, list[str]] = {}
    for batch in superseded_within(root, recipe, snapshots, entry):
        for id_, snapshot in zip(batch["id"].to_pylist(), batch["snapshot"].to_pylist(), strict=True):
            superseded.setdefault(snapshot, []).append(id_)
    by_snapshot = {snapshot: pa.array(ids, pa.string()) for snapshot, ids in superseded.items()}
    return Left(by_snapshot, taken_down(root, takedown))


def source_of(version: Version) -> str:
    """Return what the vectors of a version follow from: versions with the same documents have the same."""
    return sha256(version.refined.encode())[:32]


class Made(NamedTuple):
    """The name of the model that made a version's vectors, and how many numbers each has."""

    model: str
    dimensions: int


def made_by(root: str, version: Version) -> Made | None:
    """Return the model of a version's vectors; None if it has none. Of most, one shard is read."""
    manifest = read_manifest(root, version.refined)
    if EMBEDDING_MODEL not in dict(manifest.schema):
        return None
    for batch in read_shards(root, manifest.shards, [EMBEDDING, EMBEDDING_MODEL]):
        known = batch.filter(_has_vector(batch))
        if known.num_rows:
            return Made(known[EMBEDDING_MODEL][0].as_py(), len(known[EMBEDDING][0].as_py()) // KIND.itemsize)
    return None


def vectors_of(
    root: str, version: Version, left: Left, shards: Iterable[Shard] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a version that have a vector and did not leave: `FACTS` and `embedding`.

    With `shards` these are read alone. Of documents with the same text the first is taken: they have the same id.
    """
    manifest = read_manifest(root, version.refined)
    columns = [name for name, _ in manifest.schema if name in {*FACTS.names, EMBEDDING}]
    seen: set[str] = set()
    read = manifest.shards if shards is None else shards
    for batch in read_shards(root, read, columns) if EMBEDDING in columns else ():
        stays = pc.and_(_has_vector(batch), pc.invert(left.has(version.snapshot, batch)))
        rows = _first(batch.filter(stays), seen)
        if rows.num_rows:
            yield _facts(rows, version.snapshot)


def facts_of(root: str, version: Version) -> Iterator[pa.RecordBatch]:
    """Yield the columns by which a version's documents are known; vectors are not read."""
    yield from read_shards(root, read_manifest(root, version.refined).shards, KNOWN_BY)


def _has_vector(batch: pa.RecordBatch) -> pa.Array:
    return pc.fill_null(pc.greater(pc.binary_length(batch[EMBEDDING]), 0), fill_value=False)


def _first(batch: pa.RecordBatch, seen: set[str]) -> pa.RecordBatch:
    """Return the rows whose ids were not seen, each once."""
    is_new = []
    for name in batch["id"].to_pylist():
        is_new.append(name not in seen)
        seen.add(name)
    return batch.filter(pa.array(is_new, pa.bool_()))


def _facts(rows: pa.RecordBatch, snapshot: str) -> pa.RecordBatch:
    known = {"snapshot": pa.array([snapshot] * rows.num_rows, pa.string()), "site": sites(rows["url"])}
    known |= {name: rows[name].cast(FACTS.field(name).type) for name in rows.schema.names if name in FACTS.names[1:]}
    columns = [known.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in FACTS]
    return pa.RecordBatch.from_arrays(
        [*columns, rows[EMBEDDING].cast(pa.large_binary())],
        schema=FACTS.append(pa.field(EMBEDDING, pa.large_binary())),
    )
