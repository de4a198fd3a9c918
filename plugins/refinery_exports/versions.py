"""Exports versions: which jobs write one in a format, and the card beside its files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline_tasks.engines.each import On
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.datasets.card import facts_of, front_matter
from pipeline_tasks.publish.exported import EXPORTS
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import read_published_file
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.training.index import NAME
from refinery_exports.described import (
    CARD,
    NO_REJECTS,
    Target,
    card_of,
    configs,
    facts_of_version,
    how_to_read,
    made_by,
)
from refinery_exports.exporting import Export, run
from refinery_exports.format import DATA, LINEAGE, Format, Written
from refinery_exports.formats import format_of
from refinery_exports.hub.export import export_of_tables
from refinery_exports.stretch import open_dataset
from refinery_exports.text.documents import documents_of
from refinery_exports.text.text_files import TableFormat, TextFormat
from refinery_exports.text.texts import DEFAULT_BYTES, shards_of_texts
from refinery_exports.tokens.token_shards import shards_of_tokens

LINEAGE_TEXT = (
    "Every shard has a file of the same name in `lineage/`: a row per piece of a document, with its sequence (from 0 "
    "within the shard), its place in there, the document's `id`, `copy` (which use of the document) and `doc_start`, "
    "and the landed record (`snapshot`, `file`, `offset`, `record_id`, `url`). `files.json` lists every file with its "
    "SHA-256."
)


COPIES_TEXT = (
    "`copies` is how often the build uses a document, and `n_tokens` counts by the tokenizer of the build. `file`, "
    "`offset` and `record_id` locate the landed record in its snapshot. `files.json` lists every file with its SHA-256."
)


def export_in_root(root: str, version: Version, target: Target, on: On) -> dict[str, Any]:
    """Export a version below its own files, where `on` says; return the list of files."""
    export = export_of(root, [version], replace(target, in_root=True, rejects=NO_REJECTS))
    size = f"-{target.shard_bytes}" if target.shard_bytes else ""
    return run(export, f"{root}/{version.prefix}/{EXPORTS}/{target.format}{size}", on)


def export_of(root: str, versions: Sequence[Version], target: Target) -> Export:
    """Return the export of a version of a training dataset, in a format of all rows also of versions of snapshots.

    RecipeError for snapshots in another format.
    """
    format_, version = format_of(target.format), versions[0]
    if isinstance(format_, TableFormat):
        return export_of_tables(root, versions, target, format_)
    if COMPOSE not in version.manifests:
        message = (
            f"{root}: version {version.number} of recipe {version.recipe} is of snapshot {version.snapshot}, and only "
            f"training datasets are exported as {target.format}; build one with `refinery build`"
        )
        raise RecipeError(message)
    if isinstance(format_, TextFormat):
        return _texts(root, version, target, format_)
    return _tokens(root, version, target, format_)


def _tokens(root: str, version: Version, target: Target, format_: Format) -> Export:
    """Return the export of the sequences of a version."""
    dataset = open_dataset(root, version.prefix)
    shard_bytes = target.shard_bytes or format_.shard_bytes
    index = json.loads(read_published_file(root, version.file(NAME)))
    facts = {**facts_of_version(version, target), "dataset": dataset.index.digest, "shard_bytes": shard_bytes}
    shards = shards_of_tokens(dataset, target.format, shard_bytes)
    files = {"default": f"{DATA}/{format_.pattern}"} if format_.pattern else {}
    head = front_matter(version.recipe, configs({**files, "lineage": f"{LINEAGE}/*.parquet"}))
    reading = format_.reading.format(dtype=dataset.index.dtype, length=dataset.index.length)
    dtype = format_.dtypes.get(dataset.index.dtype, dataset.index.dtype)
    middle = [*facts_of({**index, "shards": shards.items, "dtype": dtype}), *how_to_read(reading), LINEAGE_TEXT, ""]
    card = card_of(root, [version], [*head, *made_by(version, target), *middle])

    def beside(shards: Sequence[Written]) -> Mapping[str, bytes]:
        return {**format_.index(dataset.index, shards), **_tokenizer(root, version), CARD: card}

    expected = {name: index[name] for name in ("sequences", "tokens", "pads")}
    return Export(facts, shards, beside, expected)


def _texts(root: str, version: Version, target: Target, format_: TextFormat) -> Export:
    """Return the export of the documents of a version."""
    documents = documents_of(root, version)
    shard_bytes = target.shard_bytes or DEFAULT_BYTES
    facts = {**facts_of_version(version, target), "dataset": digest_of(version.manifests), "shard_bytes": shard_bytes}
    head = front_matter(version.recipe, configs({"default": f"{DATA}/{format_.pattern}"}))
    columns = ", ".join(f"`{name}`" for name in documents.schema.names)
    counted = f"{documents.rows:,} documents, each once, in the order of the build's selection. Columns: {columns}."
    card = card_of(
        root, [version], [*head, *made_by(version, target), counted, "", COPIES_TEXT, "", *how_to_read(format_.reading)]
    )
    shards = shards_of_texts(documents, target.format, shard_bytes)
    return Export(facts, shards, lambda _: {CARD: card}, {"documents": documents.rows})


def _tokenizer(root: str, version: Version) -> dict[str, bytes]:
    """Return the tokenizer of a version by its file's name."""
    paths = [file.path.rpartition("/")[2] for file in version.files]
    return {name: read_published_file(root, version.file(name)) for name in paths if name.startswith("tokenizer.")}
