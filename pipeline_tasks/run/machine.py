"""Names what is wrong with the machine behind an error of a library: memory, disk, network, LLVM, a locked database.

The table from a cause to the class of `errors`, which decides whether work is tried again, on every engine.
"""

import errno
import os
import resource
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline_tasks.errors import JobLost, MachineFailed, NoMemory, NoSpace, RecipeError, RefineryError, StorageBusy
from pipeline_tasks.libraries import EXTRAS, way_to
from pipeline_tasks.scorers.faults import GPU, is_panic

_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
_MEMORY = (
    "cannot allocate memory",
    "bad_alloc",
    "can't start new thread",
    "unable to allocate",
    "failed to map segment",
    "out of memory",
)
_LLVM = ("libllvmlite", "llvm error", "could not find/load shared object file")
_CACHE = ("no locator available", "numba_cache_dir")
_LOCKED = ("database is locked",)

_OF_DATA = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError)
"""Errors whose text may be of a record, as that of a panic: it says nothing of the machine."""


def machine_fault(error: BaseException) -> RefineryError | None:
    """Return Refinery's error for what the machine of a worker did to its work, None if that itself failed.

    Every error of a file, a disk or a connection is the machine's: what is wrong with rows has other classes.
    """
    of_system = (reason for reason in _reasons(error) if isinstance(reason, OSError))
    fault = named(error) or next(map(_failed, of_system), None)
    if fault is None or fault is error:
        return fault
    located = type(fault)(f"on {socket.gethostname()}: {fault}")
    located.__cause__ = error
    return located


def _failed(error: OSError) -> RefineryError:
    """Return the error of a file or a connection, without its text: a library's may have that of a record."""
    what = " ".join(filter(None, [error.strerror if error.errno else "", str(error.filename or "")]))
    reason = f"{type(error).__name__}{what and f': {what}'}"
    return MachineFailed(f"a file or a connection failed ({reason}); it is tried again later")


def _reasons(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it was raised from; what was handled when it was raised need not be its reason."""
    while error is not None:
        yield error
        error = error.__cause__


def named(error: BaseException | None) -> RefineryError | None:
    """Return Refinery's error for one that the machine caused, or None; its causes are searched, too."""
    for cause in _causes(error):
        if isinstance(cause, RefineryError):
            return cause
        if (refusal := _absent(cause) or _named(cause)) is not None:
            return refusal
    return None


def _absent(error: BaseException) -> RefineryError | None:
    """Return the error of a library that an extra brings which is not installed here."""
    name = str(error.name) if isinstance(error, ModuleNotFoundError) else ""
    return RecipeError(way_to(name)) if name.partition(".")[0] in EXTRAS else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _named(error: BaseException) -> RefineryError | None:  # noqa: PLR0911 -- a table
    is_of_data, number = isinstance(error, _OF_DATA) or is_panic(error), getattr(error, "errno", None)
    text = "" if is_of_data else str(error).lower()
    reason = f"{type(error).__name__}: {str(error)[:200]}".rstrip(": ")
    if number in (errno.ENOSPC, errno.EDQUOT):
        place = getattr(error, "filename2", None) or getattr(error, "filename", None) or tempfile.gettempdir()
        return NoSpace(f"{place}: no space left on the disk; free some or set TMPDIR, nothing was committed")
    if number in _CLOSED and getattr(error, "filename", None):
        return RecipeError(
            f"{getattr(error, 'filename2', None) or getattr(error, 'filename', None)}: {os.strerror(number)}; let this "
            "user write there, or name another place (ROOT, TMPDIR, NUMBA_CACHE_DIR)"
        )
    if number == errno.ENOENT and _is_folder_gone():
        return RecipeError("the folder in which this command was started is gone; change to another and run it again")
    if number in (errno.EMFILE, errno.ENFILE):
        return JobLost(f"too many open files ({reason}); raise the limit with `ulimit -n 65536`")
    if isinstance(error, MemoryError) or number == errno.ENOMEM or _has(text, _MEMORY):
        return NoMemory(f"this process got no more memory ({reason}); {_limit()}. Finished work is kept")
    if _has(text, GPU):
        return MachineFailed(f"a GPU failed ({reason}); the process that used it ends, and the work is tried again")
    if _has(text, _CACHE):
        place = os.environ.get("NUMBA_CACHE_DIR", "the user's cache folder")
        return RecipeError(
            f"{place}: numba cannot keep compiled code there ({reason}); set NUMBA_CACHE_DIR to a folder"
        )
    if _has(text, _LLVM):
        return RecipeError(f"numba's compiler does not load ({reason}); {_limit()}, or install the requirements again")
    if _has(text, _LOCKED):
        return StorageBusy(
            f"another process holds the database for more than a minute ({reason}); run the same command again. "
            "If it stays locked, stop other `refinery up` and `airflow` processes of this home"
        )
    return None


def _is_folder_gone() -> bool:
    """Return whether the working folder of this process was removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _limit() -> str:
    """Return what to do about memory; the limit is named where there is one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return "free some, or give the machine or container more"
    return f"`ulimit -v` allows {soft // 1024:,} KiB of addresses: raise it with `ulimit -v unlimited`"
