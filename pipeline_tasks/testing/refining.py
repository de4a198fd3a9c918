"""Runs one stage over rows of a test as the product does: plan, engine, commit, over a root in a folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.manifest import Manifest, dump, identified, manifest_path, schema_pairs
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.tasks.task import StageIO, read_input
from pipeline_tasks.store import storage
from pipeline_tasks.store.shards.file import ShardWriter

MEASURED = ("chars", "n_tokens", "language")


def commit_parent(root: Path, tables: Sequence[pa.Table], name: str = "given") -> str:
    """Commit tables as the shards of a made-up parent stage; return its manifest's path."""
    shards = []
    for table in tables:
        writer = ShardWriter(table.schema)
        for batch in table.to_batches():
            writer.write(batch)
        shards.append(writer.store(str(root), f"{name}/data"))
    manifest = Manifest(
        stage=name,
        version=1,
        fingerprint="",
        params={"shards": [shard.digest for shard in shards]},
        parents=(),
        covers=(),
        schema=schema_pairs(tables[0].schema),
        shards=tuple(shards),
        history={},
        rejects=(),
        quarantine=(),
        rows_in=sum(table.num_rows for table in tables),
        bytes_in=0,
        rejected={},
        quarantined={},
        metrics={"kept": merge(profile(table, MEASURED) for table in tables), "rejects": {}},
    )
    return commit_manifest(root, manifest)


def commit_manifest(root: Path, manifest: Manifest) -> str:
    """Commit a manifest under the fingerprint that follows from it; return its path."""
    whole = identified(manifest)
    path = manifest_path(whole.stage, whole.fingerprint)
    storage.commit(storage.connect(str(root)), path, dump(whole))
    return path


def refined(  # noqa: PLR0913 -- what tests vary of a request
    root: Path | str,
    stage: str,
    parent: str,
    params: Mapping[str, Any] | None = None,
    *,
    on: str = "local",
    address: str = "",
    history: Sequence[str] = (),
    batch_rows: int = 4096,
    landing: str = "",
) -> tuple[str, Manifest]:
    """Run one stage over a committed parent on an engine; return (manifest path, manifest)."""
    work = RefineRequest(str(root), stage, params or {}, parent, tuple(history), landing=landing, batch_rows=batch_rows)
    path, manifest, _ = refine(work, engine(on, address))
    return path, manifest


def rows(root: Path | str, manifest: Manifest, part: str = "shards", landing: str = "") -> pa.Table:
    """Return the kept rows of a manifest, its `rejects` or `quarantine`, or a section of its history, as one table.

    Pages that `ingest` kept are read from the folder `landing`.
    """
    shards = manifest.history[part] if part in manifest.history else getattr(manifest, part)
    stage_io = StageIO(str(root), manifest.stage, landing=landing)
    batches = [batch for shard in shards for batch in read_input(stage_io, shard)]
    return pa.Table.from_batches(batches) if shards else pa.table({})
