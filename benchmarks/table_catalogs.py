"""Makes catalogs of tables and files for them, and times how long the files take to be registered: see `tables.py`."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from peers import run
from pyiceberg.catalog import load_catalog
from refinery_exports.tables.catalog import Catalog, DataFile, Table
from refinery_exports.tables.catalogs import opened
from refinery_exports.tables.table_files import address_of

from pipeline_tasks.sealed import sha256
from tests.table_catalogs import KINDS, settings_of

__all__ = ["KINDS"]


@dataclass(frozen=True, slots=True)
class Made:
    """Files of a table below a folder."""

    folder: Path
    table: Table
    files: tuple[DataFile, ...]


@contextmanager
def catalog_in(kind: str, folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Catalog]:
    """Open the catalog of a kind in a folder, by the environment, with further settings of PyIceberg's."""
    address, variables = settings_of(kind, folder)
    own = {f"PYICEBERG_CATALOG__LAKE__{name}": value for name, value in (settings or {}).items()}
    with patch.dict(os.environ, {**variables, **own}), opened(address) as catalog:
        yield catalog


def write_file(root: Path, path: str, rows: pa.Table) -> DataFile:
    """Write rows as a file of a table, as a root has them."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, place, compression="zstd", store_schema=False, write_page_index=True)
    return DataFile(str(root), path, address_of(str(root), path), place.stat().st_size, "")


def with_values(rows: pa.Table, **columns: pa.Array) -> pa.Table:
    """Return rows with other values of some columns."""
    for name, values in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)
    return rows


def write_files(folder: Path, table: Table, rows: pa.Table, count: int) -> Made:
    """Write so many files of the same rows, with ids of their own."""
    ids = ([sha256(f"{number} {row}".encode())[:32] for row in range(rows.num_rows)] for number in range(count))
    files = (
        write_file(folder, f"part-{number:05}.parquet", with_values(rows, id=pa.array(own)))
        for number, own in enumerate(ids)
    )
    return Made(folder, table, tuple(files))


class Spent(NamedTuple):
    """Seconds of wall clock, and of a processor."""

    seconds: float
    cpu: float


@contextmanager
def clock() -> Iterator[list[Spent]]:
    """Put what is spent until the end into a list."""
    spent: list[Spent] = []
    started, begun = time.perf_counter(), time.process_time()
    yield spent
    spent.append(Spent(time.perf_counter() - started, time.process_time() - begun))


def commit_spends(kind: str, made: Made, folder: Path) -> Spent:
    """Return what is spent on registering files in a new table of a new catalog, as Refinery does."""
    table = made.table
    with catalog_in(kind, folder) as catalog, clock() as spent:
        catalog.commit(table, catalog.state(table.namespace, table.name), made.files, (), {})
        state = catalog.state(table.namespace, table.name)
    assert state is not None
    assert len(state.files) == len(made.files)
    return spent[0]


def add_files_spends(made: Made, folder: Path) -> Spent:
    """Return what is spent on `add_files` of PyIceberg to a new table that is parted by the same columns."""
    _, variables = settings_of("iceberg", folder)
    uri, warehouse = (variables[f"PYICEBERG_CATALOG__LAKE__{name}"] for name in ("URI", "WAREHOUSE"))
    catalog = load_catalog("peer", type="sql", uri=uri, warehouse=warehouse)
    catalog.create_namespace("peer")
    table = catalog.create_table(("peer", made.table.name), made.table.schema)
    with table.update_spec() as spec:
        for name in made.table.parted_by:
            spec.add_identity(name)
    with clock() as spent:
        table.add_files([file.address for file in made.files])
    catalog.close()
    return spent[0]


def duckdb_spends(readers: str, made: Made, folder: Path) -> Spent:
    """Return what is spent on DuckDB's `ducklake_add_data_files` to a new table, which is parted by nothing."""
    folder.mkdir(parents=True)
    first, every = str(made.folder / made.files[0].path), f"{made.folder}/*.parquet"
    done = run("peer_tables.py", "add", first, every, str(folder / "lake.sqlite"), python=readers)
    return Spent(done["seconds"], done["cpu"])
