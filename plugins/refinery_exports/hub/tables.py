"""Finds the rows of a folder of the Hub by config, cuts their stored shards into files, and writes one of these."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.views.column_types import united
from pipeline_tasks.inspect.views.named import KEPT, OUTCOME, OUTCOMES, REJECTS, VersionViews
from pipeline_tasks.inspect.views.rows import STAGE, Hidden, Part, Rows
from pipeline_tasks.publish.datasets.origin import read_origin, source_versions
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.schema import VERDICT
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import conformed
from pipeline_tasks.store.taken_down import taken_down
from pipeline_tasks.text.urls.takedown import of_rows
from refinery_exports.described import NO_REJECTS, TEXTS
from refinery_exports.exporting import Shards
from refinery_exports.format import DATA
from refinery_exports.formats import format_of
from refinery_exports.text.documents import FIRST, Documents, Pair, documents_of, read_documents
from refinery_exports.text.text_files import TableFormat
from refinery_exports.text.texts import TEXT_RATIO

pc: Any = pyarrow.compute

FIRST_OF_REJECTS = (STAGE, *VERDICT.names, OUTCOME, *FIRST)
"""Columns that come first in config `rejects`."""

SAID = ("text", "title", "metadata")
"""Columns of what a page said."""

MODEL = "generation.model"
"""The model that wrote a document, as who reads an export names it."""

COUNTED = ("language", "license", MODEL, STAGE)
"""Columns of which an export counts the rows by value: `language=en`."""


Stored = Pair | Part
"""A stored shard of a source: one of a selection with its texts, or the one of a part of a view."""


class Unit(NamedTuple):
    """Rows that come into one file: part number `part` of `parts` of a stored shard, of a source of the config."""

    source: int
    rows: Stored
    part: int
    parts: int


class File(NamedTuple):
    """A file of a config, the `number`th `of` so many, and what is written into it."""

    config: str
    number: int
    of: int
    units: tuple[Unit, ...]

    @property
    def name(self) -> str:
        """Its name, as the Hub names the shards of a split."""
        return f"{self.config}-{self.number:05}-of-{self.of:05}"


class Source(Protocol):
    """Rows of one version for a config; `shards` are its stored shards, each with about the bytes of its rows."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that it has."""

    @property
    def expected(self) -> int:
        """How many rows it has by its manifests, those that are left out as taken down included."""

    def shards(self) -> Iterator[tuple[Stored, int]]:
        """Yield each stored shard, and about how many bytes its rows have in Arrow."""

    def light(self) -> "Source":
        """Return it without its shards, as it is sent to whoever writes."""

    def read(self, rows: Stored, hidden: Hidden) -> Iterator[pa.Table]:
        """Yield the rows of a stored shard that are not taken down."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents of a training dataset, as `text-parquet` has them."""

    documents: Documents

    @property
    def schema(self) -> pa.Schema:
        """The columns of the documents."""
        return self.documents.schema

    @property
    def expected(self) -> int:
        """The documents that it has."""
        return self.documents.rows

    def shards(self) -> Iterator[tuple[Stored, int]]:
        """Yield its pairs of shards."""
        return ((pair, TEXT_RATIO * pair.texts.weight) for pair in self.documents.pairs)

    def light(self) -> Source:
        """Return it without its shards."""
        return replace(self, documents=replace(self.documents, pairs=()))

    def read(self, rows: Stored, hidden: Hidden) -> Iterator[pa.Table]:
        """Yield the documents of a pair; none of a version that is exported is taken down."""
        del hidden
        return read_documents(self.documents, cast("Pair", rows))


