"""Lets work end when nobody waits for it any more, where the work is a thread of this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pipeline_tasks.errors import JobLost

_OWN: ContextVar[threading.Event | None] = ContextVar("canceled", default=None)


@contextmanager
def canceled_by(event: threading.Event) -> Iterator[None]:
    """Let the work of this thread end once `event` is set."""
    token = _OWN.set(event)
    try:
        yield
    finally:
        _OWN.reset(token)


def raise_if_canceled() -> None:
    """Raise JobLost if the work of this thread was canceled."""
    event = _OWN.get()
    if event is not None and event.is_set():
        message = "nobody waits for this work any more: its task was cleared, failed or was killed; it is not finished"
        raise JobLost(message)
