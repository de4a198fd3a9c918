"""Opens SQLite or PostgreSQL with one SQL text: transactions, upserts and numbered migrations."""

import contextlib
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pipeline_tasks.errors import ContractError, NoSpace, RecipeError, RefineryError, StorageBusy
from pipeline_tasks.shipped import shipped
from pipeline_tasks.store.local_store import os_errors

if TYPE_CHECKING:
    from psycopg2 import extensions

SQL = shipped("sql")

WAIT = 60
"""Seconds that a writer waits for another one."""

MIGRATION_LOCK = 0x5265_6669
"""Key of PostgreSQL's advisory lock under which the schema is brought up to date."""

PARAMETER = re.compile(r"(?<!:):([a-z_]+)")

Row = dict[str, Any]


class Database:
    """An open database; statements name their parameters `:name`, as SQLite does."""

    def __init__(self, connection: "sqlite3.Connection | extensions.connection", dsn: str, *, postgres: bool) -> None:
        self._connection = connection
        self._dsn = dsn
        self._postgres = postgres

    @classmethod
    def open(cls, dsn: str) -> Self:
        """Open the database at a path, `sqlite:///path` or `postgresql://...`, and bring its schema up to date.

        StorageBusy when the database does not answer or stays locked, ContractError when it is damaged, RecipeError
        when a newer release has changed its schema or this user may not open it.
        """
        postgres = is_postgres(dsn)
        with translated(dsn):
            connection = _connect_postgres(dsn) if postgres else _connect_sqlite(sqlite_path(dsn))
        database = cls(connection, dsn, postgres=postgres)
        try:
            database._migrate()
        except BaseException:  # an interrupt, too, must leave no open connection
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _migrate(self) -> None:
        """Run the numbered files of `sql/ledger` that have not been run, under a lock that other processes wait for."""
        migrations = {int(path.name[:3]): path for path in sorted((SQL / "ledger").glob("*.sql"))}
        with self.transaction():
            if self._postgres:
                self.run(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})", {})
            self.run("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, name TEXT NOT NULL)", {})
            done = {row["version"] for row in self.run("SELECT version FROM schema_version", {})}
            if max(done, default=0) > max(migrations):
                newest = migrations[max(migrations)].stem
                message = f"this ledger has schema {max(done)}, newer than this release's {newest}; upgrade Refinery"
                raise RecipeError(message)
            for version, path in migrations.items():
                if version not in done:
                    for statement in _statements(path.read_text(encoding="utf-8")):
                        self.run(statement, {})
                    self.put("schema_version", ("version",), {"version": version, "name": path.stem})

    @contextlib.contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[None]:
        """Commit what is run inside, all or nothing."""
        self._execute("BEGIN IMMEDIATE" if write and not self._postgres else "BEGIN", {})
        try:
            yield
        except BaseException:  # an interrupt, too, must leave no open transaction
            with contextlib.suppress(RefineryError):  # a database that failed may have ended the transaction itself
                self._execute("ROLLBACK", {})
            raise
        self._execute("COMMIT", {})

    def put(
        self, table: str, key: Sequence[str], row: Row, *, largest: Sequence[str] = (), first: Sequence[str] = ()
    ) -> None:
        """Insert a row, or update the row of its key: `largest` columns only grow, `first` columns never change."""
        changing = [name for name in row if name not in (*key, *first)]
        sets = [f"{name} = {_larger(table, name) if name in largest else f'excluded.{name}'}" for name in changing]
        names = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        update = f"DO UPDATE SET {', '.join(sets)}" if sets else "DO NOTHING"
        self.run(f"INSERT INTO {table} ({names}) VALUES ({values}) ON CONFLICT ({', '.join(key)}) {update}", row)  # noqa: S608 -- names are ours

    def run(self, statement: str, parameters: Row) -> list[Row]:
        """Run a statement; return its rows by column name, none for one that selects nothing."""
        cursor = self._execute(statement, parameters)
        if cursor.description is None:
            return []
        names = [column[0] for column in cursor.description]
        with translated(self._dsn):
            return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]

    def _execute(self, statement: str, parameters: Row) -> "sqlite3.Cursor | extensions.cursor":
        cursor = self._connection.cursor()
        if self._postgres:
            statement = PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
        with translated(self._dsn):
            cursor.execute(statement, parameters)
        return cursor


