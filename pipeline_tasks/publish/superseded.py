"""Lists the documents of earlier snapshots that a version supersedes, and stores them with the version."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.cards import copies_of
from pipeline_tasks.manifest import Manifest, in_order
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version, stages_that
from pipeline_tasks.publish.published import Promised, PublishedFile, open_published_file, publish_file
from pipeline_tasks.run.tasks import sorted_runs
from pipeline_tasks.stage import Batches
from pipeline_tasks.store.reading import read_history, read_manifest
from pipeline_tasks.store.shards.row_groups import RowGroups

pc: Any = pyarrow.compute

SUPERSEDED = pa.schema(
    [
        pa.field("id", pa.string()),  # the document that is no longer part of the dataset
        pa.field("snapshot", pa.string()),  # the snapshot that had published it
        pa.field("winner", pa.string()),  # the document that its cluster keeps now
        pa.field("winner_snapshot", pa.string()),
        pa.field("via", pa.string()),  # of the loser's cluster: compared with `near`, which joined it to the winner's
        pa.field("near", pa.string()),
        pa.field("similarity", pa.float64()),  # exact, as its stage measures it
        pa.field("bands", pa.int64()),  # bands that `via` and `near` share
    ]
)
"""One row of `superseded.parquet`, sorted by id: a document of an earlier snapshot and its winner."""

BATCH_ROWS = 4096

GROUP_ROWS, GROUP_BYTES = 1 << 20, 1 << 28
"""Rows of a row group of the file, and bytes of their texts, at most: they are in memory while it is written."""

REPLACED = ("id", "snapshot", "by_id", "by_snapshot")
"""Columns of the history of a stage that compares URLs (`Copies.replaced`): a document, and the one in its place."""


def near_manifests(manifests: Mapping[str, Manifest]) -> list[Manifest]:
    """Return the manifests of a snapshot whose stages supersede documents, in their order."""
    return [manifest for stage, manifest in in_order(manifests).items() if copies_of(stage).over_snapshots]


def read_replaced(root: str, version: Version) -> Iterator[pa.RecordBatch]:
    """Yield the documents of earlier snapshots whose URL has a newer one: rows of `REPLACED`."""
    for stage in stages_that(root, version, lambda stage: copies_of(stage).replaced != ""):
        manifest = read_manifest(root, version.manifests[stage])
        yield from read_history(root, manifest, copies_of(stage).replaced, REPLACED)


def superseded_by(root: str, manifests: Iterable[Manifest]) -> Batches:
    """Yield the documents that a snapshot supersedes: rows of `SUPERSEDED`, from the history of these stages.

    A document that two stages supersede has a row of each.
    """
    for batch in chain.from_iterable(read_history(root, manifest, "superseded") for manifest in manifests):
        loser, winner = batch.column("node"), batch.column("winner")
        nodes = [
            pc.struct_field(node, name).cast(pa.string())
            for node, name in ((loser, "snapshot"), (winner, "id"), (winner, "snapshot"))
        ]
        proof = [batch.column(name) for name in ("via", "near", "similarity", "shared_bands")]
        yield pa.RecordBatch.from_arrays([batch.column("id"), *nodes, *proof], schema=SUPERSEDED)


@dataclass(slots=True)
class Superseded:
    """The documents that a version supersedes: the file that lists them, if there are any, and how many there are.

    `superseding` are the documents of its own snapshot that supersede them.
    """

    files: tuple[PublishedFile, ...] = ()
    documents: int = 0
    superseding: int = 0

    @property
    def facts(self) -> dict[str, Any]:
        """A version's fields about them."""
        path = next((file.path for file in self.files), "")
        return {"superseded": self.documents, "superseding": self.superseding, "superseded_path": path}


def publish_superseded(root: str, prefix: str, snapshot: str, rows: Batches, promised: Promised) -> Superseded:
    """Store `superseded.parquet` of a version of `snapshot` under `prefix`, sorted, if there are `rows` of them."""
    done = Superseded()
    rows = chain([pa.RecordBatch.from_pylist([], SUPERSEDED)], rows)
    rows = sorted_runs.in_order(rows, ("id", "winner"), BATCH_ROWS)
    with tempfile.NamedTemporaryFile(prefix="refinery-") as local:
        with pq.ParquetWriter(local.name, SUPERSEDED) as writer:
            winners = sorted_runs.in_order(_written(rows, snapshot, writer, done), ("winner",), BATCH_ROWS)
            done.superseding = sum(_new_values(winners))
        if done.documents:
            done.files = (publish_file(root, f"{prefix}/superseded.parquet", Path(local.name), promised),)
    return done


def _written(rows: Batches, snapshot: str, writer: pq.ParquetWriter, done: Superseded) -> Batches:
    """Write rows, count their documents, and yield the winners among them that are of this snapshot."""
    groups = RowGroups(GROUP_ROWS, GROUP_BYTES)
    for group in chain.from_iterable(chain(map(groups.add, rows), [groups.rest()])):
        table = pa.Table.from_batches(group).combine_chunks()
        writer.write_table(table, row_group_size=GROUP_ROWS)
        done.documents += table.num_rows
        yield from table.filter(pc.equal(table["winner_snapshot"], snapshot)).select(["winner"]).to_batches()
    yield pa.RecordBatch.from_pylist([], pa.schema([SUPERSEDED.field("winner")]))


def _new_values(winners: Batches) -> Iterator[int]:
    """Yield how many values each of some sorted batches has that are in none before it."""
    last = None
    for batch in winners:
        if batch.num_rows:
            yield len(batch["winner"].unique()) - (batch["winner"][0].as_py() == last)
            last = batch["winner"][-1].as_py()


def read_superseded(root: str, recipe: str, until: int | None = None) -> Batches:
    """Yield the documents that a recipe's current versions (as of entry `until`) supersede: rows of `SUPERSEDED`."""
    for version in version_log.latest_by_snapshot(root, recipe, until):
        yield from read_superseded_of(root, version)


def read_superseded_of(root: str, version: Version, columns: Sequence[str] = SUPERSEDED.names) -> Batches:
    """Yield the documents that a version supersedes, none if it has no list of them."""
    if version.superseded_path:
        with open_published_file(root, version.file("superseded.parquet"), version.way_out) as source:
            yield from pq.ParquetFile(source).iter_batches(BATCH_ROWS, columns=list(columns))
