"""Victims as processes of their own that start within milliseconds: forked off a server that has imported what they need."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "tests.faults.build_victim",
        "tests.faults.victim",
        "tests.faults.vector_victim",
        "tests.faults.forked",
        "tests.faults.whole_root_victim",
    ]
)


def forked(
    main: Callable[..., object], *arguments: str, log: Path, together: Barrier | None = None
) -> ForkServerProcess:
    """Start `main` in a process that has the environment of this one, and writes what it prints to `log`.

    Those that are to run `together` wait for each other first.
    """
    process = SERVER.Process(target=_run, args=(main, arguments, dict(os.environ), log, together))
    process.start()
    return process


def ended(process: ForkServerProcess) -> int:
    """Wait for a process; return its exit code, or the negative number of the signal that ended it."""
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _run(
    main: Callable[..., object],
    arguments: tuple[str, ...],
    environment: dict[str, str],
    log: Path,
    together: Barrier | None,
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with log.open("wb") as printed:
        for stream in (1, 2):
            os.dup2(printed.fileno(), stream)
    if together is not None:
        together.wait()
    main(*arguments)
