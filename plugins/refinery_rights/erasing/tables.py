"""Rewrites tables of rows without what documents said: shards and layers in Parquet, and segments of history."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.schema import GENERATED_TEXTS
from pipeline_tasks.store.erasures import Erased
from pipeline_tasks.store.shards.file import checked
from pipeline_tasks.store.shards.names import names_rows
from pipeline_tasks.store.shards.rows import ShardRows, facts_of
from pipeline_tasks.store.shards.table import Table, own_rows
from pipeline_tasks.upkeep.rewriting.rows import ADDRESS, blanked, blanked_entries, can_say, sayable, saying
from pipeline_tasks.upkeep.rewriting.tables import rewritten
from refinery_rights.erasing.caches import keys_of, said_in
from refinery_rights.erasing.documents import IDENTITY, Documents

pc: Any = pyarrow.compute

TOKENS = "tokens"
TEXTS = ("text", "title", GENERATED_TEXTS, TOKENS)

KEPT_BYTES = 256 << 20
"""Bytes of the columns by which rows are known that are kept while a root is looked at."""


def names_documents(table: Table) -> bool:
    """Return whether a table has columns of its own by which documents are known, below no layer."""
    return names_rows(table.schema.names)


class Identities:
    """The columns by which the rows of tables are known, of those that these have or rest on.

    As long as nothing is rewritten: what was read is kept, up to `KEPT_BYTES`.
    """

    def __init__(self, root: str) -> None:
        self.root, self._kept, self._bytes = root, dict[str, list[pa.RecordBatch]](), 0

    def of(self, table: Table) -> Iterable[pa.RecordBatch]:
        """Return the rows of a table."""
        kept = self._kept.get(table.shard.path)
        if kept is not None:
            return kept
        read = list(ShardRows(self.root, table.shard, columns=IDENTITY))
        size = sum(batch.nbytes for batch in read)
        if self._bytes + size <= KEPT_BYTES:
            self._kept[table.shard.path], self._bytes = read, self._bytes + size
        return read


def learn(known: Identities, table: Table, documents: Documents) -> Iterator[str | list[int]]:
    """Find the documents of a table that are taken down; yield what they say, where the table says it itself.

    A text is a string, and tokens are their ids.
    """
    root, numbers, start = known.root, [], 0
    for batch in known.of(table):
        found = documents.learn(batch)
        numbers.append(np.flatnonzero(found.to_numpy(zero_copy_only=False)) + start)
        start += batch.num_rows
    rows = np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
    own = set(table.schema.names)
    if not len(rows) or table.is_segment or not own & {*TEXTS, "__changed_text"}:
        return
    columns = [name for name in TEXTS if (name == TOKENS) == (TOKENS in own)]
    if _rests_on_landed(root, table):
        columns = [name for name in columns if name in own - {"text", "title"}]
    if not columns:
        return
    for batch in ShardRows(root, table.shard, columns=columns, rows=rows.astype(np.int64)):
        for name in batch.schema.names:
            values = filter(None, batch.column(name).to_pylist())
            yield from values if name == TOKENS else (text for value in values for text in said_in(value))


def _rests_on_landed(root: str, table: Table) -> bool:
    """Return whether the texts of a layer are read from a landed file."""
    facts = facts_of(table.schema)
    while facts is not None and not {"text", TOKENS} & set(table.schema.names):
        if facts.below.is_landed:
            return True
        with checked(root, facts.below) as source:
            schema = pq.read_schema(source)
        if "text" in schema.names:
            return False
        facts = facts_of(schema)
    return False


@dataclass(frozen=True, slots=True)
class Gone:
    """What is left as address of each row of a table (`Documents.matched`), and the keys of texts that are erased.

    A generated document may be taken down alone: its text is in a list of its parent, which stays.
    """

    addresses: pa.ChunkedArray
    texts: set[str]


def gone(known: Identities, table: Table, documents: Documents, texts: set[str]) -> Gone | None:
    """Return what is erased of a table; None if nothing is."""
    if not can_say(table.schema, segment=table.is_segment):
        return None
    found = Gone(pa.chunked_array([documents.matched(batch) for batch in known.of(table)], ADDRESS), texts)
    in_lists = texts and GENERATED_TEXTS in table.schema.names
    return found if in_lists or found.addresses.null_count < len(found.addresses) else None


def count(root: str, table: Table, found: Gone) -> int:
    """Return how many rows of a table say what they may not."""
    rows = 0
    for batch, part in _with_addresses(own_rows(root, table), found.addresses):
        own = batch.select(sayable(batch.schema, segment=table.is_segment))
        rows += saying(own, part) + sum(map(bool, _entries(own.filter(pc.is_null(part)), found.texts)))
    return rows


def rewrite(root: str, table: Table, found: Gone, rows: int) -> Erased:
    """Store a table again beside itself, with blank rows in place of those that are erased."""
    parts = _with_addresses(own_rows(root, table), found.addresses)
    return rewritten(root, table, (_blanked(table, batch, part, found.texts) for batch, part in parts), rows)


def _blanked(table: Table, batch: pa.RecordBatch, part: pa.Array, texts: set[str]) -> pa.RecordBatch:
    """Return rows in which the columns that may say something are blank where a row is erased."""
    own = blanked(batch.select(sayable(batch.schema, segment=table.is_segment)), part)
    changed = dict(zip(own.schema.names, own.columns, strict=True))
    if entries := _entries(own, texts):
        changed[GENERATED_TEXTS] = blanked_entries(own[GENERATED_TEXTS], entries)
    columns = [changed.get(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _entries(own: pa.RecordBatch, texts: set[str]) -> list[list[int]]:
    """Return of each row the places of generated texts with these keys; nothing of rows without such texts."""
    if not texts or GENERATED_TEXTS not in own.schema.names:
        return []
    lists = own[GENERATED_TEXTS].to_pylist()
    return [[at for at, each in enumerate(row or ()) if texts & keys_of(*said_in([each]))] for row in lists]


def _with_addresses(
    batches: Iterator[pa.RecordBatch], found: pa.ChunkedArray
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    start = 0
    for batch in batches:
        part = found.slice(start, batch.num_rows).combine_chunks()
        yield batch, part.chunk(0) if isinstance(part, pa.ChunkedArray) else part
        start += batch.num_rows
