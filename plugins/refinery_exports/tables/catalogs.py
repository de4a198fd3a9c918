"""Opens the catalog that a command, a recipe or the deployment names: `iceberg:NAME`, `ducklake:PLACE`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline_tasks.deployment import CATALOG, catalog_opener
from refinery_exports.tables.catalog import Catalog, Opens

WRITTEN = "iceberg:NAME (a catalog that PyIceberg's configuration names) or ducklake:PLACE"


def catalog_address(named: str) -> str:
    """Return the address of the catalog that is named, else of that of this deployment; "" for none."""
    return named or os.environ.get(CATALOG, "")


@contextmanager
def opened(address: str) -> Iterator[Catalog]:
    """Open a catalog; RecipeError for an address of none."""
    opens: Opens = catalog_opener(address).load()
    catalog = opens(address.partition(":")[2])
    try:
        yield catalog
    finally:
        catalog.close()
