"""Answers the requests of one long-lived process: engines start once, and an error becomes a reply."""

import threading
import traceback
from dataclasses import dataclass, field
from typing import Any, cast

from pipeline_tasks.engines.job import working_for
from pipeline_tasks.errors import JobLost, RefineryError
from pipeline_tasks.recipe import Resources
from pipeline_tasks.run.machine import machine_fault
from pipeline_tasks.run.request import OnEngine, RefineRequest, Request
from pipeline_tasks.service.requests.wire import Wire, decode, refusal_of


@dataclass(slots=True)
class Dispatcher:
    """What the threads of a process share; `spoiled` is set by a defect, after which its engines may be gone.

    `is_apart` says that the process may be on another machine than Airflow's, whose ledger it does not reach.
    """

    is_apart: bool = False
    starting: threading.Lock = field(default_factory=threading.Lock)
    spoiled: threading.Event = field(default_factory=threading.Event)

    def reply(self, raw: object, job: str) -> Wire:
        """Return the reply to a request, which is `job`, a name of its own; an error is in the reply."""
        from pipeline_tasks.engines.choose import lives
        from pipeline_tasks.service.handle import handle

        request: Request[Any] | None = None
        try:
            request = decode(raw)
            self._start_engine(request)
            with working_for(job, is_apart=self.is_apart):
                return cast("Wire", handle(request))
        except RefineryError as error:
            if isinstance(error, JobLost) and isinstance(request, OnEngine) and not lives(request.engine):
                self.spoiled.set()
            return refusal_of(error)
        except Exception as error:  # noqa: BLE001 -- a defect must reach the task that met it
            traceback.print_exc()
            self.spoiled.set()  # its Spark or Ray may be gone: the next request gets a new process
            if isinstance(error, ConnectionError) or type(error).__module__.startswith("py4j"):
                return {"error": "JobLost", "message": traceback.format_exc()}
            if fault := machine_fault(error):
                return {"error": type(fault).__name__, "message": str(fault)}
            return {"error": type(error).__name__, "message": traceback.format_exc()}

    def _start_engine(self, request: Request[Any]) -> None:
        """Start the engine of a request, once: two requests at the same time would start it twice."""
        if isinstance(request, OnEngine):
            from pipeline_tasks.engines.choose import start

            resources = request.resources if isinstance(request, RefineRequest) else Resources()
            with self.starting:
                start(request.engine, request.address, resources)
