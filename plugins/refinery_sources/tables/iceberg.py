"""Iceberg tables by their snapshots: the rows of one, or those that were appended since the one that landed before."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from pipeline_tasks.constraints import PLACE, Anywhere, Note, OptionalWord
from pipeline_tasks.errors import RecipeError
from refinery_sources.budget import Stopped
from refinery_sources.fields import Fields, asked_before, names_at_source
from refinery_sources.parquet_part import BATCH_ROWS, require_columns, write_part
from refinery_sources.source import Flow, Occasion, Part, Received
from refinery_sources.tables.iceberg_metadata import Table, opened
from refinery_sources.tables.libraries import require_library
from refinery_sources.tables.one_version import LATEST, OneVersion
from refinery_sources.web import Web

NONE = 0
"""No snapshot of a table has this id."""


@dataclass(frozen=True, slots=True)
class Iceberg(OneVersion):
    """A snapshot of a table: its id, `latest`, or the newest at a time (ISO 8601).

    `table` is the table's folder, one of its files `*.metadata.json`, or its name in a `catalog`, which PyIceberg's
    configuration describes (`~/.pyiceberg.yaml`, or variables `PYICEBERG_CATALOG__...`). With `incremental`, a pull
    after the first lands the rows that were appended since. `since` is the snapshot before, `NONE` for all rows.
    """

    table: Anywhere
    catalog: Annotated[OptionalWord, PLACE] = ""
    version: int | str = LATEST
    incremental: bool = False
    fields: Fields = field(default_factory=dict)
    terms_address: str = ""
    terms_text: Note = ""
    snapshot: str = ""
    since: int = NONE

    def query(self) -> Mapping[str, Any]:
        return {
            "source": "iceberg",
            "table": self.table,
            "catalog": self.catalog,
            "version": self.version,
            "incremental": self.incremental,
            "since": self.since,
            "fields": dict(self.fields),
            "snapshot": self.snapshot,
        }

    def resolved(self, occasion: Occasion) -> "Iceberg":
        """Return the query of a snapshot by its id; that of a pull which began goes before the latest.

        RecipeError for a snapshot that is not there.
        """
        require_library("pyiceberg")
        names_at_source(self.fields)
        open_fields = ("version", "since", "snapshot")
        begun = asked_before(self.query(), open_fields, occasion.unfinished)
        landed = asked_before(self.query(), open_fields, occasion.before.get("query", {}))
        if begun and self.version == LATEST:
            return replace(self, **{name: begun[name] for name in open_fields})
        table = opened(self.table, self.catalog)
        current = table.snapshot(self.version)
        if landed and current.id == landed["version"]:
            return replace(self, **{name: landed[name] for name in open_fields})
        since = int(landed["version"]) if self.incremental and landed else NONE
        name = f"{occasion.name}-{current.moment:%Y%m%dT%H%M%S}{current.moment.microsecond // 1000:03d}Z-{current.id}"
        return replace(self, version=current.id, since=since, snapshot=name)

    @property
    def _table(self) -> Table:
        return opened(self.table, self.catalog)

    def parts(self, _web: Web) -> Sequence[Part]:
        table, number = self._table, int(self.version)
        require_columns(table.schema(number), self.read_by, f"{self.table}, snapshot {number}")
        files = table.files(number, self.since)
        if not files:
            message = f"{self.table} has no rows to land in snapshot {number}; pull another one, or later"
            raise RecipeError(message)
        return [Part(f"part-{at:05d}.parquet", file.uri, rows=file.rows) for at, file in enumerate(files)]

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        table, number = self._table, int(self.version)
        batches = table.read(part.address, number, self.since)
        return write_part(_cut(batches, web), table.schema(number), part, partial, web, flow)


def _cut(batches: Iterator[pa.RecordBatch], web: Web) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if web.stop.is_set():
            raise Stopped
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


SOURCE = Iceberg
