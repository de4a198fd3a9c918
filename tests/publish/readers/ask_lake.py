"""Asks a lake by DuckDB: `python ask_lake.py ADDRESS DATA_PATH STATEMENT...` prints the rows of each statement as JSON.

The lake is attached as `lake`, and made if there is none and DATA_PATH says where. DuckDB's extensions come from PyPI, in
an environment of their own: requirements.txt, beside this file.
"""

import json
import sys
from typing import Any

import duckdb
import duckdb_extensions

EXTENSIONS = ("ducklake", "sqlite_scanner", "postgres_scanner")


def main(address: str, data_path: str, statements: list[str]) -> None:
    """Print the rows of each statement."""
    for name in EXTENSIONS:
        duckdb_extensions.import_extension(name)
    connection = duckdb.connect()
    for name in EXTENSIONS:
        connection.execute(f"LOAD {name}")
    options = f" (DATA_PATH '{data_path}')" if data_path else ""
    connection.execute(f"ATTACH 'ducklake:{address}' AS lake{options}")
    print(json.dumps([answer(connection, statement) for statement in statements], default=str))


def answer(connection: duckdb.DuckDBPyConnection, statement: str) -> list[tuple[Any, ...]] | str:
    """Return the rows of a statement, or why it was not committed."""
    try:
        return connection.execute(statement).fetchall()
    except duckdb.TransactionException as error:
        return str(error)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
