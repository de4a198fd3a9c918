"""Lends a sandbox to each shard, and has a second one help it while a processor of the machine is idle.

The last shards of a stage are extracted when other workers have nothing left to do, and a shard may take seconds. A
child that has done its work waits for the next shard of this process: to start one takes as long as a hundred pages.
"""

import atexit
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from pipeline_tasks.text.page.sandbox import Sandbox, window_end
from pipeline_tasks.text.page.sandbox_messages import Limits, Page, Result

IDLE_LOOKS = 2
"""Looks in a row, one a window, that see an idle processor before the second sandbox helps."""

LEAST_BYTES = 1 << 18
"""Bytes of pages from which on a window is divided: to extract fewer takes less than a second process costs."""


class SandboxPair:
    """A sandbox, and another that takes half of each window while `is_idle` says that a processor is."""

    def __init__(self, limits: Limits, is_idle: Callable[[], bool] | None = None) -> None:
        self.limits = limits
        self.pid = os.getpid()
        self._first, self._second = Sandbox(limits), Sandbox(limits)
        self._is_idle = is_idle or has_idle_processor
        self._looks = 0

    @property
    def children(self) -> list[int]:
        """The process ids of the children."""
        return [sandbox.child for sandbox in (self._first, self._second) if sandbox.child]

    def close(self) -> None:
        """End the children and free what they used."""
        self._first.close()
        self._second.close()

    def process(self, method: str, pages: Sequence[Page]) -> Iterator[Result]:
        """Yield the result of each page, in order, by a method of `main_text` or `REPAIR`."""
        done = 0
        while done < len(pages):
            window = pages[done : window_end(pages, done)]
            results = self._side_by_side(method, window) if self._is_helped(window) else self._alone(method, window)
            done += len(results)
            yield from results

    def _is_helped(self, window: Sequence[Page]) -> bool:
        """Return whether the last looks, this one included, saw an idle processor; a small window is not divided."""
        if len(window) == 1 or sum(len(page.body) for page in window) < LEAST_BYTES:
            return False
        self._looks = self._looks + 1 if self._is_idle() else 0
        return self._looks >= IDLE_LOOKS

    def _alone(self, method: str, window: Sequence[Page]) -> list[Result]:
        """Return the results of a window, up to a page that ended the child."""
        self._first.request(method, window)
        return self._first.collect(len(window))

    def _side_by_side(self, method: str, window: Sequence[Page]) -> list[Result]:
        """Return the results of a window of which each sandbox has half of the bytes."""
        cut = _middle(window)
        halves = ((self._first, window[:cut]), (self._second, window[cut:]))
        for sandbox, half in halves:
            sandbox.request(method, half)
        answers = [sandbox.collect(len(half)) for sandbox, half in halves]
        results: list[Result] = []
        for (sandbox, half), answered in zip(halves, answers, strict=True):
            results += [*answered, *sandbox.process(method, half[len(answered) :])]
        return results


def _middle(window: Sequence[Page]) -> int:
    """Return how many pages, of two at least, have half of a window's bytes; one at least is left."""
    ends = list(accumulate(len(page.body) for page in window))
    return min(sum(1 for end in ends if 2 * end <= ends[-1]) or 1, len(window) - 1)


# --- Idle processors ----------------------------------------------------------------------------------------------

_LOAD = Path("/proc/loadavg")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def has_idle_processor() -> bool:
    """Return whether fewer threads want to run than this process may use processors; False where none can tell."""
    try:
        running = int(_LOAD.read_text().split()[3].partition("/")[0])  # this thread is one of them
        return running < _usable_processors()
    except (OSError, ValueError, IndexError):
        return False


def _usable_processors() -> float:
    """Return how many processors the affinity and the control group leave to this process."""
    usable = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, ValueError):  # no control group, or no quota
        quota, period = _QUOTA.read_text().split()
        return min(usable, int(quota) / int(period))
    return usable


# --- Waiting for the next shard -----------------------------------------------------------------------------------

_WAITING: list[SandboxPair] = []


@contextlib.contextmanager
def borrow_sandbox(limits: Limits) -> Iterator[SandboxPair]:
    """Lend this process's waiting pair if it has these limits, else a new one; at most one is kept for later."""
    pair = _WAITING.pop() if _WAITING else SandboxPair(limits)
    if pair.limits != limits or pair.pid != os.getpid():  # a fork has a copy of its parent's pair
        if pair.pid == os.getpid():
            pair.close()
        pair = SandboxPair(limits)
    try:
        yield pair
    except BaseException:  # also an interrupt or a generator that is closed: a child may be in the middle of a window
        pair.close()
        raise
    _WAITING.append(pair)
    while len(_WAITING) > 1:
        _WAITING.pop(0).close()


def idle_children() -> list[int]:
    """Return the process ids of waiting children, for benchmarks of memory."""
    return [child for pair in _WAITING for child in pair.children]


@atexit.register
def close_idle() -> None:
    """End the waiting pair of this process."""
    while _WAITING:
        pair = _WAITING.pop()
        if pair.pid == os.getpid():
            pair.close()
