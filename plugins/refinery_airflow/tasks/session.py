"""Sends requests to the session of a stage on a cluster: posts them, starts its driver once, and waits for replies.

The driver is a job of a cluster where the connection names one that starts drivers (`EngineCard.jobs`). Anywhere else
it is a process of this machine, as a driver that sends its tasks to a cluster has to be: it outlives the task that
started it, and serves all others of the stage.
"""

import asyncio
import contextlib
import logging
import math
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from airflow.sdk.exceptions import AirflowTaskTerminated
from airflow.triggers.base import BaseTrigger, TriggerEvent

from pipeline_tasks.engines.card import engine_card
from pipeline_tasks.engines.cluster_jobs import ClusterJobs
from pipeline_tasks.errors import JobLost, RefineryError, Transient
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.run.request import RefineReply, RefineRequest
from pipeline_tasks.service.processes import start_lasting
from pipeline_tasks.service.requests.wire import raise_refusal
from pipeline_tasks.service.session import CLAIM, CLOSED, ENDED, LOG, LOST, REPLIED, STARTED, Session, Watch, open_jobs
from pipeline_tasks.store import temporary
from refinery_airflow.runs.credentials import give_credentials_in_triggerer

log = logging.getLogger("refinery")

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
    """A request that was posted: the root and name of its session, its job, and its driver's number.

    `jobs_api` is the address of what starts the session's drivers, "" for processes, and `engine` whose it is;
    `is_starter` says that the driver is a process of this task's machine, which this task has started.
    """

    root: str
    session: str
    job: str
    driver: int
    jobs_api: str
    is_starter: bool = False
    engine: str = LOCAL

    @property
    def jobs(self) -> ClusterJobs | None:
        """What starts the session's drivers, None for a process of a machine."""
        starts = engine_card(self.engine).jobs(self.jobs_api)
        return starts(self.jobs_api, self.root, self.session) if starts else None

    @property
    def run(self) -> str:
        """What the cluster calls the driver's job, by what its start has noted."""
        known = Session(self.root, self.session).run_of(self.driver)
        return known or ("" if self.jobs and self.jobs.is_service else _starter(self)["job"])

    def watch(self) -> Watch:
        """Return what looks for the reply."""
        standing = self.standing if self.jobs and self.jobs.is_service else None
        return Watch(Session(self.root, self.session), self.job, self.driver, standing)

    def standing(self) -> str:
        """Return where the driver's job stands, "" for one that is not known yet, or that nobody here may ask for."""
        jobs, run = self.jobs, Session(self.root, self.session).run_of(self.driver)
        if jobs is None or not run:
            return ""
        try:
            return jobs.standing(run)
        except Transient:
            raise
        except RefineryError as error:
            log.warning("%s: only its beats say how driver %d is: %s", self.session, self.driver, error)
            return ""


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
        await give_credentials_in_triggerer(self.waiting["root"], recipe=self.recipe)
        await asyncio.to_thread(cancel, Waiting(**self.waiting))


def post(request: RefineRequest, attempt: str) -> Waiting:
    """Post a request to its session, and start the session's driver if nobody has; `attempt` names the task's try."""
    session, starts = Session.of(request), engine_card(request.engine).jobs(request.address)
    jobs = starts(request.address, session.root, session.name) if starts else None
    if jobs:
        jobs.require(request.root, request.landing)
        request = replace(request, address=jobs.there)
    job = session.post(request, attempt)
    once = uuid4().hex[:8]  # a try whose driver is lost may start the next one, too
    starter = {"host": socket.gethostname(), "job": f"refinery-{session.name}-{attempt}-{once}", "for": job}
    number, has_to_start = session.driver(starter)
    if jobs and jobs.is_service and not has_to_start and _is_unstarted(session, number, job):
        starter, has_to_start = session.starter(number), True
    waiting = Waiting(
        request.root,
        session.name,
        job,
        number,
        jobs.address if jobs else "",
        is_starter=has_to_start and not jobs,
        engine=request.engine,
    )
    if has_to_start:
        try:
            has_ended = _start(session, number, starter["job"], jobs)
            _see_alive(session, waiting, has_ended)
        except Exception:
            session.close(number)  # the next try starts another
            session.end(number)  # the tasks that wait for this one need not miss its beats
            raise
    return waiting


def _is_unstarted(session: Session, number: int, job: str) -> bool:
    """Return whether an earlier try of the task of a job claimed a driver, and ended before it noted its start."""
    return STARTED not in session.driver_names(number) and session.starter(number).get("for") == job


