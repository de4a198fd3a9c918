"""Add a vector of each text, by which documents that say the same in other words are near each other."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.facets import UnitCost, VectorModel
from pipeline_tasks.schema import DOCUMENT, EMBEDDING, EMBEDDING_LANGUAGES, EMBEDDING_MODEL
from pipeline_tasks.scorers.answers import Answer, answered
from pipeline_tasks.scorers.embedder import Embedder, EmbeddingModel, check_embedder, load_embedder, name_of_vectors
from pipeline_tasks.scorers.model_card import languages_of
from pipeline_tasks.stage import Batches, Engine, FilePath, KnownRows, Layer, Shards, Stage, reject, replace_columns
from pipeline_tasks.text.near.vectors import packed

pc: Any = pyarrow.compute

SEEN = "embedding_seen"
"""Column: the share of the text that the model read."""

FAILED = "error:embed"

KIND = pa.struct(
    [(EMBEDDING, pa.large_binary()), (EMBEDDING_MODEL, pa.string()), (SEEN, pa.float64()), ("error", pa.string())]
)
STORED = (EMBEDDING, EMBEDDING_MODEL, SEEN)


@dataclass(frozen=True, slots=True)
class Params(EmbeddingModel):
    """The model that makes the vectors, and how it reads texts.

    `embedding` has float16 numbers, little-endian, of a vector of length 1, and is empty for a text without a token.
    `embedding_model` names the model by its digest: vectors of two models cannot be compared. `embedding_seen` is the
    share of the text that the model read. `embedding_languages` are the languages that the model's card says it knows
    (`language` in its README.md), null where it says none. No text is changed. A document that the model fails on is
    quarantined.
    """


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the folder of the model."""
    return (params.model,)


def embed(embedder: Embedder, docs: Batches, known: KnownRows) -> Batches:
    """Append the vector of each text, the model's name and languages, and the share read.

    What the model fails on is quarantined.
    """
    languages = pa.scalar(",".join(embedder.languages) or None, pa.string())

    def embedded(texts: pa.Array) -> list[Answer]:
        found = embedder.embed([text or "" for text in texts.to_pylist()])
        shares = [None if np.isnan(share) else share for share in found.seen.tolist()]
        return [
            {EMBEDDING: vector, EMBEDDING_MODEL: embedder.name, SEEN: share}
            for vector, share in zip(packed(found.vectors).to_pylist(), shares, strict=True)
        ]

    for batch in docs:
        texts = batch.column("text")
        rows, stored = _known(known, texts)
        answers = answered(texts, rows, stored, KIND, embedded)
        columns = {name: pc.struct_field(answers, name) for name in STORED}
        columns[EMBEDDING_LANGUAGES] = pa.repeat(languages, batch.num_rows)
        errors = pc.struct_field(answers, "error")
        reasons = pc.if_else(pc.is_valid(errors), pa.scalar(FAILED), pa.scalar(None, pa.string()))
        yield reject(replace_columns(batch, columns), reasons, errors)


def _known(known: KnownRows, texts: pa.Array) -> tuple[pa.Table, pa.Array | None]:
    """Return which texts a cache knows, and their answers; a text that the model failed on is asked again."""
    rows = known.rows(texts)
    if EMBEDDING not in rows.column_names:
        return rows, None
    columns = [rows.column(name).combine_chunks() for name in STORED]
    stored = pa.StructArray.from_arrays([*columns, pa.nulls(rows.num_rows, pa.string())], fields=list(KIND))
    return rows.set_column(0, "known", pc.is_valid(columns[0])), stored


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Embed every shard by itself."""
    return on.map(
        embed,
        shards,
        layer=Layer(reads=("text",), stores=(*STORED, EMBEDDING_LANGUAGES)),
        prepare=partial(load_embedder, params),
        cache="embedding",
    )


def vectors(params: Params) -> VectorModel:
    """Return the model, which is not loaded for it."""
    return VectorModel(name_of_vectors(params), languages_of(Path(params.model)))


STAGE = Stage(
    name="embed",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_embedder,
    has_state=lambda _: True,
    reads=DOCUMENT,
    writes=pa.schema(
        [
            *DOCUMENT,
            pa.field(EMBEDDING, pa.large_binary()),
            pa.field(EMBEDDING_MODEL, pa.string()),
            pa.field(SEEN, pa.float64()),
            pa.field(EMBEDDING_LANGUAGES, pa.string()),
        ]
    ),
    version=2,
    splits=True,
    engine="ray",
    profiled=(EMBEDDING_MODEL, SEEN, EMBEDDING_LANGUAGES),
    title="embeddings",
    cost=UnitCost(60.0, 1.2, 0.2, 4),
    vectors=vectors,
    derived_from=("text", "title"),
)
