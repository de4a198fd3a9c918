"""The Ray engine: the reference engine with its tasks spread over a Ray cluster."""

import contextlib
import itertools
import logging
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache, partial
from typing import Any

from pipeline_tasks.engines import job
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.engines.reach import require_answer
from pipeline_tasks.engines.sent import received, sender
from pipeline_tasks.errors import ClusterUnreachable, JobLost, KernelFailed, RecipeError, RefineryError
from pipeline_tasks.recipe import Resources
from pipeline_tasks.run.history import History
from pipeline_tasks.run.runner import EngineFactory
from pipeline_tasks.run.tasks.cancellation import raise_if_canceled
from pipeline_tasks.run.tracker import Tracker, guarded, results_of
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.store import store_settings
from refinery_ray import ray_actors
from refinery_ray.address import is_jobs_api, ray_address
from refinery_ray.ray_actors import Pool

ANY_RESOURCES = Resources()

_STARTING = threading.Lock()
"""Held while Ray starts, so that whoever else needs it waits."""

RETRIES = 3
"""How often Ray runs a task again whose worker died; receipts make a repeated task harmless."""

LOOK = 1.0
"""Seconds between two looks for a task that has failed while others run."""

WINDOW = 1024
"""Tasks that are sent to Ray at once, at least: each one that waits there takes memory of the driver."""

CLIENT_TRIES = 3
"""A client's server starts a process for each client, and Ray 2.60 takes one that is slow to start for a dead one."""


class RayEngine(LocalEngine):
    """Runs each task as a Ray task on the cluster at `address` (`local` starts one on this machine)."""

    def __init__(
        self,
        tracker: Tracker,
        history: History | None = None,
        *,
        address: str = "local",
        resources: Resources = ANY_RESOURCES,
    ) -> None:
        super().__init__(tracker, history)
        self._address, self._resources, self._reserved = address, resources, task_options(resources)

    def _each_prepared(self, tasks: Sequence[partial[Any]], _weight: int) -> Iterator[Any]:
        """Run tasks whose kernel has a state in the actors of that state, which stay for the next verb."""
        connect(self._address)
        import ray

        options = actor_options(self._resources)
        _require_room(self._address, options)
        stage = self.tracker.io.prefix.partition("/")[0]
        team = [stores] if (stores := store_settings.sendable()) else []
        name = digest_of([stage, tasks[0].args[0].state.name, options, *team], 16)
        pool = Pool(f"{stage}-{name}", _most_actors(self._resources), options)
        try:
            results, waits = pool.run(tasks)
        except ray.exceptions.RayTaskError as error:
            cause = f"{type(error.cause).__name__}: {error.cause}"
            message = f"{self.tracker.io.prefix}: a kernel failed in a Ray actor ({cause})"
            raise KernelFailed(message) from error
        except ray.exceptions.RayError as error:
            message = f"{self.tracker.io.prefix}: the actors were lost ({str(error)[:300]}). Finished tasks are kept"
            raise JobLost(message) from error
        self.tracker.states += waits
        return iter(results)

    def _each(self, tasks: Sequence[partial[Any]], _weight: int) -> Iterator[Any]:
        connect(self._address)
        import ray

        _require_room(self._address, self._reserved)
        remote = ray.remote(max_retries=RETRIES, **self._reserved)(_run)
        sending = sender(tasks)
        common = ray.put(sending.common)
        try:
            yield from results_of(
                _streamed(lambda rank: remote.remote(common, sending.pickled([(rank, tasks[rank])])), len(tasks))
            )
        except ray.exceptions.RayTaskError as error:
            cause = f"{type(error.cause).__name__}: {error.cause}"
            message = f"{self.tracker.io.prefix}: a kernel failed in a Ray worker ({cause})"
            raise KernelFailed(message) from error
        except ray.exceptions.RayError as error:
            message = (
                f"{self.tracker.io.prefix}: Ray workers died {RETRIES + 1} times in a row ({str(error)[:300]}); "
                "give them more memory or fewer cores. Finished tasks are kept and will not run again"
            )
            raise JobLost(message) from error


