"""Lists the documents of earlier snapshots that a version supersedes, and stores them with the version."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.cards import copies_of
from pipeline_tasks.manifest import Manifest, in_order
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version, stages_that
from pipeline_tasks.publish.published import Promised, PublishedFile, publish_file, read_published_file
from pipeline_tasks.store.reading import read_history, read_manifest

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


def superseded_by(root: str, manifests: Iterable[Manifest]) -> pa.Table:
    """Return the documents that a snapshot supersedes: rows of `SUPERSEDED`, from the history of these stages.

    A document that two stages supersede has a row of each.
    """
    batches = [batch for manifest in manifests for batch in _superseded(root, manifest)]
    return pa.Table.from_batches(batches, schema=SUPERSEDED).sort_by([(name, "ascending") for name in ("id", "winner")])


def _superseded(root: str, manifest: Manifest) -> Iterator[pa.RecordBatch]:
    for batch in read_history(root, manifest, "superseded"):
        loser, winner = batch.column("node"), batch.column("winner")
        nodes = [
            pc.struct_field(node, name).cast(pa.string())
            for node, name in ((loser, "snapshot"), (winner, "id"), (winner, "snapshot"))
        ]
        proof = [batch.column(name) for name in ("via", "near", "similarity", "shared_bands")]
        yield pa.RecordBatch.from_arrays([batch.column("id"), *nodes, *proof], schema=SUPERSEDED)


def store_superseded(root: str, prefix: str, rows: pa.Table, promised: Promised) -> list[PublishedFile]:
    """Store `superseded.parquet` under `prefix` if there are `rows` of `SUPERSEDED`, and return it."""
    if not rows.num_rows:
        return []
    with tempfile.NamedTemporaryFile(prefix="refinery-") as local:
        pq.write_table(rows, local.name)
        return [publish_file(root, f"{prefix}/superseded.parquet", Path(local.name), promised)]


def superseded_facts(prefix: str, snapshot: str, rows: pa.Table) -> dict[str, Any]:
    """Return a version's fields about the documents that it supersedes."""
    if not rows.num_rows:
        return {"superseded": 0, "superseding": 0, "superseded_path": ""}
    own = rows.filter(pc.equal(rows.column("winner_snapshot"), snapshot))
    path = f"{prefix}/superseded.parquet"
    return {"superseded": rows.num_rows, "superseding": len(own.column("winner").unique()), "superseded_path": path}


def read_superseded(root: str, recipe: str, until: int | None = None) -> pa.Table:
    """Return the documents that a recipe's current versions (as of entry `until`) supersede: rows of `SUPERSEDED`."""
    versions = version_log.latest_by_snapshot(root, recipe, until)
    files = [(version.file("superseded.parquet"), version.way_out) for version in versions if version.superseded_path]
    tables = [pq.read_table(pa.BufferReader(read_published_file(root, *file))) for file in files]
    return pa.concat_tables([SUPERSEDED.empty_table(), *tables])
