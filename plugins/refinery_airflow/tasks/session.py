"""Sends requests to the session of a stage on a cluster: posts them, starts its driver once, and waits for replies.

The driver is a job of Ray's Jobs API where the connection names one. Anywhere else it is a process of this machine, as
the drivers of Spark's client mode and of a Ray client have to be: it outlives the task that started it, and serves all
others of the stage.
"""

import asyncio
import contextlib
import math
import shlex
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from airflow.sdk.exceptions import AirflowTaskTerminated
from airflow.triggers.base import BaseTrigger, TriggerEvent

from pipeline_tasks.engines import ray_jobs
from pipeline_tasks.engines.address import is_jobs_api
from pipeline_tasks.engines.reach import require_answer
from pipeline_tasks.errors import JobLost, Transient
from pipeline_tasks.run.plan import RefineRequest
from pipeline_tasks.run.request import RefineReply
from pipeline_tasks.service.processes import start_lasting
from pipeline_tasks.service.requests.wire import raise_refusal
from pipeline_tasks.service.session import CLAIM, CLOSED, ENDED, LOG, LOST, REPLIED, Session, Watch, open_jobs
from pipeline_tasks.store import temporary
from refinery_airflow.runs.credentials import give_credentials_in_triggerer

POLL = 1.0
"""Seconds between two looks for a reply."""

FIRST_BEAT = 30.0
"""Seconds for which the task that starts a driver stays to see it live; after them the triggerer waits on.

What ends as it starts (an image without this package, a worker without credentials) is known at once, and not after
the minutes that a cluster may take for a node.
"""

STAY = 600.0
"""Seconds for which a task stays with the driver that it started, once that takes no more requests."""

REPLACED = 3
"""So many drivers of a stage may be lost before that costs the tasks that wait a try: machines come and go."""

LOG_END = 1500
"""Characters of a driver's log that an error shows."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that was posted: the root and name of its session, its job, its driver's number, and the Jobs API.

    `is_starter` says that the driver is a process of this task's machine, which this task has started.
    """

    root: str
    session: str
    job: str
    driver: int
    jobs_api: str
    is_starter: bool = False

    def watch(self) -> Watch:
        """Return what looks for the reply."""
        return Watch(Session(self.root, self.session), self.job, self.driver)


class ReplyTrigger(BaseTrigger):  # type: ignore[misc]  # loaded lazily: Any
    """Fires when the reply to a request is there, or when the driver that works on it is gone."""

    def __init__(self, waiting: Mapping[str, Any], poll: float = POLL, recipe: str = "") -> None:
        super().__init__()
        self.waiting, self.poll, self.recipe = dict(waiting), poll, recipe

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that the triggerer builds this trigger from."""
        about = {"waiting": self.waiting, "poll": self.poll, "recipe": self.recipe}
        return "refinery_airflow.tasks.session.ReplyTrigger", about

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, sleep, and look again."""
        await give_credentials_in_triggerer(self.waiting["root"], recipe=self.recipe)
        watch = Waiting(**self.waiting).watch()
        state = await asyncio.to_thread(watch.look)
        while not state:
            await asyncio.sleep(self.poll)
            state = await asyncio.to_thread(watch.look)
        yield TriggerEvent({"state": state, "waiting": self.waiting})

    async def on_kill(self) -> None:
        """Cancel the request, as a person has cleared or marked the task that waits."""
        waiting = Waiting(**self.waiting)
        await asyncio.to_thread(Session(waiting.root, waiting.session).cancel, waiting.job)


def post(request: RefineRequest, attempt: str) -> Waiting:
    """Post a request to its session, and start the session's driver if nobody has; `attempt` names the task's try."""
    session, jobs_api = Session.of(request), request.address if is_jobs_api(request.address) else ""
    if jobs_api:
        require_answer(jobs_api)
        request = replace(request, address="auto")  # the job finds the Ray that it runs on
    job = session.post(request, attempt)
    starter = {"host": socket.gethostname(), "job": f"refinery-{session.name}-{attempt}"}
    number, claimed = session.driver(starter)
    waiting = Waiting(request.root, session.name, job, number, jobs_api, is_starter=claimed and not jobs_api)
    if claimed:
        try:
            has_ended = _start(session, number, starter["job"], jobs_api)
            session.mark_started(number)
            _see_alive(session, waiting, has_ended)
        except Exception:
            session.close(number)  # the next try starts another
            session.end(number)  # the tasks that wait for this one need not miss its beats
            raise
    return waiting