@dataclass(frozen=True, slots=True)
class View:
    """Rows of a view of a version, by the stage that did not keep them, and what became of these ("" for kept rows).

    `shares` are by stage which share of the rows below a layer its shards have: all if nothing is said.
    """

    root: str
    parts: tuple[Part, ...]
    columns: pa.Schema
    outcome: str = ""
    shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the view, and of rows that were not kept the outcome."""
        return self.columns.append(pa.field(OUTCOME, pa.string())) if self.outcome else self.columns

    @property
    def expected(self) -> int:
        """The rows that were committed."""
        return sum(shard.rows for part in self.parts for shard in part.shards)

    def shards(self) -> Iterator[tuple[Stored, int]]:
        """Yield parts of one shard each."""
        for stage, shards in ((part.stage, part.shards) for part in self.parts):
            for shard in shards:
                stored = shard.bytes + self.shares.get(stage, 1) * shard.below
                yield Part(stage, (shard,)), int(TEXT_RATIO * stored)

    def light(self) -> Source:
        """Return it without its shards."""
        return replace(self, parts=(), shares={})

    def read(self, rows: Stored, hidden: Hidden) -> Iterator[pa.Table]:
        """Yield the visible rows of a shard."""
        for batch in Rows(self.root, (cast("Part", rows),), self.columns, hidden).batches(self.columns.names):
            table = pa.Table.from_batches([batch])
            outcome = pa.array([self.outcome] * table.num_rows, pa.string())
            yield table.append_column(OUTCOME, outcome) if self.outcome else table


@dataclass(frozen=True, slots=True)
class Table:
    """A config: its name, what its rows are counted as, its columns, and the sources of its rows."""

    name: str
    noun: str
    schema: pa.Schema
    sources: tuple[Source, ...]

    @classmethod
    def of(cls, name: str, noun: str, sources: Sequence[Source], first: Sequence[str]) -> "Table":
        """Return a config of sources, whose columns begin with those of `first`."""
        schema = united(source.schema for source in sources)
        names = [
            *(name for name in first if name in schema.names),
            *(each for each in schema.names if each not in first),
        ]
        return cls(name, noun, pa.schema([schema.field(name) for name in names]), tuple(sources))

    @property
    def expected(self) -> int:
        """Its rows by manifests."""
        return sum(source.expected for source in self.sources)


# --- What a version has -----------------------------------------------------------------------------------------------


def tables_of(root: str, versions: Sequence[Version], rejects: str) -> tuple[Table, ...]:
    """Return the configs of a version of a training dataset, or of versions of snapshots.

    RecipeError if they have no documents.
    """
    sources = [version for version in versions if COMPOSE not in version.manifests]
    if sources:
        kept: list[Source] = [_kept(root, version) for version in sources]
    else:
        kept = [Selection(documents_of(root, versions[0]))]
    tables = [Table.of(KEPT, "documents", kept, FIRST)]
    if not tables[0].expected:
        named = ", ".join(f"{version.number} ({version.snapshot})" for version in versions)
        message = f"{root}: version {named} of {versions[0].recipe} has no documents to export; refine what has some"
        raise RecipeError(message)
    if rejects != NO_REJECTS:
        composed = [] if sources else source_versions(root, read_origin(root, versions[0]))
        left_out = () if rejects == TEXTS else SAID
        others: list[Source] = [
            view for version in (*composed, *versions) for view in _rejects(root, version, left_out)
        ]
        table = Table.of(REJECTS, REJECTS, others, FIRST_OF_REJECTS)
        tables += [table] if table.expected else []
    return tuple(tables)


def _kept(root: str, version: Version) -> View:
    rows = _rows_of(VersionViews(root, version, Hidden(of_rows([]))), KEPT)
    return View(root, rows.parts, rows.schema)


def _rejects(root: str, version: Version, left_out: Sequence[str]) -> Iterator[View]:
    """Yield what stages of a version rejected, and what they quarantined, without some columns."""
    views, manifests = VersionViews(root, version, Hidden(of_rows([]))), ordered_manifests(root, version)
    for name, outcome in OUTCOMES.items():
        rows = _rows_of(views, name)
        counts = {part.stage: sum(shard.rows for shard in part.shards) for part in rows.parts}
        shares = {stage: count / max(manifests[stage].rows_due, count, 1) for stage, count in counts.items()}
        columns = pa.schema([column for column in rows.schema if column.name not in left_out])
        yield View(root, rows.parts, columns, outcome, shares)


def _rows_of(views: VersionViews, name: str) -> Rows:
    """Return a view of rows; what it hides is not asked for here, but by whoever reads the rows."""
    return cast("Rows", views.of(name))


# --- Files ------------------------------------------------------------------------------------------------------------


def files_of(table: Table, shard_bytes: int) -> list[File]:
    """Return the files of a config: neighbors of about so many bytes together, or even parts of a larger shard."""
    files: list[list[Unit]] = []
    weight = 0
    for number, source in enumerate(table.sources):
        for rows, size in source.shards():
            parts = min(max(1, -(-size // shard_bytes)), max(1, _shard(rows).rows))
            for part in range(parts):
                weight += size // parts
                if not files or weight > shard_bytes:
                    files.append([])
                    weight = size // parts
                files[-1].append(Unit(number, rows, part, parts))
    return [File(table.name, number, len(files), tuple(units)) for number, units in enumerate(files)]


def shards_of_tables(root: str, tables: Sequence[Table], name: str, shard_bytes: int, takedowns: int) -> Shards:
    """Return the shards of configs in a format, without what is taken down behind so many entries of the log."""
    light = [replace(table, sources=tuple(source.light() for source in table.sources)) for table in tables]
    writing = partial(write_file, root, {table.name: table for table in light}, name, takedowns)
    return Shards(writing, [file for table in tables for file in files_of(table, shard_bytes)], _weight)


def _weight(file: File) -> int:
    return sum(_shard(unit.rows).weight // unit.parts for unit in file.units)


def _shard(rows: Stored) -> Shard:
    return rows.texts if isinstance(rows, Pair) else rows.shards[0]


def write_file(
    root: str, tables: Mapping[str, Table], name: str, takedowns: int, file: File, folder: Path
) -> Mapping[str, int]:
    """Write a file of a config below a local folder; return what it has, and how many rows were left out.

    There is none if all rows are left out: `datasets` 5.0 reads no file without rows.
    """
    table, format_ = tables[file.config], cast("TableFormat", format_of(name))
    hidden = Hidden(taken_down(root, takedowns))
    counts = {table.noun: 0, "bytes": 0, "taken_down": 0}
    rows = chain.from_iterable(_rows_of_unit(table, unit, hidden, counts) for unit in file.units)
    counting = (_counted(each, table, counts) for each in rows if each.num_rows)
    if (first := next(counting, None)) is not None:
        (folder / DATA).mkdir()
        format_.write(chain([first], counting), table.schema, folder / DATA / f"{file.name}.parquet")
    return {**counts, "rows": counts[table.noun] + counts["taken_down"]}


def _rows_of_unit(table: Table, unit: Unit, hidden: Hidden, counts: dict[str, int]) -> Iterator[pa.Table]:
    """Yield the rows of a part of a shard, with the columns of the config; a shard of several parts is read whole.

    What is taken down of a shard is counted with its first part.
    """
    before = hidden.rows
    rows = table.sources[unit.source].read(unit.rows, hidden)
    if unit.parts > 1:
        whole = pa.concat_tables(rows)
        start, stop = (whole.num_rows * at // unit.parts for at in (unit.part, unit.part + 1))
        rows = iter([whole.slice(start, stop - start)])
    for each in rows:
        for batch in each.to_batches():
            yield pa.Table.from_batches([conformed(batch, table.schema)])
    counts["taken_down"] += hidden.rows - before if unit.part == 0 else 0


def _counted(rows: pa.Table, table: Table, counts: dict[str, int]) -> pa.Table:
    counts[table.noun] += rows.num_rows
    counts["bytes"] += rows.nbytes
    if table.name == KEPT and "n_tokens" in rows.column_names:
        counts["tokens"] = counts.get("tokens", 0) + (pc.sum(rows["n_tokens"]).as_py() or 0)
    for name in COUNTED:
        column, _, part = name.partition(".")
        if column in rows.column_names and (name == STAGE) == (table.name != KEPT):
            values = pc.struct_field(rows[column], part) if part else rows[column]
            for each in pc.value_counts(values.combine_chunks()).to_pylist():
                key = f"{name}={each['values'] or ''}"
                counts[key] = counts.get(key, 0) + each["counts"]
    return rows
