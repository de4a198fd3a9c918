"""Confines what the params of a run may name: who may start a run may not read all that a worker may."""

import os
from collections.abc import Iterator
from pathlib import Path

from pipeline_tasks.errors import RecipeError

PLACES = "REFINERY_PLACES"
"""Names folders and prefixes, with blanks between them; without it a run may name any place."""

DEFAULTS = ("REFINERY_ROOT", "REFINERY_LANDING")
"""Variables whose places a run may name in any case."""

FILE = "file://"


def require_admitted(*uris: object) -> None:
    """Raise RecipeError for a place that is not one of `REFINERY_PLACES`, and not below one; "" and None are none."""
    if not os.environ.get(PLACES, "").strip():
        return
    admitted = sorted(_admitted())
    for uri in map(_resolved, filter(None, map(str, filter(None, uris)))):
        if ".." in uri.split("/") or not any(f"{uri}/".startswith(f"{place}/") for place in admitted):
            message = f"{uri} is no place that a run may name; {PLACES} of the workers has them: {', '.join(admitted)}"
            raise RecipeError(message)


def _admitted() -> Iterator[str]:
    for name in (PLACES, *DEFAULTS):
        yield from map(_resolved, os.environ.get(name, "").split())


def _resolved(place: str) -> str:
    """Return a place without detours: a path of this machine through `..` and links leads elsewhere."""
    if "://" in place and not place.startswith(FILE):
        return place.rstrip("/")
    return str(Path(place.removeprefix(FILE)).resolve())
