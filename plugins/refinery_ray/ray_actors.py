"""A pool of warm actors of Ray: tasks whose kernels have a state run where that state is loaded already.

The actors of a pool are named by the state and their resources. They outlive the verb and the driver: the next
partition finds them, whoever runs it, and one that nobody called for `IDLE` seconds ends. Tasks read their input from
the store and write to it; only tasks and receipts travel. An actor that dies is started again by Ray, and what it was
at is tried again (docs/decisions/0050-scores-by-models.md has the measurements against Ray Data).
"""

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline_tasks.engines.job import cancel as cancel_thread
from pipeline_tasks.engines.job import current as current_job
from pipeline_tasks.engines.job import working_for
from pipeline_tasks.engines.sent import received, sender
from pipeline_tasks.errors import JobLost, MachineFailed, NoMemory
from pipeline_tasks.run.tasks.cancellation import raise_if_canceled
from pipeline_tasks.run.tasks.state_cost import StateCost
from pipeline_tasks.run.tracker import guarded, is_refusal

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

log = logging.getLogger("refinery")

NAMESPACE = "refinery"

CONTROL = "control"
"""The calls that an actor answers while a task runs in it."""

OF_MACHINE = (MachineFailed, NoMemory)
"""What a machine does to a task: it is tried again, in another process."""

DEPTH = 2
"""Tasks that an actor has at a time: one that runs, and one that is there when it ends."""

TRIES = 4
"""How often a task is tried whose actor died; a receipt makes a repeated one harmless."""

IDLE = float(os.environ.get("REFINERY_ACTOR_IDLE", "60"))
"""Seconds after which an actor that nobody calls ends, and frees what it has."""

LOOK = 1.0
"""Seconds between two looks whether the work was canceled."""


class Worker:
    """An actor: runs tasks one after another in a process that keeps their states."""

    def __init__(self, idle: float) -> None:
        self._idle, self._called, self._running = idle, time.monotonic(), 0
        self._busy, self._began = 0.0, 0.0
        threading.Thread(target=self._end_when_idle, name="idle", daemon=True).start()

    def ready(self) -> float:
        """Return `busy` once the actor runs."""
        self._called = time.monotonic()
        return self.busy()

    def busy(self) -> float:
        """Return the seconds in which tasks ran here until now, whoever's they were."""
        return self._busy + (time.monotonic() - self._began if self._running else 0.0)

    def run(self, common: bytes, pickled: bytes, job: str) -> object:
        """Run a task; what the machine did to it is a value, and ends this process: a GPU's fault stays in it."""
        self._began = time.monotonic()
        self._running += 1
        try:
            with working_for(job):
                [(_, task)] = received(common, pickled)
                result = guarded(task)
        finally:
            self._running -= 1
            self._called = time.monotonic()
            self._busy += self._called - self._began
        if isinstance(result, OF_MACHINE):
            threading.Timer(0.5, os._exit, (1,)).start()
        return result

    def cancel(self, job: str) -> None:
        """Let the task of a job that runs here end before its next batch."""
        cancel_thread(job)

    def _end_when_idle(self) -> None:
        while self._running or time.monotonic() - self._called < self._idle:
            time.sleep(self._idle / 10)
        import ray

        # a process that only exits is taken for one that died, and started again
        ray.kill(ray.get_runtime_context().current_actor, no_restart=True)


@dataclass(slots=True)
class _Member:
    """An actor of a pool, as one driver sees it: `rank` is its number, `calls` the tasks that it has of this driver.

    `since` is when it was ready, and `busy` the seconds in which it had run tasks until then.
    """

    rank: int
    actor: "ActorHandle"
    ready: "ObjectRef | None" = None
    calls: set["ObjectRef"] = field(default_factory=set)
    since: float = 0.0
    busy: float = 0.0


@dataclass(frozen=True, slots=True)
class Pool:
    """The actors of a state: `name` says which, `most` how many, `options` what each is given."""

    name: str
    most: int
    options: Mapping[str, float]

    def run(self, tasks: Sequence[partial[Any]]) -> tuple[list[Any], StateCost]:
        """Return the results of tasks in order, and who waited; JobLost if a task's actor died `TRIES` times."""
        running = _Running(self, tasks)
        with _LOCK:
            _running.append(running)
        try:
            return running.finish(), running.waits()
        finally:
            running.cancel()
            with _LOCK:
                _running.remove(running)

    def member(self, rank: int) -> _Member:
        """Return the actor of that number, started if it does not run."""
        import ray

        worker = ray.remote(concurrency_groups={CONTROL: 1})(Worker).options(
            name=f"{self.name}-{rank}",
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=-1,
            max_concurrency=1,
            **self.options,
        )
        actor = worker.remote(IDLE)
        return _Member(rank, actor, ready=actor.ready.options(concurrency_group=CONTROL).remote())


_LOCK = threading.Lock()

_running: list["_Running"] = []
"""What runs on pools now; guarded by `_LOCK`."""


