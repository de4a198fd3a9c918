"""Has the tables of the deployment's catalog follow what leaves a root: a retraction, a takedown, an erasure."""

from collections.abc import Iterator

from pipeline_tasks.engines.each import On
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.upkeep.followers import Follower
from refinery_exports.exporting import processes
from refinery_exports.tables.catalog import ROOT, Catalog
from refinery_exports.tables.catalogs import catalog_address, opened
from refinery_exports.tables.registering import plain_root, register, registered_line, registered_recipes


def follow(root: str) -> Iterator[str]:
    """Bring the tables of a root in line; yield a line for each, none without a catalog, or before a registration."""
    root, address = plain_root(root), catalog_address("")
    if not address:
        return
    with opened(address) as catalog:
        for recipe in registered_recipes(root):
            if is_registered(root, recipe, catalog):
                yield from (f"  {registered_line(done)}" for done in register(root, recipe, catalog, _here()))


def is_registered(root: str, recipe: str, catalog: Catalog) -> bool:
    """Return whether a recipe of a root has tables in a catalog."""
    states = (catalog.state(recipe, name) for name in catalog.names(recipe))
    return any(state is not None and state.properties.get(ROOT) == root for state in states)


def hindered(root: str) -> str:
    """Return why the catalog of this deployment cannot be brought in line here, "" if it can, or there is none."""
    address = catalog_address("")
    try:
        if address:
            with opened(address) as catalog:
                any(is_registered(plain_root(root), recipe, catalog) for recipe in registered_recipes(root))
    except RefineryError as error:
        return f"the catalog {address} cannot be reached here ({error}): run `refinery register` where it can"
    return ""


def _here() -> On:
    return On(workers=processes())


FOLLOWER = Follower("tables", "", follow, hindered)
