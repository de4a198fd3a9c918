"""Find names of persons and postal addresses by a model, without a change to any text; other stages do not see them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.schema import ENTITY
from pipeline_tasks.scorers.answers import Answer, NothingKnown, answered
from pipeline_tasks.scorers.entities import EntityFinder
from pipeline_tasks.stage import Batches, KnownRows, replace_column
from pipeline_tasks.text.pii.candidates import Span
from pipeline_tasks.text.pii.kinds import Kind

pc: Any = pyarrow.compute

Named = Literal["name", "address"]
"""The kinds that only a model finds."""

FOUND = "named_"
"""Prefix of the column of what a model found in `text` or `title`: of every label, since the recipe chooses later."""

KIND = pa.struct([("entities", pa.list_(ENTITY)), ("error", pa.string())])
"""Null where the pipeline is for another language."""


def find_names(finder: EntityFinder, docs: Batches, known: KnownRows | None = None, *, column: str) -> Batches:
    """Append `named_<column>`: what the pipeline finds in the texts that it is for, or why it fails on one."""
    name = FOUND + column

    def found(texts: pa.Array) -> list[Answer]:
        return [{"entities": [each._asdict() for each in finder.find(text or "")]} for text in texts.to_pylist()]

    for batch in docs:
        is_read = finder.reads_rows(batch)
        texts = pc.if_else(is_read, _texts(batch, column), pa.scalar(None, pa.large_string()))
        rows, stored = _known(known or NothingKnown(), texts, name)
        answers = answered(texts, rows, stored, KIND, found)
        yield replace_column(batch, name, pc.if_else(is_read, answers, pa.scalar(None, KIND)))


def _texts(batch: pa.RecordBatch, column: str) -> pa.Array:
    if column not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.large_string())
    return batch.column(column).cast(pa.large_string())


def _known(known: KnownRows, texts: pa.Array, name: str) -> tuple[pa.Table, pa.Array | None]:
    """Return which texts a cache knows, and their answers; what was not read or failed is asked again."""
    rows = known.rows(texts)
    if name not in rows.column_names:
        return rows, None
    stored: Any = rows.column(name).combine_chunks()
    return rows.set_column(0, "known", pc.is_valid(pc.struct_field(stored, "entities"))), stored


def named_in(batch: pa.RecordBatch, column: str, labels: Mapping[str, Kind]) -> list[list[Span] | None] | None:
    """Return what a model found in each text of a column, of some labels; None without a model.

    Spans are bytes of the text, in order, without the blanks at their ends. Of a text that was not read there is None.
    """
    if FOUND + column not in batch.schema.names:
        return None
    entities = pc.struct_field(batch.column(FOUND + column), "entities").to_pylist()
    if column not in batch.schema.names:
        return [None if found is None else [] for found in entities]
    texts = batch.column(column)
    return [
        None if found is None else _spans(texts[row].as_py() or "", found, labels) if found else []
        for row, found in enumerate(entities)
    ]


def _spans(text: str, entities: Sequence[Mapping[str, Any]], labels: Mapping[str, Kind]) -> list[Span]:
    """Return entities as spans of bytes; the value is the name in small letters, with one blank between words."""
    spans = []
    place = at = 0
    for entity in entities:
        if entity["label"] not in labels:
            continue
        value = text[entity["start"] : entity["end"]]
        start = entity["start"] + len(value) - len(value.lstrip())
        at, place = at + len(text[place:start].encode()), start
        end = at + len(value.strip().encode())
        if end > at:
            spans.append(Span(at, end, labels[entity["label"]], " ".join(value.casefold().split())))
    return spans


def errors_of(batch: pa.RecordBatch) -> pa.Array:
    """Return why the model fails on each row, null where it does not."""
    errors = pa.nulls(batch.num_rows, pa.string())
    for name in (FOUND + "text", FOUND + "title"):
        if name in batch.schema.names:
            errors = pc.coalesce(errors, pc.struct_field(batch.column(name), "error"))
    return errors
