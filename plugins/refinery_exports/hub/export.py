"""Exports versions as a folder of the Hub: the shards of its configs, and the files beside them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.views.named import KEPT
from pipeline_tasks.inspect.views.rows import STAGE
from pipeline_tasks.publish.datasets.card import front_matter
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.report.croissant import NOT_ASSERTED
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.store.taken_down import takedowns
from refinery_exports.described import CARD, Target, card_of, facts_of_version, how_to_read, made_by
from refinery_exports.exporting import Export
from refinery_exports.format import Written
from refinery_exports.hub.card import Config, croissant, head, languages_of
from refinery_exports.hub.tables import MODEL, Table, shards_of_tables, tables_of
from refinery_exports.text.text_files import TableFormat

CROISSANT = "croissant.json"

COLUMNS_TEXT = (
    "`file`, `offset` and `record_id` locate the landed record in its snapshot. In config `rejects`, `stage` did not "
    "keep the row, `reason` and `evidence` say why, and `outcome` is `rejected` or `quarantined`. `files.json` lists "
    "every file with its SHA-256."
)


def export_of_tables(root: str, versions: Sequence[Version], target: Target, format_: TableFormat) -> Export:
    """Return the export of a version of a training dataset, or of versions of a recipe's snapshots.

    It is without what is taken down now, also if that changes while it is written.
    """
    tables = tables_of(root, versions, target.rejects)
    shard_bytes = target.shard_bytes or format_.shard_bytes
    until = 0 if target.in_root else len(takedowns(root))
    facts = {**_facts(versions, target), "shard_bytes": shard_bytes}
    if not target.in_root:  # what has been taken down since is another export
        facts |= {"takedowns": until, "configs": [table.name for table in tables], "rejected": target.rejects}

    def beside(shards: Sequence[Written]) -> Mapping[str, bytes]:
        configs = [config for config in (_config(table, shards) for table in tables) if config.files]
        if KEPT not in (config.name for config in configs):
            message = f"{root}: all documents of {versions[0].recipe} were taken down; there is nothing to export"
            raise RecipeError(message)
        languages, licenses = (counted(shards, name) for name in ("language", "license"))
        lines = [*front_matter(versions[0].recipe, head(configs, languages, licenses)), *_exported(versions, target)]
        lines += [
            *_counts(configs, counted(shards, STAGE)),
            *_generated(counted(shards, MODEL)),
            COLUMNS_TEXT,
            "",
            *how_to_read(format_.reading),
        ]
        described = croissant(versions[0].recipe, _properties(versions, target, languages, licenses), configs)
        return {
            CARD: card_of(root, versions, lines),
            CROISSANT: json.dumps(described, indent=1, ensure_ascii=False).encode() + b"\n",
        }

    expected = {"rows": sum(table.expected for table in tables)}
    return Export(facts, shards_of_tables(root, tables, target.format, shard_bytes, until), beside, expected)


def _facts(versions: Sequence[Version], target: Target) -> dict[str, Any]:
    several = {"version": [version.number for version in versions]} if len(versions) > 1 else {}
    digest = digest_of([version.manifests for version in versions])
    return {**facts_of_version(versions[0], target), **several, "dataset": digest}


def _config(table: Table, shards: Sequence[Written]) -> Config:
    own = [shard for shard in shards if table.noun in shard.counts]
    rows, size = (sum(shard.counts[name] for shard in own) for name in (table.noun, "bytes"))
    return Config(table.name, table.schema, rows, size, tuple(file for shard in own for file in shard.files))


def counted(shards: Sequence[Written], name: str) -> dict[str, int]:
    """Return the rows of shards by the value of a column that their export counts, in order of the values."""
    rows: dict[str, int] = {}
    for key, count in (each for shard in shards for each in shard.counts.items()):
        column, equals, value = key.partition("=")
        if equals and column == name:
            rows[value] = rows.get(value, 0) + count
    return dict(sorted(rows.items()))


# --- What is said of it -----------------------------------------------------------------------------------------------


def _exported(versions: Sequence[Version], target: Target) -> Iterator[str]:
    if COMPOSE in versions[0].manifests:
        yield from made_by(versions[0], target)
        return
    named = ", ".join(f"{version.snapshot} (version {version.number})" for version in versions)
    yield from (f"Snapshots that recipe `{versions[0].recipe}` refined, exported by Refinery: {named}.", "")


def _counts(configs: Sequence[Config], stages: Mapping[str, int]) -> Iterator[str]:
    yield from ("| config | rows | columns | files |", "|---|---:|---:|---:|")
    for config in configs:
        yield f"| `{config.name}` | {config.rows:,} | {len(config.schema):,} | {len(config.files):,} |"
    yield ""
    if stages:
        yield from ("| stage | rows that it did not keep |", "|---|---:|")
        yield from (f"| `{stage}` | {rows:,} |" for stage, rows in stages.items())
        yield ""


def _generated(models: Mapping[str, int]) -> Iterator[str]:
    """Yield how many documents each model wrote; nothing where none did. Those of "" were written by people."""
    written = {model: rows for model, rows in models.items() if model}
    if written:
        yield from ("| model | documents that it generated of others |", "|---|---:|")
        yield from (f"| `{model}` | {rows:,} |" for model, rows in written.items())
        yield from ("", "`origin` of such a row is `generated`, `parent` is the `id` of its source, and `generation`")
        yield from ("names the prompt, the stretch of the source, the seed, the model, and its license.", "")


def _properties(
    versions: Sequence[Version], target: Target, languages: Mapping[str, int], licenses: Mapping[str, int]
) -> dict[str, Any]:
    """Return what Croissant says of the whole; in the root nothing that another version of the same files would not."""
    recipe = versions[0].recipe
    number = 1 if target.in_root else max(version.number for version in versions)
    at = "" if target.in_root else max(version.at for version in versions)
    [license_, *others] = licenses or [""]
    return {
        "description": f"{recipe}: what Refinery kept, and what it did not keep and why.",
        "license": NOT_ASSERTED if others or not license_ else license_,
        "url": f"urn:refinery:{recipe}:{number}",
        "creator": {"@type": "sc:Organization", "name": "not given"},
        "datePublished": at[:10] or "1970-01-01",
        "version": f"{number}.0.0",
        "inLanguage": list(languages_of(languages)),
        "citeAs": f"{recipe}, version {number}",
    }
