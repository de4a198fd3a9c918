"""The session of a stage on a cluster: tasks post requests in a folder of the root, and one driver answers them.

A run has one session for each stage and place, so that an application of Spark or a job of Ray starts once, however
many partitions are mapped. Everything about it is objects, so that the task, the triggerer and the driver may be on
different machines, and each may die and come back:

    requests/<session>/jobs/<job>.json          a request
    requests/<session>/jobs/<job>.reply.json    its reply
    requests/<session>/jobs/<job>.canceled      nobody waits for it any more
    requests/<session>/drivers/<n>/claim.json   who starts the n-th driver
    requests/<session>/drivers/<n>/started      it has been started, or submitted; a cluster's name of its job
    requests/<session>/drivers/<n>/beat-<k>     the n-th driver lives
    requests/<session>/drivers/<n>/closed       the n-th driver takes no more requests
    requests/<session>/drivers/<n>/ended        the n-th driver has ended

The first driver that a task claims is number 1. One that dies is closed by who misses its beats; then the next is
claimed. An empty object counts as none: some servers keep one of a PUT whose client died before its body.
"""

import contextlib
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pipeline_tasks.engines.cluster_jobs import COMING, GONE
from pipeline_tasks.errors import JobLost, RecipeError, Transient
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.service.requests.wire import Wire, encode, parse
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store

BEAT = 10.0
"""Seconds between two beats of a driver."""

PATIENCE = 120.0
"""Seconds without a beat after which a driver counts as dead."""

CLAIM_PATIENCE = 60.0
"""Seconds from the claim of a driver to its start, after which the task that claimed it counts as dead."""

START = 300.0
"""Seconds that a driver may take until its first beat: a cluster may have to make a node for it."""

LISTEN = 20.0
"""Seconds between two looks for a beat."""

FRESH = 1.0
"""Seconds for which a listing of a session serves all who wait in a process."""

PAUSES = 5.0
"""How much longer than a listing the pause after it is at least: a thousand objects take a tenth of a second."""

JOBS = "jobs/"
"""The folder of a session's requests and replies."""

LOG = "REFINERY_DRIVER_LOG"
"""The variable that names the file to which a driver's output goes; the driver removes it at a good end."""

REPLY, CANCELED = ".reply.json", ".canceled"

CLAIM, STARTED, CLOSED, ENDED = "claim.json", "started", "closed", "ended"

MARK = b"1"
"""The body of objects that only have to be there; no commit is empty."""

SHARDS = 1 << 16
"""Shards of a stage that one driver takes: it keeps about 2 KB of each."""

