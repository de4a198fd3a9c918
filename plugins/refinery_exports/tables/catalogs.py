"""Opens the catalog that a command, a recipe or the deployment names: `iceberg:NAME`, `ducklake:PLACE`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline_tasks.deployment import CATALOG
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.nearest import nearest
from pipeline_tasks.seams import all_parts
from refinery_exports.tables.catalog import SEAM, Catalog, Opens

WRITTEN = "iceberg:NAME (a catalog that PyIceberg's configuration names) or ducklake:PLACE"


def catalog_address(named: str) -> str:
    """Return the address of the catalog that is named, else of that of this deployment; "" for none."""
    return named or os.environ.get(CATALOG, "")


@contextmanager
def opened(address: str) -> Iterator[Catalog]:
    """Open a catalog; RecipeError for an address of none."""
    kind, colon, rest = address.partition(":")
    known = all_parts(SEAM)
    if not (colon and rest and kind in known):
        meant = nearest(kind, known) if kind not in known else ""
        message = f"--catalog {address[:100]!r} names no catalog{meant}; write {WRITTEN}, or set {CATALOG}"
        raise RecipeError(message)
    opens: Opens = known[kind].load()
    catalog = opens(rest)
    try:
        yield catalog
    finally:
        catalog.close()
