"""Describes a version in Croissant 1.1: its files with size and SHA-256, their columns, and what it was made from.

Provenance is W3C PROV-O, as the format recommends: the version was derived from its snapshots, and these from the
crawls or sets that they were pulled from; where such a one has a Croissant file of its own, it is pointed at.
https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.publish.exports.shards import PIECES
from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.recipe import LAND
from pipeline_tasks.report.croissant import NOT_ASSERTED, Node, dataset, file_object, file_set, record_set
from pipeline_tasks.sealed import canonical, sha256
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.shards.file import checked
from pipeline_tasks.store.shards.layer_columns import ROW
from pipeline_tasks.store.shards.rows import layers_of
from refinery_rights.disclose.facts import Facts
from refinery_rights.disclose.origins import SourceOrigin
from refinery_rights.statements.statement import steps_of, writers


def croissant(facts: Facts) -> Node:
    """Return the description of a version as JSON-LD. Addresses of files are relative to the root."""
    about, version = facts.about, facts.version
    sets = list(_file_sets(facts))
    properties = {
        "description": about.description or _description(facts),
        "license": about.licence or NOT_ASSERTED,
        "url": about.url or identifier(facts),
        "creator": {"@type": "sc:Organization", "name": about.provider or "not given"},
        "datePublished": version.at[:10] or "1970-01-01",
        "version": f"{version.number}.0.0",
        "inLanguage": [name for name, _ in facts.counts.languages() if name],
        "citeAs": about.citation or f"{facts.name}, {identifier(facts)}",
        "prov:wasDerivedFrom": [_derived_from(facts, origin) for origin in facts.origins],
        "prov:wasGeneratedBy": _generated_by(facts),
    }
    files = [*map(file_object, facts.files), *(node for node, _ in sets)]
    records = [record_set(node, _shown(schema)) for node, schema in sets if schema is not None]
    return dataset(f"{version.recipe}-{version.number}", properties, files, records)


def _shown(schema: pa.Schema) -> pa.Schema:
    """Return the columns that a description names: of a layer's own the row below alone."""
    return pa.schema([column for column in schema if not column.name.startswith("__") or column.name == ROW])


def identifier(facts: Facts) -> str:
    """Return a URN of a version: its entry of the log by the SHA-256."""
    [entry] = [each for each in facts.evidence.listed() if each["id"] == facts.entry]
    return f"urn:sha256:{entry['sha256']}"


def _description(facts: Facts) -> str:
    total = facts.total
    return (
        f"{facts.name}: {total.documents:,} documents with {total.bytes:,} bytes of text. Paths of files are relative "
        "to the root of Refinery that published it."
    )


def _file_sets(facts: Facts) -> Iterator[tuple[Node, pa.Schema | None]]:
    """Yield the sets of files that are alike, each with its columns; None for files that are no tables."""
    if facts.is_dataset:
        kinds = (("tokens", ".bin", None), ("ends", ".ends", None), ("pieces", ".lineage.parquet", PIECES))
        for name, ending, schema in kinds:
            chosen = [file for file in facts.files if file.path.endswith(ending)]
            if chosen:
                yield file_set(name, DESCRIPTIONS[name], chosen), schema
        return
    yield from _document_sets(facts)


DESCRIPTIONS: Mapping[str, str] = {
    "tokens": "Ids of tokens, little-endian and without a header; dataset.json has their type and the length.",
    "ends": "Positions at which pieces of documents end, as ascending 64-bit numbers.",
    "pieces": "A row per piece of a document: where its tokens are, and the landed record that it came from.",
    "documents": "The columns that the last stage wrote, of all documents in their order.",
    "below": (
        "The rows that the files above it rest on: __row of a layer is the row of a file below. The texts in it are "
        "those before later stages changed or scrubbed them."
    ),
}
"""What the sets of files are."""


def _document_sets(facts: Facts) -> Iterator[tuple[Node, pa.Schema]]:
    """Yield the shards of a snapshot's documents, and below layers those that their rows come from, by depth."""
    refined = read_manifest(facts.root, facts.version.refined)
    chains = [[part for part in layers_of(facts.root, shard) if not part.is_landed] for shard in refined.shards]
    for depth in range(max(map(len, chains), default=0)):
        level = {chain[depth].path: chain[depth] for chain in chains if len(chain) > depth}
        shards = [level[path] for path in sorted(level)]
        name = "documents" if depth == 0 else f"below-{depth}"
        files = [PublishedFile(shard.path, shard.bytes, shard.digest) for shard in shards]
        description = DESCRIPTIONS["documents" if depth == 0 else "below"]
        yield file_set(name, description, files), _physical(facts.root, shards[0])


def _physical(root: str, shard: Shard) -> pa.Schema:
    """Return the columns that a file has by itself."""
    with checked(root, shard) as source:
        return pq.read_schema(source)


# --- Provenance ------------------------------------------------------------------------------------------------------


def source_identifier(origin: SourceOrigin) -> str:
    """Return an address of a source: its own Croissant file, its page, else a URN of what landed."""
    if origin.about.croissant:
        return origin.about.croissant
    query, kind = origin.note.query, origin.note.kind
    if kind == "hugging_face" and query.get("repository"):
        address = str(query.get("address") or "https://huggingface.co").rstrip("/")
        return f"{address}/api/datasets/{query['repository']}/croissant"
    if kind.startswith("common_crawl") and query.get("crawl"):
        address = str(query.get("address") or "https://data.commoncrawl.org").rstrip("/")
        return f"{address}/crawl-data/{query['crawl']}/index.html"
    return origin.about.link or f"urn:refinery:landing:{origin.version.recipe}:{origin.version.snapshot}"


def _derived_from(facts: Facts, origin: SourceOrigin) -> Node:
    """Return a snapshot as an entity: what it was pulled from, its manifest, and the landed files."""
    version, digests = origin.version, origin.stated.digests
    period = next((each for each in facts.periods if each.snapshot == version.snapshot), None)
    collected = {"prov:startedAtTime": period.first, "prov:endedAtTime": period.last} if period and period.first else {}
    manifest = {"identifier": f"sha256:{digests[LAND]}"} if LAND in digests else {}
    return {
        "@type": "prov:Entity",
        "@id": source_identifier(origin),
        "prov:label": f"{origin.name}, snapshot {version.snapshot}: {origin.files:,} files of {origin.bytes:,} bytes",
        **manifest,
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "prov:label": origin.kind,
            **collected,
            "prov:wasAssociatedWith": [
                {"@type": "prov:SoftwareAgent", "prov:label": crawler.name} for crawler in origin.crawlers
            ],
        },
    }


def _generated_by(facts: Facts) -> Node:
    """Return what made a version: the recipe of each part by the digest of its steps, and the code that ran them."""
    plans = [
        {
            "@type": "prov:Plan",
            "@id": f"urn:sha256:{sha256(canonical(steps_of(each)))}",
            "prov:label": f"recipe {each.version.recipe}: {', '.join(step['stage'] for step in steps_of(each))}",
        }
        for each in facts.stated
    ]
    return {
        "@type": "prov:Activity",
        "prov:label": f"Refinery: {facts.name}",
        "prov:endedAtTime": facts.version.at,
        "prov:used": list({plan["@id"]: plan for plan in plans}.values()),
        "prov:wasAssociatedWith": {
            "@type": "prov:SoftwareAgent",
            "prov:label": f"Refinery, {', '.join(writers(facts.stated))}",
        },
    }
