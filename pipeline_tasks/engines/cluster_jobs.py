"""Starts drivers where a cluster starts them itself: as jobs of Ray's Jobs API, or as job runs of EMR Serverless.

Both are given a module with its arguments, no key, and a name of ours; they give back what they call the job.
"""

import contextlib
import logging
import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline_tasks.engines import emr_jobs, ray_jobs
from pipeline_tasks.engines.address import SUBMITTED, is_emr
from pipeline_tasks.engines.reach import require_answer
from pipeline_tasks.errors import JobLost, RefineryError
from pipeline_tasks.sealed import digest_of

log = logging.getLogger("refinery")

FRESH = 15.0
"""Seconds for which what AWS said of a job run serves all who wait for it in a process."""

COMING, GONE = "coming", "gone"
"""Where a job stands that has not begun to work: it waits for machines, or has ended without a word."""


@dataclass(frozen=True, slots=True)
class ClusterJobs(ABC):
    """What starts the drivers of a session at an address; `there` is the engine's for a driver that runs there."""

    address: str
    root: str
    session: str

    there: ClassVar[str]
    pause: ClassVar[float]
    """Seconds between two looks at a job that has just been started."""

    is_service: ClassVar[bool]
    """Whether it is a cloud's: a job waits in a queue, costs until it ends, and is found by who starts it once more."""

    @abstractmethod
    def require(self, *uris: str) -> None:
        """Raise unless it can start a driver, and that reach the URIs."""

    @abstractmethod
    def submit(self, module: str, arguments: Sequence[str], name: str) -> str:
        """Start a module as a job, and return what the cluster calls it."""

    @abstractmethod
    def has_ended(self, run: str) -> bool:
        """Return whether a job has ended; JobLost if the cluster does not say."""

    @abstractmethod
    def words(self, run: str) -> str:
        """Return in words where the log of a job is."""

    @abstractmethod
    def log_words(self, run: str, characters: int) -> str:
        """Return in words where the log of a job is, and its end where it can be read."""

    def standing(self, run: str) -> str:  # noqa: ARG002 -- for those that say it
        """Return COMING or GONE, "" for a job that runs, by what may be some seconds old; JobLost if nobody says."""
        return ""

    def loss(self, run: str, *, lived: bool) -> tuple[type[RefineryError], str]:  # noqa: ARG002 -- for those that say it
        """Return the class of the error of a lost driver, and what is known of its job; `lived`: it had a beat."""
        return JobLost, ""

    def cancel(self, run: str) -> None:  # noqa: B027 -- a driver of Ray ends by itself and costs nothing
        """End a job that nobody waits for, if it costs something."""


class RayJobs(ClusterJobs):
    """Jobs of a Ray cluster."""

    there = "auto"
    pause = 0.5
    is_service = False

    def require(self, *uris: str) -> None:  # noqa: ARG002 -- a cluster may share a file system
        """Raise ClusterUnreachable unless the Jobs API listens."""
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


class EmrJobs(ClusterJobs):
    """Job runs of an application of EMR Serverless."""

    there = SUBMITTED
    pause = 5.0
    is_service = True

    def require(self, *uris: str) -> None:
        """Raise RecipeError for a URI outside of S3; of the application its first request says what is wrong."""
        emr_jobs.require_buckets(self.address, *uris)

    def submit(self, module: str, arguments: Sequence[str], name: str) -> str:
        """Start a job run with a token of its name."""
        token = digest_of([self.root, name], 32)
        return emr_jobs.submit(self.address, self.root, self.session, [module, *arguments], token)

    def has_ended(self, run: str) -> bool:
        """Ask AWS, unless somebody here just has."""
        return self._run(run).look(self.pause / 2).has_ended

    def standing(self, run: str) -> str:
        """Return it by what AWS said last."""
        known = self._run(run).look(FRESH)
        return COMING if known.is_waiting else GONE if known.has_ended else ""

    def words(self, run: str) -> str:
        """Name the job run and its log."""
        return f"the log of job run {run} is {self._run(run).log()}" if run else "its job run has not been started"

    def log_words(self, run: str, characters: int) -> str:
        """Show what AWS has put into the root of the log."""
        end = self._run(run).log_end(characters) if run else ""
        return f"{self.words(run)}, which ends: {end}" if end else self.words(run)

    def loss(self, run: str, *, lived: bool) -> tuple[type[RefineryError], str]:
        """Ask AWS once more, and let the state of the job run decide."""
        if not run:
            return JobLost, ""
        known = self._run(run)
        with contextlib.suppress(RefineryError):
            known.look()
        return known.loss(lived=lived)

    def cancel(self, run: str) -> None:
        """Cancel a job run; a failure is logged, as the driver ends by itself when nobody asks it."""
        try:
            if run and not self._run(run).look(FRESH).has_ended:
                self._run(run).cancel()
        except RefineryError as error:
            log.warning("%s was not canceled, and ends by itself when nobody asks it: %s", run, error)

    def _run(self, run: str) -> emr_jobs.JobRun:
        return emr_jobs.job_run(self.address, self.root, self.session, run)


def jobs_at(address: str, root: str, session: str) -> ClusterJobs:
    """Return what starts the drivers of a session at an address of Ray's Jobs API, or of EMR Serverless."""
    return (EmrJobs if is_emr(address) else RayJobs)(address, root, session)
