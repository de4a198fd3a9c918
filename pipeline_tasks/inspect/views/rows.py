"""The rows behind views: of shards that a version's manifests name, each checked by its digest before it is read.

Rows of documents that are taken down now are left out, whenever the version was made.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline_tasks.inspect.views.column_types import schema_of, united
from pipeline_tasks.manifest import schema_pairs
from pipeline_tasks.schema import DOCUMENT, KNOWN_BY, VERDICT
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import current
from pipeline_tasks.store.reading import conformed, read_shards
from pipeline_tasks.store.shards.file import checked
from pipeline_tasks.store.shards.layer_columns import ROW
from pipeline_tasks.store.shards.rows import facts_of
from pipeline_tasks.text.urls.takedown import TakenDown, evidence

STAGE = "stage"
"""The column that says which stage did not keep a row."""

PAYLOAD = "payload"
"""The column of raw bytes: they are where they landed, and no view has it."""

ID = "id"

ALWAYS = pa.schema([pa.field(STAGE, pa.string()), *VERDICT, *DOCUMENT])
"""Columns that rows have that were not kept, whichever they are: a query may name them where there are none."""


@dataclass(slots=True)
class Hidden:
    """What is taken down, and how many rows were left out for it."""

    taken: TakenDown
    rows: int = 0
    lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is taken down."""
        return self.taken.is_empty

    def visible(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of documents that are not taken down, and count the others."""
        with self.lock:  # several views may be read at once
            is_taken = pc.is_valid(evidence(self.taken, batch))
            left = batch.filter(pc.invert(is_taken))
            self.rows += batch.num_rows - left.num_rows
        return left


@dataclass(frozen=True, slots=True)
class Part:
    """Shards of a view, and the stage that did not keep their rows ("" for rows that were kept)."""

    stage: str
    shards: tuple[Shard, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a view, with the columns that a reader names; `then` makes other rows of the columns `read`."""

    root: str
    parts: tuple[Part, ...]
    schema: pa.Schema
    hidden: Hidden
    then: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
    read: pa.Schema | None = None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield all rows with these columns, a batch at a time.

        DigestMismatch names a shard whose bytes were changed: nothing of it is yielded.
        """
        wanted = pa.schema([self.schema.field(name) for name in columns])
        named = {*columns, *(() if self.hidden.is_empty else KNOWN_BY)}
        read = self.read or pa.schema([column for column in self.schema if column.name in named - {STAGE}])
        for part in self.parts:
            for batch in read_shards(self.root, part.shards, read):
                shown = batch if self.hidden.is_empty else self.hidden.visible(batch)
                shown = self.then(shown) if self.then else shown
                if part.stage:
                    shown = shown.append_column(STAGE, pa.array([part.stage] * shown.num_rows, pa.string()))
                yield conformed(shown, wanted)


def columns_of(root: str, parts: Sequence[Part]) -> pa.Schema:
    """Return the columns of rows that were not kept: `ALWAYS`, then others of their shards.

    Of each file only its end is read.
    What a file says of its columns is believed here alone: its rows are read after its digest is checked.
    """
    shards = [shard for part in parts for shard in part.shards]
    own = storage.each(storage.connect(root), lambda shard: _columns_of(root, shard), shards)
    schema = united([ALWAYS, *dict.fromkeys(own)])
    return without_payload(schema)


def _columns_of(root: str, shard: Shard) -> pa.Schema:
    try:
        with storage.connect(root).open(current(root, shard.path)) as stream:
            return _written_columns(pq.read_schema(stream))
    except (OSError, ValueError, LookupError, TypeError):  # it is gone, or no file of ours: its digest says so
        with checked(root, shard) as source:
            return _written_columns(pq.read_schema(source))


def _written_columns(schema: pa.Schema) -> pa.Schema:
    facts = facts_of(schema)
    return schema_of(schema_pairs(schema) if facts is None else facts.columns)


def without_payload(schema: pa.Schema) -> pa.Schema:
    """Return a schema without the columns that no view has."""
    return pa.schema([column for column in schema if column.name not in (PAYLOAD, ROW)])
