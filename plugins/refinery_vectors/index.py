"""Brings the store of vectors in line with what is published: new documents come, those that left leave."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pipeline_tasks.cards import adds
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, add_root, print_result
from pipeline_tasks.ledger.lost_log import require_log, require_takedowns
from pipeline_tasks.nearest import nearest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.schema import EMBEDDING
from pipeline_tasks.upkeep.followers import Follower
from refinery_vectors import FOLDER
from refinery_vectors.stores import add_store, default_store, has_table, is_installed
from refinery_vectors.syncing import Synced, store_of, sync


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the recipe, and where the store is."""
    add_root(parser)
    parser.add_argument("--recipe", default="", help="recipe (default: every one that embeds its documents)")
    add_store(parser)
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Sync, and print what was done."""
    recipes = list(embedding_recipes(options.root))
    if options.recipe and recipes:
        if options.recipe not in recipes:
            named = f"{options.recipe!r}{nearest(options.recipe, recipes)}"
            message = f"{options.root}: no recipe {named} has vectors here; those that have some: {', '.join(recipes)}"
            raise RecipeError(message)
        recipes = [options.recipe]
    if not recipes:
        message = f"{options.root}: no published version has vectors; refine by a recipe with the stage `embed`"
        raise RecipeError(message)
    done = index(options.root, recipes, options.store)
    print_result(options, [asdict(each) for each in done], [synced_line(each) for each in done])
    return 0


def index(root: str, recipes: Sequence[str], store: str = "") -> list[Synced]:
    """Sync the stores of recipes; ContractError if a log was removed or cut: what it lacks has not left."""
    require_takedowns(root)
    for recipe in recipes:
        require_log(root, recipe)
    return [each for recipe in recipes for each in sync(root, recipe, store)]


def embedding_recipes(root: str) -> Iterator[str]:
    """Yield the recipes one of whose versions has vectors: what such a recipe had may have to leave its store."""
    for recipe in version_log.recipes(root):
        stages = {stage for version in version_log.versions(root, recipe) for stage in version.manifests}
        has_vectors = any(adds(EMBEDDING, stage) for stage in stages)
        if has_vectors and not version_log.is_build(root, recipe):
            yield recipe


def stored_recipes(root: str, store: str = "") -> list[str]:
    """Return the recipes that have a table in a store."""
    return [name for name in embedding_recipes(root) if has_table(store_of(root, name, store))]


def follow(root: str) -> Iterator[str]:
    """Sync the store of a root, as documents may have left; yield a line for each table, none without a store."""
    store = default_store()
    recipes = stored_recipes(root, store)
    if hindered(root):
        where = store or f"{root}/{FOLDER}"  # of Lance: the client of a database is always there
        yield f"  {where} still has the vectors: pylance is not installed here; run `refinery keep index` where it is"
    elif recipes:
        yield from (f"  {synced_line(each)}" for each in index(root, recipes, store))


def hindered(root: str) -> str:
    """Return why the store of a root cannot be synced on this machine, "" if it can, or there is none."""
    store = default_store()
    if is_installed(store) or not stored_recipes(root, store):
        return ""
    return "pylance is not installed here: run `refinery keep index`, and this, where it is"


FOLLOWER = Follower(FOLDER, follow, hindered)


def synced_line(done: Synced) -> str:
    """Return what a sync did, for a person."""
    new = f" of {', '.join(done.snapshots)}" if done.snapshots else ""
    index_ = f"; its index finds {done.recall:.0%} of the nearest" if done.recall is not None else ""
    read = f"{done.read:,} read{new}, {done.removed:,} removed"
    return f"vectors of model {done.model}: {counted(done.rows, 'document')} in {done.uri} ({read}){index_}"
