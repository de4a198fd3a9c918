"""Lists the documents of earlier snapshots that a version supersedes, and stores them with the version."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import version_log
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_history

pc: Any = pyarrow.compute

SUPERSEDED = pa.schema(
    [
        pa.field("id", pa.string()),  # the document that is no longer part of the dataset
        pa.field("snapshot", pa.string()),  # the snapshot that had published it
        pa.field("winner", pa.string()),  # the document that its cluster keeps now
        pa.field("winner_snapshot", pa.string()),
        pa.field("via", pa.string()),  # of the loser's cluster: compared with `near`, which joined it to the winner's
        pa.field("near", pa.string()),
        pa.field("similarity", pa.float64()),  # exact, as the parameter `similarity` of dedup_minhash says
        pa.field("bands", pa.int64()),  # bands that `via` and `near` share
    ]
)
"""One row of `superseded.parquet`, sorted by id: a document of an earlier snapshot and its winner."""


def superseded_by(root: str, dedup_minhash: Manifest) -> pa.Table:
    """Return the documents that a snapshot supersedes: rows of `SUPERSEDED`, from the stage's history section."""
    batches = []
    for batch in read_history(root, dedup_minhash, "superseded"):
        loser, winner = batch.column("node"), batch.column("winner")
        nodes = [
            pc.struct_field(node, name).cast(pa.string())
            for node, name in ((loser, "snapshot"), (winner, "id"), (winner, "snapshot"))
        ]
        proof = [batch.column(name) for name in ("via", "near", "similarity", "shared_bands")]
        batches.append(pa.RecordBatch.from_arrays([batch.column("id"), *nodes, *proof], schema=SUPERSEDED))
    return pa.Table.from_batches(batches, schema=SUPERSEDED).sort_by("id")


def store_superseded(root: str, prefix: str, snapshot: str, dedup_minhash: Manifest | None) -> dict[str, Any]:
    """Store `superseded.parquet` under `prefix` if it has rows; return the version's fields about it."""
    rows = superseded_by(root, dedup_minhash) if dedup_minhash else SUPERSEDED.empty_table()
    if not rows.num_rows:
        return {"superseded": 0, "superseding": 0, "superseded_path": ""}
    path = f"{prefix}/superseded.parquet"
    with tempfile.NamedTemporaryFile(prefix="refinery-") as local:
        pq.write_table(rows, local.name)
        storage.put_file(root, path, Path(local.name))
    own = rows.filter(pc.equal(rows.column("winner_snapshot"), snapshot))
    return {"superseded": rows.num_rows, "superseding": len(own.column("winner").unique()), "superseded_path": path}


def read_superseded(root: str, recipe: str) -> pa.Table:
    """Return the documents that a recipe's current versions supersede: rows of `SUPERSEDED`."""
    store = storage.connect(root)
    versions = version_log.latest_by_snapshot(root, recipe)
    paths = [version.superseded_path for version in versions if version.superseded_path]
    tables = [pq.read_table(pa.BufferReader(store.read(path))) for path in paths]
    return pa.concat_tables([SUPERSEDED.empty_table(), *tables])
