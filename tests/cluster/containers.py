"""Processes that stand for containers: each has an address of its own, and ends whole, as a container does."""

import contextlib
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

MARK = "REFINERY_TEST_CONTAINER"
"""The variable that names a process's container; children inherit it wherever they go."""

RESTARTS = 3
"""How often a container that ends by itself is started again: Ray's node gives up after 30 s on a busy machine."""


@dataclass(frozen=True, slots=True)
class Container:
    """What runs in a container: its command, environment and user; its log is a file."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    log: Path
    user: str | None = None


@dataclass(slots=True)
class Containers:
    """The running containers of one test, by name."""

    place: str
    known: dict[str, Container] = field(default_factory=dict)
    started: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)

    def start(self, container: Container) -> None:
        """Start a container, or start it again."""
        env = {**container.env, MARK: f"{self.place}/{container.name}"}
        with container.log.open("ab") as log:
            self.started[container.name] = subprocess.Popen(
                container.command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=container.log.parent,
                user=pwd.getpwnam(container.user).pw_uid if container.user else None,
                start_new_session=True,
            )
        self.known[container.name] = container

    def restart(self, name: str) -> None:
        """Start a container again that was killed, as compose does."""
        self.start(self.known[name])

    def processes(self, name: str = "") -> list[psutil.Process]:
        """The living processes of a container, or of all; the first one and those below it in any case."""
        owned = {process.pid: process for process in psutil.process_iter() if self._owns(process, name)}
        for own, first in self.started.items():
            if name in ("", own) and first.poll() is None:
                with contextlib.suppress(psutil.Error):
                    top = psutil.Process(first.pid)  # Airflow's and Postgres's titles overwrite their environment
                    owned |= {process.pid: process for process in (top, *top.children(recursive=True))}
        return [process for process in owned.values() if _is_alive(process)]

    def kill(self, name: str = "") -> int:
        """SIGKILL every process of a container, or of all; return how many there were."""
        count = 0
        while processes := self.processes(name):
            count += len(processes)
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL)
            psutil.wait_procs(processes, timeout=5)
        if name:
            self.started[name].wait()
        return count

    def stop_all(self) -> None:
        """End everything that was started."""
        self.kill()
        for process in self.started.values():
            process.wait()

    def keep_alive(self, name: str) -> None:
        """Start a container again whose first process ended, as compose does; RuntimeError after a few times."""
        if name not in self.started or self.started[name].poll() is None:
            return
        self.restarts[name] = self.restarts.get(name, 0) + 1
        if self.restarts[name] > RESTARTS:
            message = f"{name} ended with {self.started[name].returncode}:\n{self.known[name].log.read_text()[-3000:]}"
            raise RuntimeError(message)
        self.kill(name)
        self.restart(name)

    def _owns(self, process: psutil.Process, name: str) -> bool:
        try:
            mark = process.environ().get(MARK, "")
        except (psutil.Error, OSError):
            return False
        return mark == f"{self.place}/{name}" if name else mark.startswith(f"{self.place}/")


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def wait_until(what: str, seconds: float, *, each: float = 0.5) -> "Deadline":
    """Return what to iterate over while something is awaited; AssertionError after `seconds`."""
    return Deadline(what, time.monotonic() + seconds, each)


@dataclass(slots=True)
class Deadline:
    """Iterates until the deadline; AssertionError there."""

    what: str
    end: float
    each: float

    def __iter__(self) -> "Deadline":
        return self

    def __next__(self) -> None:
        if time.monotonic() > self.end:
            message = f"it did not happen in time: {self.what}"
            raise AssertionError(message)
        time.sleep(self.each)


def own_addresses(count: int) -> list[str]:
    """Return loopback addresses that no other run of these tests has: Linux routes all of 127.0.0.0/8 to itself."""
    number = os.getpid() % 60_000
    return [f"127.{1 + number // 250}.{1 + number % 250}.{2 + host}" for host in range(count)]