def cancel(job: str) -> None:
    """Cancel the tasks of a job, those that run included."""
    with _LOCK:
        canceled = [running for running in _running if running.job == job]
    for running in canceled:
        running.cancel()


class _Running:
    """The tasks of one verb on a pool."""

    def __init__(self, pool: Pool, tasks: Sequence[partial[Any]]) -> None:
        import ray

        self._pool, self._tasks, self._waiting = pool, tasks, deque(range(len(tasks)))
        self._sending = sender(tasks)
        self._common = ray.put(self._sending.common)
        self._members = [pool.member(rank) for rank in range(min(pool.most, len(tasks)))]
        self._calls: dict[ObjectRef, tuple[_Member, int]] = {}
        self._results: dict[int, Any] = {}
        self._tries = [0] * len(tasks)
        self._began = self._looked = time.monotonic()
        self._waited = 0.0
        self.job = current_job()

    def finish(self) -> list[Any]:
        """Run until all tasks have a result, or one was refused."""
        while len(self._results) < len(self._tasks):
            raise_if_canceled()
            self._step()
        return [self._results[rank] for rank in range(len(self._tasks))]

    def waits(self) -> StateCost:
        """Return for how long tasks waited for actors, and actors for tasks; an actor that is gone is not counted."""
        import ray

        now = time.monotonic()
        asked = {
            member.actor.busy.options(concurrency_group=CONTROL).remote(): (now - member.since, member.busy)
            for member in self._members
            if member.ready is None
        }
        answered, _ = ray.wait([*asked], num_returns=len(asked), timeout=LOOK) if asked else ([], [])
        held = idle = 0.0
        for ref in answered:
            with contextlib.suppress(ray.exceptions.RayActorError):
                seconds, before = asked[ref]
                held, idle = held + seconds, idle + max(seconds - (ray.get(ref) - before), 0.0)
        return StateCost(actors=len(asked), held=held, idle=idle, open=now - self._began, waited=self._waited)

    def _step(self) -> None:
        """Give tasks to actors that have room, and take what has ended; the first failure ends all."""
        import ray

        self._give()
        starting = {member.ready: member for member in self._members if member.ready is not None}
        lacking = self._lacking()
        done, _ = ray.wait([*starting, *self._calls], num_returns=1, timeout=LOOK)
        now = time.monotonic()
        self._waited += now - self._looked if lacking > 0 else 0.0
        self._looked = now
        for ref in done:
            if ref in starting:
                self._started(starting[ref])
            else:
                self._ended(ref)

    def _lacking(self) -> int:
        """Return how many tasks wait for an actor, less those that one which starts will have."""
        queued = sum(max(len(member.calls) - 1, 0) for member in self._members)
        return len(self._waiting) + queued - self._starting

    @property
    def _starting(self) -> int:
        return sum(member.ready is not None for member in self._members)

    def _give(self) -> None:
        """Give each actor a task, then another of those that no actor which starts will need."""
        for depth in range(1, DEPTH + 1):
            for member in self._members:
                spare = len(self._waiting) - (self._starting if depth > 1 else 0)
                if spare > 0 and member.ready is None and len(member.calls) < depth:
                    rank = self._waiting.popleft()
                    ref = member.actor.run.remote(
                        self._common, self._sending.pickled([(rank, self._tasks[rank])]), self.job
                    )
                    member.calls.add(ref)
                    self._calls[ref] = (member, rank)

    def _started(self, member: _Member) -> None:
        import ray

        try:
            member.busy, member.since, member.ready = ray.get(member.ready), time.monotonic(), None
        except ray.exceptions.RayActorError:
            self._replace(member)

    def _ended(self, ref: "ObjectRef") -> None:
        import ray

        member, rank = self._calls.pop(ref)
        member.calls.discard(ref)
        try:
            result = ray.get(ref)
        except ray.exceptions.RayActorError as error:
            self._again(rank, error)
            self._replace(member)
            return
        if isinstance(result, OF_MACHINE) and self._tries[rank] + 1 < TRIES:
            self._again(rank, result)
        elif is_refusal(result):
            raise result
        else:
            self._results[rank] = result

    def _again(self, rank: int, error: BaseException) -> None:
        self._tries[rank] += 1
        log.warning("an actor of %s failed (%s); its task is tried again", self._pool.name, type(error).__name__)
        if self._tries[rank] >= TRIES:
            message = (
                f"an actor of {self._pool.name} died {TRIES} times at the same task ({str(error)[:300]}); give it more "
                "memory. Finished tasks are kept and will not run again"
            )
            raise JobLost(message) from error
        self._waiting.append(rank)

    def _replace(self, member: _Member) -> None:
        """Find the actor again, or start another of its number: it ended by itself, or its node is gone."""
        fresh = self._pool.member(member.rank)
        member.actor, member.ready = fresh.actor, fresh.ready

    def cancel(self) -> None:
        """Cancel the tasks that have no result yet: those that wait, and between two batches those that run."""
        import ray

        for ref, (member, _) in list(self._calls.items()):
            ray.cancel(ref)
            if self.job:
                member.actor.cancel.options(concurrency_group=CONTROL).remote(self.job)