def cancel(waiting: Waiting) -> None:
    """Cancel a request, and the job of its driver if nobody else waits for that and it costs something."""
    session, jobs = Session(waiting.root, waiting.session), waiting.jobs
    session.cancel(waiting.job)
    if jobs is None or not jobs.is_service or open_jobs(session.job_names()):
        return
    session.close(waiting.driver)
    if not open_jobs(session.job_names()):  # else somebody asked before it was closed, and has its reply
        jobs.cancel(session.run_of(waiting.driver))


def wait(waiting: Waiting) -> RefineReply:
    """Wait here for the reply to a request, and return it; a task that is stopped meanwhile cancels its request.

    The task that started the driver stays until that has answered all: its machine may go with it.
    """
    watch = waiting.watch()
    try:
        while not (state := watch.look()):
            time.sleep(POLL)
    except (AirflowTaskTerminated, KeyboardInterrupt, SystemExit):
        cancel(waiting)
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
        raise _loss(waiting, state)
    raise_refusal(reply, unknown=RuntimeError)  # a defect of the driver
    return cast("RefineReply", reply)


# --- Drivers ---------------------------------------------------------------------------------------------------------


def _start(session: Session, number: int, name: str, jobs: ClusterJobs | None) -> Callable[[], bool]:
    """Start a driver, and note that; return what says whether it has ended."""
    module, arguments = "pipeline_tasks.service.driver", [session.root, session.name, str(number)]
    if jobs:
        run = jobs.submit(module, arguments, name)
        session.mark_started(number, run)
        return partial(jobs.has_ended, run)
    log_file = _log(name)
    process = start_lasting(module, arguments, log_file, {LOG: str(log_file)})
    session.mark_started(number)
    return lambda: process.poll() is not None


def _see_alive(session: Session, waiting: Waiting, has_ended: Callable[[], bool]) -> None:
    """Wait for a driver's first beat, for a while; JobLost if it has ended without one."""
    deadline = time.monotonic() + FIRST_BEAT
    while time.monotonic() < deadline:
        ended = has_ended()  # before the look: one that has ended beats no more
        if _has_lived(session, waiting.driver):
            return
        if ended:
            raise _stillborn(session, waiting)
        time.sleep(waiting.jobs.pause if waiting.jobs else FIRST_BEAT / 60)


def _has_lived(session: Session, number: int) -> bool:
    return any(name.startswith("beat-") for name in session.driver_names(number))


def _stillborn(session: Session, waiting: Waiting) -> RefineryError:
    """Return the error of a driver that has ended before its first beat."""
    kind, account = waiting.jobs.loss(waiting.run, lived=False) if waiting.jobs else (JobLost, "")
    return kind(
        f"driver {waiting.driver} of {waiting.session} ended as it started; {account}{'; ' if account else ''}"
        "is this package, in the same version, where it runs, and can it reach "
        f"{session.root} from there? {_log_of(waiting)}"
    )


def _loss(waiting: Waiting, state: str) -> RefineryError:
    """Return the error of a driver that is gone before it answered; its job is canceled if it costs something."""
    session, jobs = Session(waiting.root, waiting.session), waiting.jobs
    lived = _has_lived(session, waiting.driver)
    kind, account = jobs.loss(waiting.run, lived=lived) if jobs and state == LOST else (JobLost, "")
    if jobs:
        jobs.cancel(session.run_of(waiting.driver))
    if not issubclass(kind, Transient):
        return _stillborn(session, waiting)
    return kind(
        f"driver {waiting.driver} of {waiting.session} ended before it answered {waiting.job} "
        f"({account or 'out of memory, or its machine restarted?'}). Finished tasks are kept, and the next try starts "
        f"another driver; {_log_of(waiting)}"
    )


def _log(job: str) -> Path:
    return temporary.user_folder() / f"{job}.log"


def log_place(waiting: Waiting) -> str:
    """Return where the log of a driver is."""
    if waiting.jobs:
        return waiting.jobs.words(waiting.run)
    starter = _starter(waiting)
    return f"its log is {_log(starter['job'])} on {starter['host']}"


def _starter(waiting: Waiting) -> dict[str, str]:
    return {"host": "?", "job": "?"} | Session(waiting.root, waiting.session).starter(waiting.driver)


def _log_of(waiting: Waiting) -> str:
    """Return where the log of a lost driver is, and its end where it can be read."""
    if waiting.jobs:
        return waiting.jobs.log_words(waiting.run, LOG_END)
    starter = _starter(waiting)
    path = _log(starter["job"])
    if starter["host"] == socket.gethostname() and path.exists():
        return f"its log {path} ends: {path.read_text(errors='replace')[-LOG_END:]}"
    return log_place(waiting)
