"""Commits manifests so that a vacuum beside them loses nothing: a committed manifest has all of its shards."""

from collections.abc import Iterator, Sequence

from pipeline_tasks.errors import DeterminismViolation, JobLost
from pipeline_tasks.manifest import ABANDONED, Manifest, dump
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.shards.file import is_stored


def commit_manifest(store: Store, path: str, manifest: Manifest) -> None:
    """Commit a manifest, and look at its shards behind that; JobLost if a vacuum has removed this attempt's.

    A vacuum looks at manifests behind its last removal, so one of the two sees the other. A manifest whose shards are
    gone is taken back: the next attempt computes them again.
    """
    try:
        storage.commit(store, path, dump(manifest))
    except DeterminismViolation as error:
        if store.read(path) != ABANDONED:
            raise
        message = f"{store.root}/{path}: a vacuum removed this attempt's shards while it ran; run it again"
        raise JobLost(message) from error
    if gone := next(not_stored(store, manifest.stored), None):
        store.delete(path)
        message = f"{store.root}/{gone.path}: a vacuum removed this shard while it was used; run it again"
        raise JobLost(message)


def not_stored(store: Store, shards: Sequence[Shard]) -> Iterator[Shard]:
    """Yield the shards that are missing, or have another size than they should."""
    sizes = storage.each(store, store.size, (shard.path for shard in shards))
    yield from (shard for shard, size in zip(shards, sizes, strict=True) if not is_stored(store.root, shard, size))
