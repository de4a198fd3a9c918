"""A table of PostgreSQL with pgvector that has the vectors of one model: rows and state move in one transaction.

`refinery_vectors` has a row for each table: its name, how many numbers a vector has, the state, and the number of its
last commit. A commit locks that row first, and is refused if the number is not the one that it began at. Readers look
at that number and at rows in one snapshot of the database, so that they see the table as that commit left it.
"""

# ruff: noqa: S608 -- names are ours, and values are quoted or given apart

import contextlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy
from pipeline_tasks.publish.datasets.vectors import FACTS, Made
from pipeline_tasks.schema import EMBEDDING, KNOWN_BY
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store.credential import database_of
from pipeline_tasks.text.near.vectors import KIND
from refinery_vectors.table import RECALL, Index, Overtaken, State, state_text, state_written

if TYPE_CHECKING:
    import psycopg2.extensions

SCHEMES = ("postgres", "postgresql")
CONNECTION = "connection://"
"""A store by the id of an Airflow connection, which the environment has: `connection://refinery_vectors`."""

TABLES = "refinery_vectors"
WAIT = 60
"""Seconds that a commit waits for another one, and that a server may take to answer."""

_KEY = 0x7265_6676
"""Key of the advisory lock under which tables are made."""

_NEAREST, _MEASURED = 10, 32
_EFFORT, _MOST_EFFORT = 40, 1000
"""Candidates of a search by the index (`hnsw.ef_search`): what pgvector has, and the most that it takes."""

_KINDS = {pa.string(): 'text COLLATE "C"', pa.int64(): "bigint", pa.float64(): "double precision"}
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_NULL = r"\N"
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r", "\0": None})
"""What COPY reads otherwise; PostgreSQL has no text with a NUL, which is left out."""


class Moved(Overtaken, OSError):
    """A table that is read was committed to meanwhile: open it again."""


def is_postgres(store: str) -> bool:
    """Return whether a store of vectors is a database."""
    return store.partition("://")[0] in SCHEMES or store.startswith(CONNECTION)


