"""Keeps the states of kernels, such as models, in this process: loaded once, they serve the next shards."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.stage import Prepare

MOST = 4
"""States that wait for their next task; the one that waits longest is freed."""

_LOCK = threading.Lock()

_waiting: list[tuple[str, Any]] = []
"""States that no thread uses, with their names; guarded by `_LOCK`."""


@dataclass(frozen=True, slots=True)
class State:
    """What a kernel gets first: `name` says what is loaded, with the digests of files in place of their paths.

    `cache` is the prefix under which the rows that follow from it are kept, "" for none, and `known` are the objects
    that were there when the verb began, newest first. `computes` is what its rows are called by people. With `parts`
    the kernel says what is kept, while it runs.
    """

    prepare: Prepare
    name: str
    cache: str = ""
    known: tuple[str, ...] = ()
    computes: str = ""
    parts: bool = False


def hardware_of(state: object) -> str:
    """Return what computes in a state: `cpu`, or the name of a GPU; "" of one that does not say."""
    return str(getattr(state, "hardware", ""))


@contextmanager
def state_of(name: str, prepare: Prepare) -> Iterator[Any]:
    """Give one thread the state of that name: one that waits, else a new one; a task that fails frees its state."""
    with _LOCK:
        at = next((at for at, (known, _) in enumerate(_waiting) if known == name), None)
        entry = None if at is None else _waiting.pop(at)
    state = entry[1] if entry else prepare()
    yield state
    with _LOCK:
        _waiting.append((name, state))
        del _waiting[:-MOST]
