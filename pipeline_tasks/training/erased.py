"""Reads erased shards: the files that came in the place of those that `dataset.json` names, and which tokens are gone.

An erasure leaves all other tokens where they are, so the order of a run, its places and its states stay valid. A folder
that was copied out of its root has no erasures, and is read as it is.
"""

import posixpath
from dataclasses import replace

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.erasures import Erased, erased_by_path
from pipeline_tasks.store.erasures import erased as erased_object
from pipeline_tasks.training.index import DatasetIndex, Shard, StoredFile

_NO_ROOTS = ("s3:", "s3:/", "gs:", "gs:/", "az:", "az:/", "")
"""What is above a dataset's folder that lies in a bucket itself, or on the top of a disk."""


def in_force(index: DatasetIndex, root: str, prefix: str) -> DatasetIndex:
    """Return the index of a dataset in the folder `prefix` of a root, with the files that are in force there now.

    A place that has no folder above it, or whose objects may not be listed, has no erasures that are known; an erased
    file that is asked for there is missing.
    """
    try:
        any_erased = root not in _NO_ROOTS and erased_by_path(root)
    except RecipeError:
        any_erased = False
    if not any_erased:
        return index
    return replace(index, shards=tuple(_shard(root, prefix, shard) for shard in index.shards))


def _shard(root: str, prefix: str, shard: Shard) -> Shard:
    found = _erased(root, prefix, shard.bin)
    bin_, ends, lineage = (_file(root, prefix, file) for file in (shard.bin, shard.ends, shard.lineage))
    return replace(shard, bin=bin_, ends=ends, lineage=lineage, erased=found.spans if found else ())


def _erased(root: str, prefix: str, file: StoredFile) -> Erased | None:
    return erased_object(root, posixpath.normpath(posixpath.join(prefix, file.path)), file.sha256)


def _file(root: str, prefix: str, file: StoredFile) -> StoredFile:
    found = _erased(root, prefix, file)
    if found is None or found.after is None:
        return file
    return StoredFile(posixpath.relpath(found.after.path, prefix), found.after.bytes, found.after.digest)
