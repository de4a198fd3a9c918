"""Names the job that a thread works for, so that an engine can cancel what it started for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_JOB: ContextVar[str] = ContextVar("job", default="")


def current() -> str:
    """Return the job of this thread; "" for none."""
    return _JOB.get()


@contextmanager
def working_for(job: str) -> Iterator[None]:
    """Let everything that this thread starts on an engine belong to `job`."""
    token = _JOB.set(job)
    try:
        yield
    finally:
        _JOB.reset(token)