def _most_actors(resources: Resources) -> int:
    """Return how many actors a pool may have: as many as are asked for, else those that the cluster has room for.

    One core stays free for other work, where actors reserve cores.
    """
    import ray

    if resources.actors:
        return resources.actors
    whole = ray.cluster_resources()
    rooms = [
        whole.get("GPU", 0) / resources.gpus if resources.gpus else math.inf,
        (whole.get("CPU", 1) - 1) / resources.cores if resources.cores else whole.get("CPU", 1),
    ]
    return max(int(min(rooms)), 1)


def _run(common: bytes, pickled: bytes) -> object:
    """Run one task in a worker; return its result, or a refusal."""
    [(_, task)] = received(common, pickled)
    return guarded(task)


def _streamed(send: Callable[[int], Any], count: int) -> Iterator[Any]:
    """Yield the results of tasks in order, each as it is there; at most a window of tasks waits in Ray at any time.

    After a refusal no more are sent, and only results until then are yielded. Once one has failed, those that were
    sent are canceled: nobody reads what they do.
    """
    import ray

    results: dict[int, Any] = {}
    unsent, refused, given = iter(range(count)), False, 0
    with _known() as waiting:
        try:
            while given < count:
                raise_if_canceled()
                room = 0 if refused else _window() - len(waiting)
                waiting |= {send(rank): rank for rank in itertools.islice(unsent, max(room, 0))}
                if not waiting:
                    break
                wanted = len(waiting) if len(waiting) < _window() // 2 else len(waiting) // 4
                done, _ = ray.wait(list(waiting), num_returns=max(wanted, 1), timeout=LOOK)
                found = dict(zip([waiting.pop(ref) for ref in done], ray.get(done), strict=True))
                refused = refused or any(isinstance(result, RefineryError) for result in found.values())
                results |= found
                while not refused and given in results:
                    yield results.pop(given)
                    given += 1
        except (ray.exceptions.RayError, RefineryError):
            for ref in waiting:
                ray.cancel(ref, force=True)
            raise
    yield from (results[rank] for rank in sorted(results))


def _window() -> int:
    """Return how many tasks are sent ahead: four for each core, and so many that an autoscaler sees what waits."""
    import ray

    return max(int(4 * ray.cluster_resources().get("CPU", 0)), WINDOW)


def task_options(resources: Resources) -> dict[str, float]:
    """Return the options by which Ray gives each task its resources; memory is in bytes.

    A task has no GPU: only kernels with a state use one, and Ray would end the process behind each task.
    """
    asked = {"num_cpus": resources.cores, "memory": int(resources.memory * (1 << 30))}
    return {name: amount for name, amount in asked.items() if amount}


def actor_options(resources: Resources) -> dict[str, float]:
    """Return the options by which Ray gives each actor its resources; without cores it reserves none as it waits."""
    return {**task_options(resources), **({"num_gpus": resources.gpus} if resources.gpus else {})}


def _require_room(address: str, reserved: Mapping[str, float]) -> None:
    """Raise RecipeError if a Ray of this machine can never run such a task: it would wait for ever."""
    if address != "local" or not reserved:
        return
    import ray

    whole = ray.cluster_resources()
    for option, name in (("num_cpus", "CPU"), ("memory", "memory"), ("num_gpus", "GPU")):
        if reserved.get(option, 0) > whole.get(name, 0):
            message = (
                f"a task needs {reserved[option]:,g} of {name}, and the Ray of this machine has "
                f"{whole.get(name, 0):,g}; lower `run: resources`, or name a cluster in ray_default"
            )
            raise RecipeError(message)


_TASKS: dict[str, dict[Any, int]] = {}
"""The Ray tasks that run now, with their numbers, by their job."""


@contextlib.contextmanager
def _known() -> Iterator[dict[Any, int]]:
    """Give a mapping of tasks in which `cancel` finds those of this thread's job while they run."""
    waiting = _TASKS[job.current()] = {}
    try:
        yield waiting
    finally:
        _TASKS.pop(job.current(), None)


