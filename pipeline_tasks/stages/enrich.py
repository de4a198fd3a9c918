"""Annotates documents with what they are: type, reading level, licence notice, structure, and an estimate of tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.facets import UnitCost
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import ENTITY
from pipeline_tasks.scorers.answers import Answer, answered
from pipeline_tasks.scorers.entities import Entity, EntityFinder, counted_labels
from pipeline_tasks.stage import (
    NO_FILE,
    Batches,
    Engine,
    FilePath,
    Idle,
    KnownRows,
    Layer,
    Shards,
    Stage,
    always,
    reject,
    replace_columns,
)

pc: Any = pyarrow.compute

TYPE, LEVEL, NOTICE = "document_type", "reading_level", "license_notice"

STRUCTURE = ("headings", "list_lines", "table_rows", "code_lines")

COLUMNS = pa.schema(
    [
        pa.field(TYPE, pa.string()),  # `unknown` where the rules do not decide
        pa.field("reading_ease", pa.float64()),  # Flesch's scale, by the formula of the language; null if unknown
        pa.field(LEVEL, pa.string()),  # `easy`, `standard`, `hard`, `very_hard`, `unknown`
        pa.field(NOTICE, pa.string()),  # the first notice of a licence; `unknown` where there is none
        pa.field("license_start", pa.int64()),  # first code point of the notice in `text`; null without one
        pa.field("license_end", pa.int64()),  # past its last one
        *(pa.field(name, pa.int64()) for name in STRUCTURE),  # lines of each kind
        pa.field("structure_ratio", pa.float64()),  # share of the bytes in lists, tables and code
        pa.field("token_estimate", pa.int64()),
    ]
)


ENTITIES, MAIN, TOTAL, COUNTS = "entities", "entity_label", "entity_count", "entity_counts"

ENTITY_COLUMNS = pa.schema(
    [
        pa.field(ENTITIES, pa.list_(ENTITY)),  # in order; null where the pipeline is for another language
        pa.field(MAIN, pa.string()),  # the label of most entities, the first of several; `none` without any
        pa.field(TOTAL, pa.int64()),
        pa.field(COUNTS, pa.string()),  # `PERSON:4 GPE:1`, the most frequent first
    ]
)

NO_ENTITY = "none"
UNREAD = "unread"
"""What `entity_label` says of a text in another language than the pipeline's."""

FAILED = "error:enrich"

KIND = pa.struct([*ENTITY_COLUMNS, pa.field("error", pa.string())])


@dataclass(frozen=True, slots=True)
class Params:
    """Rules are data files of the package, and their version is the stage's.

    `entities` is the folder of a spaCy pipeline (`meta.json`, `config.cfg`; `hf://owner/name@commit` for one of the
    hub), which finds names in texts of its language, and in those of all languages if it is of several (`xx`). It needs
    the extra `entities`. A document that it fails on is quarantined.
    """

    entities: FilePath = field(default=NO_FILE, metadata={OMITTED: NO_FILE})


