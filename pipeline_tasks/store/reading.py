"""Reads what is committed: a manifest by its path, its parent, and the rows of its shards."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import ABANDONED, Manifest, commit_slots, fingerprint_in, load, manifest_path, stage_prefix
from pipeline_tasks.recipe import COMPOSE, LAND, STAGES
from pipeline_tasks.sealed import require_digest, sha256, split_reference
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.shards.rows import read_shard

RESTORE = "restore it from a backup, or remove its folder and run again what made it"
"""The way out of a manifest that is not what is expected."""


def read_manifest(root: str, referred: str) -> Manifest:
    """Load a committed manifest by its path or reference; RecipeError when there is none.

    DigestMismatch unless it has the digest of its reference; ContractError unless it is the manifest of its path.
    """
    return read_committed(root, referred)[0]


def read_committed(root: str, referred: str) -> tuple[Manifest, str]:
    """As `read_manifest`; return also the digest of the manifest's bytes."""
    path, digest = split_reference(referred)
    where = f"{root}/{path}"
    try:
        body = storage.connect(root).read(path)
    except FileNotFoundError as error:
        message = f"{where}: no such manifest; refine that stage first, or correct the path"
        raise RecipeError(message) from error
    manifest = load(body, where)
    if path.split("/")[-2:-1] != ["partitions"]:
        require_place(manifest, path, where)
    require_digest(body, digest, where, RESTORE)
    return manifest, sha256(body)


def commit_slot(store: Store, stage: str, fingerprint: str) -> str:
    """Return where a stage commits, or has committed: past slots that a vacuum has fenced off."""
    return next(path for path in commit_slots(stage, fingerprint) if store.size(path) != len(ABANDONED))


def require_place(manifest: Manifest, path: str, where: str) -> None:
    """Raise ContractError unless a manifest is stored at the path that follows from its fingerprint."""
    if fingerprint_in(path) != manifest.fingerprint:
        message = f"{where} is the manifest of {stage_prefix(manifest.stage, manifest.fingerprint)}; {RESTORE}"
        raise ContractError(message)


def read_shards(
    root: str, shards: Iterable[Shard], columns: Sequence[str] | pa.Schema | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield verified batches of committed shards, for readers outside an engine (report, trace, publish).

    All rows of a shard come, whichever columns it has: of names those that it has, of a schema all, null where it has
    none. ContractError for a shard with more or fewer rows than were committed.
    """
    names = columns.names if isinstance(columns, pa.Schema) else columns
    for shard in shards:
        for batch in read_shard(root, shard, columns=names):
            yield conformed(batch, columns) if isinstance(columns, pa.Schema) else batch


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows with the columns of a schema: null where they have none."""
    columns = [_column(batch, field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch.select([])


def _column(batch: pa.RecordBatch, field: pa.Field) -> Any:  # noqa: ANN401 -- Arrow
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    return column if column.type == field.type else column.cast(field.type)


def read_history(
    root: str, manifest: Manifest, section: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield verified batches of one section of the history that a stage saved; none if it saved no shard of it."""
    yield from read_shards(root, manifest.history.get(section, ()), columns)


def parent_of(root: str, manifest: Manifest) -> Manifest | None:
    """Return the manifest that a stage refined, from the nearest stage that has its fingerprint; None without."""
    if not manifest.parents:
        return None
    store = storage.connect(root)
    at = STAGES.index(manifest.stage) if manifest.stage in STAGES else len(STAGES)
    for stage in (*reversed(STAGES[:at]), COMPOSE, LAND, *STAGES[at:]):
        path = manifest_path(stage, manifest.parents[0])
        if store.size(path) is not None:
            return read_manifest(root, path)
    return None


def sampled(shards: Iterable[Shard], most: int) -> Iterator[Shard]:
    """Yield shards in the order of their digests while a reader of them reads at most `most` bytes."""
    total = 0
    for shard in sorted(shards, key=lambda shard: shard.digest):
        total += shard.weight
        if total > most:
            return
        yield shard
