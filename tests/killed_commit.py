"""A commit to a catalog of Iceberg in a process that kills itself at a point of it."""

import os
import signal
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from refinery_exports.tables.catalog import DataFile, State
from refinery_exports.tables.iceberg import opens
from refinery_exports.tables.testing import facts, table

OUTPUTS = {"-m0.avro": "manifest", "snap-": "manifest list", ".metadata.json": "metadata"}
"""What a part of the name of a file says that it is, in the order in which they are written."""

SWAP, SWAPPED = "swap", "swapped"

POINTS = (*OUTPUTS.values(), SWAP, SWAPPED)
"""What is about to happen at a kill: a file is written, or the pointer is swapped; or that has happened."""


def killed_commit(
    point: str, catalog: str, before: State | None, add: tuple[DataFile, ...], remove: tuple[str, ...]
) -> int:
    """Commit in another process, which is killed at a point; return its exit code."""
    process = get_context("spawn").Process(target=_commit, args=(point, catalog, before, add, remove))
    process.start()
    process.join(300)
    assert process.exitcode is not None
    return process.exitcode


def _commit(point: str, catalog: str, before: State | None, add: tuple[DataFile, ...], remove: tuple[str, ...]) -> None:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from sqlalchemy.orm import Session

    inner = opens(catalog)
    swapping: list[bool] = []

    def reach(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(kind: Any, name: str, wrap: Callable[..., Any]) -> None:
        own = getattr(kind, name)
        setattr(kind, name, lambda *args, **more: wrap(own, *args, **more))

    def output(own: Any, files: Any, location: str) -> Any:
        for part, what in OUTPUTS.items():
            if part in location:
                reach(what)
        return own(files, location)

    def swap(own: Any, *args: Any) -> Any:
        if swapping:
            reach(SWAP)
        return own(*args)

    def commit(own: Any, *args: Any, **more: Any) -> Any:
        swapping.append(True)
        response = own(*args, **more)
        reach(SWAPPED)
        return response

    around(PyArrowFileIO, "new_output", output)
    around(Session, "commit", swap)
    around(SqlCatalog, "commit_table", commit)
    inner.commit(table(), before, add, remove, facts(Path(add[0].root), 7))
