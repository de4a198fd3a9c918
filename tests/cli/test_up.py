"""`refinery up` listens on loopback alone, starts a component that died again, and ends with SIGTERM."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pipeline_tasks.embedded.airflow_home import PROJECT
from tests.s3_server import free_port

pytestmark = pytest.mark.slow


def listeners(root: psutil.Process) -> set[tuple[str, int]]:
    """The addresses at which a process and those below it listen."""
    addresses = set()
    for process in (root, *root.children(recursive=True)):
        try:
            connections = process.net_connections("inet")
        except psutil.NoSuchProcess:
            continue
        addresses |= {tuple(line.laddr) for line in connections if line.status == psutil.CONN_LISTEN}
    return addresses


def schedulers(root: psutil.Process) -> list[psutil.Process]:
    """The processes below `root` that run the command `airflow scheduler`."""
    running = [child for child in root.children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    return [child for child in running if "scheduler" in child.cmdline()[1:4]]


def test_it_listens_on_loopback_alone_and_sigterm_ends_all_of_it(tmp_path: Path) -> None:
    """The log servers of Airflow's scheduler and triggerer were on all interfaces, at 8793 and 8794.

    A scheduler that died stayed dead, and nothing said so.
    """
    port = free_port()
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_"))}
    env = keep | {"PYTHONPATH": str(PROJECT), "REFINERY_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-u", "-m", "pipeline_tasks.cli", "up", "--port", str(port)]
    process = subprocess.Popen(
        command, env=env, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("Airflow is ready" in line for line in lines), (tmp_path / "home/airflow/standalone.log").read_text()
        tree = psutil.Process(process.pid)
        addresses = listeners(tree)
        assert ("127.0.0.1", port) in addresses
        assert {host for host, _ in addresses} <= {"127.0.0.1", "::1"}, addresses
        [scheduler] = schedulers(tree)
        scheduler.kill()
        deadline = time.monotonic() + 120
        log = tmp_path / "home/airflow/standalone.log"
        while not schedulers(tree) or "scheduler ended with exit code -9; it is started again" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(1)
        below = tree.children(recursive=True)
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait() in (0, 128 + signal.SIGTERM)
        assert [child for child in below if child.is_running()] == []
        assert [path.name for path in (tmp_path / f"refinery-{os.getuid()}").iterdir()] == ["runs.lock"]
    finally:
        process.kill()
