"""Reads what is committed: a manifest by its path, its parent, and the rows of its shards."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from pipeline_tasks.cards import has_sequences, known_card
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import (
    ABANDONED,
    Manifest,
    commit_slots,
    fingerprint_in,
    in_order,
    load,
    manifest_path,
    stage_prefix,
)
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.sealed import require_digest, sha256, split_reference
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.once import Once
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.shards.rows import read_shard

RESTORE = "restore it from a backup, or remove its folder and run again what made it"
"""The way out of a manifest that is not what is expected."""


def read_named(root: str, path: str, digest: str, gone: str, way_out: str) -> bytes:
    """Return the bytes of an object that another names by digest; ContractError says that it is gone, or changed."""
    try:
        body = storage.connect(root).read(path)
    except FileNotFoundError as error:
        message = f"{root}/{path}: {gone}; {way_out}"
        raise ContractError(message) from error
    require_digest(body, digest, f"{root}/{path}", way_out)
    return body


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


Known = tuple[Manifest, str]
"""A committed manifest without what no run reads of it, and the digest of its bytes."""

_ONCE: Once[Known] = Once(lambda known: 1 + len(known[0].shards) + len(known[0].history_shards), 1 << 19)
"""Manifests by root and reference, as many as have half a million shards together (about 200 MB)."""


def read_once(root: str, referred: str) -> Known:
    """As `read_committed`, without the shards that the manifest covers, rests on, and rejected.

    A process reads a manifest once that is named by its digest: what many requests of one stage ask for.
    """
    digest = split_reference(referred)[1]
    return _ONCE.get((root, referred), lambda: _slim(root, referred)) if digest else _slim(root, referred)


def _slim(root: str, referred: str) -> Known:
    manifest, digest = read_committed(root, referred)
    return replace(manifest, covers=(), below=(), rejects=(), quarantine=()), digest


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


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
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
    """Return the manifest that a stage refined, from the stage that has its fingerprint; None without."""
    if not manifest.parents:
        return None
    store = storage.connect(root)
    paths = [manifest_path(stage, manifest.parents[0]) for stage in store.folders()]
    sizes = storage.each(store, store.size, paths)
    known = [path for path, size in zip(paths, sizes, strict=True) if size is not None]
    return read_manifest(root, known[0]) if known else None


def line_of(root: str, manifest: Manifest) -> Iterator[Manifest]:
    """Yield a manifest, the one that it was made of, and so on up to a landing or composition, while they are there."""
    made: Manifest | None = manifest
    while made is not None:
        yield made
        made = None if made.stage == COMPOSE else parent_of(root, made)


def whole_line(root: str, manifest: Manifest) -> list[Manifest]:
    """As `line_of`; RecipeError unless it begins with a landing or composition, or with what was made of nothing."""
    line = [*line_of(root, manifest)]
    if line[-1].parents and line[-1].stage != COMPOSE:
        message = f"{root}: what {line[-1].stage}/{line[-1].fingerprint} was made of is gone; refine that stage again"
        raise RecipeError(message)
    return line


def read_in_order(root: str, referred: Mapping[str, str]) -> dict[str, Manifest]:
    """Return manifests by stage, from their references, each after the one that it was made of."""
    read = storage.each(storage.connect(root), partial(read_manifest, root), referred.values())
    return in_order(dict(zip(referred, read, strict=True)))


def is_cleared(root: str, manifest: Manifest) -> bool:
    """Return whether the rows that a manifest keeps came through a stage that clears personal data, by its own line.

    The rows of a build did: they are documents of published versions. A line that is not whole says no.
    """
    return any(each.stage == COMPOSE or clears_personal_data(each.stage) for each in line_of(root, manifest))


def clears_personal_data(stage: str) -> bool:
    """Return whether a stage clears personal data: one that this release does not know clears none."""
    card = known_card(stage)
    return card is not None and card.clears_personal_data


def sampled(shards: Iterable[Shard], most: int) -> Iterator[Shard]:
    """Yield shards in the order of their digests while a reader of them reads at most `most` bytes."""
    total = 0
    for shard in sorted(shards, key=lambda shard: shard.digest):
        total += shard.weight
        if total > most:
            return
        yield shard


def published_documents(ordered: Iterable[Manifest]) -> int:
    """Return the documents that the last stage of documents kept, and no sequences."""
    return [manifest.rows for manifest in ordered if not has_sequences(manifest.stage)][-1]
