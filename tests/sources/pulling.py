"""Clients for mirrors on loopback."""

import contextlib
from collections.abc import Iterator

from pipeline_tasks.sources.budget import Rate
from pipeline_tasks.sources.web import Web, web

FAST = Rate(1_000.0)

SLEW = 0.005
"""Seconds by which a clock that is being corrected differs from the one that waits are measured by."""


@contextlib.contextmanager
def on_loopback(rate: Rate = FAST, workers: int = 4) -> Iterator[Web]:
    """Have a client that does not wait for long between two tries."""
    with web(rate, workers, backoff=0.001) as on:
        yield on
