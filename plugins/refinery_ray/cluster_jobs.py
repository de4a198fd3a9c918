"""Starts drivers as jobs of Ray's Jobs API."""

import contextlib
import shlex
from collections.abc import Sequence

from pipeline_tasks.engines.cluster_jobs import ClusterJobs
from pipeline_tasks.engines.reach import require_answer
from pipeline_tasks.errors import JobLost
from refinery_ray import ray_jobs


class RayJobs(ClusterJobs):
    """Jobs of a Ray cluster."""

    there = "auto"
    pause = 0.5
    is_service = False

    def require(self, *_uris: str) -> None:
        """Raise ClusterUnreachable unless the Jobs API listens; a cluster may share a file system."""
        require_answer(self.address)

    def submit(self, module: str, arguments: Sequence[str], name: str) -> str:
        """Submit a command; the job is called as we name it."""
        ray_jobs.submit(self.address, shlex.join(["python", "-m", module, *arguments]), name)
        return name

    def has_ended(self, run: str) -> bool:
        """Ask the Jobs API."""
        return ray_jobs.has_ended(self.address, run)

    def words(self, run: str) -> str:
        """Name the job, which its dashboard shows."""
        return f"its Ray job is {run}"

    def log_words(self, run: str, characters: int) -> str:
        """Show what the Jobs API has of the log."""
        with contextlib.suppress(JobLost):
            return f"the log of its Ray job {run} ends: {ray_jobs.log_end(self.address, run, characters)}"
        return self.words(run)
