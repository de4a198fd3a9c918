"""Shows what a run logs, line by line, and sends the output of Airflow, Spark and Ray to a log file."""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TextIO

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.run.tracker import Step
from pipeline_tasks.shipped import state_folder
from pipeline_tasks.store.s3.waits import NO_WAITS, Waits

SILENCE = 10.0
"""Seconds without a line after which a run shows how far its stage is."""


@dataclass(slots=True)
class Progress(logging.Handler):
    """Log handler that shows the operators' messages and keeps their facts for the summary and the exit code.

    `ran` counts the tasks of stages that were not done before.
    After `silence` seconds without a line it shows how many tasks of the stage are done, their rate, and the time left.
    """

    out: TextIO
    silence: float = SILENCE
    started: float = field(default_factory=time.monotonic)
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    published: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    s3_waits: Waits = NO_WAITS
    ran: int = 0
    _step: tuple[Step, float] | None = None
    _retried: set[tuple[int, str]] = field(default_factory=set)
    _shown: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        logging.Handler.__init__(self)

    def __hash__(self) -> int:
        return id(self)

    @property
    def seconds(self) -> float:
        """Seconds since the run began, to a tenth."""
        return round(time.monotonic() - self.started, 1)

    def emit(self, record: logging.LogRecord) -> None:
        """Show one line, with the seconds since the start."""
        facts: Mapping[str, Any] = getattr(record, "refinery", {})
        if "error" in facts and facts["final"]:
            return  # the run ends by it, and says so
        if "step" in facts:
            self._step = facts["step"], time.monotonic()
            return
        if "stage" in facts:
            self._keep(facts)
        mark = "! " if record.levelno >= logging.WARNING else ""
        text = printable(record.getMessage())
        if "error" in facts and self._is_known(facts.get("try", 0), text):
            return
        if mark:
            self.warnings.append(text.partition("\n")[0])
        self._write(f"{mark}{text}")

    def _is_known(self, number: int, text: str) -> bool:
        """Return whether another partition of the stage has failed at the same try with the same words."""
        known = (number, text) in self._retried
        self._retried.add((number, text))
        return known

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Show the tasks that are done, from a thread of its own, whenever nothing else was shown for a while."""
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(ended,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(self.silence / 10):
            step = self._step
            if step and time.monotonic() - self._shown >= self.silence:
                with contextlib.suppress(RefineryError):  # a root that cannot be read is the error of the stage
                    self._write(step_line(step[0], step[0].finished(), time.monotonic() - step[1]))

    def _write(self, line: str) -> None:
        self._shown = time.monotonic()
        self.out.write(f"{self._shown - self.started:6.1f} s  {line}\n")
        self.out.flush()

    def _keep(self, facts: Mapping[str, Any]) -> None:
        self._step = None
        self.s3_waits += Waits(**facts["reply"].get("s3_waits", {}))
        self.ran += facts["reply"].get("ran", 0)
        if facts["stage"] == "publish":
            self.published = facts["reply"]
        elif "rows_in" in facts["reply"] and not facts["which"]:
            self.stages[facts["stage"]] = facts["reply"]


def step_line(step: Step, finished: Container[str], seconds: float) -> str:
    """Return how far the tasks of a stage are after so many seconds, their rate in bytes, and the time left."""
    done = [weight for path, weight in step.weights.items() if path in finished]
    line = f"{step.stage:<18} {len(done):,} of {counted(len(step.weights), 'task')} done, {seconds:.0f} s"
    if not sum(done):
        return line
    rate = sum(done) / seconds
    left = (sum(step.weights.values()) - sum(done)) / rate
    return f"{line}, {rate / 1e6:.1f} MB/s, about {_duration(left)} left"


def _duration(seconds: float) -> str:
    """Return a time as people say it: 45 s, 12 min, 3.5 h."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.{1 if unit == 'h' else 0}f} {unit}"
    return f"{seconds:.0f} s"


@lru_cache(maxsize=1)
def open_log() -> TextIO:
    """Open this process's log. It stays open, because loggers keep the stream that they were created with."""
    folder = state_folder() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    return path.open("w", encoding="utf-8", buffering=1)


@contextlib.contextmanager
def redirected_output(log: TextIO, screen: int) -> Iterator[TextIO]:
    """Send what this process and its libraries print to `log`; yield a stream that still writes to `screen`."""
    python = sys.stdout, sys.stderr
    for stream in python:
        stream.flush()
    saved = [os.dup(1), os.dup(2)]
    with os.fdopen(os.dup(screen), "w") as shown:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
        sys.stdout = sys.stderr = log
        try:
            yield shown
        finally:
            sys.stdout, sys.stderr = python
            for descriptor, copy in zip((1, 2), saved, strict=True):
                os.dup2(copy, descriptor)
                os.close(copy)


def printable(text: str) -> str:
    """Return text without what would change how a terminal shows it; lines stay."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)
