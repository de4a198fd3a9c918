"""Extracts texts in a process of its own, so that a page that hangs or crashes native code costs only itself.

Parent and child share two files in memory. The parent lays a window of some MiB of pages into one and tells the child
through a pipe; the child lays its answers into the other, each as soon as it has it, and tells when the window is done.
Its processor time per page is limited by a kernel timer whose default action ends the process, which works inside
native code too; the parent then knows that the first unanswered page is guilty, and goes on with the next one in a new
child. A child that has done its work waits for the next shard of this process: starting it takes as long as a hundred
pages.
"""

import atexit
import contextlib
import json
import mmap
import os
import resource
import secrets
import select
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from types import TracebackType
from typing import IO, Any, Literal, NamedTuple, Self

from pipeline_tasks.text.page.charset import decode
from pipeline_tasks.text.page.main_text import load, main_text
from pipeline_tasks.text.page.mojibake import repair

Outcome = Literal["done", "charset", "timeout", "crash"]
_OUTCOMES: tuple[Outcome, ...] = ("done", "charset", "timeout", "crash")
REPAIR = "repair"
"""The work of undoing mojibake in a text, beside the methods of `markup`."""

PLAIN = "plain"
"""What stands for a method where a page is no HTML."""

_WINDOW = 4 << 20  # bytes of pages that are asked for at once
_ASK = struct.Struct("<QHIIQ")  # number of the window, length of the name of the work, pages, bytes of heads and all
_PAGE = struct.Struct("<QHIB")  # lengths of body and content type, depth and bits of a page
_ANSWER = struct.Struct("<QBIQI")  # number of the window, outcome, repaired lines, lengths of text and facts
_DONE = struct.Struct("<?Q")  # whether this child leaves, bytes of answers
_GROWTH = 8  # share of its memory, as divisor, by which a child may grow before it makes room for a new one
_VECTORS = 1024  # buffers that a system call takes
_PATIENCE = 20  # wall-clock multiple of the limit after which a child that answers nothing is given up
_READY = b"+"
_START = (
    "import sys, json; path, setup = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from pipeline_tasks.text.page.sandbox import serve; serve(setup)"
)


class Page(NamedTuple):
    """What to work on: the bytes of a page, and what `tags.survey` says of it; or UTF-8 to repair."""

    body: bytes | memoryview
    content_type: str = ""
    depth: int = 0
    bits: int = 0


