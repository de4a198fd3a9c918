"""Roots of tests: stages as `testing` runs them, and shards and objects that a test makes up or changes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_tasks.manifest import NAMED
from pipeline_tasks.sealed import canonical, seal, sha256
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.testing.refining import commit_manifest, commit_parent, refined, rows

__all__ = ["commit_manifest", "commit_parent", "made_up_shard", "refined", "resealed", "row_digests", "rows"]


def made_up_shard(folder: str, rows: int = 0, size: int = 0, number: int = 0) -> Shard:
    """Return a shard that is named and not stored."""
    digest = sha256(f"{folder} {rows} {size} {number}".encode())
    return Shard(f"{folder}/{digest[:NAMED]}.parquet", rows, size, digest)


def resealed(path: Path, **changes: Any) -> None:
    """Change fields of a sealed object as somebody would who knows the format: it is well-formed and sealed again."""
    raw = json.loads(path.read_bytes())
    path.write_bytes(seal(raw | changes))


def row_digests(root: Path | str, shards: Sequence[Shard]) -> list[str]:
    """Return a digest of the rows of each shard; that of a layer's file depends on the shard below it, too."""
    digests = []
    for shard in shards:
        rows_of_shard = pa.Table.from_batches(list(read_shards(str(root), (shard,)))).combine_chunks()
        digests.append(sha256(canonical([rows_of_shard.schema.names, str(rows_of_shard.to_pylist())])))
    return digests
