"""EMR Serverless for tests: a server on loopback whose answers fit botocore's model of the service.

A job run passes through the states that a test plans, one at each look. Where none are planned it is a process of this
machine: `spark-submit` of its entry point, whose log goes to where the run asks for it when it has ended. No request
of this project was ever answered by AWS; the shapes, states and errors are those of its model and documentation.
"""

import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import botocore.session
from botocore.validate import ParamValidator

from pipeline_tasks.store import storage
from tests.embedded import PROJECT

APPLICATION, ROLE = "00fg0oh5mvbu4d0l", "arn:aws:iam::123456789012:role/refinery-driver"
ADDRESS = f"emr-serverless://{APPLICATION}/;role={ROLE};region=eu-west-1"
ARN = f"arn:aws:emr-serverless:eu-west-1:123456789012:/applications/{APPLICATION}"
THEN = datetime(2026, 11, 19, tzinfo=UTC)

Fault = tuple[int, str] | str
"""What happens to a request: (status, code) answers, or `lost`: it is carried out, and its answer is lost."""


@lru_cache(maxsize=1)
def model() -> Any:
    return botocore.session.get_session().get_service_model("emr-serverless")


@dataclass(slots=True)
class Run:
    """A job run: what it was asked for, and where it stands."""

    id: str
    asked: Mapping[str, Any]
    planned: list[str]
    state: str = "SUBMITTED"
    details: str = ""
    process: "subprocess.Popen[bytes] | None" = None


