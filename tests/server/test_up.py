"""`refinery up` listens on loopback alone, and starts a component that died again; its end is judged by its fixture."""

import subprocess
import sys

import psutil
import pytest

from tests.airflow_server import Server, until
from tests.embedded import PROJECT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


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


def test_the_plugin_is_registered_once(server: Server) -> None:
    """By its entry point alone: a second copy would be an import error, and its alerts second messages."""
    api = server.api("ordered")
    plugins = api.call("GET", "/api/v2/plugins?limit=100")["plugins"]
    [source] = [plugin["source"] for plugin in plugins if plugin["name"] == "refinery"]
    assert "refinery_airflow.plugin:RefineryPlugin" in source
    assert api.call("GET", "/api/v2/plugins/importErrors")["import_errors"] == []


def test_it_listens_on_loopback_alone_and_a_scheduler_that_died_starts_again(server: Server) -> None:
    """The log servers of Airflow's scheduler and triggerer were on all interfaces, at 8793 and 8794.

    A scheduler that died stayed dead, and nothing said so.
    """
    tree = psutil.Process(server.process.pid)
    addresses = listeners(tree)  # a JVM has those of IPv4 as IPv6 writes them
    assert ("127.0.0.1", server.port) in addresses
    assert {host.removeprefix("::ffff:") for host, _ in addresses} <= {"127.0.0.1", "::1"}, addresses
    [scheduler] = schedulers(tree)
    scheduler.kill()
    said = "scheduler ended with exit code -9; it is started again"
    until(lambda: bool(schedulers(tree)) and said in server.log, lambda: server.log, 120)


def test_airflows_own_command_speaks_to_it(server: Server) -> None:
    env = {"PYTHONPATH": str(PROJECT), "REFINERY_HOME": str(server.folder / "home"), "PATH": "/usr/bin:/bin"}
    command = [
        sys.executable,
        "-m",
        "pipeline_tasks.cli",
        "airflow",
        "dags",
        "list-runs",
        "refine_ordered",
        "-o",
        "plain",
    ]
    shown = subprocess.run(command, env=env, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=300)
    assert shown.returncode == 0, shown.stderr
    known = subprocess.run([*command[:-2], "--state", "no"], env=env, cwd=PROJECT, capture_output=True, check=False)
    assert known.returncode == 2, "its exit code is Airflow's"
