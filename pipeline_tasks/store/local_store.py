"""Stores objects in a local directory: whole or not at all, and durable once a call returns, but for scratch."""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from pipeline_tasks.errors import ContractError, NoSpace, RecipeError
from pipeline_tasks.store.protocol import CHUNK, Entry, confined, cut_short

Fence = Callable[[str], bool]
"""Says of a real path whether a file may be opened there."""

UNFINISHED = ".tmp-"
"""Prefix of the names of files that are still being written; they are never listed."""

OF_DISK = "lost+found"
"""Folder at the top of a disk for what a check of it finds; the superuser alone may list it."""


class LocalStore:
    """A directory; commits by link(2), which fails where rename(2) would replace.

    With a fence a file is opened only if its real path is within.
    """

    def __init__(self, root: str, fence: Fence | None = None) -> None:
        self.root, self._fence = str(Path(root).absolute()), fence

    def _place(self, path: str) -> Path:
        return Path(self.root, confined(self.root, path))

    def read(self, path: str) -> bytes:
        with self.open(path) as stream:
            return stream.read()

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        bodies = []
        with self.open(path) as stream:
            for start, stop in ranges:
                stream.seek(start)
                bodies.append(stream.read(stop - start))
                if len(bodies[-1]) != stop - start:
                    where = f"{self.root}/{path}"
                    raise cut_short(where, self.size(path) or 0, stop)
        return bodies

    def open(self, path: str) -> BinaryIO:
        with os_errors(f"{self.root}/{path}"):
            stream = open_regular(self._place(path))
            if self._fence is not None:
                require_within(stream, self._place(path), self._fence)
            return stream

    def create(self, path: str, body: bytes) -> bool:
        target = self._place(path)
        with os_errors(str(target)), new_file(target) as (stream, name):
            stream.write(body)
            flush(stream)
            try:
                os.link(name, target)
            except FileExistsError:
                return False
            flush_folder(target.parent)
            return True

    def put_file(self, path: str, local: Path, digest: str, *, spare: bool = False) -> None:
        target = self._place(path)
        if self.size(path) == local.stat().st_size and sha256_of(target) == digest:
            return
        with os_errors(str(target)), new_file(target) as (stream, name):
            if not (spare and _is_moved(local, name)):
                _copy(local, stream)
                flush(stream)
            name.replace(target)  # the name follows from the content, so replacing can only repair a damaged file
            flush_folder(target.parent)

    def put_scratch(self, path: str, local: Path) -> None:
        target = self._place(path)
        with os_errors(str(target)), new_file(target) as (stream, name):
            if not _is_moved(local, name, durable=False):
                _copy(local, stream)
                flush(stream, durable=False)
            name.replace(target)

    def size(self, path: str) -> int | None:
        status = _status(self._place(path))
        return status.st_size if status and stat.S_ISREG(status.st_mode) else None

    def stamp(self, path: str) -> str:
        status = self._place(path).stat()
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(status.st_mode):  # to read a pipe may never end
            raise OSError(errno.EINVAL, "it is no regular file", path)
        return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}"

    def list(self, prefix: str) -> Iterator[Entry]:
        folder = self._place(prefix)
        if not _is_folder(folder):
            return
        for file in sorted(files_below(folder), key=lambda file: str(file.relative_to(self.root))):
            status = None if file.name.startswith(UNFINISHED) else _status(file)
            if status and stat.S_ISREG(status.st_mode):
                yield Entry(str(file.relative_to(self.root)), status.st_size, status.st_mtime)

    def folders(self) -> Iterator[str]:
        with os_errors(self.root):
            entries = os.scandir(self.root) if Path(self.root).is_dir() else ()
            yield from sorted(
                entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(("_", "."))
            )

    def delete(self, path: str) -> None:
        self.delete_many([path])

    def delete_many(self, paths: Sequence[str]) -> None:
        for path in paths:
            with os_errors(f"{self.root}/{path}"):
                self._place(path).unlink(missing_ok=True)

    def transition(self, path: str, storage_class: str) -> str:
        del storage_class
        if self.size(path) is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", f"{self.root}/{path}")
        return ""

    def unfinished(self, prefix: str) -> Iterator[Entry]:
        for file in sorted(files_below(self._place(prefix))):
            if file.name.startswith(UNFINISHED) and (status := _status(file)):
                yield Entry(str(file.relative_to(self.root)), status.st_size, status.st_mtime)


