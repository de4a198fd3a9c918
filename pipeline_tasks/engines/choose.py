"""Chooses an engine by name and address, importing only the one that is chosen."""

import importlib
import sys
from typing import Any

from pipeline_tasks.engines import job as job_of_threads
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import ENGINES, Resources
from pipeline_tasks.run.runner import EngineFactory

NO_RESOURCES = Resources()

MODULES = {name: f"pipeline_tasks.engines.{name}" for name in ENGINES}


def engine(name: str, address: str = "", resources: Resources = NO_RESOURCES) -> EngineFactory:
    """Return the factory of engine `name` at `address` (default: on this machine), with `resources` for each task."""
    factory: EngineFactory = _module(name).factory(address, resources)
    return factory


def load(name: str, address: str) -> None:
    """Import what the start of an engine at `address` needs."""
    _module(name).load(address)


def start(name: str, address: str = "", resources: Resources = NO_RESOURCES) -> None:
    """Start the engine in this process, so that later tasks do not wait for its start."""
    _module(name).start(address, resources)


def cancel(name: str, job: str) -> None:
    """Cancel what the engine runs for a job (`engines.job.working_for`); the thread that works for it gets JobLost."""
    job_of_threads.cancel(job)
    _module(name).cancel(job)


def lives(name: str) -> bool:
    """Return whether what this process has started of an engine, if anything, takes work."""
    return bool(_module(name).lives())


def stop_all() -> None:
    """Stop every engine that was started in this process."""
    for module in MODULES.values():
        if module in sys.modules:
            sys.modules[module].stop()


def _module(name: str) -> Any:  # noqa: ANN401 -- a module with `factory`, `start` and `stop`
    if name not in MODULES:
        message = f"no engine {name!r}; engines are {', '.join(ENGINES)}"
        raise RecipeError(message)
    return importlib.import_module(MODULES[name])