def connect(address: str) -> None:
    """Connect this process to Ray once: `local` starts a head here, anything else is a running cluster.

    A head of our own listens on loopback alone, has no dashboard, and requires its token.
    """
    with _STARTING:
        if not lives():
            _connect.cache_clear()
        _connect(address)


def load(address: str) -> None:
    """Set what Ray reads when it is imported, and import it; `address` is as for `connect`."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray warns about the coming default otherwise
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # a job raises its first failure, which is enough
    if address == "local":
        # set explicitly, so that Ray does not announce it; without a token Ray leaves one in ~/.ray for all to read
        if os.environ.setdefault("RAY_AUTH_MODE", "token") == "token":
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # the one switch that means loopback alone
    import ray  # noqa: F401 -- for its effect


@lru_cache(maxsize=1)
def _connect(address: str) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "ignore_reinit_error": True}
    if address.startswith("ray://"):
        options = {}  # they would be sent to the cluster, whose own these are
    if address == "local":
        options |= {"include_dashboard": False, "num_cpus": os.cpu_count(), "object_store_memory": 256 * 1024 * 1024}
    elif address != "auto":
        require_answer(address)
    load(address)
    import ray

    if not ray.is_initialized():
        logging.getLogger("refinery").info("Ray starts at %s", address)
    tries = CLIENT_TRIES if address.startswith("ray://") else 1
    for turn in range(1, tries + 1):
        try:
            return _in_a_lasting_thread(partial(ray.init, address=address, **options))
        except Exception as error:  # Ray raises bare ones, as for a node that is slow to start
            if turn == tries:
                said = str(error).strip()[-300:]
                message = f"Ray at {address} refuses the connection ({said}); check its log and RAY_AUTH_TOKEN here"
                raise ClusterUnreachable(message) from error
        time.sleep(turn)
    return None


def _in_a_lasting_thread(start: Callable[[], object]) -> None:
    """Call `start` here if this is the main thread, else in one that never ends; raises what it raises.

    Linux kills the processes of a Ray of our own with the thread that started them, not with its process, and the
    thread that serves a request ends with it.
    """
    if threading.current_thread() is threading.main_thread():
        start()
        return
    started: Future[None] = Future()

    def last() -> None:
        try:
            start()
        except BaseException as error:  # noqa: BLE001 -- raised in the thread that waits
            started.set_exception(error)
            return
        started.set_result(None)
        threading.Event().wait()

    threading.Thread(target=last, name="ray", daemon=True).start()
    started.result()


def factory(address: str, resources: Resources) -> EngineFactory:
    """Return what makes this engine at `address` (default: a Ray of this machine)."""
    return partial(RayEngine, address=_reachable(address), resources=resources)


def start(address: str, _resources: Resources) -> None:
    """Connect to the Ray at `address` (default: a Ray of this machine); each task asks for its own resources."""
    connect(_reachable(address))


def lives() -> bool:
    """Return whether this process is connected, if it was: a server of clients that was started again knows none."""
    if not _connect.cache_info().currsize:
        return True
    import ray

    return bool(ray.is_initialized())


def cancel(job: str) -> None:
    """Cancel the tasks of a job, those that run included."""
    import ray

    for ref in list(_TASKS.get(job, ())):
        ray.cancel(ref, force=True)
    ray_actors.cancel(job)


def _reachable(written: str) -> str:
    """Return the address that tasks are sent to; RecipeError for one of the Jobs API, which takes requests only."""
    address = ray_address(written)
    if is_jobs_api(address):
        message = (
            f"{address} is Ray's Jobs API, which takes whole requests and no tasks of this process; name the cluster "
            "as ray://host:10001, or on one of its nodes as host:6379 or `auto`"
        )
        raise RecipeError(message)
    return address


def stop() -> None:
    """Leave Ray, stopping it if this process started it."""
    import ray

    with _STARTING:
        ray.shutdown()
        _connect.cache_clear()
