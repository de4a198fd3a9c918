"""Writes a file that a recipe may name: whole or not at all, and never over another one."""

import os
from pathlib import Path

from pipeline_tasks.errors import RecipeError


def write_whole(path: Path, content: bytes) -> None:
    """Write the whole file or none; the same bytes may be there already. RecipeError if others are, or it cannot be."""
    if path.exists():
        if path.is_file() and path.read_bytes() == content:
            return
        message = f"{path} exists, and has other bytes; name a new file by --output, as recipes may name this one"
        raise RecipeError(message)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.rename(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        message = f"cannot write {path}: {error}; name another --output"
        raise RecipeError(message) from error
