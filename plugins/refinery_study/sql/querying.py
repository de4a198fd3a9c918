"""Queries the views of a version by DuckDB: a process's own database that reads no file, and changes nothing.

DuckDB reads a view as an Arrow dataset: the columns and the rows that a query needs, batch by batch.
What does not fit into memory, as a large sort, is spilled into a folder that is removed with the answer.
"""

import math
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from pipeline_tasks.errors import NoMemory, NoSpace, RecipeError, RefineryError
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.inspect.views.named import OF_DOCUMENTS, QUARANTINE, REJECTS, VersionViews
from pipeline_tasks.inspect.views.rows import Hidden, Rows
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.taken_down import taken_down
from pipeline_tasks.text.urls.takedown import of_rows
from refinery_study.sql.named import Named, View, named_in

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

BATCH = 8192
"""Rows of an answer that are in memory at a time."""

MOST = 300
"""Characters of what DuckDB says that an error repeats: it may repeat a whole text."""

SECONDS, MEMORY = 600.0, 4.0
"""Seconds and gigabytes that a query may take unless it is given others: it shares its machine."""

MAIN = "main"
"""DuckDB's name of the schema of names without one."""

_VERSION = re.compile(r"v([1-9]\d*)", re.IGNORECASE)

_SETTINGS: Mapping[str, Any] = {
    "enable_external_access": "false",  # no file, no network, no extension
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # no variable of this process is a table
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds until a query is stopped, and gigabytes of memory above which it spills to disk, or ends."""

    seconds: float = SECONDS
    memory: float = MEMORY

    def __post_init__(self) -> None:
        if not (0 < self.seconds <= threading.TIMEOUT_MAX and MEMORY / 64 <= self.memory < math.inf):
            message = (
                f"a query takes {self.seconds:g} s and {self.memory:g} GB; give it more than 0 s and {MEMORY / 64:g} GB"
            )
            raise RecipeError(message)


class Catalog(NamedTuple):
    """What queries may name: the views of a version, and as `v3.kept` those of another version of its recipe."""

    root: str
    version: Version

    def views(self, schema: str, hidden: Hidden) -> VersionViews:
        """Return the views of a schema; RecipeError if there is no version of that number."""
        if schema.lower() in ("", MAIN):
            return VersionViews(self.root, self.version, hidden)
        numbered = _VERSION.fullmatch(schema)
        if numbered is None:
            message = f"there is no schema {schema[:40]!r}; v{self.version.number} is version {self.version.number}"
            raise RecipeError(message)
        return VersionViews(self.root, chosen_version(self.root, self.version.recipe, numbered[1]), hidden)


class _Scanned(ds.InMemoryDataset):  # type: ignore[misc]  # Arrow has no types
    """A view as DuckDB reads it: `scanner` gets the columns and the condition of each read."""

    def __init__(self, rows: Rows, faults: list[BaseException]) -> None:
        super().__init__(rows.schema.empty_table())
        self._rows, self._faults = rows, faults

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002 -- Arrow's own name
        **_: object,
    ) -> "_Reading":
        """Return what DuckDB reads as a stream."""
        names = self._rows.schema.names if columns is None else list(columns)
        return _Reading(self._rows, names, filter, self._faults)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The rows of one read of a view."""

    rows: Rows
    columns: Sequence[str]
    condition: ds.Expression | None
    faults: list[BaseException]

    def to_reader(self) -> pa.RecordBatchReader:
        schema = pa.schema([self.rows.schema.field(name) for name in self.columns])
        return pa.RecordBatchReader.from_batches(schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self.rows.batches(self._needed()):
                yield from self._chosen(batch)
        except RefineryError as error:
            self.faults.append(error)  # DuckDB would raise an error of its own
            raise

    def _needed(self) -> list[str]:
        """Return the columns of the read, and those that the condition may name."""
        condition = "" if self.condition is None else str(self.condition)
        return [name for name in self.rows.schema.names if name in self.columns or name in condition]

    def _chosen(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        table = pa.Table.from_batches([batch])
        chosen = table if self.condition is None else table.filter(self.condition)
        batches: list[pa.RecordBatch] = chosen.select(self.columns).to_batches()
        return batches


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that a query gives, once they are read; `hidden` counts those of documents that are taken down.

    `version` is the one that names without a schema are of.
    """

    version: Version
    named: Named
    hidden: Hidden
    relation: "DuckDBPyRelation"

    def read(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the columns of the rows, and the rows: from here on shards are read."""
        reader = self.relation.to_arrow_reader(BATCH)
        schema = _distinct(reader.schema)
        return schema, (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)

    @property
    def shows_documents(self) -> bool:
        """Whether to show it is a look: it has read texts, or addresses of pages."""
        return self._names(OF_DOCUMENTS)

    @property
    def shows_rejects(self) -> bool:
        """Whether it has read rows that were not kept."""
        return self._names({REJECTS, QUARANTINE})

    def _names(self, views: Collection[str]) -> bool:
        return self.named.all_views or any(view.name.lower() in views for view in self.named.views)


@contextmanager
def queried(root: str, version: Version, query: str, limits: Limits) -> Iterator[Answer]:
    """Compute a query over the views of a version; the answer ends with the context.

    RecipeError for what DuckDB does not take, with the views and columns that there are, and for a query that takes
    longer than its limit; NoMemory for one that needs more; ContractError for a shard that is not what its manifest
    promises, also while the answer is read.
    """
    hidden, faults = Hidden(taken_down(root)), list[BaseException]()
    catalog = Catalog(root, version)
    with _database(limits) as connection, _own_errors(catalog, hidden, faults, limits), _stopped(connection, limits):
        named = named_in(connection, query)
        _define(connection, catalog, named, hidden, faults)
        connection.execute("SET lock_configuration = true")
        yield Answer(version, named, hidden, connection.sql(query))


def described(root: str, version: Version) -> dict[str, pa.Schema]:
    """Return the columns of each view of a version."""
    views = VersionViews(root, version, Hidden(of_rows([])))
    return {name: views.of(name).schema for name in views.names}


@contextmanager
def _stopped(connection: "DuckDBPyConnection", limits: Limits) -> Iterator[None]:
    """Let DuckDB stop what it computes once its time is over."""
    timer = threading.Timer(limits.seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _database(limits: Limits) -> Iterator["DuckDBPyConnection"]:
    """Open a database that reads no file but what it spills itself."""
    import duckdb

    with TemporaryDirectory(prefix="refinery-sql-") as place:
        settings = {**_SETTINGS, "temp_directory": f"{place}/spilled", "memory_limit": f"{limits.memory}GB"}
        with duckdb.connect(":memory:", config=settings) as connection:
            yield connection


def _define(
    connection: "DuckDBPyConnection", catalog: Catalog, named: Named, hidden: Hidden, faults: list[BaseException]
) -> None:
    """Define the views that a query names, and no other."""
    known: dict[str, VersionViews] = {}
    wanted = list(named.views)
    if named.all_views:
        known[""] = catalog.views("", hidden)
        wanted += [View("", name) for name in known[""].names]
    for schema, name in dict.fromkeys(View(view.schema.lower(), view.name.lower()) for view in wanted):
        if schema not in known:
            known[schema] = catalog.views(schema, hidden)
        views = known[schema]
        if name in views.names:  # any other is the query's own, or DuckDB says that it is none
            _register(connection, schema, name, views.of(name), faults)


def _register(
    connection: "DuckDBPyConnection", schema: str, name: str, of: Rows | pa.Table, faults: list[BaseException]
) -> None:
    source = _Scanned(of, faults) if isinstance(of, Rows) else of
    if schema in ("", MAIN):
        connection.register(name, source)
        return
    connection.register(f"{schema} {name}", source)
    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    connection.execute(f'CREATE VIEW "{schema}"."{name}" AS SELECT * FROM "{schema} {name}"')  # noqa: S608 -- names of ours


@contextmanager
def _own_errors(catalog: Catalog, hidden: Hidden, faults: list[BaseException], limits: Limits) -> Iterator[None]:
    """Raise Refinery's own error for one of DuckDB: of the shard that was read, or of the query."""
    import duckdb

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if faults:
            raise faults[0] from None
        if isinstance(error, duckdb.InterruptException) or "INTERRUPT" in str(error):  # Arrow's error has only the text
            message = (
                f"the query was stopped after {limits.seconds:g} seconds; ask for fewer rows or columns, or give it "
                "longer (--seconds)"
            )
            raise RecipeError(message) from None
        if isinstance(error, duckdb.OutOfMemoryException):
            raise _no_room(str(error)) from None
        if not isinstance(error, duckdb.Error):
            raise
        raise RecipeError(_refusal(str(error), catalog, hidden)) from None


def _no_room(message: str) -> RefineryError:
    first = message.partition("\n")[0]
    if "temp" in first and "size" in first:
        return NoSpace(f"{first}; free space in TMPDIR, or query less")
    return NoMemory(f"{first}; query fewer columns or groups, or give it more memory (--memory)")


def _refusal(message: str, catalog: Catalog, hidden: Hidden) -> str:
    """Return one line of what DuckDB says, and what there is to name."""
    first = " ".join(message.partition("LINE ")[0].split())[:MOST]
    if not message.startswith(("Catalog Error", "Binder Error")):
        return f"the query was not answered: {first}"
    names = ", ".join(VersionViews(catalog.root, catalog.version, hidden).names)
    return f"the query was not answered: {first}; views are {names}, and `DESCRIBE stages` lists the columns of one"


def _distinct(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which a column of the same name as one before it has a number behind its name."""
    names: list[str] = []
    for name in schema.names:
        again = (f"{name}_{number}" for number in range(2, len(schema.names) + 2))
        names.append(name if name not in names else next(each for each in again if each not in names))
    return pa.schema([column.with_name(name) for column, name in zip(schema, names, strict=True)])
