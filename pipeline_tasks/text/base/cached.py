"""Cache loaded models and word lists per process, for the next shards."""

import os
import stat
from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from pipeline_tasks.errors import RecipeError

T = TypeVar("T")

MAX_ENTRIES = 16
"""Entries of the cache: the files of one recipe's filters. The least recently used one is evicted."""


def cached(load: Callable[..., T], path: str, *arguments: Hashable) -> T:
    """Return `load(path, *arguments)`, cached as long as the file at `path` keeps its size, time and inode.

    Callers share the value and must not change it. RecipeError if the path is none of a file.
    """
    status = regular(path)
    value: T = _load(load, path, arguments, (status.st_size, status.st_mtime_ns, status.st_ino))
    return value


def regular(path: str) -> os.stat_result:
    """Return the status of the regular file at `path`; RecipeError for anything else: to read a pipe may never end."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        message = f"cannot read {path} ({reason}); correct the path in the recipe"
        raise RecipeError(message) from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
        message = f"{path} is {kind}; correct the path in the recipe"
        raise RecipeError(message)
    return status


@lru_cache(maxsize=MAX_ENTRIES)
def _load(load: Callable[..., T], path: str, arguments: tuple[Hashable, ...], _state: tuple[int, ...]) -> T:
    return load(path, *arguments)
