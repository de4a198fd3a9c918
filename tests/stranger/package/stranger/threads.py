"""An engine: the tasks of a verb in threads of this process."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from pipeline_tasks.engines.local import LocalEngine, cancel, lives, load, start, stop
from pipeline_tasks.recipe import Resources
from pipeline_tasks.run.runner import EngineFactory
from pipeline_tasks.run.tracker import guarded, results_of

__all__ = ["cancel", "factory", "lives", "load", "start", "stop"]


class Threads(LocalEngine):
    """Runs tasks beside each other; a thread knows by its context which job is canceled."""

    def _each(self, tasks: Sequence[partial[Any]], weight: int) -> Iterator[Any]:  # noqa: ARG002 -- as its base has it
        with ThreadPoolExecutor(4) as pool:
            calls = [partial(copy_context().run, guarded, task) for task in tasks]
            yield from results_of(pool.map(lambda call: call(), calls))


def factory(address: str, resources: Resources) -> EngineFactory:
    """Return what makes the engine."""
    return Threads
