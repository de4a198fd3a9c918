"""Says how far a pull is: files, bytes, their rate, and the time that is left, in a line every few seconds."""

import sys
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from refinery_sources.source import UNKNOWN, Flow, Part

REPORTED = 10.0
"""Seconds between two lines."""

_MINUTE = 60


@dataclass(slots=True)
class Progress:
    """What has arrived of a pull, in a line on stderr every few seconds.

    What is left is the bytes that the source promises of its parts. Where it promises none, a part has the mean of
    those that are complete, or before there are any what such parts usually have.
    """

    begun: float = field(default_factory=time.monotonic)
    typical: int = 0
    shown: float = 0.0
    bytes: int = 0
    files: int = 0
    missing: int = 0
    promised: int = UNKNOWN
    complete: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def flow(self, typical: int) -> Flow:
        """Return a flow that tells this progress; `typical` are the bytes that a part usually has."""
        self.typical = typical
        return Flow(on_bytes=self.add, on_parts=self.begin, on_part=self.end)

    def begin(self, parts: Sequence[Part], found: Collection[str]) -> None:
        """Take note of the parts, and of those that are there."""
        missing = [part.bytes for part in parts if part.name not in found]
        self.files, self.missing = len(parts), len(missing)
        self.promised = UNKNOWN if UNKNOWN in missing else sum(missing)

    def end(self, _name: str, size: int) -> None:
        """Take note of a part that is complete."""
        with self.lock:
            self.complete.append(size)

    def add(self, name: str, size: int) -> None:
        """Count bytes; write a line if the last one is old."""
        with self.lock:
            self.bytes += size
            seconds = time.monotonic() - self.begun
            if seconds - self.shown < REPORTED:
                return
            self.shown = seconds
            line = self.line(seconds)
        sys.stderr.write(f"{line}, now {name}\n")

    def line(self, seconds: float) -> str:
        """Return how far the pull is after some seconds."""
        there = self.files - self.missing + len(self.complete)
        rate = self.bytes / seconds
        amounts = f"{there:,} of {self.files:,} files, {self.bytes / 1e6:,.0f} MB, {rate / 1e6:.1f} MB/s"
        return f"{seconds:8.1f} s  {amounts}, {_left(self.bytes_left() / rate) if rate else 'nothing yet'}"

    def bytes_left(self) -> float:
        """Return the bytes that are still to come, by promise or estimate."""
        if self.promised != UNKNOWN:
            return max(self.promised - self.bytes, 0)
        mean = sum(self.complete) / len(self.complete) if self.complete else self.typical
        return max(mean * self.missing - self.bytes, 0)


def _left(seconds: float) -> str:
    """Return a time that is left, in words."""
    if seconds < _MINUTE:
        return f"about {seconds:.0f} s left"
    minutes = round(seconds / _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"about {hours} h {minutes} min left" if hours else f"about {minutes} min left"
