"""Asks who else does the tasks of a run: the plain loop of `flow` does them where this environment asks for nobody."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pipeline_tasks import seams
from pipeline_tasks.recipe import Recipe

SEAM = "refinery.runners"
"""The seam of runners: each of its parts is a `Runner`."""


class Runner(NamedTuple):
    """Who does the tasks of a run: whether this environment asks for it, and how.

    `run` takes a recipe, its name or path as the user gave it, and the params of a run. `has_connection` says whether
    it knows a connection of an id.
    """

    is_asked: Callable[[], bool]
    run: Callable[[Recipe, str, Mapping[str, Any]], None]
    has_connection: Callable[[str], bool]


def asked() -> Runner | None:
    """Return the runner that this environment asks for, None for the plain loop."""
    return next((runner for runner in _runners() if runner.is_asked()), None)


def has_connection(name: str) -> bool:
    """Return whether a runner knows a connection."""
    return any(runner.has_connection(name) for runner in _runners())


def _runners() -> Iterator[Runner]:
    for part in seams.all_parts(SEAM).values():
        yield part.load(Runner)
