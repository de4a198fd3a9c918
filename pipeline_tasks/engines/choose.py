"""Chooses an engine by name and address, importing only the one that is chosen."""

import importlib
import sys
from typing import Protocol, cast

from pipeline_tasks.engines import job as job_of_threads
from pipeline_tasks.engines.card import engine_card, engine_cards
from pipeline_tasks.recipe import Resources
from pipeline_tasks.run.runner import EngineFactory

NO_RESOURCES = Resources()


class EngineModule(Protocol):
    """What the module of an engine has: these functions. `engines.local` has them, too, and lends them."""

    def factory(self, address: str, resources: Resources) -> EngineFactory:
        """Return what makes the engine at an address ("" is this machine), with resources for each task.

        RecipeError for an address or for resources that it cannot have.
        """

    def load(self, address: str) -> None:
        """Import what `start` needs: that is done in the main thread, and `start` beside other work."""

    def start(self, address: str, resources: Resources) -> None:
        """Start the engine in this process, so that later tasks do not wait for its start."""

    def cancel(self, job: str) -> None:
        """Cancel what runs elsewhere for a job (`engines.job`), which may be nothing; its thread gets JobLost."""

    def lives(self) -> bool:
        """Return whether what this process has started, if anything, takes work."""

    def stop(self) -> None:
        """Stop what this process has started."""


def engine(name: str, address: str = "", resources: Resources = NO_RESOURCES) -> EngineFactory:
    """Return the factory of engine `name` at `address` (default: on this machine), with `resources` for each task.

    RecipeError names the engines that there are, or the library that this one lacks.
    """
    return _ready(name).factory(address, resources)


def load(name: str, address: str) -> None:
    """Import what the start of an engine at `address` needs."""
    _ready(name).load(address)


def start(name: str, address: str = "", resources: Resources = NO_RESOURCES) -> None:
    """Start the engine in this process, so that later tasks do not wait for its start."""
    _ready(name).start(address, resources)


def cancel(name: str, job: str) -> None:
    """Cancel what the engine runs for a job (`engines.job.working_for`); the thread that works for it gets JobLost."""
    job_of_threads.cancel(job)
    _module(name).cancel(job)


def lives(name: str) -> bool:
    """Return whether what this process has started of an engine, if anything, takes work."""
    return _module(name).lives()


def stop_all() -> None:
    """Stop every engine that was started in this process."""
    for card in engine_cards().values():
        if card.module in sys.modules:
            cast("EngineModule", sys.modules[card.module]).stop()


def _ready(name: str) -> EngineModule:
    """Return the module of an engine whose library is here."""
    engine_card(name).require_library()
    return _module(name)


def _module(name: str) -> EngineModule:
    return cast("EngineModule", importlib.import_module(engine_card(name).module))
