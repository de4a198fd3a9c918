"""Asks EMR Serverless for the job runs that are drivers of stages: starts one, looks, cancels, says why one failed.

The credentials are those of the root, so that who may write it starts what works on it. The driver has none of them: it
works with the role of its job run. boto3 repeats what was throttled; what goes on to be is tried again later.
"""

import contextlib
import gzip
import math
import re
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from pipeline_tasks.errors import JobLost, RecipeError, RefineryError, error_of
from pipeline_tasks.store import storage, store_settings
from pipeline_tasks.store.s3 import client as s3_client
from refinery_spark.address import Application, application_of

if TYPE_CHECKING:
    from botocore.client import BaseClient

SERVICE = "emr-serverless"

WAITING = ("SUBMITTED", "QUEUED", "PENDING", "SCHEDULED")
"""The states of a job run that waits for machines."""

ENDED = ("SUCCESS", "FAILED", "CANCELLED")
"""The states of a job run that has ended. Between them and those that wait are RUNNING and CANCELLING."""

GONE = ("STOPPED", "TERMINATED")
"""The states of an application that runs nothing, until it is started."""

ENTRY = "driver.py"
"""The name of the entry point, beside the requests of its session."""

ENTRY_POINT = b"""# Starts a module of Refinery as the driver of a stage: EMR Serverless starts files, and no modules.
import runpy
import sys

from pipeline_tasks.errors import RefineryError

sys.argv = sys.argv[1:]
try:
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
except RefineryError as error:
    sys.stderr.write(f"refinery: {type(error).__name__}: {error}\\n")
    sys.exit(error.exit_code)
"""

DRIVER_LOG = "SPARK_DRIVER/stderr.gz"
"""The log of the driver, below the folder of its job run in the place that EMR Serverless is given."""

DENIED = ("AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException")
"""Codes of errors of whose credentials are wrong, or have too few rights."""

WRONG = ("ValidationException", "ResourceNotFoundException", *DENIED)
"""Codes of errors of requests that fail as often as they are sent."""

SIGNALED = 128
"""A process that a signal has ended has this as exit code, and the signal's number above it."""

_EXIT_CODE = re.compile(r"(?:exited with|exit code:?|ExitCode:?)\s*(\d+)", re.IGNORECASE)

_BUSY = re.compile(r"capacity|throttl|quota|limit exceeded|internal|time[d ]*out|unavailable|interrupt", re.IGNORECASE)
"""Words of `stateDetails` of a job run that failed because AWS could not run it then."""


def require_application(address: str) -> None:
    """Raise RecipeError unless the application at an address is there, is of Spark, and runs what it is given.

    JobLost if AWS does not say.
    """
    of = application_of(address)
    with _translated(address):
        found = _client(of).get_application(applicationId=of.id)["application"]
    if str(found["type"]).lower() != "spark":
        message = f"application {of.id} of EMR Serverless is of {found['type']}; name one of Spark in spark_default"
        raise RecipeError(message)
    starts_itself = found.get("autoStartConfiguration", {}).get("enabled", True)
    if found["state"] == "TERMINATED" or (found["state"] in GONE and not starts_itself):
        message = (
            f"application {of.id} of EMR Serverless is {found['state']} and starts for no job run; start it, or let it "
            "start by itself (autoStartConfiguration)"
        )
        raise RecipeError(message)


def require_buckets(address: str, *uris: str) -> None:
    """Raise RecipeError for a root or landing that no job run reaches: it has a role of AWS, and no disk of ours."""
    for uri in uris:
        if uri and not uri.startswith("s3://"):
            message = f"{uri} is not in S3, and nothing else is reached from {address}; name s3://bucket/prefix"
            raise RecipeError(message)


def submit(address: str, root: str, session: str, words: Sequence[str], token: str) -> str:
    """Start a module with its arguments as a job run, and return the run's id; the same token finds the same run.

    JobLost if AWS does not answer, RecipeError for what it refuses.
    """
    of, below = application_of(address), f"requests/{session}"
    storage.keep(storage.connect(root), f"{below}/{ENTRY}", ENTRY_POINT)
    place = f"{root.rstrip('/')}/{below}"
    driver = {"entryPoint": f"{place}/{ENTRY}", "entryPointArguments": list(words)}
    with _translated(address):
        started = _client(of, root).start_job_run(
            applicationId=of.id,
            clientToken=token,
            executionRoleArn=of.role,
            name=f"refinery {session}",
            jobDriver={"sparkSubmit": driver},
            configurationOverrides={"monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": f"{place}/"}}},
        )
    return str(started["jobRunId"])


