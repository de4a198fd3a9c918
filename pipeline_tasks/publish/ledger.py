"""Keeps the ledger, in SQLite or PostgreSQL: what was refined, what it cost, what gates said, what was published."""

import contextlib
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from pipeline_tasks.errors import RecipeError, StorageBusy
from pipeline_tasks.gate.verdicts import Verdict
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.version_log import Retraction, Version
from pipeline_tasks.recipe import STAGES
from pipeline_tasks.store import storage

SQL = Path(__file__).parents[2] / "sql"

WAIT = 60
"""Seconds that a writer waits for another one."""

MIGRATING = 0x5265_6669
"""Key of PostgreSQL's advisory lock under which the schema is brought up to date."""

PARAMETER = re.compile(r"(?<!:):([a-z_]+)")

Row = dict[str, Any]


def ledger_of(root: str) -> str:
    """Return the DSN of a root's ledger: `REFINERY_LEDGER`, else SQLite in a local root, else in the home directory."""
    named = os.environ.get("REFINERY_LEDGER")
    if named:
        return named
    if root.startswith("s3://"):
        folder = Path.home() / ".refinery"
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder / "ledger.sqlite")
    Path(storage.connect(root).root).mkdir(parents=True, exist_ok=True)
    return f"{storage.connect(root).root}/ledger.sqlite"


