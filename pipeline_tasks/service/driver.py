"""The driver of a session: one process that answers the requests of a stage, with one Spark application or Ray job."""

import contextlib
import os
import socket
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pipeline_tasks.engines.choose import cancel, stop_all
from pipeline_tasks.errors import RecipeError, RefineryError, Transient
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.service.dispatch import Dispatcher
from pipeline_tasks.service.processes import require_code
from pipeline_tasks.service.requests.wire import Wire, refusal_of
from pipeline_tasks.service.session import BEAT, CANCELED, CLAIM, CLOSED, LOG, PAUSES, Session, open_jobs
from pipeline_tasks.store import temporary

POLL = 1.0
"""Seconds between two looks for new requests."""

IDLE = 120.0
"""Seconds without a request after which a driver closes itself."""

ABREAST = 128
"""Requests that are handled at once; others wait. The engine spreads what they send over the cluster."""

GIVE_UP = 600.0
"""Seconds without an answer of the store after which a driver ends: nobody can hear it."""


@dataclass(slots=True)
class Driver:
    """The n-th driver of a session, and what it works on."""

    session: Session
    number: int
    idle: float = IDLE
    dispatcher: Dispatcher = field(default_factory=partial(Dispatcher, is_apart=True))
    engines: dict[str, str] = field(default_factory=dict)
    futures: dict[str, Future[None]] = field(default_factory=dict)
    canceled: set[str] = field(default_factory=set)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def active(self) -> set[str]:
        """The jobs that are under way, or wait for their turn."""
        return {job for job, future in list(self.futures.items()) if not future.done()}

    def serve(self) -> None:
        """Answer requests until the session is closed, nobody asks any more, or a defect may have spoiled an engine."""
        threading.Thread(target=self._beat, daemon=True).start()
        pool = ThreadPoolExecutor(ABREAST, thread_name_prefix="request")
        last = heard = time.monotonic()
        try:
            while (began := time.monotonic()) - heard < GIVE_UP:
                try:
                    closed = self._take(pool)
                except Transient:
                    time.sleep(POLL)
                    continue
                heard = time.monotonic()
                last = heard if self.active else last
                if closed and self._may_end():
                    return
                if not closed and (heard - last > self.idle or self.dispatcher.spoiled.is_set()):
                    self.session.close(self.number)
                time.sleep(max(POLL, PAUSES * (heard - began)))
        finally:
            self.ended.set()
            pool.shutdown(wait=False, cancel_futures=True)
            with contextlib.suppress(Transient):
                self.session.end(self.number)

    def _take(self, pool: ThreadPoolExecutor) -> bool:
        """Start what was posted, cancel what was canceled; return whether this driver is closed.

        A request that was posted before the driver was closed is still taken: its task saw an open driver. A driver
        whose claim is gone, with the root, is as good as closed.
        """
        own = self.session.driver_names(self.number)
        closed = CLOSED in own or CLAIM not in own
        names = self.session.job_names()
        for job in () if closed and self._is_replaced() else open_jobs(names):
            if job not in self.engines and not self.dispatcher.spoiled.is_set():
                with contextlib.suppress(FileNotFoundError):  # it was removed since it was listed
                    self._begin(pool, job)
        for name in names:
            job = name.removesuffix(CANCELED)
            if name.endswith(CANCELED) and job in self.active - self.canceled:
                self._cancel(job)
        return closed

    def _begin(self, pool: ThreadPoolExecutor, job: str) -> None:
        """Start a job; one whose request cannot be read is refused, as its task waits for a reply."""
        try:
            raw = self.session.request(job)
        except RecipeError as error:
            self.session.answer(job, refusal_of(error))
            return
        self.engines[job] = str(raw.get("engine", LOCAL)) if isinstance(raw, dict) else LOCAL
        self.futures[job] = pool.submit(self._answer, job, raw)

    def _cancel(self, job: str) -> None:
        self.canceled.add(job)
        if self.futures[job].cancel():
            return  # it waited for its turn
        threading.Thread(target=self._cancel_until_it_ends, args=(job,), daemon=True).start()  # an engine may take long

    def _cancel_until_it_ends(self, job: str) -> None:
        """Cancel what an engine runs for a job, again and again: between two verbs of a stage it runs nothing."""
        while not self.futures[job].done():
            cancel(self.engines[job], job)
            time.sleep(POLL)

    def _may_end(self) -> bool:
        """Return whether nothing is under way; what is, is canceled if another driver was claimed in the meantime."""
        if not self.active:
            return True
        if self._is_replaced():
            for job in sorted(self.active):
                self._cancel(job)
            return True
        return False

    def _is_replaced(self) -> bool:
        return bool(self.session.driver_names(self.number + 1))

    def _answer(self, job: str, raw: object) -> None:
        if job not in self.canceled:
            reply = self.dispatcher.reply(raw, job)
            while not (self.ended.is_set() or self._is_settled(job, reply)):
                time.sleep(POLL)

    def _is_settled(self, job: str, reply: Wire) -> bool:
        """Return whether a reply is stored; that of a canceled job is not: the next driver may work on the same job."""
        try:
            if job not in self.canceled:
                self.session.answer(job, reply)
        except Transient as error:
            sys.stderr.write(f"{job}: the reply is not stored yet: {error}\n")
            return False
        return True

    def _beat(self) -> None:
        count, pause = 0, 0.0
        while not self.ended.wait(pause):
            pause = BEAT if count else POLL
            try:
                self.session.beat(self.number, count)
                count, pause = count + 1, BEAT
            except RefineryError as error:  # whether the driver has to end, `serve` finds out
                sys.stderr.write(f"{error}\n")


def main(root: str, name: str, number: str) -> int:
    """Serve a session as its n-th driver; `number` is n."""
    sys.stderr.write(f"driver {number} of {name} on {socket.gethostname()}, for {root}\n")
    driver, log = Driver(Session(root, name), int(number)), os.environ.get(LOG)
    try:
        driver.serve()
    finally:
        stop_all()
    if log and not driver.dispatcher.spoiled.is_set():
        Path(log).unlink(missing_ok=True)  # it is kept where something went wrong
    return 0


if __name__ == "__main__":
    require_code()
    with temporary.owned():
        sys.exit(main(*sys.argv[1:]))
