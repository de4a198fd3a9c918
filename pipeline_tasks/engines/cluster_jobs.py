"""Starts drivers where a cluster starts them itself, as jobs of its own.

A cluster is given a module with its arguments, no key, and a name of ours; it gives back what it calls the job.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline_tasks.errors import JobLost, RefineryError

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
