"""Asks a lake by DuckDB: `python ask_lake.py ADDRESS STATEMENT...` attaches it as `lake` and prints the rows as JSON.

DuckDB's extensions come from PyPI, in an environment of their own: tests/publish/readers/requirements.txt.
"""

import json
import sys

import duckdb
import duckdb_extensions

EXTENSIONS = ("ducklake", "sqlite_scanner", "postgres_scanner")


def main(address: str, statements: list[str]) -> None:
    """Print the rows of each statement, as one list of lists of JSON."""
    for name in EXTENSIONS:
        duckdb_extensions.import_extension(name)
    connection = duckdb.connect()
    for name in EXTENSIONS:
        connection.execute(f"LOAD {name}")
    connection.execute(f"ATTACH 'ducklake:{address}' AS lake")
    print(json.dumps([connection.execute(statement).fetchall() for statement in statements], default=str))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
