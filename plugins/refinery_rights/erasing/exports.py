"""Exports in a root: which may have a document, by what their version was made of, and the rows that they have."""

import io
import json
from collections.abc import Collection, Iterator
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from pipeline_tasks.errors import RefineryError, Transient
from pipeline_tasks.publish.datasets.building import file_of
from pipeline_tasks.publish.datasets.published_shards import open_build
from pipeline_tasks.publish.exported import EXPORTS
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.store.erasures import current
from pipeline_tasks.store.protocol import Entry, Store
from pipeline_tasks.store.reading import read_manifest
from refinery_rights.erasing.documents import IDENTITY

ROWS = 4096
"""Rows of an export that are looked at together."""


def may_have(root: str, asked: Collection[str], having: Collection[str], export: str) -> bool:
    """Return whether an export may have a document: unless all that its version was made of was asked, and has none.

    `asked` are the tables that were, and `having` those that may have one.
    """
    prefix = export.rpartition(f"/{EXPORTS}/")[0]
    try:
        versions = [each for name in version_log.recipes(root) for each in version_log.versions(root, name)]
        made = [path for each in versions if each.prefix == prefix for path in _made_of(root, each)]
    except Transient:
        raise
    except (RefineryError, OSError, LookupError):  # it was made of something that is gone
        return True
    return not made or any(path in having or path not in asked for path in made)


def _made_of(root: str, version: Version) -> Iterator[str]:
    """Yield the paths of the tables whose documents are in a version, and of the lineages of its tokens."""
    composed = (
        read_manifest(root, version.manifests[COMPOSE]).params["versions"] if COMPOSE in version.manifests else ()
    )
    for reference in (*(each["manifest"] for each in composed), *version.manifests.values()):
        manifest = read_manifest(root, reference)
        rows = (*manifest.shards, *manifest.rejects, *manifest.quarantine)
        yield from (current(root, shard.path) for shard in rows if not shard.is_landed)
    if COMPOSE not in version.manifests:
        return
    for entry in open_build(root, version).index["shards"]:
        yield current(root, file_of(entry["lineage"]).path)


def exported_rows(store: Store, entry: Entry) -> Iterator[pa.RecordBatch]:
    """Yield the columns by which documents are known of a file of an export that has rows of documents."""
    if entry.path.endswith(".parquet"):
        with store.open(entry.path) as stream:
            file = pq.ParquetFile(stream)
            names = [name for name in IDENTITY if name in file.schema_arrow.names]
            yield from file.iter_batches(columns=names) if names else ()
    elif entry.path.endswith(".jsonl.zst"):
        with store.open(entry.path) as stream, zstandard.ZstdDecompressor().stream_reader(stream) as plain:
            lines = io.TextIOWrapper(plain, encoding="utf-8")
            while rows := [json.loads(line) for line in islice(lines, ROWS)]:
                named = [{name: row[name] for name in IDENTITY if name in row} for row in rows]
                yield pa.RecordBatch.from_pylist(named)