class PostgresTable:
    """A table as a commit left it, with its state and how many `rows` it has."""

    def __init__(self, store: str, model: str, name: str, dimensions: int) -> None:
        self._store, self._model, self._name = store, model, name
        self.dimensions = dimensions
        with _connected(store) as cursor:
            cursor.execute(_SNAPSHOT)
            cursor.execute(f"SELECT state, number FROM {TABLES} WHERE name = %s", (name,))
            written, self._number = cursor.fetchone()
            cursor.execute(f"SELECT count(*) FROM {_quoted(name)}")
            [self.rows] = cursor.fetchone()
        self.state = state_written(written)

    @property
    def uri(self) -> str:
        """Where the table is, without a password."""
        return f"{shown(self._store)}/{self._model}"

    @property
    def model(self) -> str:
        """The name of the model that made the vectors."""
        return self._model

    def facts(self) -> Iterator[pa.RecordBatch]:
        """Yield the snapshot of every document and by what it is known; vectors are not read."""
        names = ["snapshot", *KNOWN_BY]
        with self._reading() as cursor:
            cursor.execute(f"SELECT {', '.join(names)} FROM {_quoted(self._name)} ORDER BY snapshot, id")
            columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
        schema = pa.schema([FACTS.field(name) for name in names])
        yield pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], schema=schema)

    def vectors_of(self, id_: str) -> pa.Table:
        """Return the rows of a document, `FACTS` and `embedding`; of several snapshots, one of each."""
        with self._reading() as cursor:
            return self._shown(cursor, f"WHERE id = {_literal(id_)}")

    def commit(self, state: State, rows: Iterable[pa.RecordBatch] = (), gone: str = "") -> "PostgresTable":
        """Return the table after one commit: `rows` are there, what SQL says is `gone` is not, and this is its state.

        A row replaces the one of the same snapshot and document. Rows that are given stay, whatever is gone. Overtaken,
        and nothing was done, if another commit came first.
        """
        with _connected(self._store) as cursor:
            cursor.execute(f"SELECT number FROM {TABLES} WHERE name = %s FOR UPDATE", (self._name,))
            found = cursor.fetchone()
            if found is None or found[0] != self._number:
                raise Overtaken(self.uri)
            if gone:
                cursor.execute(f"DELETE FROM {_quoted(self._name)} WHERE {gone}")
            self._add(cursor, rows)
            cursor.execute(
                f"UPDATE {TABLES} SET state = %s, number = number + 1 WHERE name = %s", (state_text(state), self._name)
            )
        return self._again(1)

    def tidy(self) -> "PostgresTable":
        """Write the table anew if rows were removed: then their bytes are in none of its files.

        The log of the server has them until it is recycled, and so do backups.
        """
        if not self.state.untidy:
            return self
        with _connected(self._store, autocommit=True) as cursor:
            cursor.execute(f"VACUUM (FULL) {_quoted(self._name)}")
        made = self._again()
        return made.commit(replace(made.state, untidy=False))

    def indexed(self, least: int) -> "PostgresTable":
        """Return the table with an index (HNSW), if it has `least` rows or more; new rows are in it by themselves."""
        if self.rows < least or (self.state.index is not None and self.rows < 2 * self.state.index.rows):
            return self
        with _connected(self._store) as cursor:
            index = _quoted(f"nearest {sha256(self._name.encode())[:16]}")
            cursor.execute(
                f"CREATE INDEX IF NOT EXISTS {index} ON {_quoted(self._name)} USING hnsw (vector halfvec_cosine_ops)"
            )
        made = self._again()
        return made.commit(replace(made.state, index=made.measured()))

    def measured(self) -> Index:
        """Return an index with the least effort of a search for `RECALL`, by vectors from all over the table."""
        with self._reading() as cursor:
            step = max(self.rows // _MEASURED, 1)
            cursor.execute(
                f"SELECT vector::text FROM (SELECT vector, row_number() OVER (ORDER BY snapshot, id) AS place "
                f"FROM {_quoted(self._name)}) AS numbered WHERE place %% %s = 0 LIMIT %s",
                (step, _MEASURED),
            )
            queries = [text for (text,) in cursor.fetchall()]
        exact = [self._ids(query, 0) for query in queries]
        effort = _EFFORT
        while True:
            found = [self._ids(query, effort) for query in queries]
            recall = sum(len(a & b) for a, b in zip(exact, found, strict=True)) / max(sum(map(len, exact)), 1)
            if recall >= RECALL or effort >= _MOST_EFFORT:
                return Index(self.rows, 1, effort, round(recall, 4))
            effort = min(2 * effort, _MOST_EFFORT)

    def nearest(self, vector: Sequence[float], count: int, where: str = "", *, exact: bool = False) -> pa.Table:
        """Return the `count` rows nearest to a vector, `FACTS` and `embedding`, of those that SQL chooses.

        The index is used if there is one, unless the answer has to be `exact`.
        """
        effort = 0 if exact or self.state.index is None else self.state.index.probes
        with self._reading() as cursor:
            return self._shown(cursor, self._order(cursor, _text(vector), effort, count, where))

    def _ids(self, query: str, effort: int) -> set[str]:
        with self._reading() as cursor:
            order = self._order(cursor, query, effort, _NEAREST, "")
            cursor.execute(f"SELECT id FROM {_quoted(self._name)} {order}")
            return {id_ for (id_,) in cursor.fetchall()}

    def _order(self, cursor: "psycopg2.extensions.cursor", query: str, effort: int, count: int, where: str) -> str:
        """Return the end of a statement for the rows nearest to a query: by the index with an effort, 0 for exactly."""
        kind = "halfvec" if effort else "vector"  # the latter has float32, as the index has not
        if effort:
            cursor.execute(f"SET LOCAL hnsw.ef_search = {effort}")
            cursor.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        chosen = f"WHERE {where}" if where else ""
        column = "vector" if effort else f"vector::vector({self.dimensions})"
        return f"{chosen} ORDER BY {column} <=> '{query}'::{kind}({self.dimensions}) LIMIT {count}"

    def _shown(self, cursor: "psycopg2.extensions.cursor", end: str) -> pa.Table:
        """Return rows as `documents.vectors_of` has them."""
        cursor.execute(f"SELECT {', '.join(FACTS.names)}, vector::text FROM {_quoted(self._name)} {end}")
        columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * (len(FACTS.names) + 1)
        bodies = [np.array(json.loads(text), KIND).tobytes() for text in columns[-1]]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, FACTS, strict=False)]
        return pa.Table.from_arrays(
            [*arrays, pa.array(bodies, pa.large_binary())], schema=FACTS.append(pa.field(EMBEDDING, pa.large_binary()))
        )

    def _add(self, cursor: "psycopg2.extensions.cursor", rows: Iterable[pa.RecordBatch]) -> None:
        """Copy rows into a table of this transaction, then into this one."""
        names = ", ".join((*FACTS.names, "vector"))
        values = ", ".join(f"{name} = excluded.{name}" for name in (*FACTS.names[2:], "vector"))
        cursor.execute(f"CREATE TEMP TABLE added (LIKE {_quoted(self._name)}) ON COMMIT DROP")
        for batch in rows:
            cursor.copy_expert(f"COPY added ({names}) FROM STDIN", io.StringIO("".join(_lines(batch, self.dimensions))))
        cursor.execute(
            f"INSERT INTO {_quoted(self._name)} ({names}) SELECT DISTINCT ON (snapshot, id) {names} FROM added "
            f"ON CONFLICT (snapshot, id) DO UPDATE SET {values}"
        )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Any]:
        """Yield a cursor of one snapshot of the database; Moved if the table is not as it was when it was opened."""
        with _connected(self._store) as cursor:
            cursor.execute(_SNAPSHOT)
            cursor.execute(f"SELECT number FROM {TABLES} WHERE name = %s", (self._name,))
            found = cursor.fetchone()
            if found is None or found[0] != self._number:
                raise Moved(self.uri)
            yield cursor

    def _again(self, commits: int = 0) -> "PostgresTable":
        """Return the table after so many commits of ours; Overtaken if another has come since."""
        table = PostgresTable(self._store, self._model, self._name, self.dimensions)
        if table._number != self._number + commits:
            raise Overtaken(self.uri)
        return table


