"""The child of a sandbox: extracts the pages of each window under limits of time and memory, until its input ends."""

import mmap
import os
import resource
import signal
import time
from typing import Any

from pipeline_tasks.text.page.charset import decode
from pipeline_tasks.text.page.encodings import UTF8
from pipeline_tasks.text.page.file_reading import read_file
from pipeline_tasks.text.page.file_text import is_place
from pipeline_tasks.text.page.main_text import load, main_text
from pipeline_tasks.text.page.mojibake import repair
from pipeline_tasks.text.page.sandbox_messages import (
    DONE,
    PLAIN,
    READY,
    REPAIR,
    REQUEST,
    WINDOW_BYTES,
    Limits,
    Page,
    Result,
    read_pages,
    write_answer,
)

_GROWTH = 8  # share of its memory, as divisor, by which a child may grow before a new one replaces it


def serve(setup: dict[str, Any]) -> None:
    """Answer windows until standard input ends."""
    limits, answers = Limits(**setup["limits"]), setup["answers"]
    requests, replies = _private_pipes()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.write(replies, READY)
    window, most, ends = _Window(setup["pages"]), 0, False
    while not ends and (request := os.read(requests, REQUEST.size)):
        number, name_size, count, head_size, size = REQUEST.unpack(request)
        view = window.view(size)
        method, at = str(view[:name_size], "utf-8"), 0
        load(method, limits.model)  # before the clock starts: imports are no page's fault
        most = most or _address_space() + limits.memory // _GROWTH
        for page in read_pages(view, name_size, head_size, count):
            signal.setitimer(signal.ITIMER_PROF, limits.seconds)
            result = answer(page, method, limits)
            signal.setitimer(signal.ITIMER_PROF, 0)
            at = write_answer(answers, number, result, at)
        ends = _address_space() > most
        os.write(replies, DONE.pack(ends, at, time.process_time()))


def _private_pipes() -> tuple[int, int]:
    """Return copies of standard input and output, which are then silent: an extractor may print or read."""
    requests, replies = os.dup(0), os.dup(1)
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(silent, stream)
    return requests, replies


class _Window:
    """The pages that the parent has written, mapped once; a larger window is mapped for itself."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._map = mmap.mmap(file, WINDOW_BYTES, access=mmap.ACCESS_READ)

    def view(self, size: int) -> memoryview:
        """Return the first `size` bytes."""
        if size > WINDOW_BYTES:  # unmapped after this window
            return memoryview(mmap.mmap(self._file, size, access=mmap.ACCESS_READ))
        return memoryview(self._map)[:size]


def _address_space() -> int:
    """Return the bytes of address space of this process, 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 -- one call per window
            return int(statm.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return 0


def answer(page: Page, method: str, limits: Limits) -> Result:
    """Decode and extract one page by a method, read a file by the reader at a place, or repair one text."""
    if method == REPAIR:
        text, count = repair(str(page.body, "utf-8"))
        return Result("done", text.encode("utf-8", "ignore") if count else b"", repaired=count)
    if is_place(method):
        return read_file(page.body, method, limits.output)
    decoded = decode(page.body, page.content_type)
    if not decoded.understood:
        return Result("charset", detail=f"{decoded.replaced} of {len(decoded.text)} characters in {decoded.encoding}")
    if method == PLAIN:
        return Result("done", decoded.text.encode("utf-8", "ignore"), method=PLAIN)
    try:
        main = main_text(
            decoded.text,
            method,
            limits.language,
            output=limits.output,
            beta=limits.beta,
            model=limits.model,
            depth=page.depth,
            bits=page.bits,
        )
    except Exception as error:  # noqa: BLE001 -- whatever an extractor raises is the page's fault, and counted as that
        return Result("crash", detail=type(error).__name__)
    body = main.text.encode("utf-8", "ignore")
    encoding = None if decoded.encoding == UTF8 else decoded.encoding
    found = Result("done", body, *main.metadata, method=method, encoding=encoding)
    return found._replace(blocks=main.blocks)