def _larger(table: str, name: str) -> str:
    return f"CASE WHEN excluded.{name} > {table}.{name} THEN excluded.{name} ELSE {table}.{name} END"


def _statements(script: str) -> list[str]:
    """Cut a script at the semicolons that end its statements."""
    statements = (statement.strip() for statement in without_comments(script).split(";"))
    return [statement for statement in statements if statement]


def without_comments(script: str) -> str:
    """Return SQL without its comments."""
    return re.sub(r"--[^\n]*", "", script)


def _connect_sqlite(path: str) -> sqlite3.Connection:
    with os_errors(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
    try:
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:  # an interrupt, too, must leave no open connection
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers continue during a write.

    Two processes that open a new file both have a read lock and both request the exclusive lock: SQLite refuses one of
    them at once, whatever its timeout, because waiting would be a deadlock. The refused process tries again.
    """
    until = time.monotonic() + WAIT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _connect_postgres(dsn: str) -> "extensions.connection":
    import psycopg2

    scheme, _, rest = dsn.partition("://")
    connection = psycopg2.connect(f"{scheme.partition('+')[0]}://{rest}", connect_timeout=WAIT)
    connection.autocommit = True  # transactions are begun and ended by name, as with SQLite
    return connection


# --- Errors -------------------------------------------------------------------------------------------------------


def is_postgres(dsn: str) -> bool:
    """Return whether a DSN is one of PostgreSQL."""
    return dsn.startswith(("postgres://", "postgresql"))


def sqlite_path(dsn: str) -> str:
    """Return the path of the file of SQLite that a DSN names."""
    return dsn.removeprefix("sqlite:///")


@contextlib.contextmanager
def translated(dsn: str) -> Iterator[None]:
    """Turn the errors of both databases into errors that name the ledger and the way out."""
    if is_postgres(dsn):
        with _translated_postgres(dsn):
            yield
        return
    try:
        yield
    except sqlite3.IntegrityError:
        raise  # a row of ours that breaks the schema is a defect, and not damage
    except sqlite3.DatabaseError as error:
        raise _of_sqlite(sqlite_path(dsn), error) from error


@contextlib.contextmanager
def _translated_postgres(dsn: str) -> Iterator[None]:
    import psycopg2

    try:
        yield
    except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
        raise _unanswered(dsn, error) from error
    except psycopg2.ProgrammingError as error:
        message = (
            f"the ledger at {_shown(dsn)} lacks a table or a column ({_first_line(error)}); restore the database from "
            "a backup, or name an empty one by REFINERY_LEDGER and fill it with `refinery keep ledger ROOT`"
        )
        raise ContractError(message) from error


def _of_sqlite(path: str, error: sqlite3.DatabaseError) -> RefineryError:
    """Return our error for one of SQLite, by its primary result code (https://www.sqlite.org/rescode.html)."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageBusy(
            f"the ledger at {path} is locked: another process has held it for {WAIT} seconds. Wait for that process or "
            "end it, and run again; nothing was recorded"
        )
    if code == sqlite3.SQLITE_FULL:
        return NoSpace(f"{path}: no space left on the disk; free some and run again, nothing was recorded")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return RecipeError(
            f"the ledger at {path} cannot be opened for writing ({_first_line(error)}); give this user access, or name "
            "another file by REFINERY_LEDGER"
        )
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT):
        return _unanswered(path, error)
    return ContractError(
        f"the ledger at {path} is damaged ({_first_line(error)}). It is a copy of what the root says: "
        "`refinery keep ledger ROOT` makes it anew"
    )


def _unanswered(dsn: str, error: Exception) -> StorageBusy:
    return StorageBusy(f"the ledger at {_shown(dsn)} does not answer ({_first_line(error)}); it is tried again later")


def _shown(dsn: str) -> str:
    """Return a DSN without its password."""
    return re.sub(r"://[^@/]*@", "://", dsn)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
