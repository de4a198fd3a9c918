"""A Ray cluster of its own for tests: a head on loopback, started as an operator starts it, stopped by its id."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline_tasks.engines.reach import require_answer
from pipeline_tasks.errors import JobLost
from tests.embedded import PROJECT
from tests.ports import free_port

HOST = f"127.200.{os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
"""A loopback address of this process's own: `ray start` takes 127.0.0.1 for the machine's outer address."""

START = 120.0
"""Seconds that the head may take until it answers."""


@dataclass(frozen=True, slots=True)
class RayHead:
    """A running head: its three endpoints, its process, and the environment that lets a process in."""

    gcs: str
    client: str
    jobs: str
    pid: int
    env: dict[str, str]


@contextlib.contextmanager
def ray_head(folder: Path) -> Iterator[RayHead]:
    """Run a head that asks for its token; it and all its processes are killed at the end."""
    ports = {name: str(free_port()) for name in ("port", "ray-client-server-port", "dashboard-port")}
    agent = {name: str(free_port()) for name in ("dashboard-agent-listen-port", "dashboard-agent-grpc-port")}
    place = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # a socket's path may have 107 bytes
    options = ports | agent | {"node-ip-address": HOST, "dashboard-host": HOST, "num-cpus": "2", "temp-dir": place}
    command = [str(Path(sys.executable).parent / "ray"), "start", "--head", "--block"]
    command += [f"--{name}={value}" for name, value in options.items()]
    env = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "7" * 64, "RAY_USAGE_STATS_ENABLED": "0"}
    paths = {"PYTHONPATH": str(PROJECT), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with (folder / "ray.log").open("wb") as log:
        head = subprocess.Popen(command, env=os.environ | env | paths, stdout=log, stderr=log, start_new_session=True)
    gcs, client, jobs = (f"{HOST}:{port}" for port in ports.values())
    try:
        for address in (gcs, f"ray://{client}", f"http://{jobs}"):
            _wait_for(address, head, folder / "ray.log")
        yield RayHead(gcs, client, jobs, head.pid, env)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(head.pid, signal.SIGKILL)
        head.wait()
        shutil.rmtree(place, ignore_errors=True)


def _wait_for(address: str, head: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end and head.poll() is None:
        with contextlib.suppress(JobLost):
            return require_answer(address)
        time.sleep(0.2)
    message = f"nothing at {address}:\n{log.read_text()[-3000:]}"
    raise RuntimeError(message)
