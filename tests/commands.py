"""Commands of `refinery` in the process of the tests: Airflow is imported once, and a run takes seconds."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from pipeline_tasks.cli.main import main

_HOME: dict[str, str] = {}
"""The variables of the home that the first run of this process has entered; later ones are in it, too."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command has left: its exit code, and what it has printed."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Refinery:
    """The command `refinery` in this process; what a run changes of it, other tests do not see."""

    printed: "pytest.CaptureFixture[str]"

    def __call__(self, *arguments: object) -> Done:
        """Run a command in the environment of the test; return what it has left."""
        self.printed.readouterr()
        with _apart():
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as error:  # of argparse
                code = int(error.code or 0)
        return Done(code, *self.printed.readouterr())


@contextmanager
def _apart() -> Iterator[None]:
    """Give a run the home of those before it; put the environment and the logger of runs back after it."""
    before, logger = dict(os.environ), logging.getLogger("refinery")
    level, propagates = logger.level, logger.propagate
    os.environ.update(_HOME)
    try:
        yield
    finally:
        changed = {name: value for name, value in os.environ.items() if before.get(name) != value}
        _HOME.update({name: changed[name] for name in changed if name.startswith(("AIRFLOW", "REFINERY_LAUNCH"))})
        os.environ.clear()
        os.environ.update(before)
        logger.setLevel(level)
        logger.propagate = propagates
