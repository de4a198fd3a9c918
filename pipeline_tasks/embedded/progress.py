"""Shows what a run logs, line by line, and sends the output of Airflow, Spark and Ray to a log file."""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TextIO

from pipeline_tasks.embedded import airflow_home


class Stopped(BaseException):
    """Ends a run at the first task that failed for good; no `except Exception` on the way catches it."""


@dataclass(slots=True)
class Progress(logging.Handler):
    """Log handler that shows the operators' messages and keeps their facts for the summary and the exit code."""

    out: TextIO
    started: float = field(default_factory=time.monotonic)
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    published: dict[str, Any] = field(default_factory=dict)
    error: BaseException | None = None

    def __post_init__(self) -> None:
        logging.Handler.__init__(self)

    def __hash__(self) -> int:
        return id(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Show one line, with the seconds since the start."""
        facts: Mapping[str, Any] = getattr(record, "refinery", {})
        if "error" in facts and (facts["final"] or isinstance(facts["error"], KeyboardInterrupt)):
            self.error = facts["error"]  # Airflow takes Ctrl-C for one more failure that it may try again
            raise Stopped
        if "stage" in facts:
            self._keep(facts)
        mark = "! " if record.levelno >= logging.WARNING else ""
        self.out.write(f"{time.monotonic() - self.started:6.1f} s  {mark}{record.getMessage()}\n")
        self.out.flush()

    def _keep(self, facts: Mapping[str, Any]) -> None:
        if facts["stage"] == "publish":
            self.published = facts["reply"]
        elif "rows_in" in facts["reply"] and not facts["which"]:
            self.stages[facts["stage"]] = facts["reply"]


@lru_cache(maxsize=1)
def open_log() -> TextIO:
    """Open this process's log. It stays open, because loggers keep the stream that they were created with."""
    folder = airflow_home.state_folder() / "logs"
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
