"""Runs tasks several at a time on this machine: in threads, which wait for stores together, or in processes."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline_tasks.engines.sent import received, sender
from pipeline_tasks.errors import JobLost
from pipeline_tasks.run.tasks.cancellation import raise_if_canceled
from pipeline_tasks.run.tracker import guarded, results_of

LOOK = 0.5
"""Seconds between two looks whether the work was canceled."""


@dataclass(frozen=True, slots=True)
class Workers:
    """How many tasks run at a time; as processes they compute at a time, too."""

    count: int = 1
    are_processes: bool = False

    def run(self, tasks: Sequence[partial[Any]]) -> Iterator[Any]:
        """Yield the results of tasks in order, and raise the first refusal; what has not begun then is left out.

        JobLost if a process is killed.
        """
        if min(self.count, len(tasks)) <= 1 or (self.are_processes and multiprocessing.current_process().daemon):
            for task in tasks:  # a daemon may have no children
                raise_if_canceled()
                yield from results_of([guarded(task)])
            return
        pool, submit = self._pool(tasks)
        with pool:
            try:
                for future in [submit(rank) for rank in range(len(tasks))]:
                    raise_if_canceled()
                    while not wait([future], LOOK).done:
                        raise_if_canceled()
                    yield from results_of([future.result()])
            except BrokenProcessPool as error:
                message = (
                    "a process was killed, as Linux does when memory is short; run it again with fewer workers, or "
                    "smaller shards: what is finished is kept"
                )
                raise JobLost(message) from error
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _pool(self, tasks: Sequence[partial[Any]]) -> tuple[Executor, Callable[[int], Future[Any]]]:
        """Return a pool, and what gives it the task of a rank; what tasks have in common a process gets once."""
        count = min(self.count, len(tasks))
        if not self.are_processes:
            threads = ThreadPoolExecutor(count, thread_name_prefix="workers")
            return threads, lambda rank: threads.submit(copy_context().run, guarded, tasks[rank])
        sending, context = sender(tasks), multiprocessing.get_context("spawn")  # Arrow's threads do not survive a fork
        processes = ProcessPoolExecutor(count, context, initializer=_share, initargs=(sending.common,))
        return processes, lambda rank: processes.submit(_run_sent, sending.pickled([(rank, tasks[rank])]))


_COMMON: list[bytes] = []
"""What the tasks of this process have in common."""


def _share(common: bytes) -> None:
    _COMMON.append(common)


def _run_sent(pickled: bytes) -> object:
    [(_, task)] = received(_COMMON[-1], pickled)
    return guarded(task)
