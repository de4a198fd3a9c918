"""Opens the tables of a store of vectors, whichever it is: folders of Lance, or a database of PostgreSQL."""

import argparse
import os

from pipeline_tasks.publish.datasets.vectors import Made
from pipeline_tasks.store import storage
from refinery_vectors import postgres, table

STORE = "REFINERY_VECTORS"
"""The variable that names the store of vectors."""

STORE_HELP = (
    "the store of vectors: a folder, s3://bucket/prefix, postgresql://USER:PASSWORD@HOST/DATABASE, or connection://ID "
    f"of an Airflow connection to PostgreSQL (default: {STORE}, else ROOT/vectors)"
)

VectorTable = table.VectorTable | postgres.PostgresTable
"""A table as a commit left it. Both kinds keep the same promises, which one body of tests asks of both."""


def existing_tables(store: str, *, mended: bool = False) -> list[VectorTable]:
    """Return the tables of a recipe, by the name of their model; torn ones of Lance are left out, or `mended`."""
    if postgres.is_postgres(store):
        return [*postgres.existing_tables(store)]
    return [*table.existing_tables(store, mended=mended)]


def table_of(store: str, made: Made) -> VectorTable:
    """Return the table of a model, which is made if there is none."""
    return postgres.table_of(store, made) if postgres.is_postgres(store) else table.table_of(store, made)


def require_client(store: str) -> None:
    """Raise RecipeError unless what reads and writes a store is installed."""
    if not postgres.is_postgres(store):
        table.lance()


def is_installed(store: str) -> bool:
    """Return whether this machine can read and write a store; the client of PostgreSQL always is."""
    return postgres.is_postgres(store) or table.is_installed()


def has_table(store: str) -> bool:
    """Return whether a recipe has anything in its store."""
    if postgres.is_postgres(store):
        return bool(postgres.existing_tables(store))
    return any(storage.connect(store).list(""))


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add `--store`."""
    parser.add_argument(
        "--store",
        default=default_store(),
        metavar="URI",
        help=STORE_HELP,
    )


def default_store() -> str:
    """Return the store that the environment names, "" for that of the root."""
    return os.environ.get(STORE, "")
