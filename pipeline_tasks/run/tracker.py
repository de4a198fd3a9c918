"""Tracks the tasks of one stage: creates them, reuses those of an earlier attempt, and sums their receipts."""

import itertools
import logging
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeGuard, TypeVar, cast

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.manifest import total
from pipeline_tasks.profiles.field_types import FieldCounts, summed
from pipeline_tasks.run.alignment import aligned
from pipeline_tasks.run.finished import Collector, Finished
from pipeline_tasks.run.machine import machine_fault
from pipeline_tasks.run.made import Made
from pipeline_tasks.run.tasks.cancellation import raise_if_canceled
from pipeline_tasks.run.tasks.poison import RowsPoisoned
from pipeline_tasks.run.tasks.row_cache import cache_of, known_segments
from pipeline_tasks.run.tasks.state_cost import NO_STATES, StateCost
from pipeline_tasks.run.tasks.states import State
from pipeline_tasks.run.tasks.task import (
    KEY_DIGITS,
    Outcome,
    Receipt,
    StageIO,
    Task,
    files_named,
    is_landed,
    kernel_name,
    receipt_path,
    stored_receipt,
    task_key,
)
from pipeline_tasks.sealed import canonical, digest_of
from pipeline_tasks.stage import Kernel, Layer, Parts, Prepare, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.s3.waits import NO_WAITS, Waits

T = TypeVar("T")

log = logging.getLogger("refinery")


@dataclass(frozen=True, slots=True)
class Step:
    """Tasks of a stage that are about to run: their root, and by the path of its receipt the bytes that each reads."""

    stage: str
    root: str
    weights: Mapping[str, float]

    def finished(self) -> set[str]:
        """Return the paths of the receipts that are stored by now."""
        store = storage.connect(self.root)
        folders = {path.rpartition("/")[0] for path in self.weights}
        return {entry.path for folder in folders for entry in store.list(folder)} & self.weights.keys()


@dataclass(frozen=True, slots=True)
class MapOptions:
    """How a map is done: what a task keeps is a segment with `sorted_by`, or a `layer`; see `stage.Engine.map`."""

    sorted_by: tuple[str, ...] = ()
    layer: Layer | None = None
    shared: bool = False
    reads: tuple[str, ...] = ()
    state: State | None = None


PLAIN = MapOptions()


