"""A process that erases and, at one chosen write or removal, dies: `python -m tests.upkeep.erase_victim ...`."""

import functools
import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from pipeline_tasks.cli.main import main as refinery
from pipeline_tasks.store.local_store import LocalStore
from tests.faults.victim import strike_at


def main(root: str, what: str = "write", when: str = "before", at: str = "-1") -> None:
    """Erase; print how many objects this process wrote and removed."""
    writes = strike_at(signal.SIGKILL, when, int(at) if what == "write" else -1)
    removals = strike_removal(when, int(at) if what == "removal" else -1)
    assert refinery(["erase", root]) == 0
    sys.stdout.write(f"\n{next(writes)} {next(removals)}\n")


def strike_removal(when: str, at: int) -> "itertools.count[int]":
    """Die before or after removal number `at`; return the counter of removals."""
    removals = itertools.count()

    def struck(remove: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(remove)
        def wrapped(*arguments: Any) -> Any:
            here = next(removals) == at
            if here and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            remove(*arguments)
            if here:
                os.kill(os.getpid(), signal.SIGKILL)

        return wrapped

    LocalStore.delete = struck(LocalStore.delete)  # type: ignore[method-assign]
    return removals


if __name__ == "__main__":
    main(*sys.argv[1:])
