"""Lakes for tests: one of SQLite or PostgreSQL, files of a root, and who asks them: DuckDB, or the tables themselves."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from refinery_exports.tables.catalog import RECIPE, ROOT, SNAPSHOT, DataFile, Table
from refinery_exports.tables.ducklake.database import Database

READERS = os.environ.get("REFINERY_READERS", "")
"""The interpreter that has DuckDB with its extensions, where `make readers-test` runs."""

ASK = Path(__file__).parent / "publish" / "readers" / "ask_lake.py"


@dataclass(frozen=True)
class Place:
    """Where a lake is: its address, and the folder of DuckDB's own files."""

    address: str
    data_path: str

    @property
    def for_duckdb(self) -> str:
        return self.address.replace(f"data_path={self.data_path} ", "")

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return rows of the tables of the lake."""
        database = Database.of(self.address)
        with database.writing():
            found = database.rows(statement, *parameters)
        database.close()
        return [tuple(row) for row in found]

    def read(self, namespace: str, name: str) -> pa.Table:
        """Return the rows of a table by what its lake has of it: the files that have not ended."""
        rows = self.rows(
            "SELECT f.path FROM ducklake_data_file f JOIN ducklake_table t ON t.table_id = f.table_id "
            "JOIN ducklake_schema s ON s.schema_id = t.schema_id WHERE s.schema_name = ? AND t.table_name = ? "
            "AND f.end_snapshot IS NULL AND t.end_snapshot IS NULL",
            namespace,
            name,
        )
        tables = [pq.ParquetFile(path).read() for (path,) in rows]
        return pa.concat_tables(tables, promote_options="permissive")

    def asked(self, *statements: str, data_path: str = "") -> list[list[list[Any]]]:
        """Return what DuckDB answers to each statement, as JSON has it."""
        answers = self.tried(*statements, data_path=data_path)
        found = [answer for answer in answers if not isinstance(answer, str)]
        assert len(found) == len(answers), answers
        return found

    def tried(self, *statements: str, data_path: str = "") -> list[list[list[Any]] | str]:
        """Return what DuckDB answers to each statement, or why it did not commit it."""
        command = [READERS, str(ASK), self.for_duckdb, data_path, *statements]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert answer.returncode == 0, answer.stderr
        found: list[list[list[Any]] | str] = json.loads(answer.stdout)
        return found

    def scanned(self, namespace: str, name: str) -> pa.Table:
        """Return the rows of a table as DuckDB reads them."""
        Path(self.data_path).mkdir(parents=True, exist_ok=True)
        out = Path(self.data_path) / "scanned.parquet"
        self.asked(f"COPY (FROM lake.{namespace}.{name}) TO '{out}' (FORMAT parquet)")
        try:
            return pq.ParquetFile(out).read()
        finally:
            out.unlink()


def of_postgres(words: str, folder: Path) -> Place:
    """Make a database in the server at these words of libpq, for a lake whose folder is in this one."""
    import psycopg2

    name = f"lake_{sha256(str(folder).encode()).hexdigest()[:16]}"
    connection = psycopg2.connect(f"dbname=postgres {words}")
    connection.autocommit = True
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    return Place(f"postgres:data_path={folder}/files/ dbname={name} {words}", f"{folder}/files/")


def file_of(root: Path, name: str, rows: pa.Table, address: str = "") -> DataFile:
    """Write a file of a root."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, compression="zstd")
    body = path.read_bytes()
    return DataFile(str(root), name, address or f"file://{path}", len(body), sha256(body).hexdigest())


def table_of(rows: pa.Table, namespace: str = "news") -> Table:
    return Table(namespace, "kept", rows.schema, ("language",), ("id",))


def facts_of(root: Path, snapshot: str = "2026-11-20") -> dict[str, str]:
    return {ROOT: str(root), RECIPE: "web", SNAPSHOT: snapshot}


def documents(language: str | None, first: int, count: int = 4, **more: Any) -> pa.Table:
    """Return rows of one language, with ids and numbers from `first` on."""
    numbers = range(first, first + count)
    columns = {
        "id": pa.array([f"{number:04d}" for number in numbers]),
        "language": pa.array([language] * count, pa.string()),
        "chars": pa.array(numbers, pa.int32()),
        "score": pa.array([number / 10 for number in numbers], pa.float64()),
        "text": pa.array([f"Ferry {number}. " * 40 for number in numbers], pa.large_string()),
        "page": pa.array([{"number": number} for number in numbers], pa.struct([("number", pa.int32())])),
    }
    return pa.table(columns | more)


if __name__ == "__main__":  # a commit that is killed before a statement: ADDRESS ROOT, and how many come before
    import signal

    from refinery_exports.tables.ducklake import opens

    address, folder, left = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    run = {"rows": Database.rows, "insert": Database.insert}

    def counted(method: str) -> Any:
        def killed(self: Database, *given: Any, **named: Any) -> Any:
            global left  # noqa: PLW0603 -- one process is one commit
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return run[method](self, *given, **named)

        return killed

    for method in run:
        setattr(Database, method, counted(method))
    lake, new = opens(address), documents("fr", 100)
    added, removed = (file_of(folder, "new.parquet", new),), (sys.argv[4],)
    lake.commit(table_of(new), lake.state("news", "kept"), added, removed, facts_of(folder, "2026-11-21"))
