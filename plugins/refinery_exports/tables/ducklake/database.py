"""Opens the database of a lake, SQLite or PostgreSQL, with one SQL text: transactions, rows, and errors of ours."""

import contextlib
import re
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote

from pipeline_tasks.errors import ContractError, NoSpace, RecipeError, RefineryError, StorageBusy
from pipeline_tasks.libraries import way_to

if TYPE_CHECKING:
    from psycopg2 import extensions

Value: TypeAlias = str | int | bool | None
Row: TypeAlias = Sequence[Value]

SQLITE, POSTGRES, DATA_PATH = "sqlite:", "postgres:", "data_path"

SQL = Path(__file__).parent

WAIT = 60
"""Seconds that a writer waits for another one."""

CREATING = 0x4475_636B
"""Key of PostgreSQL's advisory lock under which the tables of a lake are made."""

FORMS = f"`{SQLITE}/path/lake.sqlite` or `{POSTGRES}dbname=... host=...`"

OF_SQLITE = {"TIMESTAMPTZ": "VARCHAR", "UUID": "VARCHAR", "BOOLEAN": "BIGINT"}
"""Types that SQLite lacks, and what DuckDB takes for them there."""


class Database:
    """The database of a lake; it is connected to when it is needed, and parameters of statements are `?`."""

    def __init__(self, address: str, where: str, data_path: str) -> None:
        self.address = address
        self.data_path = data_path
        self._where = where
        self._connection: sqlite3.Connection | extensions.connection | None = None

    @classmethod
    def of(cls, address: str) -> "Database":
        """Return the database of an address; RecipeError for one of another kind."""
        if address.startswith(SQLITE) and (path := address.removeprefix(SQLITE)):
            whole = str(Path(path).absolute())
            return cls(address, whole, f"{whole}.files/")
        if address.startswith(POSTGRES):
            words = address.removeprefix(POSTGRES)
            return cls(*_of_postgres(address, words))
        if address.endswith((".ducklake", ".duckdb", ".db")):
            message = (
                f"{address}: a lake in a file of DuckDB cannot be registered in: one process at a time can have it, "
                f"and what our DuckDB makes is not read by releases that have the extension `ducklake`; use {FORMS}"
            )
            raise RecipeError(message)
        message = f"{address!r} is no address of a lake; write {FORMS}"
        raise RecipeError(message)

    @property
    def is_postgres(self) -> bool:
        """Return whether it is PostgreSQL, and not SQLite."""
        return self.address.startswith(POSTGRES)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- Statements ---------------------------------------------------------------------------------------------------

    def rows(self, statement: str, *parameters: Value) -> list[tuple[Value, ...]]:
        """Run a statement; return its rows, none for one that selects nothing."""
        cursor = self._connected().cursor()
        text = statement.replace("%", "%%").replace("?", "%s") if self.is_postgres else statement
        cursor.execute(text, parameters)
        return [] if cursor.description is None else cursor.fetchall()

    def insert(self, table: str, columns: str, rows: Iterable[Row], *, on_conflict: str = "") -> None:
        """Insert rows into columns of a table, named with commas between them; in conflict, the newer stays."""
        rows = list(rows)
        if not rows:
            return
        sets = ", ".join(f"{name} = excluded.{name}" for name in columns.split(", ") if name != on_conflict)
        rest = f" ON CONFLICT ({on_conflict}) DO UPDATE SET {sets}" if on_conflict else ""
        begin = f"INSERT INTO {table} ({columns}) VALUES"
        cursor = self._connected().cursor()
        if self.is_postgres:
            from psycopg2.extras import execute_values

            execute_values(cursor, f"{begin} %s{rest}", rows, page_size=1000)
            return
        cursor.executemany(f"{begin} ({', '.join('?' for _ in rows[0])}){rest}", rows)

    def script(self, name: str) -> None:
        """Run a script that ships beside this module, within the transaction."""
        text = re.sub(r"--[^\n]*", "", (SQL / name).read_text(encoding="utf-8"))
        if self.is_postgres:
            self.rows(text)
            return
        for lacking, type_ in OF_SQLITE.items():
            text = re.sub(rf"\b{lacking}\b", type_, text)
        statements = re.split(r";\s*\n(?=CREATE)", text.strip().removesuffix(";"))
        for statement in statements:
            self.rows(statement)

    def has(self, table: str) -> bool:
        """Return whether there is a table."""
        if self.is_postgres:
            return bool(self.rows("SELECT to_regclass(?)", table)[0][0])
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", table))

    # --- Transactions -------------------------------------------------------------------------------------------------

    @property
    def is_there(self) -> bool:
        """Return whether the file of SQLite is there; a database of PostgreSQL is, or is not reached."""
        return self.is_postgres or Path(self._where).is_file()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Give one state of the database to all that is read inside."""
        yield from self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if self.is_postgres else "BEGIN")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Commit what is run inside, all or nothing, when no other writer has the database."""
        yield from self._transaction("BEGIN" if self.is_postgres else "BEGIN IMMEDIATE")

    def wait_for_writers(self, table: str) -> None:
        """Keep others from writing to a table until the transaction ends, DuckDB, too; SQLite has done so."""
        if self.is_postgres:
            self.rows(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")

    def wait_for_makers(self) -> None:
        """Keep others from making a lake until the transaction ends."""
        if self.is_postgres:
            self.rows("SELECT pg_advisory_xact_lock(?)", CREATING)

    def _transaction(self, begin: str) -> Iterator[None]:
        with self._translated():
            self.rows(begin)
            try:
                yield
            except BaseException:  # an interrupt, too, must leave no open transaction
                with contextlib.suppress(Exception):  # a database that failed may have ended the transaction itself
                    self.rows("ROLLBACK")
                raise
            self.rows("COMMIT")

    def _connected(self) -> "sqlite3.Connection | extensions.connection":
        if self._connection is None:
            self._connection = self._connect_postgres() if self.is_postgres else self._connect_sqlite()
        return self._connection

    def _connect_sqlite(self) -> sqlite3.Connection:
        uri = f"file:{quote(self._where)}?mode=rwc"
        connection = sqlite3.connect(uri, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA secure_delete = ON")  # bounds of files that left stay in no free page
        return connection

    def _connect_postgres(self) -> "extensions.connection":
        try:
            import psycopg2
        except ModuleNotFoundError as error:
            raise RecipeError(way_to("psycopg2")) from error
        connection = psycopg2.connect(self._where, connect_timeout=WAIT)
        connection.autocommit = True  # transactions are begun and ended by name, as with SQLite
        connection.cursor().execute(f"SET lock_timeout = '{WAIT}s'")
        return connection

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the errors of both databases into errors that name the lake and the way out."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise _of_sqlite(self._where, error) from error
        except RefineryError:
            raise
        except Exception as error:
            if self.is_postgres and (translated := _of_psycopg2(shown(self.address), error)) is not None:
                self.close()
                raise translated from error
            raise


def _of_postgres(address: str, words: str) -> tuple[str, str, str]:
    """Return an address, the words of it that libpq knows, and the folder that `data_path` names among them."""
    try:
        said = [word for word in shlex.split(words) if word.startswith(f"{DATA_PATH}=")]
    except ValueError as error:
        message = f"{shown(address)}: {error}; write {FORMS}"
        raise RecipeError(message) from error
    pattern = rf"(?:^|\s){DATA_PATH}=(?:'(?:[^'\\]|\\.)*'|\S*)"
    folder = said[0].partition("=")[2] if said else ""
    return address, re.sub(pattern, "", words), f"{folder.rstrip('/')}/" if folder else ""


def shown(address: str) -> str:
    """Return an address without its password."""
    return re.sub(r"(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", r"\1...", address)


def _of_sqlite(path: str, error: sqlite3.DatabaseError) -> RefineryError:
    """Return our error for one of SQLite, by its primary result code (https://www.sqlite.org/rescode.html)."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    said = _first_line(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageBusy(
            f"the lake at {path} is locked: another process has held it for {WAIT} seconds. Wait for that process or "
            "end it, and run again; nothing was changed"
        )
    if code == sqlite3.SQLITE_FULL:
        return NoSpace(f"{path}: no space left on the disk; free some and run again, nothing was changed")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return RecipeError(
            f"the lake at {path} cannot be opened ({said}): its folder has to be there and this user to have access; "
            "make them, or name another file"
        )
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT):
        return StorageBusy(f"the lake at {path} does not answer ({said}); run again later, nothing was changed")
    return damaged(path, said)


def _of_psycopg2(address: str, error: Exception) -> RefineryError | None:
    """Return our error for one of psycopg2, None for one that is none of its."""
    import psycopg2
    from psycopg2 import errors

    said = _first_line(error)
    if isinstance(error, errors.InsufficientPrivilege):
        return RecipeError(f"{address} may not be changed by this user ({said}); give the rights, or name another user")
    if isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError):
        if re.search(r"authentication|password|does not exist", said):
            return RecipeError(
                f"{address} cannot be opened ({said}); the password is that of PGPASSWORD or ~/.pgpass, and the "
                "database is made by `createdb`"
            )
        return StorageBusy(f"{address} does not answer ({said}); run again later, nothing was changed")
    if isinstance(error, psycopg2.ProgrammingError):
        if "invalid dsn" in said or "invalid connection option" in said:
            return RecipeError(f"{address}: {said}; write {FORMS}")
        return damaged(address, said)
    return damaged(address, said) if isinstance(error, psycopg2.Error) else None


def damaged(where: str, said: str) -> ContractError:
    """Return that a lake cannot be read, and the way out."""
    return ContractError(
        f"the lake at {where} is damaged ({said}). It has only copies of what roots say: restore its backup, or drop "
        "the tables that begin with `ducklake_`, and `refinery register --repair` fills it again"
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
