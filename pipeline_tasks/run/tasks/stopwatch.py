"""Measures the seconds that whoever reads a stream waits for it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Stopwatch:
    """Seconds that passed in what it timed."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the seconds of a block, also of one that fails."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started

    def timed(self, items: Iterator[T]) -> Iterator[T]:
        """Yield items; the seconds until each comes, and until there are no more, count."""
        while True:
            with self.running():
                item = next(items, self)
            if item is self:
                return
            yield item  # type: ignore[misc]
