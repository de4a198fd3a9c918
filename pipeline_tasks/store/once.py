"""Keeps what never changes and many requests of one process read: each value is computed once, in bounded memory."""

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
        self._lock = Lock()

    def get(self, name: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a name; whatever `make` raises is raised."""
        with self._lock:
            known = self._values.get(name)
            mine = known is None
            value: Future[T] = known or Future()
            self._values[name] = value
            self._values.move_to_end(name)
        if not mine:
            return value.result()
        try:
            value.set_result(make())
        except BaseException as error:
            with self._lock:
                self._values.pop(name, None)
            value.set_exception(error)
            raise
        self._shrink()
        return value.result()

    def has(self, name: Hashable) -> bool:
        """Return whether the value of a name is kept, or is being made."""
        return name in self._values

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()

    def _shrink(self) -> None:
        """Drop values that were used longest ago; the last one stays, however much it weighs."""
        with self._lock:
            done = {name: self._weigh(value.result()) for name, value in self._values.items() if _is_made(value)}
            total = sum(done.values())
            for name, weight in list(done.items())[:-1]:
                if total <= self._most:
                    break
                total -= weight
                del self._values[name]


def _is_made(value: "Future[T]") -> bool:
    return value.done() and value.exception() is None
