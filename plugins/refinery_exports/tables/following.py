"""Has the tables of catalogs follow what leaves a root: a retraction, a takedown, an erasure.

Catalogs are that of the deployment, and those that the recipes of a root name where they are known here.
"""

from collections.abc import Iterator
from contextlib import suppress

from pipeline_tasks.engines.each import On
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.recipe import BUILDS, RECIPES, load_recipe
from pipeline_tasks.upkeep.followers import Follower
from refinery_exports.exporting import processes
from refinery_exports.tables.catalog import ROOT, Catalog
from refinery_exports.tables.catalogs import catalog_address, opened
from refinery_exports.tables.registering import plain_root, register, registered_line, registered_recipes


def follow(root: str) -> Iterator[str]:
    """Bring the tables of a root in line; yield a line for each, none without a catalog, or before a registration."""
    root = plain_root(root)
    for recipe, address in _named(root):
        with opened(address) as catalog:
            if is_registered(root, recipe, catalog):
                yield from (f"  {registered_line(done)}" for done in register(root, recipe, catalog, _here()))


def _named(root: str) -> Iterator[tuple[str, str]]:
    """Yield each recipe of a root with the catalog that it has, if it has one."""
    for recipe in registered_recipes(root):
        if address := catalog_address(_of_recipe(recipe)):
            yield recipe, address


def _of_recipe(recipe: str) -> str:
    for folder in (RECIPES, BUILDS):
        with suppress(RecipeError):  # one of a file of its own, which is not known here
            return load_recipe(recipe, folder).catalog
    return ""


def is_registered(root: str, recipe: str, catalog: Catalog) -> bool:
    """Return whether a recipe of a root has tables in a catalog."""
    states = (catalog.state(recipe, name) for name in catalog.names(recipe))
    return any(state is not None and state.properties.get(ROOT) == root for state in states)


def hindered(root: str) -> str:
    """Return why a catalog of this root cannot be brought in line here, "" if all can, or there is none."""
    root = plain_root(root)
    for recipe, address in _named(root):
        try:
            with opened(address) as catalog:
                is_registered(root, recipe, catalog)
        except RefineryError as error:
            return f"the catalog {address} cannot be reached here ({error}): run `refinery register` where it can"
    return ""


def _here() -> On:
    return On(workers=processes())


FOLLOWER = Follower("", follow, hindered, "tables")
