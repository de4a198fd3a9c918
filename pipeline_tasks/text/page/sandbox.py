"""Extracts texts in a process of its own, so that a page that hangs or crashes native code costs only itself.

The parent writes a window of some MiB of pages to a shared file and requests it through a pipe. The child writes each
answer to another file as soon as it has it, and reports the end of the window. Its processor time per page is limited
by a kernel timer whose default action ends the process, which works inside native code too. The parent then knows that
the first unanswered page is guilty, and goes on with the next one in a new child.
"""

import contextlib
import json
import os
import resource
import secrets
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from types import TracebackType
from typing import IO, Self

from pipeline_tasks.text.page.sandbox_messages import (
    DONE,
    READY,
    REQUEST,
    WINDOW_BYTES,
    Limits,
    Page,
    Result,
    read_answers,
    write_pages,
)

_PATIENCE = 20  # wall-clock multiple of the limit after which a child that answers nothing is given up
_LEAST_PATIENCE = 60.0
_START = (
    "import sys, json; path, setup = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from pipeline_tasks.text.page.sandbox_child import serve; serve(setup)"
)


_spent = 0.0
_reaped = 0.0
"""Seconds of processor time of the children of this process that had ended when it last started or ended one."""


def seconds_spent() -> float:
    """Return the seconds of processor time that the children of this process's sandboxes have used."""
    return _spent


def _spend(seconds: float) -> None:
    global _spent  # noqa: PLW0603 -- of this process, as its own clock is
    _spent += max(seconds, 0.0)


class Sandbox:
    """A child process that extracts, started at the first page and again after each death."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.pid = os.getpid()
        self._child: subprocess.Popen[bytes] | None = None
        self._pages, self._answers = _file_in_memory("pages"), _file_in_memory("answers")
        os.ftruncate(self._pages.fileno(), WINDOW_BYTES)  # as far as a child maps it
        self._number = 0
        self._reported = 0.0  # seconds of the child

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def child(self) -> int | None:
        """The process id of the child, None if there is none."""
        return self._child.pid if self._child else None

    def close(self) -> None:
        """End the child and free what it used."""
        self._end()
        self._pages.close()
        self._answers.close()

    def process(self, method: str, pages: Sequence[Page]) -> Iterator[Result]:
        """Yield the result of each page, in order, by a method of `main_text` or `REPAIR`."""
        done = 0
        while done < len(pages):
            end = window_end(pages, done)
            self.request(method, pages[done:end])
            results = self.collect(end - done)
            done += len(results)
            yield from results

    def request(self, method: str, pages: Sequence[Page]) -> None:
        """Write pages to the window and request them of the child; `collect` has to follow."""
        child = self._running()
        assert child.stdin is not None
        for file in (self._pages, self._answers):
            _shrink(file)
        heads, size = write_pages(self._pages.fileno(), method, pages)
        self._number = secrets.randbits(64)  # unknown to pages: none can forge another's answer
        with contextlib.suppress(BrokenPipeError):  # the child died, which `_wait` will see
            os.write(child.stdin.fileno(), REQUEST.pack(self._number, len(method), len(pages), heads, size))

    def collect(self, requested: int) -> list[Result]:
        """Wait for the results of so many requested pages; fewer if the child ended at the last of them."""
        assert self._child is not None
        size, lives = self._wait(self._child)
        results = list(islice(self._read(size), requested))
        if len(results) < requested:
            results.append(self._failure())
        elif not lives:
            self._end()
        return results

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the child, started if there is none."""
        if self._child is None:
            files = (self._pages.fileno(), self._answers.fileno())
            self._reported = 0.0
            _newly_ended()
            setup = json.dumps([sys.path, {"limits": asdict(self.limits), "pages": files[0], "answers": files[1]}])
            self._child = subprocess.Popen(  # noqa: S603 -- this interpreter, our module
                [sys.executable, "-c", _START, setup],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                pass_fds=files,
            )
            if self._receive(self._child, len(READY)) is None:
                self._end()
                message = "the extractor's process does not start; see whether this Python imports pipeline_tasks"
                raise ChildProcessError(message)
        return self._child

    def _wait(self, child: subprocess.Popen[bytes]) -> tuple[int, bool]:
        """Wait until the window is done; return how many bytes of answers there may be, and whether the child lives."""
        reply = self._receive(child, DONE.size)
        if reply is None:
            return os.fstat(self._answers.fileno()).st_size, False
        ends, size, seconds = DONE.unpack(reply)
        _spend(seconds - self._reported)
        self._reported = seconds
        return size, not ends

    def _receive(self, child: subprocess.Popen[bytes], size: int) -> bytes | None:
        """Read from the child; None if it died, or hangs without using its processor."""
        assert child.stdout is not None
        pipe, patience, answered = child.stdout.fileno(), max(_LEAST_PATIENCE, _PATIENCE * self.limits.seconds), -1
        while not select.select([pipe], [], [], patience)[0]:
            count = sum(1 for _ in self._read(os.fstat(self._answers.fileno()).st_size))
            if count == answered:
                return None
            answered = count
        return os.read(pipe, size) or None

    def _read(self, size: int) -> Iterator[Result]:
        return read_answers(self._answers.fileno(), self._number, size)

    def _failure(self) -> Result:
        """End the dead or hanging child and return the result of the page that it worked on."""
        assert self._child is not None
        status = self._child.poll()
        if status is None:
            try:
                status = self._child.wait(1)
            except subprocess.TimeoutExpired:
                status = -signal.SIGPROF
        self._end()
        if status == -signal.SIGPROF:
            return Result("timeout", detail=f"{self.limits.seconds} seconds")
        return Result("crash", detail=f"extractor ended with {status}")

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            _spend(_newly_ended() - self._reported)  # what it did since its last answer
            for pipe in (self._child.stdin, self._child.stdout):
                assert pipe is not None
                pipe.close()
            self._child = None


def _newly_ended() -> float:
    """Return the seconds of processor time of the children of this process that have ended since the last call."""
    global _reaped  # noqa: PLW0603 -- of this process, as its own clock is
    usage, before = resource.getrusage(resource.RUSAGE_CHILDREN), _reaped
    _reaped = usage.ru_utime + usage.ru_stime
    return _reaped - before


def window_end(pages: Sequence[Page], start: int) -> int:
    """Return how many pages there are up to the end of the window that begins with page `start`."""
    size, end = len(pages[start].body), start + 1
    while end < len(pages) and size + len(pages[end].body) <= WINDOW_BYTES:
        size += len(pages[end].body)
        end += 1
    return end


def _file_in_memory(name: str) -> IO[bytes]:
    """Return an open file without a name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create(name), "r+b", 0)
    return tempfile.TemporaryFile(buffering=0)


def _shrink(file: IO[bytes]) -> None:
    """Free the memory of a window that was larger than others, as one of a single huge page."""
    if os.fstat(file.fileno()).st_size > 2 * WINDOW_BYTES:
        os.ftruncate(file.fileno(), WINDOW_BYTES)
