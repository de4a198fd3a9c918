"""Keeps what is dear to load (models, lists) for the next shard of the same process."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MAX_ENTRIES = 16
"""Things kept at once: the files of one recipe's filters; the least recently used goes first."""


def cached(load: Callable[..., T], path: str, *how: Hashable) -> T:
    """Return `load(path, *how)`, made once per process as long as the file at `path` stays the same.

    What is returned is shared: callers only read it.
    """
    found = Path(path).stat()
    made: T = _made(load, path, how, (found.st_size, found.st_mtime_ns, found.st_ino))
    return made


@lru_cache(maxsize=MAX_ENTRIES)
def _made(load: Callable[..., T], path: str, how: tuple[Hashable, ...], state: tuple[int, ...]) -> T:  # noqa: ARG001 -- part of the key
    return load(path, *how)
