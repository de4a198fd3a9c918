"""Delta tables by their log: the rows of one version, or what has changed since the version that landed before."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from pipeline_tasks.constraints import Note, Uri
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.json_lines import names_of
from pipeline_tasks.landing.parquet.rows import paths_in
from refinery_sources.fields import Fields, asked_before, names_at_source
from refinery_sources.lines_part import write_lines
from refinery_sources.parquet_part import require_columns, write_part
from refinery_sources.source import Flow, Occasion, Part, Received
from refinery_sources.tables.data_file import read_data_file
from refinery_sources.tables.delta_log import Version, changes, newest_version, version_of
from refinery_sources.tables.hash_order import Buckets, bucketed, coming, names_of_rows
from refinery_sources.tables.libraries import require_library
from refinery_sources.tables.one_version import LATEST, OneVersion
from refinery_sources.web import Web

ROWS = "rows.parquet"
"""The part of a table whose files only its own library reads."""

CHANGED, DELETED = "changed.parquet", "_deleted.jsonl"
"""Parts of what has changed: rows that came, and the ids and URLs of rows that went and did not come again."""

NONE = -1


@dataclass(frozen=True, slots=True)
class Delta(OneVersion):
    """A version of the table at `table`: a number, `latest`, or the newest at a time (ISO 8601).

    With `incremental`, a pull after the first lands what has changed since the version that landed before: rows that
    were inserted, the new state of those that were updated, and `_deleted.jsonl`. `since` is that version, `NONE` for
    all rows.
    """

    table: Uri
    version: int | str = LATEST
    incremental: bool = False
    fields: Fields = field(default_factory=dict)
    terms_address: str = ""
    terms_text: Note = ""
    snapshot: str = ""
    since: int = NONE

    def query(self) -> Mapping[str, Any]:
        return {
            "source": "delta",
            "table": self.table,
            "version": self.version,
            "incremental": self.incremental,
            "since": self.since,
            "fields": dict(self.fields),
            "snapshot": self.snapshot,
        }

    def resolved(self, occasion: Occasion) -> "Delta":
        """Return the query of a version by its number; that of a pull which began goes before the latest.

        RecipeError for a version that is not there, or cannot be read any more, and a table without the fields.
        """
        require_library("deltalake")
        names_at_source(self.fields)
        open_fields = ("version", "since", "snapshot")
        begun = asked_before(self.query(), open_fields, occasion.unfinished)
        landed = asked_before(self.query(), open_fields, occasion.before.get("query", {}))
        if begun and self.version == LATEST:
            return self._at(occasion, int(begun["version"]), int(begun["since"]))
        number = newest_version(self.table) if self.version == LATEST else version_of(self.table, self.version).number
        if not self.incremental or landed is None:
            return self._at(occasion, number, NONE)
        last = int(landed["version"])
        if number < last and self.version == LATEST:
            message = (
                f"{self.table} has version {number} now, and version {last} has landed: it was made anew. Give the "
                "recipe another name, and pull all of it"
            )
            raise RecipeError(message)
        if number == last:
            return self._at(occasion, number, int(landed["since"]))
        return self._at(occasion, number, last if number > last else NONE)

    def _at(self, occasion: Occasion, number: int, since: int) -> "Delta":
        return replace(self, version=number, since=since, snapshot=f"{occasion.name}-v{number:08d}")

    @property
    def _version(self) -> Version:
        return version_of(self.table, self.version)

    def parts(self, _web: Web) -> Sequence[Part]:
        version = self._version
        require_columns(version.schema, self.read_by, str(version))
        if self.since != NONE:
            named = self._identity(version.schema)
            return [Part(CHANGED, self.table), *([Part(DELETED, self.table)] if named else [])]
        version.require_files()
        if not version.is_plain:
            return [Part(ROWS, self.table)]
        files = version.files
        if version.has_vectors:
            version.require_rows(sum(file.left for file in files))
        if not any(file.left for file in files):
            message = f"{version} has no rows; pull another version, or later"
            raise RecipeError(message)
        return [
            Part(f"part-{number:05d}.parquet", file.uri, rows=file.left)
            for number, file in enumerate(files)
            if file.left
        ]

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        version = self._version
        folder = partial.with_name(f"{partial.name}.buckets")
        if part.name in (CHANGED, DELETED):
            before = version_of(self.table, self.since)
            with bucketed(changes(before, version, web), version.schema, folder) as buckets:
                if part.name == DELETED:
                    return write_lines(self._gone(buckets, web), part, partial, web, flow)
                return write_part(buckets.sorted(1), version.schema, part, partial, web, flow)
        if part.name == ROWS:
            with bucketed(coming(version.scanned(web)), version.schema, folder) as buckets:
                return write_part(buckets.sorted(1), version.schema, part, partial, web, flow)
        file = next(file for file in version.files if file.uri == part.address)
        return write_part(read_data_file(file, version.schema), version.schema, part, partial, web, flow)

    def _identity(self, schema: pa.Schema) -> dict[str, str]:
        """Return the columns, or paths, by which a row is known: `id` and `url`, where the table has them."""
        names = names_of(self.read_by)
        named = {
            target: [*_columns(schema, names[target]), *paths_in(schema, names[target])] for target in ("id", "url")
        }
        return {target: columns[0] for target, columns in named.items() if columns}

    def _gone(self, buckets: Buckets, web: Web) -> Iterator[bytes]:
        """Yield the ids and URLs of rows that went, sorted, each once: those of which the version has none any more.

        A row is known by its id where the table has one; its URL is named too, unless another row has it.
        """
        named = self._identity(self._version.schema)
        targets, columns = list(named), list(named.values())
        went = set(names_of_rows(buckets.sorted(-1), columns))
        left: list[set[Any]] = [{row[at] for row in went} - {None} for at in range(len(columns))]
        whole = self._version.scanned(web, sorted({_column(self._version.schema, name) for name in columns}))
        for row in names_of_rows(whole, columns) if went else ():
            for at, value in enumerate(row):
                left[at].discard(value)
        lines = (
            {name: str(value) for name, value, gone in zip(targets, row, left, strict=True) if value in gone}
            for row in went
            if next((value in gone for value, gone in zip(row, left, strict=True) if value is not None), False)
        )
        yield from sorted({orjson.dumps(line, option=orjson.OPT_SORT_KEYS) for line in lines})


def _columns(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    return [name for name in names if name in schema.names and not pa.types.is_nested(schema.field(name).type)]


def _column(schema: pa.Schema, name: str) -> str:
    """Return the column in which a field is."""
    return name if name in schema.names else name.partition(".")[0]


SOURCE = Delta
