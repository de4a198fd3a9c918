"""Sequences whose entries are made when they are asked for: a driver has 100,000 tasks, and needs one at a time."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Made(Sequence[T], Generic[T]):
    """A sequence of `length` entries, of which `make` returns one by its rank, as often as it is asked."""

    def __init__(self, length: int, make: Callable[[int], T]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: Any) -> Any:  # noqa: ANN401 -- an entry of a rank, the entries of a slice
        places = range(self._length)[at]
        return [self._make(rank) for rank in places] if isinstance(places, range) else self._make(places)
