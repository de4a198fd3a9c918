"""The reference engine: this process, one shard after the other."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pipeline_tasks.run.task import Task, run, unchanged
from pipeline_tasks.run.tracker import Tracker, gather_from_store, new_scratch, remove_scratch, scatter_to_store
from pipeline_tasks.stage import Kernel, Shards


class LocalEngine:
    """Runs calls here and now; other engines replace `_each` (and `group`, where they have a shuffle)."""

    def __init__(self, tracker: Tracker, history: Shards = ()) -> None:
        self.tracker = tracker
        self.history = history
        self.remembered: Shards = ()

    @property
    def rejected(self) -> Mapping[str, int]:
        """Reason -> rows set aside so far in this run."""
        return self.tracker.rejected

    def save_history(
        self, *inputs: Shards, by: str = "", order: Sequence[str] = (), kernel: Kernel | None = None
    ) -> None:
        """Keep `shards` with the manifest for later snapshots; see `stage.Engine`."""
        kept = self.page(kernel or unchanged, *inputs, by=(by, *order)) if by else inputs[0]
        self.remembered = (*self.remembered, *kept)

    def map(self, kernel: Kernel, *inputs: Shards, broadcast: Shards = ()) -> Shards:
        """Run `kernel` once per shard; see `stage.Engine`."""
        return self._mapped(self.tracker.map_tasks(kernel, inputs, broadcast), inputs)

    def page(self, kernel: Kernel, *inputs: Shards, by: Sequence[str]) -> Shards:
        """As `map`, but what the kernel keeps, sorted by the columns `by`, is stored as segments."""
        return self._mapped(self.tracker.map_tasks(kernel, inputs, (), by), inputs)

    def _mapped(self, tasks: Sequence[Task], inputs: Sequence[Shards]) -> Shards:
        weight = sum(shard.bytes for stream in inputs for shard in stream)

        def run_missing(missing: list[int]) -> list[Any]:
            return self._each([partial(run, tasks[rank]) for rank in missing], weight)

        return self.tracker.complete(tasks, run_missing)

    def group(self, kernel: Kernel, rows: Shards, *, by: str, order: Sequence[str] = (), buckets: int) -> Shards:
        """Run `kernel` once per bucket, over rows sorted by `by` and `order`; see `stage.Engine`."""
        tasks = self.tracker.group_tasks(kernel, rows, by, order, buckets)

        def run_missing(missing: list[int]) -> list[Any]:
            place, weight = self.tracker.place, sum(shard.bytes for shard in rows)
            scratch = new_scratch(place)
            scatters = [partial(scatter_to_store, place, shard, by, buckets, scratch) for shard in rows]
            try:
                pieces = [one for part in self._each(scatters, weight) for one in part]
                drawn = {rank: tuple(piece for bucket, piece in pieces if bucket == rank) for rank in missing}
                gathers = [partial(gather_from_store, tasks[rank], drawn[rank], by, tuple(order)) for rank in missing]
                return self._each(gathers, weight)
            finally:
                remove_scratch(place, scratch)

        return self.tracker.complete(tasks, run_missing)

    def _each(self, calls: Sequence[partial[Any]], weight: int) -> list[Any]:  # noqa: ARG002 -- for other engines
        """Run the calls, which read about `weight` bytes together; return their results in order."""
        return [call() for call in calls]
