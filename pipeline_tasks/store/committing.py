"""Commits manifests so that a vacuum beside them loses nothing: a committed manifest has all of its shards."""

import contextlib
from collections.abc import Iterator, Sequence

from pipeline_tasks.errors import ContractError, DeterminismViolation, JobLost
from pipeline_tasks.manifest import ABANDONED, Manifest, dump, load
from pipeline_tasks.sealed import canonical
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.shards.file import is_stored

LISTED = 16
"""Shards from which on a listing of their prefix, of up to 1,000 objects a page, costs no more than asking for each."""


def commit_manifest(store: Store, path: str, manifest: Manifest) -> Manifest:
    """Commit a manifest, and look at its shards behind that; JobLost if a vacuum has removed this attempt's.

    A vacuum looks at manifests behind its last removal, so one of the two sees the other. A manifest whose shards are
    gone is taken back: the next attempt computes them again. What is returned is committed: this one, or that of an
    attempt by another writer, whose shards are other files of the same rows.
    """
    try:
        storage.commit(store, path, dump(manifest))
    except DeterminismViolation as error:
        body = store.read(path)
        if body == ABANDONED:
            message = f"{store.root}/{path}: a vacuum removed this attempt's shards while it ran; run it again"
            raise JobLost(message) from error
        first = _same_rows(body, manifest)
        if first is None:
            raise
        manifest = first
    if gone := next(not_stored(store, manifest.stored, path.rpartition("/")[0]), None):
        store.delete(path)
        message = f"{store.root}/{gone.path}: a vacuum removed this shard while it was used; run it again"
        raise JobLost(message)
    return manifest


def _same_rows(body: bytes, manifest: Manifest) -> Manifest | None:
    """Return the committed manifest if another writer wrote the rows of this one."""
    with contextlib.suppress(ContractError):
        first = load(body)
        if first.writer != manifest.writer and _rows_of(first) == _rows_of(manifest):
            return first
    return None


def _rows_of(manifest: Manifest) -> bytes:
    """Return what a manifest says of rows, and not of the files that have them."""
    kept = [[shard.rows for shard in shards] for shards in (manifest.shards, manifest.history_shards)]
    lost = [manifest.rejected, manifest.quarantined]
    return canonical([manifest.fingerprint, manifest.schema, manifest.metrics, kept, lost])


def not_stored(store: Store, shards: Sequence[Shard], prefix: str = "") -> Iterator[Shard]:
    """Yield the shards that are missing, or have another size than they should.

    Many that are below `prefix`, that of their stage, are looked up by listing it; others one by one.
    """
    below = {shard.path for shard in shards if prefix and shard.path.startswith(f"{prefix}/")}
    if len(below) < LISTED:
        below.clear()
    sizes = {entry.path: entry.bytes for entry in store.list(f"{prefix}/") if entry.path in below} if below else {}
    others = [shard.path for shard in shards if shard.path not in below]
    asked = zip(others, storage.each(store, store.size, others), strict=True)
    sizes |= {path: size for path, size in asked if size is not None}
    yield from (shard for shard in shards if not is_stored(store.root, shard, sizes.get(shard.path)))