def wait(waiting: Waiting) -> RefineReply:
    """Wait here for the reply to a request, and return it; a task that is stopped meanwhile cancels its request.

    The task that started the driver stays until that has answered all: its machine may go with it.
    """
    watch = waiting.watch()
    try:
        while not (state := watch.look()):
            time.sleep(POLL)
    except (AirflowTaskTerminated, KeyboardInterrupt, SystemExit):
        watch.session.cancel(waiting.job)
        raise
    try:
        return collect(waiting, state)
    finally:
        if waiting.is_starter and state == REPLIED:
            _stay(waiting)


def _stay(waiting: Waiting) -> None:
    """Wait until a driver has answered what was posted, let it take no more, and wait until it has ended."""
    session = Session(waiting.root, waiting.session)
    deadline, closed = math.inf, False
    while time.monotonic() < deadline:
        with contextlib.suppress(Transient):
            names = session.driver_names(waiting.driver)
            if ENDED in names or CLAIM not in names:
                return
            if not closed and (CLOSED in names or not open_jobs(session.job_names())):
                session.close(waiting.driver)
                closed, deadline = True, time.monotonic() + STAY
        time.sleep(POLL)


def is_replaceable(waiting: Waiting, state: str) -> bool:
    """Return whether a task that was woken up may wait for the next driver, and keep its try."""
    return state == LOST and waiting.driver <= REPLACED


def collect(waiting: Waiting, state: str) -> RefineReply:
    """Return the reply that a task was woken up for, or raise what it reports; JobLost if the driver is gone."""
    session = Session(waiting.root, waiting.session)
    reply = session.reply(waiting.job) if state == REPLIED else None
    if reply is None:
        session.close(waiting.driver)
        message = (
            f"driver {waiting.driver} of {waiting.session} ended before it answered {waiting.job} (out of memory, or "
            "its machine restarted?). Finished tasks are kept, and the next try starts another driver; "
            f"{_log_of(waiting)}"
        )
        raise JobLost(message)
    raise_refusal(reply, unknown=RuntimeError)  # a defect of the driver
    return cast("RefineReply", reply)


# --- Drivers ---------------------------------------------------------------------------------------------------------


def _start(session: Session, number: int, job: str, jobs_api: str) -> Callable[[], bool]:
    """Start a driver; return what says whether it has ended."""
    module, arguments = "pipeline_tasks.service.driver", [session.root, session.name, str(number)]
    if jobs_api:
        ray_jobs.submit(jobs_api, shlex.join(["python", "-m", module, *arguments]), job)
        return partial(ray_jobs.has_ended, jobs_api, job)
    log = _log(job)
    process = start_lasting(module, arguments, log, {LOG: str(log)})
    return lambda: process.poll() is not None


def _see_alive(session: Session, waiting: Waiting, has_ended: Callable[[], bool]) -> None:
    """Wait for a driver's first beat, for a while; JobLost if it has ended without one."""
    deadline = time.monotonic() + FIRST_BEAT
    while time.monotonic() < deadline:
        ended = has_ended()  # before the look: one that has ended beats no more
        if any(name.startswith("beat-") for name in session.driver_names(waiting.driver)):
            return
        if ended:
            message = (
                f"driver {waiting.driver} of {waiting.session} ended as it started; is this package, in the same "
                f"version, where it runs, and can it reach {session.root} from there? {_log_of(waiting)}"
            )
            raise JobLost(message)
        time.sleep(FIRST_BEAT / 60)


def _log(job: str) -> Path:
    return temporary.user_folder() / f"{job}.log"


def log_place(waiting: Waiting) -> str:
    """Return where the log of a driver is."""
    starter = _starter(waiting)
    if waiting.jobs_api:
        return f"its Ray job is {starter['job']}"
    return f"its log is {_log(starter['job'])} on {starter['host']}"


def _starter(waiting: Waiting) -> dict[str, str]:
    return {"host": "?", "job": "?"} | Session(waiting.root, waiting.session).starter(waiting.driver)


def _log_of(waiting: Waiting) -> str:
    """Return where the log of a lost driver is, and its end where it can be read."""
    starter = _starter(waiting)
    if waiting.jobs_api:
        with contextlib.suppress(JobLost):
            end = ray_jobs.log_end(waiting.jobs_api, starter["job"], LOG_END)
            return f"the log of its Ray job {starter['job']} ends: {end}"
        return log_place(waiting)
    path = _log(starter["job"])
    if starter["host"] == socket.gethostname() and path.exists():
        return f"its log {path} ends: {path.read_text(errors='replace')[-LOG_END:]}"
    return log_place(waiting)
