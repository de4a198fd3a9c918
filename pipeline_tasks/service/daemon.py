"""This machine's warm host: answers requests in one long-lived process, so that tasks share what is slow to start.

One Spark session, one Ray and one import of Great Expectations serve all tasks and runs of a user. The first task
starts the host; it leaves when nothing was asked for ten minutes. A request that is lost with its host is `JobLost`,
and is found half or wholly done when it is tried again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from pipeline_tasks import errors
from pipeline_tasks.errors import JobLost, RecipeError, RefineryError

PACKAGE = Path(__file__).resolve().parents[1]
IDLE = 600.0
"""Seconds without a request after which the host leaves."""
PATIENCE = 120.0
"""Seconds that a new host may take until it listens."""

Reply = dict[str, Any]


def send(request: Mapping[str, Any]) -> Reply:
    """Return the warm host's reply to a request, starting the host if there is none; refusals are raised."""
    reply: Reply
    with _connected() as line:
        try:
            line.send_bytes(json.dumps(request).encode())
            reply = json.loads(line.recv_bytes())
        except (EOFError, OSError) as error:
            message = f"the warm host went away during {request.get('verb')} (out of memory?); its log: {_place()[1]}"
            raise JobLost(message) from error
    if "error" in reply:
        kind = getattr(errors, str(reply["error"]), None)
        raise kind(reply["message"]) if kind else RuntimeError(f"{reply['error']}: {reply['message']}")
    return reply


def _place() -> tuple[Path, Path, Path]:
    """Return the paths of socket, log and lock of the host for this code and these credentials.

    A host that was started with other credentials is another host; one that runs older code is replaced.
    """
    folder = Path(tempfile.gettempdir()) / f"refinery-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o077:
        message = f"{folder} belongs to someone else or is open to others; remove it, or set TMPDIR"
        raise RecipeError(message)
    settings = [f"{key}={value}" for key, value in sorted(os.environ.items()) if key.startswith(("AWS_", "REFINERY_"))]
    who = _short([sys.executable, str(PACKAGE), os.environ.get("JAVA_HOME", ""), *settings])
    code = _short(f"{path.relative_to(PACKAGE)} {path.stat().st_mtime_ns}" for path in sorted(PACKAGE.rglob("*.py")))
    return folder / f"{who}-{code}.sock", folder / f"{who}.log", folder / f"{who}.lock"


def _short(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def _key(socket: Path) -> bytes:
    return socket.with_suffix(".key").read_bytes()


def _connected() -> Connection:
    """Connect to the host, starting it under a lock if nobody listens."""
    socket, log, lock = _place()
    if (line := _dial(socket)) is not None:
        return line
    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        if (line := _dial(socket)) is not None:
            return line
        return _start(socket, log)


def _dial(socket: Path) -> Connection | None:
    try:
        return Client(str(socket), family="AF_UNIX", authkey=_key(socket))
    except (OSError, EOFError):
        return None


def _start(socket: Path, log: Path) -> Connection:
    for stale in socket.parent.glob(f"{log.stem}-*"):
        stale.unlink(missing_ok=True)  # a host of older code leaves when its socket is gone and its work is done
    handle = os.open(socket.with_suffix(".key"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as key:
        key.write(secrets.token_bytes(32))
    with log.open("ab") as sink:
        command = [sys.executable, "-m", "pipeline_tasks.service.daemon", str(socket)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])}
        host = subprocess.Popen(  # noqa: S603 -- our own interpreter and module
            command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=env, start_new_session=True
        )
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and host.poll() is None:
        if (line := _dial(socket)) is not None:
            host.returncode = 0  # it outlives this process: nobody here waits for it
            return line
        time.sleep(0.1)
    message = f"the warm host did not start; its log: {log}"
    raise JobLost(message)


# --- The host --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Host:
    """What the threads of a host share: how many requests are under way, and when the last one ended."""

    active: int = 0
    last: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    starting: threading.Lock = field(default_factory=threading.Lock)
    spoiled: threading.Event = field(default_factory=threading.Event)

    def serve(self, line: Connection) -> None:
        """Answer the requests of one connection."""
        with self.lock:
            self.active += 1
        try:
            with line, contextlib.suppress(EOFError, OSError):
                while True:
                    line.send_bytes(json.dumps(self._answer(json.loads(line.recv_bytes()))).encode())
        finally:
            with self.lock:
                self.active -= 1
                self.last = time.monotonic()

    def _answer(self, request: Mapping[str, Any]) -> Reply:
        from pipeline_tasks.service.requests import handle

        try:
            self._warm(request)
            return handle(request)
        except RefineryError as error:
            return {"error": type(error).__name__, "message": str(error)}
        except Exception as error:  # noqa: BLE001 -- a defect must reach the task that met it
            traceback.print_exc()
            self.spoiled.set()  # its Spark or Ray may be gone: the next request gets a new host
            lost = isinstance(error, ConnectionError) or type(error).__module__.startswith("py4j")
            return {"error": "JobLost" if lost else type(error).__name__, "message": traceback.format_exc()}

    def _warm(self, request: Mapping[str, Any]) -> None:
        """Start an engine at its first request; two at once would start it twice."""
        if request.get("verb") != "refine":
            return
        with self.starting:
            if request.get("engine") == "spark":
                from pipeline_tasks.engines.spark import session

                session(request.get("address") or "local[*]")
            if request.get("engine") == "ray":
                from pipeline_tasks.engines.ray import connect

                connect(request.get("address") or "local")

    def idle(self) -> float:
        """Return for how many seconds nothing has been asked; 0 while something is under way."""
        with self.lock:
            return 0.0 if self.active else time.monotonic() - self.last


def serve(socket: Path, idle: float = IDLE) -> None:
    """Listen at `socket` until nothing was asked for `idle` seconds, or the socket is gone."""
    host = Host()
    listener = Listener(str(socket), family="AF_UNIX", backlog=64, authkey=_key(socket))
    threading.Thread(target=_accept, args=(listener, host), daemon=True).start()
    while not host.idle() or (host.idle() < idle and socket.exists()):
        if host.spoiled.wait(min(1.0, idle / 4)):
            socket.unlink(missing_ok=True)
            time.sleep(0.1)
    socket.unlink(missing_ok=True)
    _leave()


def _accept(listener: Listener, host: Host) -> None:
    from multiprocessing import AuthenticationError

    while True:
        try:
            line = listener.accept()
        except (AuthenticationError, EOFError, OSError):
            continue
        threading.Thread(target=host.serve, args=(line,), daemon=True).start()


def _leave() -> None:
    """Stop the engines that were started."""
    if "pyspark" in sys.modules:
        from pipeline_tasks.engines import spark

        spark.stop()
    if "ray" in sys.modules:
        from pipeline_tasks.engines import ray

        ray.disconnect()


def stop() -> None:
    """Ask this user's host to leave; it does so within a second, once its requests are answered."""
    _place()[0].unlink(missing_ok=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
