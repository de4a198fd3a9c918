"""Reads the documents of a version with their texts, for teams with a tokenizer of their own.

A version's selection is in the shards of its last stage before `shuffle`. Its rows have no text any more: each shard
answers to one shard of the documents that were composed, and the two are joined by `id`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.cards import choosing_stages
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs.version_log import Version, stages_of
from pipeline_tasks.recipe import COMPOSE, TAKEDOWN
from pipeline_tasks.schema import GENERATION
from pipeline_tasks.sealed import path_of
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards

pc: Any = pyarrow.compute

FIRST = ("id", "text", "url", "title", "language", "source", "snapshot", "crawled_at")
"""Columns that come first, in this order, if the documents have them."""

KEY = ("id", "snapshot")

COPIES = "copies"
"""How often the build uses a document: a column of the selection where a document may be used more than once."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A shard of the selection, and the shard with the texts of its documents."""

    chosen: Shard
    texts: Shard


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a version: pairs of shards in the order of the selection, and the columns that they give.

    `selected` are the columns that the selection has of its own; the others are read with the texts. `leaving` are the
    keys of documents that were taken down since they were selected.
    """

    root: str
    pairs: tuple[Pair, ...]
    rows: int
    schema: pa.Schema
    selected: tuple[str, ...]
    leaving: pa.Array


def documents_of(root: str, version: Version) -> Documents:
    """Return the documents of a version of a training dataset; ContractError if their texts are not there any more."""
    compose = read_manifest(root, version.manifests[COMPOSE])
    stage = choosing_stages(stages_of(root, version))[-1]
    chosen = read_manifest(root, version.manifests[stage])
    leaving = _taken_down(root, version)
    rows = chosen.rows - len(leaving)
    if not rows:
        message = f"{root}: version {version.number} of {version.recipe} has no documents to export; build one that has"
        raise RecipeError(message)
    sources = [_texts(root, named["manifest"]) for named in compose.params["versions"]]
    texts = [shard for source in sources for shard in source.shards]
    if len(texts) != len(chosen.shards):
        message = (
            f"{root}: {stage} of version {version.number} has {len(chosen.shards)} shards, and the documents with "
            f"texts have {len(texts)}; build the dataset again with this release, and export that version"
        )
        raise ContractError(message)
    pairs = tuple(Pair(*pair) for pair in zip(chosen.shards, texts, strict=True))
    with_text = _columns(root, sources)
    own = {name: kind for name, kind in _columns(root, [chosen]).items() if name not in with_text}
    own[COPIES] = own.pop(COPIES, pa.int64())
    names = [*(name for name in FIRST if name in with_text), *(name for name in with_text if name not in FIRST)]
    schema = pa.schema([*((name, with_text[name]) for name in names), *own.items()])
    return Documents(root, pairs, rows, schema, tuple(own), leaving)


def _taken_down(root: str, version: Version) -> pa.Array:
    """Return the keys of documents that a version lost behind its shuffle, each once."""
    if TAKEDOWN not in version.manifests:
        return pa.array([], pa.string())
    rejects = read_manifest(root, version.manifests[TAKEDOWN]).rejects
    batches = [_keys(pa.Table.from_batches([batch])) for batch in read_shards(root, rejects, KEY)]
    return pc.unique(pa.chunked_array(batches, pa.string()))


def _keys(rows: pa.Table) -> pa.Array:
    """Return each document's id and snapshot as one text: a document may be in several snapshots."""
    joined = pc.binary_join_element_wise(*(rows[name].cast(pa.string()) for name in KEY), ":")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _texts(root: str, composed: str) -> Manifest:
    """Return a manifest that a build composed; ContractError if it is gone, or has no texts, as of earlier releases."""
    way_out = "restore it from a backup, or refine the snapshot again and build"
    if storage.connect(root).size(path_of(composed)) is None:
        message = f"{root}: the documents {composed}, which were composed, are not there; {way_out}"
        raise ContractError(message)
    manifest = read_manifest(root, composed)
    if "text" not in dict(manifest.schema) and manifest.shards:
        message = f"{root}: the documents {composed}, which were composed, have no column `text`; {way_out}"
        raise ContractError(message)
    return manifest


def _columns(root: str, sources: Sequence[Manifest]) -> dict[str, pa.DataType]:
    """Return all columns of texts, numbers and booleans that the rows of any manifest have, and how a text was made."""
    known: dict[str, pa.DataType] = {}
    for source in sources:
        shard = next(iter(source.shards), None)
        fields = next(iter(read_shards(root, [shard]))).schema if shard else ()
        for field in fields:
            if field.type == GENERATION or not (pa.types.is_nested(field.type) or _is_binary(field.type)):
                known.setdefault(field.name, field.type)
    return known


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def read_documents(documents: Documents, pair: Pair) -> Iterator[pa.Table]:
    """Yield the documents of a pair of shards in the order of the selection.

    ContractError if the text of a document is not there.
    """
    names = tuple(dict.fromkeys((*KEY, *documents.selected)))
    chosen = pa.Table.from_batches(list(read_shards(documents.root, [pair.chosen], names)))
    chosen = chosen.filter(pc.invert(pc.is_in(_keys(chosen), value_set=documents.leaving)))
    texts = pa.Table.from_batches(list(read_shards(documents.root, [pair.texts], documents.schema.names)))
    at = pc.index_in(chosen["id"], texts["id"])
    if at.null_count:
        missing = chosen["id"][pc.index(pc.is_null(at), True).as_py()]
        message = (
            f"{documents.root}/{pair.texts.path}: document {missing} of {pair.chosen.path} is not there; run `refinery "
            f"verify {documents.root}`"
        )
        raise ContractError(message)
    if COPIES not in chosen.column_names:
        chosen = chosen.append_column(COPIES, pa.array(np.ones(chosen.num_rows, np.int64)))
    for batch in chosen.append_column("__at", at).to_batches():
        rows = texts.take(batch["__at"])
        columns = [_column(field, batch, rows) for field in documents.schema]
        yield pa.table(columns, schema=documents.schema)


def _column(field: pa.Field, chosen: pa.RecordBatch, texts: pa.Table) -> pa.Array | pa.ChunkedArray:
    if field.name in chosen.schema.names and field.name not in KEY:
        return chosen[field.name]
    if field.name in texts.column_names:
        return texts[field.name].cast(field.type)
    return pa.nulls(chosen.num_rows, field.type)