@dataclass(slots=True)
class JobRun:
    """A job run as AWS showed it last, asked once for all threads of this process that look at about one time."""

    address: str
    root: str
    session: str
    id: str
    state: str = ""
    details: str = ""
    looked: float = -math.inf
    lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, age: float = 0.0) -> "JobRun":
        """Ask again what was asked more than `age` seconds ago, unless it has ended; JobLost if AWS does not say.

        While one thread asks, which takes long where AWS is busy, the others take what was said before.
        """
        if not self.lock.acquire(blocking=not age):
            return self
        try:
            if not self.has_ended and time.monotonic() - self.looked >= age:
                self.looked = time.monotonic()
                self._ask()
        finally:
            self.lock.release()
        return self

    def _ask(self) -> None:
        of = application_of(self.address)
        with _translated(self.address):
            shown = _client(of, self.root).get_job_run(applicationId=of.id, jobRunId=self.id)["jobRun"]
        self.state, self.details = str(shown["state"]), str(shown.get("stateDetails", ""))

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for machines."""
        return self.state in WAITING

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.state in ENDED

    def cancel(self) -> None:
        """Let AWS end it; one that has ended stays as it is. JobLost if AWS does not answer."""
        of = application_of(self.address)
        try:
            with _translated(self.address):
                _client(of, self.root).cancel_job_run(applicationId=of.id, jobRunId=self.id)
        except RecipeError:
            if not self.look().has_ended:
                raise

    def loss(self, *, lived: bool) -> tuple[type[RefineryError], str]:
        """Return the class of the error of a driver that was lost with it, and what is known; `lived`: it had a beat.

        One that failed before its first beat is tried again if AWS was busy, or our own process says so.
        """
        state, why = self.state or "UNKNOWN", f": {self.details}" if self.details else ""
        account = f"job run {self.id} of application {application_of(self.address).id} is {state}{why}"
        if state != "FAILED" or lived:
            return JobLost, account
        return _cause(self.details), account

    def log(self) -> str:
        """Return the URI of the log of the driver."""
        return f"{self.root.rstrip('/')}/{self._log()}"

    def log_end(self, characters: int) -> str:
        """Return the end of the log of the driver, "" while it is not there."""
        with contextlib.suppress(OSError, EOFError, zlib.error, RefineryError):
            body = storage.connect(self.root).read(self._log())
            return gzip.decompress(body).decode(errors="replace")[-characters:]
        return ""

    def _log(self) -> str:
        place = f"applications/{application_of(self.address).id}/jobs/{self.id}"
        return f"requests/{self.session}/{place}/{DRIVER_LOG}"


def _cause(details: str) -> type[RefineryError]:
    code = _EXIT_CODE.search(details)
    if code and int(code[1]) > SIGNALED:
        return JobLost
    if code and (named := error_of(int(code[1]))) is not RefineryError:
        return named
    return JobLost if _BUSY.search(details) else RecipeError


@lru_cache(maxsize=256)
def job_run(address: str, root: str, session: str, run: str) -> JobRun:
    """Return this process's view of the job run of a driver of a session."""
    return JobRun(address, root, session, run)


def _client(of: Application, root: str = store_settings.ALL) -> "BaseClient":
    return s3_client.service_client(SERVICE, root, of.region)


@contextlib.contextmanager
def _translated(address: str) -> Iterator[None]:
    """Raise Refinery's errors for boto3's."""
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        NoRegionError,
        ParamValidationError,
        PartialCredentialsError,
    )

    try:
        yield
    except (NoCredentialsError, PartialCredentialsError) as error:
        message = f"{address}: no credentials of AWS; set aws_default, or give this machine a role"
        raise RecipeError(message) from error
    except NoRegionError as error:
        message = f"{address}: no region; add ;region=REGION to spark_default, or set AWS_REGION"
        raise RecipeError(message) from error
    except (ClientError, ParamValidationError) as error:
        raise _refusal(address, error) from error
    except (BotoCoreError, OSError) as error:
        message = f"{address}: EMR Serverless did not answer ({str(error)[:300]}); it is tried again later"
        raise JobLost(message) from error


def _refusal(address: str, error: Exception) -> RefineryError:
    """Return our error for an answer of AWS: RecipeError for what it refuses each time, else JobLost."""
    code = str(getattr(error, "response", {}).get("Error", {}).get("Code", "ValidationException"))
    if code in DENIED:
        way_out = (
            "allow these credentials emr-serverless:GetApplication, StartJobRun, GetJobRun and CancelJobRun for the "
            "application, and iam:PassRole for the role"
        )
    else:
        way_out = "correct spark_default" if code in WRONG else "it is tried again later"
    message = f"{address}: EMR Serverless answered {code} ({str(error)[:300]}); {way_out}"
    return (RecipeError if code in WRONG else JobLost)(message)
