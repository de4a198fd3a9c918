"""The temporary folder of one process and its children: recognizable, locked by its owner, removed when that is dead.

The folder is `$TMPDIR/refinery-<uid>/run-<id>`, and `TMPDIR` names it for every process below. Its owner holds a lock
on the file `owner` in it; the kernel frees the lock of a process that died, however it died.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline_tasks.errors import NoSpace, RecipeError

PREFIX = "run-"

SHORT = Path("/tmp")  # noqa: S108 -- below it is a folder of this user alone
"""Where sockets are if TMPDIR is too long for them."""

SOCKET_PATH = 103
"""Characters of the path of a socket: macOS takes no more, Linux 107."""

RAY_FOLDER = 38
"""Longest TMPDIR for Ray: it adds 68 characters to make the path of a socket, which may have 107."""


@dataclass(frozen=True, slots=True)
class TemporaryFolder:
    """The folders of one owner, and the descriptors that hold their locks: two folders where TMPDIR is too long."""

    paths: tuple[Path, ...]
    locks: tuple[int, ...]

    def enter(self) -> None:
        """Make it the place of this process's temporary files, and those of every process that it starts."""
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.paths[0])
        os.environ["RAY_TMPDIR"] = str(self.paths[-1])

    def remove(self) -> None:
        """Remove it with all that is in it."""
        for path in self.paths:
            shutil.rmtree(path, ignore_errors=True)


def user_folder(base: Path | None = None) -> Path:
    """Return this user's folder for sockets and cached files; RecipeError if others may enter it."""
    base = base or Path(tempfile.gettempdir())
    folder = base.parent if _is_run(base) else base / _user()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error) from error
    if folder.is_symlink() or folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o077:
        message = f"{folder} belongs to someone else or is open to others; remove it, or set TMPDIR"
        raise RecipeError(message)
    return folder


def socket_folder(longest: int) -> Path:
    """Return this user's folder for sockets whose names have at most so many characters."""
    folder = user_folder()
    return folder if len(f"{folder}/") + longest <= SOCKET_PATH else user_folder(SHORT)


def is_inside() -> bool:
    """Return whether this process is below an owner, so that its temporary files are removed with that."""
    return _is_run(Path(tempfile.gettempdir()))


def _is_run(folder: Path) -> bool:
    return folder.name.startswith(PREFIX) and folder.parent.name == _user()


def _user() -> str:
    return f"refinery-{os.getuid()}"


def new_folder() -> TemporaryFolder:
    """Create a folder that this process owns, after it has removed those whose owners are dead."""
    _require_named()
    parents = [user_folder()]
    if len(f"{parents[0]}/{PREFIX}") + 8 > RAY_FOLDER:
        parents.append(user_folder(SHORT))
    name = f"{PREFIX}{secrets.token_hex(4)}"
    locks = []
    for parent in parents:
        with _locked(parent):
            _remove_abandoned(parent)
            locks.append(_create(parent / name))
    return TemporaryFolder(tuple(parent / name for parent in parents), tuple(locks))


@contextlib.contextmanager
def owned() -> Iterator[None]:
    """Have a temporary folder of this process, which ends with it or with SIGTERM; below an owner, have the owner's."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if is_inside():
        yield
        return
    folder = new_folder()
    folder.enter()
    try:
        yield
    finally:
        folder.remove()


def _create(folder: Path) -> int:
    """Create a folder; return the descriptor that holds its lock."""
    try:
        folder.mkdir(mode=0o700)
        lock = os.open(folder / "owner", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(lock, f"{os.getpid()}\n".encode())
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _unusable(folder, error) from error
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders whose owners are dead. A folder without a lock was being created when its owner died."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(FileNotFoundError), (folder / "owner").open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Hold this user's lock on creating and removing folders."""
    try:
        stream = (parent / "runs.lock").open("w")
    except OSError as error:
        raise _unusable(parent, error) from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _require_named() -> None:
    """Raise RecipeError if TMPDIR names no folder that can be written to: Python would take another one."""
    named = os.environ.get("TMPDIR")
    if named and not (Path(named).is_dir() and os.access(named, os.W_OK | os.X_OK)):
        message = f"TMPDIR={named}: nothing can be written there; set TMPDIR to a folder that you may write to"
        raise RecipeError(message)


def _unusable(folder: Path, error: OSError) -> Exception:
    message = f"{folder}: no temporary folder can be made there ({error.strerror}); "
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(f"{message}free space there or set TMPDIR")
    return RecipeError(f"{message}set TMPDIR to a folder that you may write to")
