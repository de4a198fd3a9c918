"""Confines what the params of a run may name: who may start a run may not read all that a worker may."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipeline_tasks.deployment import deployment
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.store_settings import PLACES

DEFAULTS = ("REFINERY_ROOT", "REFINERY_LANDING")
"""Variables whose places a run may name in any case."""

FILE = "file://"


def require_admitted(*uris: object, recipe: str = "") -> None:
    """Raise RecipeError for a place that a run of a recipe may not name; "" and None are none.

    With a file of the deployment it has to be one of the recipe's, or below one; all places of a task of no recipe have
    to be of the entry that has the first one. Without such a file the places are those of `REFINERY_PLACES`.
    """
    known = deployment()
    if known.path:
        first = next(map(str, filter(None, uris)), "")
        settings, whose = (known.of(recipe), f"recipe {recipe}") if recipe else (known.at(first), "the same root")
        admitted = sorted(map(_resolved, settings.admitted))
        _require(uris, admitted, f"{known.path} has for {whose}")
    elif os.environ.get(PLACES, "").strip():
        _require(uris, sorted(_admitted()), f"{PLACES} of the workers has them")


def _require(uris: Iterable[object], admitted: list[str], said_by: str) -> None:
    for uri in map(_resolved, filter(None, map(str, filter(None, uris)))):
        if ".." in uri.split("/") or not any(f"{uri}/".startswith(f"{place}/") for place in admitted):
            message = f"{uri} is no place that a run may name; {said_by}: {', '.join(admitted)}"
            raise RecipeError(message)


def _admitted() -> Iterator[str]:
    for name in (PLACES, *DEFAULTS):
        yield from map(_resolved, os.environ.get(name, "").split())


def _resolved(place: str) -> str:
    """Return a place without detours: a path of this machine through `..` and links leads elsewhere."""
    if "://" in place and not place.startswith(FILE):
        return place.rstrip("/")
    return str(Path(place.removeprefix(FILE)).resolve())
