"""Keeps what never changes and many requests of one process read: each value is computed once, in bounded memory."""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Values by what names them for ever, as the digest of their bytes does; those used last are kept, up to a weight.

    Threads that ask for the same value wait for the first of them. An error is nobody's value: the next one tries anew.
    """

    def __init__(self, weigh: Callable[[T], int], most: int) -> None:
        self._weigh, self._most = weigh, most
        self._values: OrderedDict[Hashable, Future[T]] = OrderedDict()
        self._weights: dict[Hashable, int] = {}
        self._lock = Lock()
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """Forget what threads of the parent are making: they did not come with the fork."""
        self._lock = Lock()
        for name in [name for name, value in self._values.items() if not value.done()]:
            del self._values[name]

    def get(self, name: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a name; whatever `make` raises is raised."""
        with self._lock:
            known = self._values.get(name)
            value: Future[T] = known or Future()
            self._values[name] = value
            self._values.move_to_end(name)
        if known is None:
            self._make(name, value, make)
        try:
            return value.result()
        except Exception:
            raise
        except BaseException:  # who was first was stopped, and not the others
            if known is None:
                raise
        return self.get(name, make)

    def has(self, name: Hashable) -> bool:
        """Return whether the value of a name is kept, or is being made."""
        return name in self._values

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()
            self._weights.clear()

    def _make(self, name: Hashable, value: "Future[T]", make: Callable[[], T]) -> None:
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                self._values.pop(name, None)
            value.set_exception(error)
            raise
        value.set_result(made)
        with self._lock:
            if name in self._values:
                self._weights[name] = self._weigh(made)
                self._shrink(name)

    def _shrink(self, newest: Hashable) -> None:
        """Drop values that were used longest ago, but never the newest, nor one that is being made."""
        total = sum(self._weights.values())
        for name in [name for name in self._values if name in self._weights and name != newest]:
            if total <= self._most:
                return
            total -= self._weights.pop(name)
            del self._values[name]
