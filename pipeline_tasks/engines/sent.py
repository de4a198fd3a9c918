"""Tasks as they are sent to workers: what they have in common is pickled once, and each task names it by a number.

With it goes what their driver was given to reach its stores with: a cluster may serve several teams.
"""

import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, cast

from pipeline_tasks.run.tasks.task import Task
from pipeline_tasks.store import store_settings

Ranked = tuple[int, Callable[[], Any]]
"""A task with its number."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Pickles tasks of one verb: `common` is what they share, such as a broadcast or a history of thousands of shards.

    `_ranks` are the numbers of the common objects, by their `id`: `_held` keeps them, so that no other object gets it.
    """

    common: bytes
    _ranks: Mapping[int, int]
    _held: Sequence[object]

    def pickled(self, tasks: Sequence[Ranked]) -> bytes:
        """Return tasks and their numbers as `received` reads them."""
        sink = io.BytesIO()
        writer = _Pickler(sink)
        writer.ranks = self._ranks
        writer.dump(tasks)
        return sink.getvalue()


def sender(tasks: Sequence[partial[Any]]) -> Sender:
    """Return what sends some tasks; common to them are the first task's arguments, and their fields."""
    common = [shared for value in tasks[0].args for shared in (value, *_fields(value))] if tasks else []
    return Sender(
        pickle.dumps((store_settings.sendable(), common)),
        {id(shared): rank for rank, shared in enumerate(common)},
        common,
    )


def received(common: bytes, pickled: bytes) -> list[Ranked]:
    """Return the tasks that a `Sender` pickled."""
    stores, shared = _objects(common)
    store_settings.receive(stores)
    reader = _Unpickler(io.BytesIO(pickled))
    reader.common = shared
    return cast("list[Ranked]", reader.load())


@lru_cache(maxsize=1)
def _objects(common: bytes) -> tuple[str, list[Any]]:
    """Return the stores and the common objects; a worker reads those of one verb once."""
    return cast("tuple[str, list[Any]]", pickle.loads(common))  # noqa: S301 -- sent by our own driver


def _fields(value: object) -> list[object]:
    return [getattr(value, field.name) for field in fields(value)] if isinstance(value, Task) else []


class _Pickler(pickle.Pickler):
    """Writes a number for each object that is one of the common ones."""

    ranks: Mapping[int, int] = MappingProxyType({})

    def persistent_id(self, written: object) -> int | None:
        return self.ranks.get(id(written))


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote."""

    common: Sequence[Any] = ()

    def persistent_load(self, rank: int) -> object:
        return self.common[rank]
