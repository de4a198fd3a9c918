"""Extracts texts in a process of its own, so that a page that hangs or crashes native code costs only itself.

The child gets pages through a pipe and answers each in order. Its processor time per page is limited by a kernel
timer whose default action ends the process, which works inside native code too; the parent then knows that the
first unanswered page is guilty, and goes on with the next one in a new child.
"""

import fcntl
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from threading import Thread
from types import TracebackType
from typing import IO, Literal, NamedTuple, Self

from pipeline_tasks.text.charset import decode
from pipeline_tasks.text.markup import main_text
from pipeline_tasks.text.normal import normalize

Outcome = Literal["done", "charset", "timeout", "crash"]
_OUTCOMES: tuple[Outcome, ...] = ("done", "charset", "timeout", "crash")
_ASK = struct.Struct("<BII")  # 1 for ready text, lengths of content type and body
_ANSWER = struct.Struct("<BIII")  # outcome, lengths of text, title and detail
_PIPE = 1 << 20
_PATIENCE = 20  # wall-clock multiple of the limit after which a child that uses no processor is given up
_READY = b"+"
_START = (
    "import sys, json; path, setup = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from pipeline_tasks.text.sandbox import serve; serve(setup)"
)


class Page(NamedTuple):
    """What to extract from: bytes of a page, or UTF-8 of ready text."""

    body: memoryview
    content_type: str
    is_text: bool


class Found(NamedTuple):
    """What came of a page; `detail` says more where it is not `done`."""

    outcome: Outcome
    text: str = ""
    title: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """How to extract, `seconds` of processor time per page, and bytes of address space."""

    method: str = "resiliparse"
    language: str = "English"
    seconds: float = 10.0
    memory: int = 4 << 30


class Sandbox:
    """A child process that extracts, started at the first page and again after each death."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._child: subprocess.Popen[bytes] | None = None
        self._feeder: Thread | None = None
        self._held = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def extract(self, pages: Sequence[Page]) -> Iterator[Found]:
        """Yield what came of each page, in order."""
        done = 0
        while done < len(pages):
            child = self._running()
            self._feeder = Thread(target=_feed, args=(child.stdin, pages[done:]), daemon=True)
            self._feeder.start()
            while done < len(pages):
                found = self._answer(child)
                done += 1
                if found is None:
                    yield self._blame()
                    break
                yield found

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            setup = json.dumps([sys.path, asdict(self.limits)])
            self._held.clear()
            self._child = subprocess.Popen(  # noqa: S603 -- this interpreter, this module
                [sys.executable, "-c", _START, setup],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
            for pipe in (self._child.stdin, self._child.stdout):
                _widen(pipe)
            if self._read(self._child, len(_READY)) is None:
                self._end()
                message = "the extractor's process does not start; see whether this Python imports pipeline_tasks"
                raise ChildProcessError(message)
        return self._child

    def _answer(self, child: subprocess.Popen[bytes]) -> Found | None:
        """Read one answer; None if the child died or hangs without using its processor."""
        head = self._read(child, _ANSWER.size)
        if head is None:
            return None
        outcome, *sizes = _ANSWER.unpack(head)
        body = self._read(child, sum(sizes))
        if body is None:
            return None
        text, title, detail = (part.decode() for part in _cut(body, sizes))
        return Found(_OUTCOMES[outcome], text, title or None, detail)

    def _read(self, child: subprocess.Popen[bytes], size: int) -> bytes | None:
        assert child.stdout is not None
        pipe = child.stdout.fileno()
        while len(self._held) < size:
            if not select.select([pipe], [], [], max(60.0, _PATIENCE * self.limits.seconds))[0]:
                return None
            part = os.read(pipe, _PIPE)
            if not part:
                return None
            self._held += part
        data = bytes(self._held[:size])
        del self._held[:size]
        return data

    def _blame(self) -> Found:
        """End the dead or hanging child and say what the page that it was at has done."""
        assert self._child is not None
        died = self._child.poll()
        if died is None:
            try:
                died = self._child.wait(1)
            except subprocess.TimeoutExpired:
                died = -signal.SIGPROF
        self._end()
        if died == -signal.SIGPROF:
            return Found("timeout", detail=f"{self.limits.seconds} seconds")
        return Found("crash", detail=f"extractor ended with {died}")

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            if self._feeder is not None:  # it must let go of the pipe before its number may be used again
                self._feeder.join()
            for pipe in (self._child.stdin, self._child.stdout):
                assert pipe is not None
                pipe.close()
            self._child = None


def _cut(body: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield body[at : at + size]
        at += size


def _feed(pipe: IO[bytes], pages: Sequence[Page]) -> None:
    """Write pages until all are written or nobody reads any more."""
    try:
        for page in pages:
            kind = page.content_type.encode()
            _write(pipe.fileno(), _ASK.pack(page.is_text, len(kind), len(page.body)) + kind)
            _write(pipe.fileno(), page.body)
    except BrokenPipeError:  # the child died, and with it the only reader
        return


def _write(pipe: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def _widen(pipe: IO[bytes] | None) -> None:
    """Let a pipe hold more than 64 KiB where the system allows it: fewer switches between the two processes."""
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        try:
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)
        except PermissionError:  # the user's share of pipe memory is used up: slower, not wrong
            return


def serve(setup: dict[str, str | float | int]) -> None:
    """Answer pages from standard input until it ends; the child's side."""
    limits = Limits(**setup)  # type: ignore[arg-type]
    asks, answers = os.fdopen(os.dup(0), "rb", _PIPE), os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _write(answers, _READY)
    while head := asks.read(_ASK.size):
        is_text, kind, size = _ASK.unpack(head)
        content_type, body = asks.read(kind).decode(), asks.read(size)
        signal.setitimer(signal.ITIMER_PROF, limits.seconds)
        found = answer(body, content_type, is_text=bool(is_text), limits=limits)
        signal.setitimer(signal.ITIMER_PROF, 0)
        parts = [part.encode() for part in (found.text, found.title or "", found.detail)]
        _write(answers, _ANSWER.pack(_OUTCOMES.index(found.outcome), *map(len, parts)) + b"".join(parts))


def answer(body: bytes, content_type: str, *, is_text: bool, limits: Limits) -> Found:
    """Decode, extract and normalize one page."""
    decoded = decode(body, "text/plain; charset=utf-8" if is_text else content_type)
    if not decoded.understood:
        return Found("charset", detail=f"{decoded.replaced} of {len(decoded.text)} characters in {decoded.encoding}")
    if is_text or content_type.lower().startswith("text/plain"):
        return Found("done", normalize(decoded.text))
    try:
        found = main_text(decoded.text, limits.method, limits.language)
    except Exception as error:  # noqa: BLE001 -- whatever an extractor raises is the page's fault, and counted as that
        return Found("crash", detail=type(error).__name__)
    title = normalize(" ".join(found.title.split()))[:500] if found.title else None
    return Found("done", normalize(found.text), title)
