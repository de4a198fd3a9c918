"""Score documents by a model, without a change to their text: a row that the model fails on is named, and not lost."""

import numpy as np
import pyarrow as pa

from pipeline_tasks.scorers.faults import is_of_machine
from pipeline_tasks.scorers.scorer import Scorer, Scores
from pipeline_tasks.stage import Batches, KnownRows, replace_column

MEASURED = "classified_"
"""Prefix of the column of a classifier, which no other stage gets: a struct of score, share seen, and error."""

KIND = pa.struct([("score", pa.float64()), ("seen", pa.float64()), ("error", pa.string())])

MOST_ERROR = 200
"""Characters of a model's error that are kept as evidence."""

FAILURES = (RuntimeError, ValueError, LookupError, TypeError, ArithmeticError)
"""What a model raises for a text that it cannot read; all else is the machine's, or ours."""


def classify(scorer: Scorer, docs: Batches, known: KnownRows, *, name: str) -> Batches:
    """Append `classified_<name>`: what is known of a row, and the scorer's answer for all other rows."""
    column = MEASURED + name
    for batch in docs:
        known_rows = known.rows(batch.column("id"))
        yield replace_column(batch, column, _completed(batch, known_rows, column, scorer))


def _completed(batch: pa.RecordBatch, known_rows: pa.Table, column: str, scorer: Scorer) -> pa.Array:
    """Return a row's known value, else the scorer's; null for a row without text."""
    ids, text = batch.column("id").to_pylist(), batch.column("text")
    values = (
        dict(zip(known_rows.column("id").to_pylist(), known_rows.column(column).to_pylist(), strict=True))
        if known_rows.num_rows
        else {}
    )
    missing = [row for row, key in enumerate(ids) if key is None or key not in values]
    answers = iter(_answers(scorer, text.take(pa.array(missing, pa.int64()))))
    asked = set(missing)
    return pa.array([next(answers) if row in asked else values[key] for row, key in enumerate(ids)], KIND)


def _answers(scorer: Scorer, texts: pa.Array) -> list[dict[str, object] | None]:
    """Return the score of each text; texts that a model fails on are found by halves, and have its error."""
    if not len(texts):
        return []
    try:
        return _rows(scorer.scores(texts))
    except FAILURES as error:
        if is_of_machine(error):
            raise
        if len(texts) == 1:
            return [{"score": None, "seen": None, "error": f"{type(error).__name__}: {error}"[:MOST_ERROR]}]
    half = len(texts) // 2
    return [*_answers(scorer, texts.slice(0, half)), *_answers(scorer, texts.slice(half))]


def _rows(scores: Scores) -> list[dict[str, object] | None]:
    nothing = np.isnan(scores.values).tolist()
    pairs = zip(scores.values.tolist(), scores.seen.tolist(), nothing, strict=True)
    return [None if empty else {"score": value, "seen": seen, "error": None} for value, seen, empty in pairs]