def enrich(docs: Batches) -> Batches:
    """Yield every document with COLUMNS; texts are read once, and do not change."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.kinds.document_types import ANY_LANGUAGE, cues, document_types
    from pipeline_tasks.text.kinds.measures import measures
    from pipeline_tasks.text.kinds.reading import SILENT_E, reading_ease, reading_levels
    from pipeline_tasks.text.kinds.tokens import token_estimates

    known = cues()
    for batch in docs:
        languages = _languages(batch)
        numbers = np.array([known.languages.get(code, ANY_LANGUAGE - 1) for code in languages], np.int64)
        silent = np.array([code in SILENT_E for code in languages], np.bool_)
        found = measures(views(batch["text"]), numbers, silent, known.table, known.meanings, len(known.types))
        ease, counts = reading_ease(found, languages), found.counts
        kinds, none = found.notices[:, 0], found.notices[:, 0] < 0
        structured = counts["list_bytes"] + counts["table_bytes"] + counts["code_bytes"]
        columns = {
            TYPE: document_types(found, batch["url"]),
            "reading_ease": pa.array(ease, mask=np.isnan(ease)),
            LEVEL: reading_levels(ease),
            NOTICE: pa.array([*known.notices, "unknown"], pa.string()).take(pa.array(kinds % (len(known.notices) + 1))),
            "license_start": pa.array(found.notices[:, 1], mask=none),
            "license_end": pa.array(found.notices[:, 2], mask=none),
            **{name: pa.array(counts[name]) for name in STRUCTURE},
            "structure_ratio": pa.array(structured / np.maximum(counts["bytes"], 1)),
            "token_estimate": pa.array(token_estimates(found, languages)),
        }
        yield replace_columns(batch, columns)


def find_entities(finder: EntityFinder, docs: Batches, known: KnownRows) -> Batches:
    """Append ENTITY_COLUMNS of texts that the pipeline is for; quarantine what it fails on."""

    def found(texts: pa.Array) -> list[Answer]:
        return [_answer(finder.find(text) if text else []) for text in texts.to_pylist()]

    for batch in docs:
        is_read = finder.reads_rows(batch)
        texts = pc.if_else(is_read, batch["text"], pa.scalar(None, batch["text"].type))
        rows, stored = _known(known, texts)
        answers = answered(texts, rows, stored, KIND, found)
        errors = pc.struct_field(answers, "error")
        columns = {}
        for column in ENTITY_COLUMNS:
            values = pc.if_else(is_read, pc.struct_field(answers, column.name), pa.scalar(None, column.type))
            columns[column.name] = pc.if_else(is_read, values, UNREAD) if column.name == MAIN else values
        reasons = pc.if_else(pc.is_valid(errors), pa.scalar(FAILED), pa.scalar(None, pa.string()))
        yield reject(replace_columns(batch, columns), reasons, errors)


def _answer(entities: list[Entity]) -> Answer:
    counts = counted_labels(entities)
    return {
        ENTITIES: [each._asdict() for each in entities],
        MAIN: counts[0][0] if counts else NO_ENTITY,
        TOTAL: len(entities),
        COUNTS: " ".join(f"{label}:{count}" for label, count in counts),
    }


def _known(known: KnownRows, texts: pa.Array) -> tuple[pa.Table, pa.Array | None]:
    """Return which texts a cache knows, and their answers; what was not read or failed is asked again."""
    rows = known.rows(texts)
    if TOTAL not in rows.column_names:
        return rows, None
    columns = [rows.column(name).combine_chunks() for name in ENTITY_COLUMNS.names]
    stored = pa.StructArray.from_arrays([*columns, pa.nulls(rows.num_rows, pa.string())], fields=list(KIND))
    return rows.set_column(0, "known", pc.is_valid(rows.column(TOTAL))), stored


def _languages(batch: pa.RecordBatch) -> list[str]:
    """Return the code of each document's language without script and region, "" where there is none."""
    if "language" not in batch.schema.names:
        return [""] * batch.num_rows
    return [(code or "").partition("-")[0].partition("_")[0] for code in batch["language"].to_pylist()]


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Find entities if a pipeline is named, then annotate every shard by itself."""
    if params.entities:
        shards = on.map(
            find_entities,
            shards,
            layer=Layer(reads=("text", "language"), stores=tuple(ENTITY_COLUMNS.names)),
            prepare=partial(EntityFinder, params.entities),
            cache=ENTITIES,
        )
    layer = Layer(reads=("text", "chars", "url", "language"), stores=tuple(COLUMNS.names))
    return on.map(partial(enrich), shards, layer=layer)


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the folder of the pipeline."""
    return (params.entities,) if params.entities else ()


def check_files(params: Params) -> None:
    """Raise RecipeError unless the pipeline can be read, and spaCy is installed."""
    if params.entities:
        EntityFinder(params.entities)


def idle(params: Params, profiles: Mapping[str, Any]) -> tuple[Idle, ...]:
    """Return that no text was in the language of the pipeline, or that it found nothing in any."""
    labels = profiles.get(MAIN, {}).get("bins", {}) if params.entities else {}
    if not labels or set(labels) - {NO_ENTITY, UNREAD}:
        return ()
    lacks = "no text is in the language of `entities`" if NO_ENTITY not in labels else "`entities` finds no name"
    return (Idle(lacks, "name a pipeline of the language of the documents, or leave it out"),)


def writes_for(params: Params) -> pa.Schema:
    """Return the columns of entities, if a pipeline is named."""
    return ENTITY_COLUMNS if params.entities else pa.schema([])


_READS = pa.schema([pa.field("text", pa.large_string()), pa.field("url", pa.string())])

_PROFILED = (
    *(TYPE, LEVEL, NOTICE, "reading_ease", *STRUCTURE),
    *("structure_ratio", "token_estimate", "chars", "language", MAIN, TOTAL),
)

STAGE = Stage(
    name="enrich",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    idle=idle,
    has_state=lambda params: bool(params.entities),
    reads=_READS,
    writes=pa.schema([*_READS, *COLUMNS]),
    writes_for=writes_for,
    version=2,
    splits=True,
    libraries={UNICODE: always},
    profiled=_PROFILED,
    title="Say what each document is",
    cost=UnitCost(0.06, 1.00, 0.02, 2),
)
