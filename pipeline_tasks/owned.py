"""Refuses a folder of files that run as code when they are read, if another user could have written one of them.

numba keeps compiled loops as pickles: whoever can write one runs commands as each user that loads it.
"""

import os
import pwd
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pipeline_tasks.errors import RecipeError

ROOT = 0
"""The user who may write everything anyway."""

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OPEN = "can be written by other users"


@cache
def require_own(folder: str) -> None:
    """Raise RecipeError unless only this user and root can have written what is below `folder`. A missing one is made.

    Its parent may be a folder like /tmp, in which nobody removes what is another's. Folders above that one are not
    checked: in a container they are often open to all, and nobody else is there. A process checks each folder once.
    """
    place = Path(folder)
    try:
        _make(place)
    except OSError:  # nothing is loaded from there, and numba says that it cannot keep anything
        return
    _require_parent(place.parent)
    closed = not _checked(place) & (stat.S_IRWXG | stat.S_IRWXO)
    for path in (place, *_below(place)):
        if _checked(path) & OTHERS_WRITE and not closed:
            raise _refusal(path, OPEN)


def _make(place: Path) -> None:
    """Make a folder, closed to others where files in it would be open to them by the umask."""
    for path in (place.parent, place):
        if not os.path.lexists(path):
            path.mkdir(parents=True, exist_ok=True)
            if path.stat().st_mode & OTHERS_WRITE:
                path.chmod(0o700)


def _require_parent(parent: Path) -> None:
    status = parent.stat()  # a link to a folder elsewhere is the choice of who set it
    if status.st_uid not in (ROOT, os.geteuid()):
        raise _refusal(parent, _belongs(status.st_uid))
    if status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
        raise _refusal(parent, OPEN)


def _below(place: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(place, onerror=_raise):
        yield from (Path(parent, name) for name in (*folders, *files))


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # another process has just removed it
        raise error


def _checked(path: Path) -> int:
    """Return the mode of a file or folder of this user or root; RecipeError for others' and for links.

    A file that another process has just put in the place of this one, or removed, has no mode.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return 0
    if status.st_uid not in (ROOT, os.geteuid()):
        raise _refusal(path, _belongs(status.st_uid))
    if stat.S_ISLNK(status.st_mode):
        raise _refusal(path, "is a link")
    return status.st_mode


def _belongs(user: int) -> str:
    try:
        name = f" ({pwd.getpwuid(user).pw_name})"
    except KeyError:
        name = ""
    return f"belongs to user {user}{name}"


def _refusal(path: Path, why: str) -> RecipeError:
    return RecipeError(
        f"{path} {why}, and compiled loops run as code when they are loaded; nothing was loaded. Remove it if you know "
        "who made it, or set NUMBA_CACHE_DIR to a folder that only this user can write"
    )