class Ledger:
    """An open ledger; use it as a context manager.

    Everything is recorded under keys that follow from what is recorded, so recording it again changes nothing: a
    retried task, a backfill and two schedulers may all write. Each call is one transaction.
    """

    def __init__(self, connection: Any, *, postgres: bool) -> None:  # noqa: ANN401 -- sqlite3's or psycopg2's
        self._connection = connection
        self._postgres = postgres

    @classmethod
    def open(cls, dsn: str) -> Self:
        """Open the ledger at a path, `sqlite:///path` or `postgresql://...`, and bring its schema up to date.

        StorageBusy when the database does not answer, RecipeError when a newer release has changed its schema.
        """
        postgres = dsn.startswith(("postgres://", "postgresql"))
        with _refusals(dsn):
            connection = _connect_postgres(dsn) if postgres else _connect_sqlite(dsn.removeprefix("sqlite:///"))
        ledger = cls(connection, postgres=postgres)
        with _refusals(dsn):
            ledger._migrate()
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    # --- Recording ------------------------------------------------------------------------------------------------

    def record_stage(  # noqa: PLR0913 -- one keyword per fact of the record
        self,
        path: str,
        made: Manifest,
        *,
        wall: float = 0.0,
        cpu: float = 0.0,
        gpu: float = 0.0,
        snapshot: str = "",
        recipe: str = "",
        engine: str = "",
        attempt: int = 1,
    ) -> None:
        """Record a committed manifest, and what an attempt spent on it in seconds of wall clock, CPU and GPU.

        An attempt that found the manifest already there spent nothing: the cost that stands is the largest recorded.
        """
        with self._transaction():
            self._put("manifests", ("manifest",), _manifest_row(path, made))
            for kind, tally in (("rejected", made.rejected), ("quarantined", made.quarantined)):
                for reason, count in tally.items():
                    row = {"manifest": path, "reason": reason, "kind": kind, "row_count": count}
                    self._put("rejections", ("manifest", "reason"), row)
            spent = {"attempt": attempt, "wall_seconds": wall, "cpu_hours": cpu / 3600, "gpu_hours": gpu / 3600}
            spent["cost_usd"] = self._cost(spent)
            row = {"recipe": recipe, "snapshot": snapshot, "manifest": path, "engine": engine, **spent}
            self._put(
                "stage_metrics",
                ("recipe", "snapshot", "manifest"),
                {**row, "recorded_at": _now()},
                largest=tuple(spent),
            )

    def _cost(self, spent: Mapping[str, float]) -> float:
        prices = {row["resource"]: row["usd_per_hour"] for row in self._run("SELECT * FROM prices", {})}
        return float(sum(spent[f"{resource}_hours"] * price for resource, price in prices.items()))

    def record_verdict(self, verdict: Verdict, *, snapshot: str = "", recipe: str = "") -> None:
        """Record what a gate decided, with every bound that was broken."""
        with self._transaction():
            row = {
                "recipe": recipe,
                "snapshot": snapshot,
                "verdict": verdict.path,
                "manifest": verdict.manifest,
                "stage": verdict.stage,
                "stage_rank": _stage_rank(verdict.stage),
                "outcome": verdict.outcome,
                "override_reason": verdict.override,
                "evaluated": verdict.evaluated,
                "docs": verdict.docs,
                "recorded_at": _now(),
            }
            self._put("gate_verdicts", ("recipe", "snapshot", "verdict"), row)
            for rank, one in enumerate(verdict.failures):
                failure = {
                    "verdict": verdict.path,
                    "rank": rank,
                    "fact": one.column,
                    "severity": one.severity,
                    "observed": one.observed,
                    "min_value": one.bound.get("min_value"),
                    "max_value": one.bound.get("max_value"),
                    "why": one.why,
                }
                self._put("gate_failures", ("verdict", "rank"), failure)

    def record_version(self, version: Version) -> None:
        """Record a published version and the manifests that it consists of."""
        key = {"recipe": version.recipe, "number": version.number}
        row = {
            **key,
            "snapshot": version.snapshot,
            "prefix": version.prefix,
            "documents": version.documents,
            "tokens": version.tokens,
            "sequences": version.sequences,
            "recorded_at": _now(),
        }
        with self._transaction():
            self._put("dataset_versions", tuple(key), row, first=("recorded_at",))
            for stage, path in version.manifests.items():
                part = {**key, "stage": stage, "manifest": path}
                self._put("version_manifests", ("recipe", "number", "stage"), part)

    def record_retraction(self, gone: Retraction) -> None:
        """Record that a snapshot is retracted; it is so until a version with a higher number is recorded."""
        key = {"recipe": gone.recipe, "number": gone.number}
        row = {**key, "snapshot": gone.snapshot, "reason": gone.reason, "retracted_at": gone.at}
        with self._transaction():
            self._put("retractions", tuple(key), row)

    def set_price(self, resource: str, usd_per_hour: float) -> None:
        """Set what an hour of `cpu` or `gpu` costs from now on."""
        if resource not in ("cpu", "gpu"):
            message = f"there is no price of {resource!r}; set that of cpu or gpu"
            raise RecipeError(message)
        with self._transaction():
            self._put("prices", ("resource",), {"resource": resource, "usd_per_hour": usd_per_hour})

    # --- Querying -------------------------------------------------------------------------------------------------

    def query(self, name: str, **parameters: str) -> list[Row]:
        """Return the rows of `sql/queries/<name>.sql`; a parameter that is not given selects all rows.

        RecipeError when there is no such query, or the query has no such parameter.
        """
        if name not in queries():
            message = f"there is no query {name!r}; the ledger has {', '.join(queries())}"
            raise RecipeError(message)
        statement = _without_comments((SQL / "queries" / f"{name}.sql").read_text(encoding="utf-8"))
        known = set(PARAMETER.findall(statement))
        if not parameters.keys() <= known:
            message = f"query {name} has no parameter {sorted(parameters.keys() - known)}; it has {sorted(known)}"
            raise RecipeError(message)
        with self._transaction(write=False):
            return self._run(statement, dict.fromkeys(known, "") | parameters)

    # --- The database ---------------------------------------------------------------------------------------------

    def _migrate(self) -> None:
        """Run the numbered files of `sql/ledger` that have not been run, under a lock that other processes wait for."""
        steps = sorted((SQL / "ledger").glob("*.sql"))
        with self._transaction():
            if self._postgres:
                self._run(f"SELECT pg_advisory_xact_lock({MIGRATING})", {})
            self._run("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, name TEXT NOT NULL)", {})
            done = {row["version"] for row in self._run("SELECT version FROM schema_version", {})}
            if done and max(done) > int(steps[-1].name[:3]):
                message = (
                    f"this ledger has schema {max(done)}, newer than this release's {steps[-1].stem}; upgrade Refinery"
                )
                raise RecipeError(message)
            for step in steps:
                if int(step.name[:3]) not in done:
                    for statement in _statements(step.read_text(encoding="utf-8")):
                        self._run(statement, {})
                    self._put("schema_version", ("version",), {"version": int(step.name[:3]), "name": step.stem})

    @contextlib.contextmanager
    def _transaction(self, *, write: bool = True) -> Iterator[None]:
        self._execute("BEGIN IMMEDIATE" if write and not self._postgres else "BEGIN", {})
        try:
            yield
        except BaseException:
            self._execute("ROLLBACK", {})
            raise
        self._execute("COMMIT", {})

    def _put(
        self,
        table: str,
        key: Sequence[str],
        row: Row,
        *,
        largest: Sequence[str] = (),
        first: Sequence[str] = (),
    ) -> None:
        """Insert a row, or update the one that has its key: `largest` columns only upwards, `first` ones never."""
        news = [name for name in row if name not in (*key, *first)]
        sets = [f"{name} = {_larger(table, name) if name in largest else f'excluded.{name}'}" for name in news]
        names = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        update = f"DO UPDATE SET {', '.join(sets)}" if sets else "DO NOTHING"
        self._run(f"INSERT INTO {table} ({names}) VALUES ({values}) ON CONFLICT ({', '.join(key)}) {update}", row)  # noqa: S608 -- names are ours

    def _run(self, statement: str, parameters: Row) -> list[Row]:
        cursor = self._execute(statement, parameters)
        if cursor.description is None:
            return []
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]

    def _execute(self, statement: str, parameters: Row) -> Any:  # noqa: ANN401 -- a DB-API cursor
        cursor = self._connection.cursor()
        if self._postgres:
            statement = PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
        cursor.execute(statement, parameters)
        return cursor


