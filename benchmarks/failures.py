"""Simulates what a cluster that loses nodes costs a run: work done twice, and wall clock against the ideal.

    python benchmarks/failures.py [--files 900] [--megabytes 1000] [--nodes 25] [--cores 8] [--seeds 50] [--json]

Nothing is refined. Tasks are those that `refinery lint --input` foretells of a snapshot of so many equal files by the
recipe `web`: one for each shard, or bucket, with the seconds of `run/unit_costs.py`, up to a tenth more or less by
chance. A core takes the next task; a stage begins when the one before has ended. A node that is lost takes the work of
its running tasks with it, and nothing else: a finished task has its receipt in the store. It comes back after two
minutes. The clock is simulated, so the same arguments print the same.

- `lost`: the cluster loses a node every 43 minutes.
- `spot`: besides, each node is taken back once in five hours.
- `slow`: one node of the cluster has a third of the speed.
- `slow, copies`: as `slow`, and where three quarters of a stage's tasks have ended, one that has run for 1.5 times
  their median is started again elsewhere; the first to end counts (what `spark.speculation` does).

Each line has means over the seeds, and the wall clock below which 95 % of them are.
"""

import argparse
import heapq
import json
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.sizes import StageSize, stage_sizes

BETWEEN = 43 * 60.0
SPOT = 5 * 3600.0
REPLACED = 120.0
SLOW = 3.0
SHARE, TIMES = 0.75, 1.5
"""Of a stage's tasks that have ended before any is copied, and of their median that a copied task has run."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """So many nodes of so many cores; the mean seconds between losses, of any node and of each; who is slow."""

    nodes: int
    cores: int
    between: float = 0.0
    each: float = 0.0
    slow: int = 0
    copies: bool = False

    @property
    def rate(self) -> float:
        """Losses a second."""
        return (1 / self.between if self.between else 0.0) + (self.nodes / self.each if self.each else 0.0)


@dataclass(slots=True)
class Cost:
    """What a simulated run took: seconds of wall clock, core seconds done in vain, nodes lost, tasks copied."""

    wall: float = 0.0
    vain: float = 0.0
    lost: int = 0
    copied: int = 0


@dataclass(order=True, slots=True)
class Event:
    """Something that happens: a task ends on a node, a node is lost, or it is back."""

    at: float
    kind: str = field(compare=False)
    node: int = field(compare=False, default=-1)
    task: int = field(compare=False, default=-1)
    began: float = field(compare=False, default=0.0)
    is_void: bool = field(compare=False, default=False)


class Simulation:
    """A cluster that works on one stage after the other."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.cost = cluster, Cost()
        self._draws = random.Random(seed)  # noqa: S311 -- a simulation
        self._free = [cluster.cores] * cluster.nodes
        self._events: list[Event] = []
        self._next_loss(0.0)

    def run(self, stages: Sequence[Sequence[float]]) -> Cost:
        """Run stages, each the seconds of its tasks, with up to a tenth more or less by chance; return the cost."""
        for tasks in stages:
            self._stage([seconds * self._draws.uniform(0.9, 1.1) for seconds in tasks])
        return self.cost

    def _next_loss(self, now: float) -> None:
        if self.cluster.rate:
            at = now + self._draws.expovariate(self.cluster.rate)
            heapq.heappush(self._events, Event(at, "lost", self._draws.randrange(self.cluster.nodes)))

    def _stage(self, tasks: Sequence[float]) -> None:
        waiting, open_tasks, ended = list(range(len(tasks)))[::-1], set(range(len(tasks))), []
        running: dict[int, list[Event]] = {}
        while open_tasks:
            self._start(tasks, waiting, running)
            event = heapq.heappop(self._events)
            if event.is_void:
                continue
            self.cost.wall = max(self.cost.wall, event.at)
            if event.kind == "end":
                ended.append(event.at - event.began)
                self._end(event, running, open_tasks)
                self._copy(tasks, waiting, running, (open_tasks, ended))
            elif event.kind == "lost":
                self._lose(event, waiting, running)
            else:
                self._free[event.node] = self.cluster.cores

    def _start(self, tasks: Sequence[float], waiting: list[int], running: dict[int, list[Event]]) -> None:
        for node, free in enumerate(self._free):
            for _ in range(min(free, len(waiting))):
                task = waiting.pop()
                speed = SLOW if node < self.cluster.slow else 1.0
                event = Event(self.cost.wall + tasks[task] * speed, "end", node, task, self.cost.wall)
                heapq.heappush(self._events, event)
                running.setdefault(task, []).append(event)
                self._free[node] -= 1

    def _end(self, event: Event, running: dict[int, list[Event]], open_tasks: set[int]) -> None:
        open_tasks.discard(event.task)
        for other in running.pop(event.task):
            self._free[other.node] += 1
            if other is not event:
                other.is_void = True
                self.cost.vain += event.at - other.began

    def _lose(self, event: Event, waiting: list[int], running: dict[int, list[Event]]) -> None:
        self.cost.lost += 1
        self._free[event.node] = 0
        for task, attempts in list(running.items()):
            for attempt in [attempt for attempt in attempts if attempt.node == event.node]:
                attempt.is_void = True
                self.cost.vain += event.at - attempt.began
                attempts.remove(attempt)
            if not attempts:
                del running[task]
                waiting.append(task)
        back = Event(event.at + REPLACED, "back", event.node)
        self._events = [other for other in self._events if (other.kind, other.node) != ("back", event.node)]
        heapq.heapify(self._events)
        heapq.heappush(self._events, back)
        self._next_loss(event.at)

    def _copy(
        self,
        tasks: Sequence[float],
        waiting: list[int],
        running: Mapping[int, list[Event]],
        done: tuple[set[int], list[float]],
    ) -> None:
        open_tasks, ended = done
        if not self.cluster.copies or waiting or len(open_tasks) > (1 - SHARE) * len(tasks):
            return
        limit = TIMES * statistics.median(ended)
        for task, attempts in running.items():
            if len(attempts) == 1 and self.cost.wall - attempts[0].began > limit and any(self._free):
                waiting.append(task)
                self.cost.copied += 1


