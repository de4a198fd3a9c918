"""Asks DuckDB's extensions what Refinery is measured against: see `tables.py`.

    PYTHON benchmarks/peer_tables.py add SCHEMA FILES CATALOG
    PYTHON benchmarks/peer_tables.py query JSON

PYTHON has duckdb 1.5.5 and, as packages of PyPI, its extensions ducklake, sqlite_scanner, iceberg and avro. `add` makes
a lake in CATALOG with a table of the columns of the file SCHEMA, and prints the `seconds` and
`cpu` of adding FILES, a pattern.
`query` runs the `query` of an object over each of its `relations`, in turns, so many `times`, with the lake of `lake`
attached as `lake`, and prints the seconds of each turn and a digest of the rows.
"""

import hashlib
import json
import sys
import time

import duckdb
import duckdb_extensions

EXTENSIONS = ("ducklake", "sqlite_scanner", "avro", "iceberg")


def connected() -> duckdb.DuckDBPyConnection:
    """Return DuckDB with its extensions."""
    connection = duckdb.connect()
    for name in EXTENSIONS:
        duckdb_extensions.import_extension(name)
        connection.execute(f"LOAD {name}")
    return connection


def add(schema: str, files: str, catalog: str) -> dict[str, float]:
    """Return the seconds, by the wall and of processors, of adding files to a new table of a new lake."""
    connection = connected()
    connection.execute(f"ATTACH 'ducklake:sqlite:{catalog}' AS lake (DATA_PATH '{catalog}.files')")
    connection.execute(f"CREATE TABLE lake.kept AS FROM read_parquet('{schema}', hive_partitioning = false) LIMIT 0")
    started, begun = time.perf_counter(), time.process_time()
    connection.execute(f"CALL ducklake_add_data_files('lake', 'kept', '{files}')")
    return {"seconds": time.perf_counter() - started, "cpu": time.process_time() - begun}


def query(times: int, relations: dict[str, str], text: str, lake: str) -> dict[str, object]:
    """Return the seconds of a query over each relation, after a run that does not count, and digests of the rows."""
    connection = connected()
    if lake:
        connection.execute(f"ATTACH 'ducklake:sqlite:{lake}' AS lake")
    seconds: dict[str, list[float]] = {name: [] for name in relations}
    digests: dict[str, str] = {}
    for turn in range(times + 1):
        for name, relation in relations.items():
            started = time.perf_counter()
            rows = connection.execute(text.format(relation)).fetchall()
            if turn:
                seconds[name].append(time.perf_counter() - started)
            digests[name] = hashlib.sha256(repr(rows).encode()).hexdigest()
    return {"seconds": seconds, "digests": digests, "rows": len(rows)}


def main(what: str, *given: str) -> None:
    """Print one JSON object."""
    if what == "add":
        print(json.dumps(add(*given)))
        return
    said = json.loads(given[0])
    print(json.dumps(query(said["times"], said["relations"], said["query"], said["lake"])))


if __name__ == "__main__":
    main(*sys.argv[1:])
