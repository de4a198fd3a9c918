"""Measures a process with all that it started: processor time, and the largest memory of its parts (Linux)."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

MEGABYTE = 10**6
PAUSE = 0.5
"""Seconds between two looks at memory: one takes some milliseconds per gigabyte."""

GONE = (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError, PermissionError)


def tree(process: int = 0) -> Iterator[psutil.Process]:
    """Yield a process (this one by default) and its descendants."""
    root = psutil.Process(process or os.getpid())
    yield root
    yield from root.children(recursive=True)


def processor_seconds(process: int = 0) -> float:
    """Return the processor time of a process and its descendants, those that have ended included."""
    seconds = 0.0
    for part in tree(process):
        with suppress(*GONE):
            seconds += sum(part.cpu_times()[:4])
    return seconds


def proportional_bytes(process: int) -> int:
    """Return the memory of a process: its own pages, and its share of those that it has in common with others."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def pressure() -> float:
    """Return the seconds so far in which some process waited for a processor."""
    first = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    return int(first.rpartition("=")[2]) / 1e6


@dataclass(slots=True)
class Peaks:
    """The largest memory, in MB, of the process itself, of a JVM below it, and of any other process below it."""

    driver: float = 0.0
    jvm: float = 0.0
    worker: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)

    def watch(self, process: int) -> None:
        """Look at a process and its descendants until it has ended, or `ended` is set."""
        while not self.ended.wait(PAUSE):
            try:
                for part in tree(process):
                    with suppress(*GONE):
                        self._see(part, is_driver=part.pid == process)
            except psutil.NoSuchProcess:
                return

    def _see(self, part: psutil.Process, *, is_driver: bool) -> None:
        memory = proportional_bytes(part.pid) / MEGABYTE
        if is_driver:
            self.driver = max(self.driver, memory)
        elif part.name() == "java":
            self.jvm = max(self.jvm, memory)
        else:
            self.worker = max(self.worker, memory)
