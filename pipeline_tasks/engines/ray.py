"""The Ray engine: the reference engine with its calls spread over a Ray cluster."""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from pipeline_tasks.bench import Bench, attempt, settle
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import JobLost
from pipeline_tasks.stage import Shards

RETRIES = 3
"""How often Ray runs a call again whose worker died; receipts make a repeated call harmless."""


class RayEngine(LocalEngine):
    """Runs each call as a Ray task on the cluster at `address` (`local` starts one on this machine)."""

    def __init__(self, bench: Bench, history: Shards = (), *, address: str = "local") -> None:
        super().__init__(bench, history)
        self._address = address

    def _each(self, calls: Sequence[Callable[[], Any]], weight: int) -> list[Any]:  # noqa: ARG002 -- Ray tasks cost little
        connect(self._address)
        import ray

        remote = ray.remote(max_retries=RETRIES)(attempt)
        try:
            return settle(ray.get([remote.remote(call) for call in calls]))
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.RaySystemError) as error:
            message = (
                f"{self.bench.place.home}: Ray workers died {RETRIES + 1} times in a row ({str(error)[:300]}); "
                "give them more memory or fewer cores. What was finished is kept and will not run again"
            )
            raise JobLost(message) from error


@lru_cache(maxsize=1)
def connect(address: str) -> None:
    """Connect this process to Ray once: `local` starts a head here, anything else is a running cluster."""
    import ray

    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray warns about the coming default otherwise
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "ignore_reinit_error": True}
    if address == "local":
        options |= {"include_dashboard": False, "num_cpus": os.cpu_count(), "object_store_memory": 256 * 1024 * 1024}
    ray.init(address=address, **options)


def disconnect() -> None:
    """Leave Ray, stopping it if this process started it."""
    import ray

    ray.shutdown()
    connect.cache_clear()
