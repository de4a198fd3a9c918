"""Score documents by a model, without a change to their text: a row that the model fails on is named, and not lost."""

import numpy as np
import pyarrow as pa

from pipeline_tasks.scorers.answers import Answer, answered
from pipeline_tasks.scorers.scorer import Scorer
from pipeline_tasks.stage import Batches, KnownRows, replace_column

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
