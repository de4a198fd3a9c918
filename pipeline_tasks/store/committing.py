"""Commits manifests so that a vacuum beside them loses nothing: a committed manifest has all of its shards."""

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice

from pipeline_tasks.errors import ContractError, DeterminismViolation, JobLost
from pipeline_tasks.manifest import ABANDONED, Manifest, dump, load
from pipeline_tasks.sealed import canonical
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.shards.file import is_stored

LISTED = 16
"""Shards from which on a listing of their prefix costs no more than asking for each."""

PAGE = 1000
"""Objects that a request for a listing returns at most, in S3."""


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
    """Yield the shards that are missing, or have another size than they should; see `sizes_of` for `prefix`."""
    sizes = sizes_of(store, [shard.path for shard in shards], prefix)
    yield from (shard for shard in shards if not is_stored(store.root, shard, sizes.get(shard.path)))


def sizes_of(store: Store, paths: Sequence[str], prefix: str = "") -> dict[str, int]:
    """Return the bytes of those objects that are there.

    Many that are below `prefix` are looked up by listing it, as far as that takes no more requests than they would;
    others one by one.
    """
    below = {path for path in paths if prefix and path.startswith(f"{prefix}/")}
    entries = store.list(f"{prefix}/") if len(below) >= LISTED else iter(())
    sizes: dict[str, int] = {}
    last = ""
    for entry in islice(entries, len(below) * PAGE):
        last = entry.path
        if last in below:
            sizes[last] = entry.bytes
    if len(below) >= LISTED and next(entries, None) is None:
        last = max(below)
    others = [path for path in paths if path not in below or path > last]
    asked = zip(others, storage.each(store, store.size, others), strict=True)
    return sizes | {path: size for path, size in asked if size is not None}