def open_regular(place: Path) -> BinaryIO:
    """Open a file to read it; ContractError for a pipe, a socket or a device, which may never end."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK)  # to open a pipe may wait for its writer
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")  # noqa: PTH123 -- of a descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
    message = f"{place} is no regular file; remove it, or restore the one that was there, and run again"
    raise ContractError(message)


def require_within(stream: BinaryIO, place: Path, fence: Fence) -> None:
    """Close a file and raise RecipeError if it is not within a fence: a link, at any part of its path, led there."""
    handle = Path(f"/proc/self/fd/{stream.fileno()}")  # what was opened, whatever has become of its name since
    real = real_path(str(handle if handle.exists() else place))
    if not fence(real):
        stream.close()
        message = f"{place} is a link that leaves its folder, to {real}; copy the file, or exclude it"
        raise RecipeError(message)


def real_path(path: str) -> str:
    """Return an absolute path without links."""
    return os.path.realpath(path)


def _is_folder(place: Path) -> bool:
    """Return whether a folder is there; nothing has a name that is too long for the file system."""
    try:
        return place.is_dir()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


def files_below(folder: Path) -> Iterator[Path]:
    """Yield all that is no folder below one; what others remove meanwhile is left out.

    RecipeError for a folder that this user may not list: its files would be taken for ones that are not there. The
    one that file systems keep for themselves has none of ours.
    """

    def refuse(error: OSError) -> None:
        if Path(error.filename).name != OF_DISK and not isinstance(error, FileNotFoundError | NotADirectoryError):
            with os_errors(error.filename):
                raise error

    for parent, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(parent, name) for name in names)


def _status(file: Path) -> os.stat_result | None:
    """Return what the system says of a file; None if it is gone, as others may have removed it, or leads nowhere."""
    try:
        return file.stat()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


@contextlib.contextmanager
def new_file(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open an unlisted file in the folder of `target`; it is removed at the end unless it was renamed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    name = target.parent / f"{UNFINISHED}{uuid.uuid4().hex}"
    try:
        with name.open("xb") as stream:
            yield stream, name
    finally:
        name.unlink(missing_ok=True)


def _copy(local: Path, stream: BinaryIO) -> None:
    with local.open("rb") as source:
        shutil.copyfileobj(source, stream, CHUNK)


def _is_moved(local: Path, name: Path, *, durable: bool = True) -> bool:
    """Put a local file in the place of a new one; False on another file system. If durable, it is on the disk then."""
    mode = stat.S_IMODE(name.stat().st_mode)  # that of a new file: a temporary file is its owner's alone
    try:
        local.replace(name)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    name.chmod(mode)
    with name.open("rb") as stream:
        flush(stream, durable=durable)
    return True


def flush(stream: BinaryIO, *, durable: bool = True) -> None:
    """Hand a file's bytes to the system and, if they are to be durable, wait until they are on the disk."""
    stream.flush()
    if durable:
        os.fsync(stream.fileno())


def flush_folder(folder: Path) -> None:
    """Wait until the names of a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def os_errors(path: str) -> Iterator[None]:
    """Turn the system's errors for a full disk or a wrong path into errors that name the way out."""
    try:
        yield
    except PermissionError as error:
        message = f"{path}: permission denied; give this user access or choose another place"
        raise RecipeError(message) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message = f"{path}: no space left on the disk; free some and run again, nothing was committed"
            raise NoSpace(message) from error
        if error.errno in (errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG):
            message = f"{path}: cannot be written ({error.strerror}); choose another place"
            raise RecipeError(message) from error
        raise


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a local file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