def tasks_of(sizes: Sequence[StageSize]) -> list[list[float]]:
    """Return the seconds of the tasks of each stage."""
    counts = [max(size.shards, size.buckets) for size in sizes]
    return [[size.seconds / count] * count for size, count in zip(sizes, counts, strict=True)]


def ideal(stages: Sequence[Sequence[float]], cores: int) -> float:
    """Return the wall clock of a cluster that loses nothing: full rounds of equal tasks."""
    return sum(-(-len(tasks) // cores) * max(tasks) for tasks in stages)


def scenarios(nodes: int, cores: int) -> Iterator[tuple[str, Cluster]]:
    """Yield the clusters that are compared."""
    yield "nothing lost", Cluster(nodes, cores)
    yield "lost", Cluster(nodes, cores, between=BETWEEN)
    yield "spot", Cluster(nodes, cores, between=BETWEEN, each=SPOT)
    yield "slow", Cluster(nodes, cores, slow=1)
    yield "slow, copies", Cluster(nodes, cores, slow=1, copies=True)


def measured(cluster: Cluster, stages: Sequence[Sequence[float]], seeds: int) -> dict[str, float]:
    """Return means over the seeds, as shares of the ideal wall clock and of all work."""
    costs = [Simulation(cluster, seed).run(stages) for seed in range(seeds)]
    best, work = ideal(stages, cluster.nodes * cluster.cores), sum(map(sum, stages))
    walls = sorted(cost.wall / best for cost in costs)
    return {
        "wall": round(statistics.fmean(walls), 3),
        "wall_95": round(walls[int(0.95 * (len(walls) - 1))], 3),
        "vain": round(statistics.fmean(cost.vain for cost in costs) / work, 4),
        "lost": round(statistics.fmean(cost.lost for cost in costs), 1),
        "copied": round(statistics.fmean(cost.copied for cost in costs), 1),
    }


def main() -> None:
    """Simulate, print a table, and last one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=900, help="files of the snapshot (a segment of Common Crawl)")
    parser.add_argument("--megabytes", type=int, default=1000, help="of each file")
    parser.add_argument("--nodes", type=int, default=25)
    parser.add_argument("--cores", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    files = [(f"{number}.warc.gz", options.megabytes * 10**6) for number in range(options.files)]
    stages = tasks_of(list(stage_sizes(load_recipe("web"), files)))
    facts: dict[str, Any] = {"hours": round(ideal(stages, options.nodes * options.cores) / 3600, 2)}
    print(f"{sum(map(len, stages)):,} tasks, {facts['hours']} hours on {options.nodes} nodes that are never lost")
    for name, cluster in scenarios(options.nodes, options.cores):
        row = facts[name] = measured(cluster, stages, options.seeds)
        walls = f"{row['wall']:6.3f} of the ideal wall clock (95 %: {row['wall_95']:.3f})"
        losses = f"{row['lost']:5.1f} nodes lost  {row['copied']:5.1f} tasks copied"
        print(f"{name:14} {walls}  {row['vain']:7.2%} of the work in vain  {losses}")
    if options.json:
        print(json.dumps(facts))


if __name__ == "__main__":
    main()
