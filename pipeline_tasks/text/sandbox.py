"""Extracts texts in a process of its own, so that a page that hangs or crashes native code costs only itself.

The child gets pages through a file in memory, a window of some MiB at a time (a pipe would cost a quarter of the work
of extracting), and answers each in order through a pipe. Its processor time per page is limited by a kernel timer whose
default action ends the process, which works inside native code too; the parent then knows that the first unanswered
page is guilty, and goes on with the next one in a new child.
"""

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import IO, Any, Literal, NamedTuple, Self

from pipeline_tasks.text.charset import decode
from pipeline_tasks.text.markup import load, main_text
from pipeline_tasks.text.normal import normalize

Outcome = Literal["done", "charset", "timeout", "crash"]
_OUTCOMES: tuple[Outcome, ...] = ("done", "charset", "timeout", "crash")
_WINDOW = 4 << 20  # bytes of pages that are asked for at once
_TELL = struct.Struct("<IIQ")  # which method, how many pages, bytes of the window that they fill
_ASK = struct.Struct("<BIQ")  # 1 for ready text, lengths of content type and body
_ANSWER = struct.Struct("<BQIII")  # outcome, lengths of text, title, detail and method
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
    """What came of a page; `detail` says more where it is not `done`, `method` by what `text` was found."""

    outcome: Outcome
    text: str = ""
    title: str | None = None
    detail: str = ""
    method: str | None = None

    @property
    def fruitless(self) -> bool:
        """Whether another method may find more."""
        return self.outcome in {"timeout", "crash"} or (self.outcome == "done" and not self.text.strip())


@dataclass(frozen=True, slots=True)
class Limits:
    """How to extract, `seconds` of processor time per page and method, and bytes of address space.

    Each of `methods` is tried where those before it found nothing, took too long or died.
    """

    methods: tuple[str, ...] = ("resiliparse",)
    language: str = "English"
    seconds: float = 10.0
    memory: int = 4 << 30


class Sandbox:
    """A child process that extracts, started at the first page and again after each death."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._child: subprocess.Popen[bytes] | None = None
        self._window = _file_in_memory()
        self._held = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._window.close()

    def extract(self, pages: Sequence[Page]) -> list[Found]:
        """Return what came of each page, in order: of the first method that finds text, else of the first of all."""
        found = list(self._tried(pages, 0))
        for rank in range(1, len(self.limits.methods)):
            again = [at for at, one in enumerate(found) if one.fruitless and not pages[at].is_text]
            for at, one in zip(again, self._tried([pages[at] for at in again], rank), strict=True):
                if not one.fruitless:
                    found[at] = one
        return found

    def _tried(self, pages: Sequence[Page], rank: int) -> Iterator[Found]:
        """Yield what method `rank` finds in each page."""
        done = 0
        while done < len(pages):
            child = self._running()
            asked = done + self._ask(child, pages, done, rank)
            while done < asked:
                found = self._answer(child)
                done += 1
                if found is None:
                    yield self._blame()
                    break
                yield found

    def _ask(self, child: subprocess.Popen[bytes], pages: Sequence[Page], start: int, rank: int) -> int:
        """Put pages from `start` on into the window, one at least, and tell the child; return how many."""
        assert child.stdin is not None
        file, size, at = self._window.fileno(), 0, start
        os.ftruncate(file, _WINDOW)
        while at < len(pages) and (at == start or size + len(pages[at].body) <= _WINDOW):
            kind = pages[at].content_type.encode()
            head = _ASK.pack(pages[at].is_text, len(kind), len(pages[at].body)) + kind
            for part in (head, pages[at].body):
                size += _put(file, part, size)
            at += 1
        with contextlib.suppress(BrokenPipeError):  # the child died, which reading its answer will tell
            _write(child.stdin.fileno(), _TELL.pack(rank, at - start, size))
        return at - start

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            setup = json.dumps([sys.path, {"limits": asdict(self.limits), "window": self._window.fileno()}])
            self._held.clear()
            self._child = subprocess.Popen(  # noqa: S603 -- this interpreter, this module
                [sys.executable, "-c", _START, setup],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                pass_fds=(self._window.fileno(),),
            )
            _widen(self._child.stdout)
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
        text, title, detail, method = (part.decode() for part in _cut(body, sizes))
        return Found(_OUTCOMES[outcome], text, title or None, detail, method or None)

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
            for pipe in (self._child.stdin, self._child.stdout):
                assert pipe is not None
                pipe.close()
            self._child = None


def _cut(body: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield body[at : at + size]
        at += size


def _file_in_memory() -> IO[bytes]:
    """Return an open file without a name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("pages"), "r+b", 0)
    return tempfile.TemporaryFile(buffering=0)


def _put(file: int, data: bytes | memoryview, at: int) -> int:
    """Write all of `data` at a place of a file; return its length."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(file, rest, at)
        rest, at = rest[written:], at + written
    return len(data)


def _take(file: int, size: int, at: int) -> bytes:
    """Read `size` bytes from a place of a file; a single read gives at most 2 GiB."""
    data = os.pread(file, size, at)
    return data if len(data) == size else data + _take(file, size - len(data), at + len(data))


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


def serve(setup: dict[str, Any]) -> None:
    """Answer pages until standard input ends; the child's side."""
    limits = Limits(**setup["limits"])
    asks, answers = os.fdopen(os.dup(0), "rb", 0), os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _write(answers, _READY)
    while told := asks.read(_TELL.size):
        rank, pages, size = _TELL.unpack(told)
        method = limits.methods[rank]
        load(method)  # before the clock starts: imports are no page's fault
        for page in _pages(setup["window"], pages, size):
            signal.setitimer(signal.ITIMER_PROF, limits.seconds)
            found = answer(page, method, limits.language)
            signal.setitimer(signal.ITIMER_PROF, 0)
            parts = [part.encode() for part in (found.text, found.title or "", found.detail, found.method or "")]
            _write(answers, _ANSWER.pack(_OUTCOMES.index(found.outcome), *map(len, parts)) + b"".join(parts))


def _pages(window: int, pages: int, size: int) -> Iterator[Page]:
    """Yield the pages that the parent has put into the window."""
    data, at = memoryview(_take(window, size, 0)), 0
    for _ in range(pages):
        is_text, kind, length = _ASK.unpack_from(data, at)
        start = at + _ASK.size
        at = start + kind + length
        yield Page(data[start + kind : at], bytes(data[start : start + kind]).decode(), bool(is_text))


def answer(page: Page, method: str, language: str) -> Found:
    """Decode, extract and normalize one page."""
    decoded = decode(bytes(page.body), "text/plain; charset=utf-8" if page.is_text else page.content_type)
    if not decoded.understood:
        return Found("charset", detail=f"{decoded.replaced} of {len(decoded.text)} characters in {decoded.encoding}")
    if page.is_text or page.content_type.lower().startswith("text/plain"):
        return Found("done", normalize(decoded.text), method="plain")
    try:
        found = main_text(decoded.text, method, language)
    except Exception as error:  # noqa: BLE001 -- whatever an extractor raises is the page's fault, and counted as that
        return Found("crash", detail=type(error).__name__)
    title = normalize(" ".join(found.title.split()))[:500] if found.title else None
    return Found("done", normalize(found.text), title, method=method)
