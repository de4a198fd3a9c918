"""Prints how many rows a table has, and a digest of their ids and texts, as one of several readers has them.

Run by the environment of `make readers-test`: READER NAMESPACE WHERE, where WHERE is an address, or files.
"""

import sys
from hashlib import sha256


def rows(reader: str, namespace: str, where: list[str]) -> list[tuple[str, str]]:
    """Return the ids and texts of the table `kept`."""
    if reader == "datasets":
        from datasets import load_dataset

        table = load_dataset("parquet", data_files=where, split="train")
        return list(zip(table["id"], table["text"], strict=True))
    import duckdb
    import duckdb_extensions

    for name in {"ducklake": ("ducklake", "sqlite_scanner"), "iceberg": ("avro", "iceberg")}[reader]:
        duckdb_extensions.import_extension(name)
    connection = duckdb.connect()
    if reader == "iceberg":
        return connection.execute(f"SELECT id, text FROM iceberg_scan('{where[0]}')").fetchall()
    connection.execute(f"ATTACH 'ducklake:{where[0]}' AS lake (READ_ONLY)")
    return connection.execute(f'SELECT id, text FROM lake."{namespace}".kept').fetchall()


if __name__ == "__main__":
    read = sorted("\t".join(row) for row in rows(sys.argv[1], sys.argv[2], sys.argv[3:]))
    print(len(read), sha256("\n".join(read).encode()).hexdigest())
