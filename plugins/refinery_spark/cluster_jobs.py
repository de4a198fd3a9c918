"""Starts drivers as job runs of EMR Serverless."""

import contextlib
import logging
from collections.abc import Sequence

from pipeline_tasks.engines.cluster_jobs import COMING, GONE, ClusterJobs
from pipeline_tasks.errors import JobLost, RefineryError
from pipeline_tasks.sealed import digest_of
from refinery_spark import emr_jobs
from refinery_spark.address import SUBMITTED

log = logging.getLogger("refinery")

FRESH = 15.0
"""Seconds for which what AWS said of a job run serves all who wait for it in a process."""


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
