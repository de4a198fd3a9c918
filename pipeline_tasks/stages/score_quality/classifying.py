"""Score documents by models, without a change to their text: a row that a model fails on is named, and not lost.

Stages that ask models of their own share this: `score_quality` and `filter_toxicity`.
"""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.scorers.answers import Answer, answered
from pipeline_tasks.scorers.classifier import Classifier, computing
from pipeline_tasks.scorers.scorer import Scorer, load
from pipeline_tasks.stage import Batches, Engine, KnownRows, Layer, Shards, replace_column

pc: Any = pyarrow.compute

MEASURED = "classified_"
"""Prefix of the column of a classifier, which no other stage gets: a struct of score, share seen, and error."""

KIND = pa.struct([("score", pa.float64()), ("seen", pa.float64()), ("error", pa.string())])


def classify(scorer: Scorer, docs: Batches, known: KnownRows, *, name: str) -> Batches:
    """Append `classified_<name>`: what is known of a row, and the scorer's answer for all other rows."""
    column = MEASURED + name

    def scored(texts: pa.Array) -> list[Answer]:
        scores = scorer.scores(texts)
        nothing = np.isnan(scores.values).tolist()
        pairs = zip(scores.values.tolist(), scores.seen.tolist(), nothing, strict=True)
        return [None if empty else {"score": value, "seen": seen} for value, seen, empty in pairs]

    for batch in docs:
        texts = batch.column("text")
        rows = known.rows(texts)
        stored = rows.column(column).combine_chunks() if column in rows.column_names else None
        yield replace_column(batch, column, answered(texts, rows, stored, KIND, scored))


def classify_all(shards: Shards, classifiers: Mapping[str, Classifier], on: Engine) -> Shards:
    """Classify every shard by each model, whose name its column has: a shared layer of each, known texts not again."""
    for name in sorted(classifiers):
        shards = on.map(
            partial(classify, name=name),
            shards,
            layer=Layer(reads=("text",), stores=(MEASURED + name,), shared=True),
            prepare=partial(load, computing(classifiers[name])),
            cache=name,
        )
    return shards


def least_seen(classified: Collection[pa.Array], rows: int) -> pa.Array:
    """Return the least share of each text that a model read; null where none did."""
    shares = [pc.struct_field(answers, "seen") for answers in classified]
    return pc.min_element_wise(*shares) if shares else pa.nulls(rows, pa.float64())


def failures_first(
    reasons: pa.Array, evidence: pa.Array, classified: Mapping[str, pa.Array], failed: str
) -> tuple[pa.Array, pa.Array]:
    """Return reasons and evidence with `failed:<name>` and the model's error for rows that one failed on."""
    for name, answers in classified.items():
        errors = pc.struct_field(answers, "error")
        reasons = pc.if_else(pc.is_valid(errors), pa.scalar(f"{failed}:{name}"), reasons)
        evidence = pc.if_else(pc.is_valid(errors), errors, evidence)
    return reasons, evidence
