"""Confines what the params of a run may name: who may start a run may not read all that a worker may."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pipeline_tasks.binding import places_in
from pipeline_tasks.constraints import on_web
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
    if (known := _known(next(map(str, filter(None, uris)), ""), recipe)) is not None:
        _require(uris, *known)


def require_query(query: object, written: object, recipe: str) -> frozenset[str] | None:
    """Raise RecipeError for a place of a query that neither its recipe names, as it is written, nor the operator.

    Returns those places, None where runs are not confined.
    """
    known = _known("", recipe)
    if known is None:
        return None
    admitted, said_by = known
    own = [_resolved(place) for _, place in places_in(written)]
    origins = {f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, filter(on_web, own))}
    _require([place for _, place in places_in(query)], [*admitted, *own, *origins], said_by, shown=admitted)
    return frozenset([*admitted, *own])


def _known(first: str, recipe: str) -> tuple[list[str], str] | None:
    """Return the places that runs may name, and who says so; None where they may name any."""
    known = deployment()
    if known.path:
        settings, whose = (known.of(recipe), f"recipe {recipe}") if recipe else (known.at(first), "the same root")
        return sorted(map(_resolved, settings.admitted)), f"{known.path} has for {whose}"
    if os.environ.get(PLACES, "").strip():
        return sorted(_admitted()), f"{PLACES} of the workers has them"
    return None


def _require(uris: Iterable[object], admitted: list[str], said_by: str, shown: Sequence[str] = ()) -> None:
    for uri in map(_resolved, filter(None, map(str, filter(None, uris)))):
        if ".." in uri.split("/") or not any(f"{uri}/".startswith(f"{place}/") for place in admitted):
            message = f"{uri} is no place that a run may name; {said_by}: {', '.join(shown or admitted)}"
            raise RecipeError(message)


def _admitted() -> Iterator[str]:
    for name in (PLACES, *DEFAULTS):
        yield from map(_resolved, os.environ.get(name, "").split())


def _resolved(place: str) -> str:
    """Return a place without detours: a path of this machine through `..` and links leads elsewhere."""
    if "://" in place and not place.startswith(FILE):
        return place.rstrip("/")
    return str(Path(place.removeprefix(FILE)).resolve())