@dataclass(slots=True)
class Tracker:
    """One stage's run on one engine: its verbs, in order, what their tasks counted, and what they cost."""

    io: StageIO
    finished: list[Finished] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    landed_rows: dict[str, int] = field(default_factory=dict)
    """Rows of each landed file, or piece of one, by its identity, however often it was read."""
    offspring_in: dict[str, int] = field(default_factory=dict)
    """Generated texts that the rows of each shard brought, by its identity, however often it was read."""
    fields: FieldCounts = field(default_factory=dict)
    """What fields the records of all landed files have."""
    cpu: float = 0.0
    states: StateCost = NO_STATES
    history_reads: Counter[str] = field(default_factory=Counter)
    s3_waits: Waits = NO_WAITS
    ran: int = 0
    reused: int = 0

    @property
    def rejected(self) -> Mapping[str, int]:
        """Reason -> rows rejected or quarantined so far."""
        return total([self.tally])

    def charge(self, earlier: "Tracker") -> None:
        """Add what an earlier run of the stage cost, which ended at poisoned records."""
        self.cpu += earlier.cpu
        self.ran += earlier.ran
        self.states += earlier.states
        self.s3_waits += earlier.s3_waits
        self.history_reads.update(earlier.history_reads)

    def remove_intermediate(self, named: Container[str] = ()) -> None:
        """Remove the shards that are not `named`, with their receipts: only a resume of uncommitted work needs them.

        What a task rejected stays, as a manifest names it. Shared layers stay for other runs.
        """
        store, own = storage.connect(self.io.root), f"{self.io.prefix}/"
        receipts: list[str] = []
        shards: list[str] = []
        for done in self.finished:
            paths = [shard.path for shard in done.shards]
            intermediate = [path not in named and path.startswith(own) for path in paths]
            if any(intermediate):
                receipts += itertools.compress(done.paths_of_receipts(), intermediate)
                shards += itertools.compress(paths, intermediate)
        store.delete_many(receipts)
        # Last: a vacuum finds shards without a receipt, and not the reverse. Tasks may share a shard.
        store.delete_many(list(dict.fromkeys(shards)))

    def map_tasks(
        self,
        kernel: Kernel,
        inputs: Sequence[Shards],
        broadcast: Shards,
        options: MapOptions = PLAIN,
    ) -> Sequence[Task]:
        """Return one task per shard of the first input, each made when it is asked for."""
        rows, layer, state = aligned(inputs, self.io.prefix), options.layer, options.state
        how: list[object] = [*options.sorted_by, *([layer] if layer else []), *([state.name] if state else [])]
        stage_io = replace(self.io, spread=())  # a map leaves rows where they are
        if options.shared or (layer and layer.shared):
            stage_io = replace(stage_io, prefix=self.io.shared)
            how += sorted(files_named(kernel, self.io.files))  # what files have decides, of those that it reads
        drawn: dict[str, Any] = {"sorted_by": options.sorted_by, "layer": layer, "reads": options.reads, "state": state}
        keys = [task_key(kernel, inputs, broadcast, [*how, *_rests_on(inputs, layer)]) for inputs in rows]
        return Made(len(rows), lambda rank: Task(stage_io, keys[rank], kernel, rows[rank], broadcast, **drawn))

    def state(self, prepare: Prepare, cache: str) -> State:
        """Return the state of a kernel, and what is known of the rows that follow from it."""
        name = kernel_name(prepare)
        for path, digest in self.io.files:  # what a file has decides, and not where it is
            name = name.replace(canonical(path).decode(), digest)
        if not cache:
            return State(prepare, name)
        prefix = cache_of(self.io.prefix.partition("/")[0], f"{cache}-{digest_of(name, 32)}")
        return State(prepare, name, prefix, known_segments(self.io.root, prefix), str(cache), isinstance(cache, Parts))

    def group_tasks(self, kernel: Kernel, rows: Shards, by: str, order: Sequence[str], buckets: int) -> list[Task]:
        """Return one task per bucket; a task's input names the shards that its bucket is drawn from.

        Tasks differ in their keys alone. The shards are named once, and not for each bucket.
        """
        verb = task_key(kernel, (rows,), (), [by, *order, buckets])
        keys = (digest_of([verb, bucket], KEY_DIGITS) for bucket in range(buckets if rows else 0))
        return [Task(self.io, key, kernel, (rows,)) for key in keys]

    def complete(self, tasks: Sequence[Task], run_missing: Callable[[Sequence[int]], Iterable[Outcome]]) -> Shards:
        """Run the tasks that no earlier attempt finished; return the shards of all, in order.

        Raises RowsPoisoned, with the records of all tasks, if a kernel raises on records: the others are finished.
        """
        raise_if_canceled()  # between two verbs an engine runs nothing that it could cancel
        if not tasks:
            return ()
        store = storage.connect(self.io.root)
        collector = Collector(tasks[0].io.prefix, [task.key for task in tasks])
        missing = array("q")
        stored = storage.each(store, lambda task: stored_receipt(store, task.io.prefix, task.key), tasks)
        for rank, receipt in enumerate(stored):
            if receipt:
                self._take(collector, tasks, rank, receipt)
            else:
                missing.append(rank)
        self._log_step(Made(len(missing), lambda place: tasks[missing[place]]))
        outcomes: Iterable[Outcome | RowsPoisoned] = run_missing(missing) if missing else ()
        poisoned: list[RowsPoisoned] = []
        for rank, outcome in zip(missing, outcomes, strict=True):
            if isinstance(outcome, RowsPoisoned):
                poisoned.append(outcome)
                continue
            self._take(collector, tasks, rank, outcome.receipt)
            self.cpu += outcome.cpu
            self.states += StateCost(tasks=outcome.wall, model=outcome.kernel) if tasks[rank].state else NO_STATES
            self.history_reads.update(outcome.history_reads)
            self.s3_waits += outcome.s3_waits
        self.ran += len(missing)
        if poisoned:
            raise RowsPoisoned(str(poisoned[0]), tuple(row for some in poisoned for row in some.rows))
        self.reused += len(tasks) - len(missing)
        self.tally += collector.tally
        self.states += collector.states
        self.finished.append(collector.finished())
        return self.finished[-1].shards

    def _take(self, collector: Collector, tasks: Sequence[Task], rank: int, receipt: Receipt) -> None:
        inputs = tasks[rank].inputs
        collector.take(rank, receipt)
        if receipt.offspring_in is not None:
            self.offspring_in[inputs[0][0].identity] = receipt.offspring_in
        if is_landed(inputs):
            is_read = inputs[0][0].identity in self.landed_rows
            self.fields = self.fields if is_read else summed([self.fields, receipt.fields])
            self.landed_rows[inputs[0][0].identity] = receipt.landed_rows

    def _log_step(self, tasks: Sequence[Task]) -> None:
        """Log the tasks that are about to run, for who shows progress."""
        if tasks:
            stage = self.io.prefix.partition("/")[0]
            step = Step(stage, self.io.root, _Weights(tasks))
            log.info("%s: %s to run", stage, counted(len(tasks), "task"), extra={"refinery": {"step": step}})