class Found(NamedTuple):
    """What came of a page: `text` as UTF-8, not yet in normal form, and the method that found it.

    `detail` says more where the outcome is not `done`.
    """

    outcome: Outcome
    text: bytes | memoryview = b""
    title: str | None = None
    language: str | None = None
    published: str | None = None
    detail: str = ""
    method: str | None = None
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds of processor time per page, and bytes of address space; `language`: see `main_text`."""

    language: str = "English"
    seconds: float = 10.0
    memory: int = 4 << 30


class Sandbox:
    """A child process that extracts, started at the first page and again after each death."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.pid = os.getpid()
        self._child: subprocess.Popen[bytes] | None = None
        self._pages, self._answers = _file_in_memory("pages"), _file_in_memory("answers")
        os.ftruncate(self._pages.fileno(), _WINDOW)  # as far as a child maps it
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child and give back what it held."""
        self._end()
        self._pages.close()
        self._answers.close()

    def work(self, name: str, pages: Sequence[Page]) -> Iterator[Found]:
        """Yield what came of each page, in order, of a method or of `REPAIR`."""
        done = 0
        while done < len(pages):
            child = self._running()
            asked = self._ask(child, name, pages, done)
            size, alive = self._wait(child)
            found = list(islice(self._read(size), asked))
            if len(found) < asked:
                found.append(self._blame())
            elif not alive:
                self._end()
            done += len(found)
            yield from found

    def _ask(self, child: subprocess.Popen[bytes], name: str, pages: Sequence[Page], start: int) -> int:
        """Put pages from `start` on into the window, one at least, and tell the child; return how many."""
        assert child.stdin is not None
        size, end = len(pages[start].body), start + 1
        while end < len(pages) and size + len(pages[end].body) <= _WINDOW:
            size += len(pages[end].body)
            end += 1
        kinds = [page.content_type.encode()[:1000] for page in pages[start:end]]
        heads = [
            _PAGE.pack(len(page.body), len(kind), page.depth, page.bits)
            for page, kind in zip(pages[start:end], kinds, strict=True)
        ]
        head = b"".join([name.encode(), *heads, *kinds])
        for file in (self._pages, self._answers):
            _shrink(file)
        size = _put(self._pages.fileno(), [head, *(page.body for page in pages[start:end])], 0)
        self._number = secrets.randbits(64)  # no page can forge an answer for another one behind a dead child's last
        with contextlib.suppress(BrokenPipeError):  # the child died, which waiting for it will tell
            os.write(child.stdin.fileno(), _ASK.pack(self._number, len(name), end - start, len(head), size))
        return end - start

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            files = (self._pages.fileno(), self._answers.fileno())
            setup = json.dumps([sys.path, {"limits": asdict(self.limits), "pages": files[0], "answers": files[1]}])
            self._child = subprocess.Popen(  # noqa: S603 -- this interpreter, this module
                [sys.executable, "-c", _START, setup],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                pass_fds=files,
            )
            if self._hear(self._child, len(_READY)) is None:
                self._end()
                message = "the extractor's process does not start; see whether this Python imports pipeline_tasks"
                raise ChildProcessError(message)
        return self._child

    def _wait(self, child: subprocess.Popen[bytes]) -> tuple[int, bool]:
        """Wait until the window is done; return how many bytes of answers there may be, and whether the child stays."""
        told = self._hear(child, _DONE.size)
        if told is None:
            return os.fstat(self._answers.fileno()).st_size, False
        leaves, size = _DONE.unpack(told)
        return size, not leaves

    def _hear(self, child: subprocess.Popen[bytes], size: int) -> bytes | None:
        """Read from the child; None if it died, or hangs without using its processor."""
        assert child.stdout is not None
        pipe, patience, answered = child.stdout.fileno(), max(60.0, _PATIENCE * self.limits.seconds), -1
        while not select.select([pipe], [], [], patience)[0]:
            count = sum(1 for _ in self._read(os.fstat(self._answers.fileno()).st_size))
            if count == answered:
                return None
            answered = count
        return os.read(pipe, size) or None

    def _read(self, size: int) -> Iterator[Found]:
        """Yield the answers to the present window; what lies behind them is of an earlier one, or unfinished."""
        body = memoryview(_take(self._answers.fileno(), size, 0))
        at = 0
        while at + _ANSWER.size <= len(body):
            number, outcome, count, text, facts = _ANSWER.unpack_from(body, at)
            start, end = at + _ANSWER.size, at + _ANSWER.size + text + facts
            if number != self._number or end > len(body):
                return
            title, language, published, detail, method = str(body[end - facts : end], "utf-8").split("\0")
            yield Found(
                _OUTCOMES[outcome],
                body[start : start + text],
                title or None,
                language or None,
                published or None,
                detail,
                method or None,
                count,
            )
            at = end

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


_IDLE: list[Sandbox] = []


@contextlib.contextmanager
def borrowed(limits: Limits) -> Iterator[Sandbox]:
    """Lend this process's idle sandbox if it has these limits, else a new one; at most one is kept for later."""
    box = _IDLE.pop() if _IDLE else Sandbox(limits)
    if box.limits != limits or box.pid != os.getpid():  # a fork has a copy of what belongs to its parent
        if box.pid == os.getpid():
            box.close()
        box = Sandbox(limits)
    try:
        yield box
    except BaseException:
        box.close()
        raise
    _IDLE.append(box)
    while len(_IDLE) > 1:
        _IDLE.pop(0).close()


def children() -> list[int]:
    """Return the process ids of idle sandboxes, for those who measure."""
    return [box._child.pid for box in _IDLE if box._child]  # noqa: SLF001 -- of this module


@atexit.register
def rest() -> None:
    """End the idle sandbox of this process."""
    while _IDLE:
        box = _IDLE.pop()
        if box.pid == os.getpid():
            box.close()