def queries() -> list[str]:
    """Return the names of the ledger's queries, sorted."""
    return sorted(path.stem for path in (SQL / "queries").glob("*.sql"))


def _larger(table: str, name: str) -> str:
    return f"CASE WHEN excluded.{name} > {table}.{name} THEN excluded.{name} ELSE {table}.{name} END"


def _manifest_row(path: str, made: Manifest) -> Row:
    return {
        "manifest": path,
        "stage": made.stage,
        "stage_rank": _stage_rank(made.stage),
        "fingerprint": made.fingerprint,
        "version": made.version,
        "rows_in": made.rows_in,
        "rows_kept": made.rows,
        "rows_rejected": sum(made.rejected.values()),
        "rows_quarantined": sum(made.quarantined.values()),
        "bytes_in": made.bytes_in,
        "bytes_out": made.bytes,
        "tokens": made.metrics.get("kept", {}).get("n_tokens", {}).get("sum", 0),
    }


def _stage_rank(stage: str) -> int:
    return STAGES.index(stage) if stage in STAGES else -1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _statements(script: str) -> list[str]:
    """Cut a script at the semicolons that end its statements."""
    return [one.strip() for one in _without_comments(script).split(";") if one.strip()]


def _without_comments(script: str) -> str:
    return re.sub(r"--[^\n]*", "", script)


def _connect_sqlite(path: str) -> sqlite3.Connection:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
    try:
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers go on beside a writer.

    Two processes that find a new file both hold it for reading and both want it alone: SQLite refuses one of them at
    once, whatever its timeout, because waiting would never end. That one asks again.
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


def _connect_postgres(dsn: str) -> Any:  # noqa: ANN401 -- psycopg2 ships no types
    import psycopg2

    scheme, _, rest = dsn.partition("://")
    connection = psycopg2.connect(f"{scheme.partition('+')[0]}://{rest}", connect_timeout=WAIT)
    connection.autocommit = True  # transactions are begun and ended by name, as with SQLite
    return connection


@contextlib.contextmanager
def _refusals(dsn: str) -> Iterator[None]:
    import psycopg2

    try:
        yield
    except (sqlite3.OperationalError, psycopg2.OperationalError) as error:
        shown = re.sub(r"://[^@/]*@", "://", dsn)
        message = f"the ledger at {shown} does not answer ({str(error)[:200].strip()}); it is tried again later"
        raise StorageBusy(message) from error
