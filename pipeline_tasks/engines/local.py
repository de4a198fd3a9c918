"""The reference engine: this process, one shard after the other; work over a whole root has several workers."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.recipe import Resources
from pipeline_tasks.run.history import History
from pipeline_tasks.run.made import Made
from pipeline_tasks.run.runner import EngineFactory
from pipeline_tasks.run.scratch import (
    gather_from_store,
    index_parts,
    index_scratch,
    new_scratch,
    remove_scratch,
    scatter_to_store,
)
from pipeline_tasks.run.shuffle import buckets_of, scatter_inputs
from pipeline_tasks.run.tasks.task import Task, run
from pipeline_tasks.run.tracker import MapOptions, Tracker, without_input
from pipeline_tasks.stage import FilePath, Kernel, Layer, Prepare, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import commit_slot, read_manifest
from pipeline_tasks.store.shards.rows import lowest
from pipeline_tasks.store.taken_down_lists import segments_named
from pipeline_tasks.text.base.tables import unchanged

ALONE = Workers()


class LocalEngine:
    """Runs tasks here and now; other engines replace `_each` (and `group`, where they have a shuffle)."""

    def __init__(self, tracker: Tracker, history: History | None = None, workers: Workers = ALONE) -> None:
        self.tracker = tracker
        self.saved: Mapping[str, Shards] = {}
        self._history, self._workers = history or History(), workers

    @property
    def rejected(self) -> Mapping[str, int]:
        """Reason -> rows rejected so far in this run."""
        return self.tracker.rejected

    def in_buckets(self, documents: Shards) -> int:
        """Return in how many buckets by `id` documents come; see `stage.Engine`."""
        return buckets_of(documents, self.origin(documents))

    def origin(self, rows: Shards) -> str:
        """Return the prefix (`stage/fingerprint`) of the shards that these rest on: their rows are in its order.

        That of shards of several prefixes is "", and that of some of the shards of a prefix, too.
        """
        # Shards of several prefixes are those of one after those of the other: their first and their last differ.
        ends = {lowest(self.tracker.io.root, shard).path for shard in (*rows[:1], *rows[-1:])}
        prefixes = {path.rpartition("/data/")[0] for path in ends}
        prefix = prefixes.pop() if len(prefixes) == 1 else ""
        return prefix if prefix and len(rows) == self._committed(prefix) else ""

    def _committed(self, prefix: str) -> int:
        """Return how many shards the stage of a prefix committed, 0 if it did not."""
        root, (stage, _, fingerprint) = self.tracker.io.root, prefix.partition("/")
        store = storage.connect(root)
        path = commit_slot(store, stage, fingerprint)
        return len(read_manifest(root, path).shards) if store.size(path) else 0

    def digest(self, file: FilePath) -> str:
        """Return the digest of a file that the params name; see `stage.Engine`."""
        return dict(self.tracker.io.files)[file]

    def keyed(self, file: FilePath) -> Shards:
        """Return the segments of a list that the params name; see `stage.Engine`."""
        return segments_named(file, self.digest(file)) if file else ()

    def history(self, section: str) -> tuple[Shards, ...]:
        """Return what earlier snapshots saved in a section; see `stage.Engine`."""
        return self._history.entries.get(section, ())

    def save_history(self, section: str, *inputs: Shards, kernel: Kernel | None = None) -> Shards:
        """Commit shards as this snapshot's entry of a section; see `stage.Engine`."""
        sorted_by = self._history.sections[section]
        shards = inputs[0]
        if sorted_by.key:
            keys = (sorted_by.key, *sorted_by.order)
            shards = self.index(kernel or unchanged, *inputs, by=keys)
        self.saved = {**self.saved, section: (*self.saved.get(section, ()), *shards)}
        return shards

    def map(
        self,
        kernel: Kernel,
        *inputs: Shards,
        broadcast: Shards = (),
        layer: Layer | None = None,
        shared: bool = False,
        reads: tuple[str, ...] = (),
        prepare: Prepare | None = None,
        cache: str = "",
    ) -> Shards:
        """Run `kernel` once per shard; see `stage.Engine`."""
        state = self.tracker.state(prepare, cache) if prepare else None
        options = MapOptions(layer=layer, shared=shared, reads=reads, state=state)
        return self._mapped(self.tracker.map_tasks(kernel, inputs, broadcast, options), inputs)

    def index(self, kernel: Kernel, *inputs: Shards, by: tuple[str, ...], broadcast: Shards = ()) -> Shards:
        """Run `kernel` once per shard, and store what it yields for lookups; see `stage.Engine`."""
        return self._mapped(self.tracker.map_tasks(kernel, inputs, broadcast, MapOptions(sorted_by=by)), inputs)

    def _mapped(self, tasks: Sequence[Task], inputs: Sequence[Shards]) -> Shards:
        weight = sum(shard.weight for stream in inputs for shard in stream)

        def run_missing(missing: Sequence[int]) -> Iterator[Any]:
            each = self._each_prepared if tasks[0].state else self._each
            return each(Made(len(missing), lambda place: partial(run, tasks[missing[place]])), weight)

        return self.tracker.complete(tasks, run_missing)

    def group(self, kernel: Kernel, rows: Shards, *, by: str, order: Sequence[str] = (), buckets: int) -> Shards:
        """Run `kernel` once per bucket, over rows sorted by `by` and `order`; see `stage.Engine`."""
        tasks = self.tracker.group_tasks(kernel, rows, by, order, buckets)

        def run_missing(missing: Sequence[int]) -> Iterator[Any]:
            stage_io, weight = self.tracker.io, sum(shard.weight for shard in rows)
            scratch, taken = new_scratch(stage_io), scatter_inputs(rows, buckets)
            scatters = [
                partial(scatter_to_store, stage_io, shards, by, buckets, scratch, number)
                for number, shards in enumerate(taken)
            ]
            try:
                sizes = tuple(self._each(scatters, weight))
                parts = index_parts(len(sizes), buckets)
                indexing = [partial(index_scratch, stage_io, scratch, sizes, buckets, part) for part in parts]
                deque(self._each(indexing, 0), maxlen=0)
                read = (scratch, len(sizes), buckets)
                gathers = [
                    partial(gather_from_store, without_input(tasks[rank]), *read, rank, by, tuple(order))
                    for rank in missing
                ]
                yield from self._each(gathers, weight)
            finally:
                remove_scratch(stage_io, scratch)

        return self.tracker.complete(tasks, run_missing)

    def _each(self, tasks: Sequence[partial[Any]], weight: int) -> Iterator[Any]:  # noqa: ARG002 -- for other engines
        """Run the tasks, which read about `weight` bytes together; yield their results in order, as they are there."""
        return self._workers.run(tasks)

    def each(self, tasks: Sequence[partial[Any]], weight: int) -> Iterator[Any]:
        """Run tasks of any kind; see `runner.RunningEngine`."""
        return self._each(tasks, weight)

    def _each_prepared(self, tasks: Sequence[partial[Any]], weight: int) -> Iterator[Any]:
        """As `_each`, for tasks whose kernel has a state: workers keep it anyway."""
        return self._each(tasks, weight)


def factory(_address: str, _resources: Resources) -> EngineFactory:
    """Return what makes this engine."""
    return LocalEngine


def load(address: str) -> None:
    """Import nothing: what `start` needs is here."""


def start(address: str, resources: Resources) -> None:
    """Start nothing: this engine is the process itself."""


def cancel(job: str) -> None:
    """Cancel nothing more: the thread that works for a job ends by itself (`engines.job`)."""


def lives() -> bool:
    """Return True: what runs here runs in this process."""
    return True


def stop() -> None:
    """Stop nothing."""
