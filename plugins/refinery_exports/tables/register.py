"""`refinery register` makes what is published tables of a catalog, which others read: Spark, Trino, DuckDB, Ray."""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pipeline_tasks.deployment import CATALOG
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_engine, add_json, add_recipe, on_of, print_result
from pipeline_tasks.nearest import nearest
from refinery_exports.exporting import processes
from refinery_exports.tables.catalogs import WRITTEN, catalog_address, opened
from refinery_exports.tables.registering import (
    Registered,
    plain_root,
    register,
    registered_line,
    registered_recipes,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the recipe, the catalog, and whether tables that are something else are made anew."""
    add_recipe(parser)
    parser.add_argument("--catalog", default="", metavar="CATALOG", help=f"{WRITTEN} (default: that of {CATALOG})")
    parser.add_argument(
        "--repair", action="store_true", help="make tables again that are damaged, or are not as registered"
    )
    add_engine(parser)
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Register the versions that count now, and print what each table has."""
    root = plain_root(options.root)
    recipes = recipes_of(root, options.recipe)
    address = catalog_address(options.catalog)
    done: list[Registered] = []
    with opened(address) as catalog:
        for recipe in recipes:
            on = on_of("register", recipe, options, processes())
            done += register(root, recipe, catalog, on, repair=options.repair)
    print_result(options, [asdict(each) for each in done], _lines(options, address, done))
    return 0


def recipes_of(root: str, recipe: str) -> list[str]:
    """Return the recipes that are registered: the one that is named, or all; RecipeError if there is none."""
    published = registered_recipes(root)
    if recipe and recipe not in published:
        message = f"{root}: recipe {recipe!r} has published nothing{nearest(recipe, published)}; name one that has"
        raise RecipeError(message)
    if not published:
        message = f"{root}: nothing is published; publish a snapshot with `refinery run`, and register then"
        raise RecipeError(message)
    return [recipe] if recipe else published


def _lines(options: argparse.Namespace, address: str, done: Sequence[Registered]) -> Iterator[str]:
    yield from map(registered_line, done)
    of = ["--recipe", options.recipe] if options.recipe else []
    verify = shlex.join(["refinery", "verify", options.root, *of, "--catalog", address])
    yield f"{address}: no byte of a file was copied; this compares it with the root:"
    yield f"  {verify}"
