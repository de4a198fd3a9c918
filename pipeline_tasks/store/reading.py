"""Reads what is committed: a manifest by its path, its parent, and the rows of its shards."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest, load, manifest_path
from pipeline_tasks.recipe import LAND, STAGES
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.shard_file import read_shard


def read_manifest(root: str, path: str) -> Manifest:
    """Load a committed manifest; RecipeError when there is none at `path`."""
    try:
        return load(storage.connect(root).read(path), f"{root}/{path}")
    except FileNotFoundError as error:
        message = f"{root}/{path}: no such manifest; refine that stage first, or correct the path"
        raise RecipeError(message) from error


def read_shards(root: str, shards: Iterable[Shard], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield verified batches of committed shards, for readers outside an engine (report, trace, publish)."""
    for shard in shards:
        yield from read_shard(root, shard, columns=columns)


def read_history(
    root: str, manifest: Manifest, section: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield verified batches of one section of the history that a stage saved; none if it saved no shard of it."""
    yield from read_shards(root, manifest.history.get(section, ()), columns)


def parent_of(root: str, manifest: Manifest) -> Manifest | None:
    """Return the manifest that a stage refined, from the first earlier stage that has its fingerprint; None without."""
    if not manifest.parents:
        return None
    store = storage.connect(root)
    earlier = STAGES[: STAGES.index(manifest.stage)] if manifest.stage in STAGES else STAGES
    for stage in (*reversed(earlier), LAND):
        path = manifest_path(stage, manifest.parents[0])
        if store.size(path) is not None:
            return load(store.read(path), f"{root}/{path}")
    return None


def sampled(shards: Iterable[Shard], most: int) -> Iterator[Shard]:
    """Yield shards in the order of their digests while together they have at most `most` bytes."""
    total = 0
    for shard in sorted(shards, key=lambda shard: shard.digest):
        total += shard.bytes
        if total > most:
            return
        yield shard