def existing_tables(store: str) -> list[PostgresTable]:
    """Return the tables of a recipe, which is the last part of `store`, by the name of their model."""
    _, recipe = _place(store)
    with _connected(store) as cursor:
        cursor.execute("SELECT to_regclass(%s)", (TABLES,))
        if cursor.fetchone() == (None,):
            return []
        cursor.execute(f"SELECT model, name, dimensions FROM {TABLES} WHERE recipe = %s ORDER BY model", (recipe,))
        found = cursor.fetchall()
    return [PostgresTable(store, *row) for row in found]


def table_of(store: str, made: Made) -> PostgresTable:
    """Return the table of a model, which is made if there is none; of two that make it at once, one does."""
    _, recipe = _place(store)
    name = f"vectors {sha256(f'{recipe}/{made.model}'.encode())[:32]}"
    facts = ", ".join(f"{field.name} {_KINDS[field.type]}" for field in FACTS)
    with _connected(store) as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_KEY,))
        _require_extension(cursor, store)
        cursor.execute(
            f'CREATE TABLE IF NOT EXISTS {TABLES} (name text PRIMARY KEY, recipe text COLLATE "C" NOT NULL, '
            'model text COLLATE "C" NOT NULL, dimensions integer NOT NULL, state text NOT NULL, number bigint NOT NULL)'
        )
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {_quoted(name)} "
            f"({facts}, vector halfvec({made.dimensions}) NOT NULL, PRIMARY KEY (snapshot, id))"
        )
        cursor.execute(
            f"INSERT INTO {TABLES} VALUES (%s, %s, %s, %s, %s, 1) ON CONFLICT DO NOTHING",
            (name, recipe, made.model, made.dimensions, state_text(State())),
        )
    return PostgresTable(store, made.model, name, made.dimensions)


def _require_extension(cursor: "psycopg2.extensions.cursor", store: str) -> None:
    """Make the extension; RecipeError where the server does not have it, or not the types that are needed."""
    import psycopg2

    try:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        cursor.execute("SELECT to_regtype('halfvec')")
    except psycopg2.Error as error:
        message = (
            f"{shown(store)} has no extension `vector` ({_first_line(error)}): install pgvector 0.8 there (Debian: "
            "postgresql-17-pgvector), and make it by `CREATE EXTENSION vector` as its owner"
        )
        raise RecipeError(message) from error
    if cursor.fetchone() == (None,):
        message = f"{shown(store)}: its extension `vector` has no type halfvec; bring it to version 0.8"
        raise RecipeError(message)


# --- The server -----------------------------------------------------------------------------------------------------


def shown(store: str) -> str:
    """Return a store without its password, as people are shown it."""
    return re.sub(r"://[^@/]*@", "://", store)


def _place(store: str) -> tuple[str, str]:
    """Return the URI of the database, and the recipe behind it; RecipeError for a connection that is not known."""
    where, _, recipe = store.rpartition("/")
    if not where.startswith(CONNECTION):
        return where, recipe
    name = where.removeprefix(CONNECTION)
    variable = f"AIRFLOW_CONN_{name.upper()}"
    written = os.environ.get(variable, "")
    if not written:
        message = f"{where}: {variable} is not set; set it to the URI of the connection, or name the database's own URI"
        raise RecipeError(message)
    return database_of(written), recipe


@contextlib.contextmanager
def _connected(store: str, *, autocommit: bool = False) -> Iterator[Any]:
    """Yield a cursor of a transaction that is committed at the end; an error undoes it.

    StorageBusy where the server does not answer, or another holds a lock too long.
    """
    import psycopg2

    uri, _ = _place(store)
    scheme, _, rest = uri.partition("://")
    try:
        connection = psycopg2.connect(f"{scheme}://{rest}", connect_timeout=WAIT)
        try:
            connection.autocommit = autocommit
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{WAIT}s'")
                yield cursor
            if not autocommit:
                connection.commit()
        finally:
            connection.close()
    except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
        message = f"{shown(store)} does not answer ({_first_line(error)}); run it again"
        raise StorageBusy(message) from error
    except psycopg2.Error as error:
        message = f"{shown(store)}: {_first_line(error)}; remove the table, and `refinery keep index` makes it anew"
        raise ContractError(message) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _text(vector: Iterable[float]) -> str:
    return "[" + ",".join(repr(float(number)) for number in vector) + "]"


def _lines(batch: pa.RecordBatch, dimensions: int) -> Iterator[str]:
    """Yield documents as lines of COPY."""
    facts = [batch[name].to_pylist() for name in FACTS.names]
    for *known, body in zip(*facts, batch[EMBEDDING].to_pylist(), strict=True):
        numbers = np.frombuffer(body, KIND)
        if len(numbers) != dimensions:
            message = f"vectors of one model have other dimensions than {dimensions}; refine their snapshot again"
            raise ContractError(message)
        values = (_NULL if value is None else str(value).translate(_ESCAPES) for value in known)
        yield "\t".join((*values, _text(numbers))) + "\n"
