"""Writes a file or folder that a recipe may name: whole or not at all."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pipeline_tasks.errors import RecipeError


def write_whole(path: Path, content: bytes) -> None:
    """Write a new file, whole or not at all; RecipeError if other bytes are there, or it cannot be written."""
    if path.exists():
        if path.is_file() and path.read_bytes() == content:
            return
        message = f"{path} exists, and has other bytes; name a new file by --to, as recipes may name this one"
        raise RecipeError(message)
    replace_whole(path, content)


def replace_whole(path: Path, content: bytes, *, parents: bool = False) -> None:
    """Write the whole file or none, over what is there; RecipeError if it cannot be written.

    With `parents` the folders above it are made.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.rename(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        message = f"cannot write {path}: {error}; name another --to"
        raise RecipeError(message) from error


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield the path beside `path` of a new file or folder, which takes its name at the end; one that fails is removed.

    RecipeError if it cannot be written.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.rename(path)
    except OSError as error:
        message = f"cannot write {path}: {error}; name another --to"
        raise RecipeError(message) from error
    finally:
        temporary.unlink(missing_ok=True) if not temporary.is_dir() else shutil.rmtree(temporary)