REPLIED, LOST = "replied", "lost"
"""What a task is woken up for: the reply is there, or its driver is gone."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session's folder: `name` below `requests` of `root`."""

    root: str
    name: str

    @classmethod
    def of(cls, request: RefineRequest) -> "Session":
        """Return the session that serves a request: one for a stage of a run, where and with what its tasks run.

        A stage of more than `SHARDS` shards has one for each so many of them.
        """
        run = (request.root, request.recipe, request.snapshot, request.run_id)
        shared = (*run, request.engine, request.address, request.resources)
        first = request.span[0] if request.span else 0
        return cls(request.root, f"{request.stage}-{digest_of(shared, 16)}").part(first // SHARDS)

    def part(self, number: int) -> "Session":
        """Return, of the session of the first shards, the one of those from `number` times `SHARDS` on."""
        return replace(self, name=f"{self.name}-{number}") if number else self

    @property
    def store(self) -> Store:
        """The root's store."""
        return storage.connect(self.root)

    def path(self, job: str) -> str:
        """Return the path of an object of a job, relative to the root."""
        return f"requests/{self.name}/jobs/{job}"

    def driver_path(self, number: int, name: str) -> str:
        """Return the path of an object of a driver, relative to the root."""
        return f"requests/{self.name}/drivers/{number}/{name}"

    def job_names(self) -> list[str]:
        """Return the names of the objects of jobs."""
        return self.names(JOBS)

    def driver_names(self, number: int) -> list[str]:
        """Return the names of the objects of a driver; none for one that nobody has claimed."""
        return self.names(f"drivers/{number}/")

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder of the session, with what is below it."""
        whole = f"requests/{self.name}/{folder}"
        return [entry.path.removeprefix(whole) for entry in self.store.list(whole) if entry.bytes]

    # --- What a task does ---------------------------------------------------------------------------------------

    def post(self, request: RefineRequest, attempt: str) -> str:
        """Store a request, and return its job; the job of an earlier attempt is that of this one while it is open."""
        kind = f"{request.stage}-{digest_of(request, 16)}-"
        if waiting := [job for job in open_jobs(self.job_names()) if job.startswith(kind)]:
            return waiting[0]
        job = f"{kind}{attempt}"
        self._commit(f"{job}.json", {**encode(request), "reply": f"{request.root.rstrip('/')}/{self.path(job)}{REPLY}"})
        return job

    def reply(self, job: str) -> Wire | None:
        """Return the reply to a job; None if there is none. One that is no reply is that of a driver that was lost."""
        path = self.path(f"{job}{REPLY}")
        try:
            reply = parse(self.store.read(path), f"{self.root}/{path}")
        except FileNotFoundError:
            return None
        except RecipeError as error:
            return {"error": JobLost.__name__, "message": str(error)}
        return reply if isinstance(reply, dict) else {"error": JobLost.__name__, "message": f"{path} is no reply"}

    def cancel(self, job: str) -> None:
        """Tell the driver that nobody waits for a job any more."""
        storage.commit(self.store, self.path(f"{job}{CANCELED}"), MARK)

    def driver(self, starter: Mapping[str, str]) -> tuple[int, bool]:
        """Return the number of the driver that takes requests, and whether the caller has to start it now."""
        drivers = self.names("drivers/")
        last = max((int(name.split("/")[0]) for name in drivers), default=0)
        if last and f"{last}/{CLOSED}" not in drivers:
            return last, False
        body = json.dumps(dict(starter), sort_keys=True).encode()
        return last + 1, self.store.create(self.driver_path(last + 1, CLAIM), body)

    def mark_started(self, number: int, run: str = "") -> None:
        """Note that a driver which was claimed has been started; `run` is what the cluster calls its job."""
        storage.commit(self.store, self.driver_path(number, STARTED), run.encode() or MARK)

    def run_of(self, number: int) -> str:
        """Return what the cluster calls the job of a driver, "" for one that is none or has not been started."""
        with contextlib.suppress(FileNotFoundError):
            body = self.store.read(self.driver_path(number, STARTED))
            return "" if body == MARK else body.decode()
        return ""

    def starter(self, number: int) -> dict[str, str]:
        """Return what the task that started a driver noted about it; nothing if it died meanwhile, or all is gone."""
        with contextlib.suppress(FileNotFoundError, RecipeError):
            noted = parse(self.store.read(self.driver_path(number, CLAIM)) or b"{}", "a driver's claim")
            return noted if isinstance(noted, dict) else {}
        return {}

    def close(self, number: int) -> None:
        """Let a driver take no more requests; it ends when it sees that."""
        storage.commit(self.store, self.driver_path(number, CLOSED), MARK)

    def close_all(self) -> None:
        """Close the drivers of a stage that is done; this is the session of its first shards.

        Where a partition has more shards than a driver takes, parts behind a gap end by themselves.
        """
        for session in map(self.part, itertools.count()):
            drivers = [name.partition("/") for name in session.names("drivers/")]
            for number, _, kind in drivers:
                if kind == CLAIM:
                    session.close(int(number))
            if not drivers:
                return

    # --- What a driver does -------------------------------------------------------------------------------------

    def request(self, job: str) -> object:
        """Return a job's request as JSON, without the URI of its reply; RecipeError for what is none."""
        path = self.path(f"{job}.json")
        raw = parse(self.store.read(path), f"{self.root}/{path}")
        return {name: value for name, value in raw.items() if name != "reply"} if isinstance(raw, dict) else raw

    def answer(self, job: str, reply: Wire) -> None:
        """Store the reply to a job; that of another driver stays."""
        storage.keep(self.store, self.path(f"{job}{REPLY}"), json.dumps(reply, sort_keys=True).encode())

    def is_claimed(self, number: int) -> bool:
        """Return whether a driver's claim is still there; where it is not, the root was removed."""
        return bool(self.store.size(self.driver_path(number, CLAIM)))

    def beat(self, number: int, count: int) -> None:
        """Show that a driver lives: store its next beat, and remove the one before."""
        if not self.is_claimed(number):
            return  # an object would bring a removed root back
        storage.commit(self.store, self.driver_path(number, f"beat-{count}"), MARK)
        if count:
            self.store.delete(self.driver_path(number, f"beat-{count - 1}"))

    def end(self, number: int) -> None:
        """Show that a driver has ended."""
        if self.is_claimed(number):
            storage.commit(self.store, self.driver_path(number, ENDED), MARK)

    def _commit(self, name: str, body: object) -> None:
        storage.commit(self.store, self.path(name), json.dumps(body, sort_keys=True).encode())


def open_jobs(names: Iterable[str]) -> list[str]:
    """Return the jobs among their objects that have a request, and neither a reply nor a cancellation; sorted."""
    known = set(names)
    asked = {name.removesuffix(".json") for name in known if name.endswith(".json") and not name.endswith(REPLY)}
    return sorted(job for job in asked if not known & {f"{job}{REPLY}", f"{job}{CANCELED}"})


@dataclass(slots=True)
class Listing:
    """The names in a folder of a session, listed once for all threads of this process that look at about one time.

    A triggerer waits for up to 1,024 replies of a session: to ask for each would be 1,024 requests at every look.
    """

    session: Session
    folder: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    listed: float = -math.inf
    took: float = 0.0
    names: frozenset[str] = frozenset()

    def look(self, age: float) -> frozenset[str]:
        """Return the names as they were about `age` seconds ago, longer where a listing takes long.

        Whoever finds them older lists again, and learns if the store is busy; the others do not wait for that.
        """
        if self.lock.acquire(blocking=False):
            try:
                began = time.monotonic()
                if began - self.listed >= max(age, PAUSES * self.took):
                    self.listed = began
                    self.names = frozenset(self.session.names(self.folder))
                    self.took = time.monotonic() - began
            finally:
                self.lock.release()
        return self.names


@lru_cache(maxsize=256)
def listing_of(session: Session, folder: str) -> Listing:
    """Return this process's listing of a folder of a session."""
    return Listing(session, folder)


@dataclass(slots=True)
class Watch:
    """Waits for the reply to a job, and for the death of the driver that works on it.

    `standing` asks the cluster that starts the driver for COMING or GONE, "" where it says neither: a job that waits
    for machines has no beat, and is not lost. It is asked until the first beat.
    """

    session: Session
    job: str
    driver: int
    standing: Callable[[], str] | None = None
    beats: frozenset[str] = frozenset()
    heard: float = field(default_factory=time.monotonic)
    listened: float = field(default_factory=time.monotonic)

    def look(self) -> str:
        """Return REPLIED or LOST, or "" to look again later; a store that is busy says nothing of the driver."""
        try:
            return self._look()
        except Transient:
            self.heard = max(self.heard, time.monotonic() - PATIENCE / 2)
            return ""

    def _look(self) -> str:
        if f"{self.job}{REPLY}" in listing_of(self.session, JOBS).look(FRESH):
            return REPLIED
        if time.monotonic() - self.listened < LISTEN:
            return ""
        self.listened = time.monotonic()
        names = listing_of(self.session, f"drivers/{self.driver}/").look(LISTEN / 2)
        if ENDED in names or self._is_gone(names) or self._is_silent(names):
            return REPLIED if self.session.store.size(self.session.path(f"{self.job}{REPLY}")) else LOST
        return ""

    def _is_gone(self, names: frozenset[str]) -> bool:
        if self.standing is None or STARTED not in names or any(name.startswith("beat-") for name in names):
            return False
        said = self.standing()
        if said == COMING:
            self.heard = time.monotonic()
        return said == GONE

    def _is_silent(self, names: frozenset[str]) -> bool:
        beats = frozenset(name for name in names if name.startswith("beat-"))
        if beats != self.beats:
            self.beats, self.heard = beats, time.monotonic()
        unheard = START if STARTED in names else CLAIM_PATIENCE
        return time.monotonic() - self.heard > (PATIENCE if self.beats else unheard)
