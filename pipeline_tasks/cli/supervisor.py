"""Runs a command so that nothing of it outlives it: no process and no temporary file, however it ends.

    refinery (waits, passes signals on)
    └── watcher (in a session of its own; orphans below it become its children)
        └── the command, and below it the JVM, Python workers, Ray, the worker daemon, sandboxes

The first two do nothing but wait. A killed command is ended by its watcher, which removes the temporary folder. A
signal to stop is passed on as Ctrl-C; what has not ended after some seconds is killed. That is safe at any moment:
finished work is committed, and the rest is no part of the dataset.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.temporary import TemporaryFolder, new_folder

GRACE = 5.0
"""Seconds that a command has to end by itself after it was told to stop."""

LAST = 10.0
"""Seconds after which the watcher no longer waits for killed processes, as for one that hangs in the kernel."""

ADDRESSES = 4 * 1024**3
"""Least `ulimit -v`: with 2.4 GiB LLVM does not load, and threads do not start."""

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl-C, as shells have it."""

KEPT = "finished work is kept, and the same command continues from there"

STOPPED = f"stopped; {KEPT}"

DEFECT, SIGNALED = 70, 128
"""Exit code of a defect; and that from which on codes say by what signal a process ended."""

STOPS = (signal.SIGINT, signal.SIGTERM)
WATCHED = (*STOPS, signal.SIGHUP, signal.SIGCHLD)

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
"""Options of Linux's `prctl`."""


def supervised(work: Callable[[], int]) -> int:
    """Return the exit code of `work`, run in a process below this one (in this one where there is no `prctl`)."""
    if sys.platform != "linux":
        return work()
    _require_addresses()
    folder = new_folder()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    heard, returned = os.pipe()
    waiting = os.getpid()
    watcher = os.fork()
    if watcher:
        return _relay(watcher)
    os.setsid()
    _prctl(_SET_CHILD_SUBREAPER, 1)
    _die_with(waiting, signal.SIGHUP)
    watching = os.getpid()
    command = os.fork()
    if command:
        os.close(returned)
        _watch(command, folder, heard)
    _die_with(watching, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    folder.enter()
    try:
        return work()
    except KeyboardInterrupt:
        os.write(returned, b".")
        os._exit(INTERRUPTED)  # the watcher ends Spark, Ray and whatever else their own teardown would wait for
    finally:
        os.write(returned, b".")


def _require_addresses() -> None:
    """Raise RecipeError if `ulimit -v` is too small to load LLVM and start threads: it fails late, in many ways."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and soft < ADDRESSES:
        message = (
            f"`ulimit -v` allows {soft // 1024:,} KiB of addresses, and this command needs {ADDRESSES // 1024:,} "
            "or more (Spark and Ray more still); run `ulimit -v unlimited` first, and limit memory by a container"
        )
        raise RecipeError(message)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with(parent: int, sign: signal.Signals) -> None:
    """Be sent `sign` when the parent dies; it may have died already."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, sign)
    if os.getppid() != parent:
        os.kill(os.getpid(), sign)


def _relay(watcher: int) -> int:
    """Pass signals on to the watcher until it ends; return its exit code."""
    while True:
        sign = signal.sigwait(WATCHED)
        if sign != signal.SIGCHLD:
            os.kill(watcher, sign)
            continue
        ended, status = os.waitpid(watcher, os.WNOHANG)
        if ended:
            return _exit_code(status)


def _watch(command: int, folder: TemporaryFolder, heard: int) -> None:
    """Wait for the command, end what is left of it, and exit with its code.

    `heard` is a pipe in which the command says that its work returned: `os._exit` of a kernel or a library may have the
    exit code of a success.
    """
    code = DEFECT
    try:
        code = _outcome(command)
        if code < SIGNALED and not _has_returned(heard):
            _say(f"something in the process ended it with exit code {code}, a kernel or a library; {KEPT}")
            code = DEFECT
        _end_descendants()
        folder.remove()
    finally:
        os._exit(code)


def _has_returned(heard: int) -> bool:
    """Return whether the command's work returned or raised; processes below it may hold the other end of the pipe."""
    os.set_blocking(heard, False)
    try:
        return bool(os.read(heard, 1))
    except BlockingIOError:
        return False


def _outcome(command: int) -> int:
    """Return the exit code of the command, once it has ended or its time to stop is over."""
    stop, deadline = 0, 0.0
    while True:
        arrived = _await_signal(deadline)
        if arrived == signal.SIGCHLD:
            status = _reap(command)
            if status is not None:
                return _code_after(stop, status)
        elif stop or arrived == signal.SIGHUP:
            _say(STOPPED)
            return 128 + (stop or signal.SIGHUP)
        else:
            stop, deadline = arrived, time.monotonic() + GRACE
            os.kill(command, signal.SIGINT)


def _await_signal(deadline: float) -> int:
    """Return the signal that arrived, 0 if none did before the deadline; 0.0 is no deadline."""
    if not deadline:
        return signal.sigwait(WATCHED)
    arrived = signal.sigtimedwait(WATCHED, max(0.0, deadline - time.monotonic()))
    return arrived.si_signo if arrived else 0


def _code_after(stop: int, status: int) -> int:
    """Return the exit code of a command that ended, by itself or after the signal `stop`."""
    code = _exit_code(status)
    if stop and code:
        _say(STOPPED)
        return 128 + stop
    if not stop and os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        why = " (no memory left, or a small `ulimit -v`?)" if name in {"SIGKILL", "SIGABRT", "SIGSEGV"} else ""
        _say(f"killed by {name}{why}; {KEPT}")
    return code


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever read it may be gone
        os.write(2, f"refinery: {text}\n".encode())


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _reap(command: int = 0) -> int | None:
    """Collect every child that ended; return the status of the command if it is among them."""
    statuses = {}
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            statuses[ended[0]] = ended[1]
    return statuses.get(command)


def _end_descendants() -> None:
    """Kill every process below this one; those that appear meanwhile, too.

    All are halted before the first is killed: one that sees another die would say that this is why the command ended.
    """
    deadline = time.monotonic() + LAST
    while time.monotonic() < deadline:
        _reap()
        below = list(_descendants())
        if not below:
            return
        for sign in (signal.SIGSTOP, signal.SIGKILL):
            for process in below:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, sign)
        time.sleep(0.02)


def _descendants() -> Iterator[int]:
    """Yield the process ids below this process, found by their parents."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    above = {os.getpid()}
    while below := {process for process, parent in parents.items() if parent in above}:
        yield from below
        above = below
