"""Names the job that a thread works for, so that what was started for it can be canceled."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pipeline_tasks.run.tasks.cancellation import canceled_by

_JOB: ContextVar[str] = ContextVar("job", default="")

_IS_APART: ContextVar[bool] = ContextVar("is_apart", default=False)

_canceled: dict[str, threading.Event] = {}
"""What ends the threads of this process that work for a job; each is set, added and removed in one step."""


def current() -> str:
    """Return the job of this thread; "" for none."""
    return _JOB.get()


def is_apart() -> bool:
    """Return whether this thread works where the ledger may be another machine's."""
    return _IS_APART.get()


@contextmanager
def working_for(job: str, *, is_apart: bool = False) -> Iterator[None]:
    """Let everything that this thread starts on an engine belong to `job`, a name of its own."""
    tokens = _JOB.set(job), _IS_APART.set(is_apart)
    event = _canceled[job] = threading.Event()
    try:
        with canceled_by(event):
            yield
    finally:
        _canceled.pop(job, None)
        _JOB.reset(tokens[0])
        _IS_APART.reset(tokens[1])


def cancel(job: str) -> None:
    """Let the thread that works for a job end before its next batch or task."""
    if event := _canceled.get(job):
        event.set()
