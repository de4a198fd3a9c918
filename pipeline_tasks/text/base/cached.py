"""Cache loaded models and word lists per process, for the next shards."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MAX_ENTRIES = 16
"""Entries of the cache: the files of one recipe's filters. The least recently used one is evicted."""


def cached(load: Callable[..., T], path: str, *arguments: Hashable) -> T:
    """Return `load(path, *arguments)`, cached as long as the file at `path` keeps its size, time and inode.

    Callers share the value and must not change it.
    """
    stat = Path(path).stat()
    value: T = _load(load, path, arguments, (stat.st_size, stat.st_mtime_ns, stat.st_ino))
    return value


@lru_cache(maxsize=MAX_ENTRIES)
def _load(load: Callable[..., T], path: str, arguments: tuple[Hashable, ...], state: tuple[int, ...]) -> T:  # noqa: ARG001 -- part of the key
    return load(path, *arguments)