def _file_in_memory(name: str) -> IO[bytes]:
    """Return an open file without a name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create(name), "r+b", 0)
    return tempfile.TemporaryFile(buffering=0)


def _shrink(file: IO[bytes]) -> None:
    """Give back the memory of a window that was larger than others, as one of a single huge page."""
    if os.fstat(file.fileno()).st_size > 2 * _WINDOW:
        os.ftruncate(file.fileno(), _WINDOW)


def _put(file: int, parts: Sequence[bytes | memoryview], at: int) -> int:
    """Write `parts` one after the other at a place of a file; return where they end."""
    for start in range(0, len(parts), _VECTORS):
        some = parts[start : start + _VECTORS]
        size = sum(map(len, some))
        written = os.pwritev(file, some, at)
        if written < size:  # a call takes at most 2 GiB
            rest_ = memoryview(b"".join(some))[written:]
            while rest_:
                more = os.pwrite(file, rest_, at + size - len(rest_))
                rest_ = rest_[more:]
        at += size
    return at


def _take(file: int, size: int, at: int) -> bytes:
    """Read `size` bytes from a place of a file; a single read gives at most 2 GiB."""
    data = os.pread(file, size, at)
    return data if len(data) == size or not data else data + _take(file, size - len(data), at + len(data))


def serve(setup: dict[str, Any]) -> None:
    """Answer windows until standard input ends; the child's side."""
    limits, pages, answers = Limits(**setup["limits"]), setup["pages"], setup["answers"]
    asks, told = os.fdopen(os.dup(0), "rb", 0), os.dup(1)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # an extractor that prints or reads must not speak on our pipes
        os.dup2(quiet, stream)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.write(told, _READY)
    window, most, leaves = Window(pages), 0, False
    while not leaves and (ask := asks.read(_ASK.size)):
        number, named, count, heads, size = _ASK.unpack(ask)
        whole = window.view(size)
        name, at = str(whole[:named], "utf-8"), 0
        load(name)  # before the clock starts: imports are no page's fault
        most = most or _address_space() + limits.memory // _GROWTH
        for page in _pages(whole, named, heads, count):
            signal.setitimer(signal.ITIMER_PROF, limits.seconds)
            found = answer(page, name, limits.language)
            signal.setitimer(signal.ITIMER_PROF, 0)
            at = _lay(answers, number, found, at)
        leaves = _address_space() > most
        os.write(told, _DONE.pack(leaves, at))


class Window:
    """The pages that the parent has laid out, as the child sees them: mapped once, and anew when they are more."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._map = mmap.mmap(file, _WINDOW, access=mmap.ACCESS_READ)

    def view(self, size: int) -> memoryview:
        """Return the first `size` bytes."""
        if size > _WINDOW:  # held no longer than this window
            return memoryview(mmap.mmap(self._file, size, access=mmap.ACCESS_READ))
        return memoryview(self._map)[:size]


def _pages(window: memoryview, named: int, heads: int, count: int) -> Iterator[Page]:
    """Read the pages of a window, one after the other."""
    facts = [_PAGE.unpack_from(window, named + nth * _PAGE.size) for nth in range(count)]
    kind, body = named + count * _PAGE.size, heads
    for size, letters, depth, bits in facts:
        content_type = str(window[kind : kind + letters], "utf-8", "ignore")
        yield Page(window[body : body + size], content_type, depth, bits)
        kind, body = kind + letters, body + size


def _lay(file: int, number: int, found: Found, at: int) -> int:
    """Write an answer, its head last, so that a reader never takes half of one; return where the next one goes."""
    parts = [part or "" for part in (found.title, found.language, found.published, found.detail, found.method)]
    joined = "\0".join(parts)
    if joined.count("\0") >= len(parts):
        joined = "\0".join(part.replace("\0", "") for part in parts)
    facts = joined.encode("utf-8", "ignore")
    end = _put(file, [found.text, facts], at + _ANSWER.size)
    outcome = _OUTCOMES.index(found.outcome)
    os.pwrite(file, _ANSWER.pack(number, outcome, found.repaired, len(found.text), len(facts)), at)
    return end


def _address_space() -> int:
    """Return the bytes of address space of this process, 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as told:  # noqa: PTH123 -- one call per window
            return int(told.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return 0


def answer(page: Page, name: str, language: str) -> Found:
    """Decode and extract one page by the method called `name`, or repair one text."""
    if name == REPAIR:
        text, count = repair(str(page.body, "utf-8"))
        return Found("done", text.encode("utf-8", "ignore") if count else b"", repaired=count)
    decoded = decode(page.body, page.content_type)
    if not decoded.understood:
        return Found("charset", detail=f"{decoded.replaced} of {len(decoded.text)} characters in {decoded.encoding}")
    if page.content_type.lower().startswith("text/plain"):
        return Found("done", decoded.text.encode("utf-8", "ignore"), method=PLAIN)
    try:
        found = main_text(decoded.text, name, language, depth=page.depth, bits=page.bits)
    except Exception as error:  # noqa: BLE001 -- whatever an extractor raises is the page's fault, and counted as that
        return Found("crash", detail=type(error).__name__)
    return Found("done", found.text.encode("utf-8", "ignore"), *found.told, method=name)
