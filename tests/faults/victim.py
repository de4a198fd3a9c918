"""A process that refines a toy stage and, at one chosen write, dies or stops: `python -m tests.faults.victim ...`."""

import functools
import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from pipeline_tasks import stages
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.store import local_store
from pipeline_tasks.store.s3 import store as s3_store
from pipeline_tasks.upkeep.compact import compact
from tests.toys import CARDS, MODULES

STRIKES = {"die": signal.SIGKILL, "stop": signal.SIGSTOP}
"""What may happen to the process; nothing of it runs after the first, and all of it goes on after the second."""


def main(  # noqa: PLR0917 -- a command line
    root: str,
    stage: str,
    parent: str,
    strike: str = "",
    when: str = "before",
    at: str = "-1",
    on: str = "local",
    address: str = "",
) -> None:
    """Refine `stage` over `parent` (or `compact` the root) on an engine; print how many objects this process wrote."""
    stages.NAMES = (*stages.NAMES, *(card.name for card in CARDS))
    sys.modules.update(MODULES)  # type: ignore[arg-type] -- what `import` would give
    writes = strike_at(STRIKES.get(strike), when, int(at))
    if stage == "compact":
        compact(root, engine(on, address))
    else:
        refine(RefineRequest(root, stage, {}, parent), engine(on, address))
    sys.stdout.write(f"{next(writes)}\n")


def strike_at(sign: signal.Signals | None, when: str, at: int) -> "itertools.count[int]":  # noqa: C901 -- one closure per moment
    """Raise `sign` before, inside or after the write number `at`; return the counter of writes.

    A write that flushes nothing, as of an object that is there, has no inside: what should strike there strikes after it.
    """
    writes, inside = itertools.count(), [False]

    def strike() -> None:
        if sign is not None:
            os.kill(os.getpid(), sign)

    def struck(write: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(write)
        def wrapped(*arguments: Any, **named: Any) -> Any:
            here = next(writes) == at
            inside[0] = here and when == "inside"
            if here and when == "before":
                strike()
            done = write(*arguments, **named)
            if here and when in ("inside", "after"):
                strike()
            return done

        return wrapped

    def flush(stream: Any, **how: bool) -> None:
        if inside[0]:
            strike()
        real_flush(stream, **how)

    real_flush = local_store.flush  # the moment at which a local file is written but not yet named
    local_store.flush = flush
    for store in (local_store.LocalStore, s3_store.S3Store):
        for name in ("create", "put_file"):
            setattr(store, name, struck(getattr(store, name)))
    # That of S3 puts a file, which is struck already.
    local_store.LocalStore.put_scratch = struck(local_store.LocalStore.put_scratch)  # type: ignore[method-assign]
    return writes


if __name__ == "__main__":
    main(*sys.argv[1:])