@dataclass(slots=True)
class Emr:
    """The server: requests as (operation, body), job runs by id and by token, and faults that are to come."""

    folder: Path
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    faults: list[tuple[str, Fault]] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    details: str = ""
    application: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    endpoint: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def asked(self, operation: str) -> list[dict[str, Any]]:
        """The bodies of the requests for an operation, in their order."""
        return [body for name, body in self.requests if name == operation]

    def answer(self, operation: str, ids: Mapping[str, str], body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """Carry a request out; None loses its answer."""
        with self.lock:
            self.requests.append((operation, {**ids, **body}))
            fault = self._fault(operation)
            if isinstance(fault, tuple):
                return fault[0], {"__type": fault[1], "message": f"planned {fault[1]}"}
            if ids["applicationId"] != APPLICATION:
                return 404, {"__type": "ResourceNotFoundException", "message": "Application is not found"}
            does: dict[str, Callable[..., dict[str, Any]]] = {
                "StartJobRun": self._start,
                "GetJobRun": self._get,
                "CancelJobRun": self._cancel,
                "GetApplication": self._application,
            }
            said = does[operation](ids.get("jobRunId", ""), body)
            faults = ParamValidator().validate(said, model().operation_model(operation).output_shape)
            assert not faults.has_errors(), faults.generate_report()
            return None if fault == "lost" else (200, said)

    def _fault(self, operation: str) -> Fault | None:
        for place, (name, fault) in enumerate(self.faults):
            if name == operation:
                del self.faults[place]
                return fault
        return None

    def _start(self, _: str, body: dict[str, Any]) -> dict[str, Any]:
        token = body["clientToken"]
        if token not in self.tokens:
            self.tokens[token] = f"00g{len(self.runs):09d}"
            run = Run(self.tokens[token], body, list(self.planned), details=self.details)
            self.runs[run.id] = run
            if not run.planned:
                self._submit(run)
        return {
            "applicationId": APPLICATION,
            "jobRunId": self.tokens[token],
            "arn": f"{ARN}/jobruns/{self.tokens[token]}",
        }

    def _submit(self, run: Run) -> None:
        asked = run.asked["jobDriver"]["sparkSubmit"]
        folder, _, name = asked["entryPoint"].rpartition("/")
        entry = self.folder / f"{run.id}.py"
        entry.write_bytes(storage.connect(folder).read(name))
        command = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]", str(entry)]
        others = ("AIRFLOW", "REFINERY_", "AWS_")
        env = {key: value for key, value in os.environ.items() if not key.startswith(others)}
        env |= {"PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": sys.executable, **self.env}
        with (self.folder / f"{run.id}.log").open("wb") as log:
            run.process = subprocess.Popen(
                [*command, *asked["entryPointArguments"]], env=env, stdout=log, stderr=log, start_new_session=True
            )

    def _get(self, run_id: str, _: dict[str, Any]) -> dict[str, Any]:
        run = self.runs[run_id]
        if run.planned:
            run.state = run.planned.pop(0) if len(run.planned) > 1 else run.planned[0]
        elif run.process and run.state not in ("CANCELLED", "SUCCESS", "FAILED"):
            code = run.process.poll()
            run.state = "RUNNING" if code is None else "FAILED" if code else "SUCCESS"
            if code is not None:
                self._log(run)
                run.details = f"Job failed, please check complete logs. ExitCode: {code}" if code else ""
        shown = {
            "applicationId": APPLICATION,
            "jobRunId": run.id,
            "arn": f"{ARN}/jobruns/{run.id}",
            "createdBy": ROLE,
            "createdAt": THEN,
            "updatedAt": THEN,
            "executionRole": run.asked["executionRoleArn"],
            "state": run.state,
            "stateDetails": run.details or "no details",
            "releaseLabel": "emr-spark-8.0.0",
            "jobDriver": run.asked["jobDriver"],
        }
        return {"jobRun": shown}

    def _log(self, run: Run) -> None:
        place = run.asked["configurationOverrides"]["monitoringConfiguration"]["s3MonitoringConfiguration"]["logUri"]
        body = gzip.compress((self.folder / f"{run.id}.log").read_bytes())
        name = f"applications/{APPLICATION}/jobs/{run.id}/SPARK_DRIVER/stderr.gz"
        storage.keep(storage.connect(place), name, body)

    def _cancel(self, run_id: str, _: dict[str, Any]) -> dict[str, Any]:
        run = self.runs[run_id]
        run.planned, run.state = [], "CANCELLED"
        self.kill(run)
        return {"applicationId": APPLICATION, "jobRunId": run.id}

    def _application(self, _: str, __: dict[str, Any]) -> dict[str, Any]:
        about = {
            "applicationId": APPLICATION,
            "arn": ARN,
            "releaseLabel": "emr-spark-8.0.0",
            "type": "Spark",
            "state": "CREATED",
            "createdAt": THEN,
            "updatedAt": THEN,
        }
        return {"application": about | self.application}

    @staticmethod
    def kill(run: Run) -> None:
        """End the process of a job run, as the machine does that it is on."""
        if run.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()


class _Handler(BaseHTTPRequestHandler):
    emr: ClassVar[Emr]
    protocol_version = "HTTP/1.1"

    def _do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, operation, ids = self.path.partition("?")[0], "", {}
        for name in ("StartJobRun", "GetJobRun", "CancelJobRun", "GetApplication"):
            http = model().operation_model(name).http
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", http["requestUri"])
            if http["method"] == self.command and (found := re.fullmatch(pattern, path)):
                operation, ids = name, found.groupdict()
        assert "Credential=" in self.headers.get("Authorization", ""), "it is not signed"
        said = self.emr.answer(operation, ids, json.loads(body or b"{}"))
        if said is None:
            self.close_connection = True
            return
        sent = json.dumps(said[1], default=datetime.timestamp).encode()
        self.send_response(said[0])
        if "__type" in said[1]:
            self.send_header("x-amzn-ErrorType", str(said[1]["__type"]))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_DELETE = _do  # noqa: N815 -- names of http.server

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def emr_server(folder: Path) -> Iterator[Emr]:
    """Run a server; all processes of its job runs are killed at the end."""
    emr = Emr(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"emr": emr}))
    emr.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield emr
    finally:
        server.shutdown()
        server.server_close()
        for run in emr.runs.values():
            emr.kill(run)
