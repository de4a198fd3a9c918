"""The worker daemon of this machine: handles requests in one long-lived process, so that tasks share slow starts.

One Spark session, one Ray and one import of Great Expectations serve all tasks and runs of a user. The first request
starts the daemon; it exits after ten minutes without a request. A request that is lost with its daemon is `JobLost`;
tried again, it reuses what the lost one finished.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import sys
import sysconfig
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import NamedTuple, cast

from pipeline_tasks.errors import JobLost, RecipeError, RefineryError
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.run.request import ReplyT, Request
from pipeline_tasks.service.dispatch import Dispatcher
from pipeline_tasks.service.processes import interpreter, last_words, require_code, start_lasting
from pipeline_tasks.service.requests.wire import Wire, encode, parse, raise_refusal, refusal_of
from pipeline_tasks.shipped import PACKAGE, code
from pipeline_tasks.store import store_settings, temporary
from pipeline_tasks.store.credential import CONNECTIONS
from pipeline_tasks.store.named_store import OURS

IDLE = 600.0
"""Seconds without a request after which the daemon exits."""
LOOK = 1.0
"""Seconds between two looks whether a task still waits for its reply."""
PATIENCE = 120.0
"""Seconds that a new daemon may take until it listens."""


def send(request: Request[ReplyT]) -> ReplyT:
    """Return the daemon's reply to a request, starting the daemon if none runs; refusals are raised."""
    reply: Wire
    with _connected() as line:
        try:
            line.send_bytes(json.dumps(encode(request)).encode())
            reply = json.loads(line.recv_bytes())
        except (EOFError, OSError) as error:
            message = f"the worker daemon died during {request.verb} (out of memory?); its log: {_paths().log}"
            raise JobLost(message) from error
    raise_refusal(reply, unknown=RuntimeError)  # a defect of the daemon
    return cast("ReplyT", reply)


SETTINGS = ("AWS_", OURS, CONNECTIONS)
"""How variables begin that decide what a daemon can reach: other values have another daemon."""


class Paths(NamedTuple):
    """A daemon's socket, log and lock."""

    socket: Path
    log: Path
    lock: Path


def _paths() -> Paths:
    """Return the paths of the daemon for this code and these credentials.

    Other credentials have another daemon; a daemon that runs older code, or has older libraries loaded, is replaced.
    """
    folder = temporary.user_folder()
    settings = [f"{key}={value}" for key, value in sorted(os.environ.items()) if key.startswith(SETTINGS)]
    settings += filter(None, [store_settings.given()])
    who = _short([interpreter(), str(PACKAGE), os.environ.get("JAVA_HOME", ""), str(folder), *settings])
    files = (f"{path} {path.stat().st_mtime_ns}" for folder in code() for path in sorted(folder.rglob("*.py")))
    name = f"{who}-{_short([*_installations(), *files])}.sock"
    return Paths(temporary.socket_folder(len(name)) / name, folder / f"{who}.log", folder / f"{who}.lock")


def _installations() -> list[str]:
    """Return when something was last installed for the daemon's interpreter: that adds a folder to its packages."""
    beside = Path(interpreter()).parent.parent.glob("lib/python3*/site-packages")
    return [str(folder.stat().st_mtime_ns) for folder in sorted({*beside, Path(sysconfig.get_path("purelib"))})]


def _short(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def _key(socket: Path) -> bytes:
    return socket.with_suffix(".key").read_bytes()


def _connected() -> Connection:
    """Connect to the daemon, starting it under a lock if none listens."""
    socket, log, lock = _paths()
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
        stale.unlink(missing_ok=True)  # a daemon of older code exits when its socket is gone and its requests are done
    handle = os.open(socket.with_suffix(".key"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as key:
        key.write(secrets.token_bytes(32))
    process = start_lasting("pipeline_tasks.service.daemon", [str(socket)], log)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if (line := _dial(socket)) is not None:
            process.returncode = 0  # it outlives this process: nobody here waits for it
            return line
        time.sleep(0.1)
    message = f"the worker daemon did not start: {last_words(log)} (its log: {log})"
    if process.returncode == RecipeError.exit_code:
        raise RecipeError(message)
    raise JobLost(message)


# --- The daemon ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Daemon:
    """What the threads of a daemon share: how many requests are under way, and when the last one ended."""

    active: int = 0
    last: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    dispatcher: Dispatcher = field(default_factory=Dispatcher)

    def serve(self, line: Connection) -> None:
        """Handle the requests of one connection."""
        with self.lock:
            self.active += 1
        try:
            with line, contextlib.suppress(EOFError, OSError):
                while True:
                    line.send_bytes(json.dumps(self._reply(line, line.recv_bytes())).encode())
        finally:
            with self.lock:
                self.active -= 1
                self.last = time.monotonic()

    def _reply(self, line: Connection, body: bytes) -> Wire:
        """Return the reply to a request; what it runs is canceled when its task hangs up."""
        try:
            raw = parse(body, "the request to the worker daemon")
        except RefineryError as error:
            return refusal_of(error)
        job, done = f"daemon-{secrets.token_hex(8)}", threading.Event()
        engine = str(raw.get("engine", LOCAL)) if isinstance(raw, dict) else LOCAL
        threading.Thread(target=_cancel_if_left, args=(line, engine, job, done), daemon=True).start()
        try:
            return self.dispatcher.reply(raw, job)
        finally:
            done.set()

    def idle(self) -> float:
        """Return the seconds since the last request; 0 while one is under way."""
        with self.lock:
            return 0.0 if self.active else time.monotonic() - self.last


def _cancel_if_left(line: Connection, engine: str, job: str, done: threading.Event) -> None:
    """Cancel a job, until it is done, once its task has closed the line, on which it says nothing before the reply."""
    from pipeline_tasks.engines.choose import cancel

    with contextlib.suppress(OSError):  # the line was closed here
        while not done.is_set() and not line.poll(LOOK):
            pass
    while not done.wait(LOOK):
        cancel(engine, job)


def serve(socket: Path, idle: float = IDLE) -> None:
    """Listen at `socket` until there was no request for `idle` seconds, or the socket is gone."""
    from pipeline_tasks.engines.choose import stop_all

    daemon = Daemon()
    listener = Listener(str(socket), family="AF_UNIX", backlog=64, authkey=_key(socket))
    threading.Thread(target=_accept, args=(listener, daemon), daemon=True).start()
    try:
        while not daemon.idle() or (daemon.idle() < idle and socket.exists()):
            if daemon.dispatcher.spoiled.wait(min(1.0, idle / 4)):
                socket.unlink(missing_ok=True)
                time.sleep(0.1)
    finally:
        socket.unlink(missing_ok=True)
        stop_all()


def _accept(listener: Listener, daemon: Daemon) -> None:
    from multiprocessing import AuthenticationError

    while True:
        try:
            line = listener.accept()
        except (AuthenticationError, EOFError, OSError):
            continue
        threading.Thread(target=daemon.serve, args=(line,), daemon=True).start()


def stop() -> None:
    """Make this user's daemon exit; it does so within a second, once its requests are done."""
    _paths().socket.unlink(missing_ok=True)


if __name__ == "__main__":
    require_code()
    with temporary.owned():
        serve(Path(sys.argv[1]))
