"""Our tasks as Spark gets them: pickled once with what they share, cut for Spark's tasks, and run there."""

import gc
import pickle
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from pipeline_tasks.engines.sent import Ranked, received, sender
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.run.shuffle import gather
from pipeline_tasks.run.tasks.task import KEY_DIGITS, Outcome, Task
from pipeline_tasks.run.tracker import guarded, without_input
from pipeline_tasks.store import store_settings

RESULT = "rank int, result binary"
"""What comes back of a task: its number, and its pickled result."""


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """Tasks as they are sent: pickled with their ranks, one chunk per Spark task, and what they have in common, once.

    Every Spark task is given all of it, so what all tasks share (a broadcast, a history of thousands of shards) must
    not be in it once per task.
    """

    common: bytes
    chunks: tuple[bytes, ...]

    def tasks(self, part: int) -> list[Ranked]:
        """Return the ranks and tasks of one chunk."""
        return received(self.common, self.chunks[part])


def task_batch(tasks: Sequence[partial[Any]], parts: int) -> TaskBatch:
    """Return tasks as they are sent to `parts` Spark tasks."""
    sending = sender(tasks)
    cuts = (range(part, len(tasks), parts) for part in range(parts))
    return TaskBatch(sending.common, tuple(sending.pickled([(rank, tasks[rank]) for rank in cut]) for cut in cuts))


def unpacked(sent: TaskBatch, batches: Iterator[pa.RecordBatch]) -> Iterator[Ranked]:
    """Yield the ranks and tasks that this Spark task was given."""
    for batch in batches:
        for part in batch.column(0).to_pylist():
            yield from sent.tasks(part)
    _freeze(len(sys.modules))


@lru_cache(maxsize=1)
def _freeze(_modules: int) -> None:
    """Exempt what is imported by now, as kernels import more, from the 40 ms of collection after each Spark task."""
    gc.collect()
    gc.freeze()


def run_tasks(sent: TaskBatch, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the tasks that this Spark task was given; yield rows of `RESULT`."""
    for rank, task in unpacked(sent, batches):
        yield result(rank, guarded(task))


def result(rank: int, value: object) -> pa.RecordBatch:
    """Return a row of `RESULT`."""
    columns = [pa.array([rank], pa.int32()), pa.array([pickled(value)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["rank", "result"])


def pickled(value: object) -> bytes:
    """Return what a worker says as it travels to other workers and to its driver."""
    return pickle.dumps(value)


def unpickled(body: bytes) -> Any:  # noqa: ANN401 -- of the type that was pickled
    """Return what a worker of ours said."""
    return pickle.loads(body)  # noqa: S301 -- our workers' own


@dataclass(frozen=True, slots=True)
class BucketTasks:
    """The tasks of all buckets, as each Spark task gets them: they differ from the `first` in their `keys` alone.

    `stores` is what the driver reaches its stores with.
    """

    stores: str
    first: Task
    keys: bytes
    by: str
    order: tuple[str, ...]

    def run(self, bucket: int, batches: Iterable[pa.RecordBatch]) -> Outcome | RefineryError:
        """Run the kernel of a bucket over its rows, which come in any order."""
        store_settings.receive(self.stores)
        key = self.keys[bucket * KEY_DIGITS : (bucket + 1) * KEY_DIGITS].decode()
        return guarded(partial(gather, replace(self.first, key=key), batches, self.by, self.order))


def bucket_tasks(tasks: Sequence[Task], by: str, order: Sequence[str]) -> BucketTasks:
    """Return the tasks of all buckets of a group as they are sent."""
    keys = "".join(task.key for task in tasks).encode()
    return BucketTasks(store_settings.sendable(), without_input(tasks[0]), keys, by, tuple(order))
