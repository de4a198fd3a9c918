"""Computes facts of identity: rows that share a record or an id. No other fact reads rows."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.gate.estimates import Facts, exact
from pipeline_tasks.gate.facts.subject import Family, Subject
from pipeline_tasks.schema import OF_GENERATOR, ORIGIN
from pipeline_tasks.store.reading import read_shards, sampled

SAMPLE_BYTES = 64 * 1024 * 1024
"""Whole shards of at most this many bytes together, in the order of their digests, are read."""

RECORD = ("source", "snapshot", "file", "offset")
"""Columns that no two rows of a table of documents share; generated documents share those of their source."""


def count_repeats(subject: Subject) -> Facts:
    """Return how many rows of a sample of whole shards share a record or an id; None without such columns."""
    names = [name for name, _ in subject.manifest.schema]
    facts: Facts = {"duplicate_records": None, "duplicate_ids": None}
    sample = tuple(sampled(subject.manifest.shards, SAMPLE_BYTES))
    if not sample or not set(RECORD) <= set(names):
        return facts
    copy = ("copy",) if "copy" in names else ()
    columns = [*RECORD, *copy, *(name for name in ("id", ORIGIN) if name in names)]
    table = pa.Table.from_batches(list(read_shards(subject.root, sample, columns)))
    facts["duplicate_records"] = exact(_repeats(_told_apart(table), (*RECORD, *copy, *_OFFSPRING)))
    if "id" in names:
        facts["duplicate_ids"] = exact(_repeats(table, ("id", *copy)))
    return facts


_OFFSPRING = ("offspring",)
"""A column beside those of a record: the id of a generated document, null of any other."""


def _told_apart(table: pa.Table) -> pa.Table:
    nothing = pa.nulls(table.num_rows, pa.string())
    if ORIGIN not in table.column_names:
        return table.append_column(*_OFFSPRING, nothing)
    is_generated = pc.fill_null(pc.equal(table[ORIGIN], OF_GENERATOR), fill_value=False)
    return table.append_column(*_OFFSPRING, pc.if_else(is_generated, table["id"], nothing))


def _repeats(table: pa.Table, columns: Iterable[str]) -> int:
    return int(table.num_rows - table.group_by(list(columns)).aggregate([]).num_rows)


IDENTITY = Family(
    count_repeats,
    {
        "duplicate_records": "rows of the sample that share a landed record, and are the same copy of it, or the same "
        "generated document",
        "duplicate_ids": "rows of the sample that share an id, and are the same copy",
    },
)
