"""Computes facts of identity: rows that share a record or an id. No other fact reads rows."""

from collections.abc import Iterable

import pyarrow as pa

from pipeline_tasks.gate.estimates import Facts, exact
from pipeline_tasks.gate.facts.subject import Family, Subject
from pipeline_tasks.store.reading import read_shards, sampled

SAMPLE_BYTES = 64 * 1024 * 1024
"""Whole shards of at most this many bytes together, in the order of their digests, are read."""

RECORD = ("source", "snapshot", "file", "offset")
"""Columns that no two rows of a table of documents share."""


def count_repeats(subject: Subject) -> Facts:
    """Return how many rows of a sample of whole shards share a record or an id; None without such columns."""
    names = [name for name, _ in subject.manifest.schema]
    facts: Facts = {"duplicate_records": None, "duplicate_ids": None}
    sample = tuple(sampled(subject.manifest.shards, SAMPLE_BYTES))
    if not sample or not set(RECORD) <= set(names):
        return facts
    copy = ("copy",) if "copy" in names else ()
    columns = [*RECORD, *copy, *(["id"] if "id" in names else [])]
    table = pa.Table.from_batches(list(read_shards(subject.root, sample, columns)))
    facts["duplicate_records"] = exact(_repeats(table, (*RECORD, *copy)))
    if "id" in names:
        facts["duplicate_ids"] = exact(_repeats(table, ("id", *copy)))
    return facts


def _repeats(table: pa.Table, columns: Iterable[str]) -> int:
    return int(table.num_rows - table.group_by(list(columns)).aggregate([]).num_rows)


IDENTITY = Family(
    count_repeats,
    {
        "duplicate_records": "rows of the sample that share a landed record, and are the same copy of it",
        "duplicate_ids": "rows of the sample that share an id, and are the same copy",
    },
)