def _rests_on(inputs: Sequence[Shards], layer: Layer | None) -> list[str]:
    """Return the path of the shard that a shared layer rests on, and nothing for any other task.

    The layer names that path. Another run's shard of the same digest may go with that run, and this layer must not.
    """
    return [inputs[0][0].path] if layer and layer.shared else []


class _Weights(Mapping[str, float]):
    """The bytes that each task reads, by the path of its receipt; buckets share those of all shards.

    They are computed for who looks at them: nobody may.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks

    @cached_property
    def _by_path(self) -> dict[str, float]:
        inputs = [[shard for stream in task.inputs for shard in stream] for task in self._tasks]
        weights = [sum(shard.weight for shard in shards) for shards in inputs]
        distinct = sum({shard.path: shard.weight for shards in inputs for shard in shards}.values())
        scale = distinct / (sum(weights) or 1)
        paths = [receipt_path(task.io.prefix, task.key) for task in self._tasks]
        return {path: weight * scale for path, weight in zip(paths, weights, strict=True)}

    def __getitem__(self, path: str) -> float:
        return self._by_path[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self._by_path)


def without_input(task: Task) -> Task:
    """Return the task of a bucket as a worker gets it: its rows come from the shuffle, and it has many shards."""
    return replace(task, inputs=())


def guarded(task: Callable[[], T]) -> T | RefineryError:
    """Run a task in a worker; our own refusals come back as values, so that no engine wraps or retries them.

    So does what the worker's machine did to it: an engine would take that for a failure of the rows.
    """
    try:
        return task()
    except RefineryError as error:
        return error
    except Exception as error:
        fault = machine_fault(error)
        if fault is None:
            raise
        return fault


def results_of(results: Iterable[T | RefineryError]) -> Iterator[T]:
    """Yield the results of tasks, and raise the first refusal among them; poisoned records are a result."""
    for result in results:
        if is_refusal(result):
            raise result
        yield cast("T", result)


def is_refusal(result: object) -> TypeGuard[RefineryError]:
    """Return whether the result of a task is a refusal, which ends the verb; poisoned records are those of all."""
    return isinstance(result, RefineryError) and not isinstance(result, RowsPoisoned)
