"""Indexes what is published, for the tasks of a run."""

from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec

from pipeline_tasks.seams import all_parts
from pipeline_tasks.service.requests.publication import IndexReply, IndexRequest
from pipeline_tasks.store import storage
from refinery_vectors.index import index as index_recipes
from refinery_vectors.index import stored_recipes

MAPS = "refinery.maps"
"""The seam of maps of documents: functions of root, recipe and snapshot that make one and return its path, or ""."""


def index(request: IndexRequest) -> IndexReply:
    """Return what was done to each table, and the map of the snapshot, "" without one; `missing` is not installed here.

    Without pylance no table is touched.
    """
    if request.recipe:
        storage.require_root(request.root)  # a root that is not there would look like one whose documents all left
    recipes = [request.recipe] if request.recipe else stored_recipes(request.root, request.store)
    is_missing = bool(recipes) and find_spec("lance") is None
    done = [] if is_missing else index_recipes(request.root, recipes, request.store)
    missing = "pylance" if is_missing else ""
    return {"tables": [asdict(each) for each in done], "missing": missing, "map": _mapped(request)}


def _mapped(request: IndexRequest) -> str:
    """Return the paths of the maps of the request's snapshot, which are made if there are none; "" without one."""
    made: list[str] = []
    for part in all_parts(MAPS).values() if request.recipe and request.snapshot else ():
        make: Callable[[str, str, str], str] = part.load()
        made.append(make(request.root, request.recipe, request.snapshot))
    return ", ".join(filter(None, made))
