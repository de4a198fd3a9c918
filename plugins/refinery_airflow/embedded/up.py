"""`refinery up` runs Airflow on this machine with everything embedded, until Ctrl-C."""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline_tasks.demo import FOLDER
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.run.loops import ensure_compiled
from pipeline_tasks.service import daemon
from pipeline_tasks.shipped import state_folder
from refinery_airflow.embedded import airflow_home, postgresql
from refinery_airflow.embedded.airflow_home import demo_root

SQLITE, POSTGRESQL = "sqlite", "postgresql"
"""Words for Airflow's metadata database: a file of the home, and a server of this machine."""

STARTUP = 240.0
"""Seconds that Airflow may take until its web server, scheduler and DAG processor are healthy."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the port and the database."""
    port = int(os.environ.get("AIRFLOW__API__PORT", airflow_home.PORT))
    parser.add_argument("--port", type=int, default=port, help=f"port of the web UI ({airflow_home.PORT})")
    parser.add_argument(
        "--database",
        default="",
        metavar="URL",
        help="Airflow's metadata database: sqlite (the default), postgresql (a server that this command starts and "
        "stops), or postgresql://USER:PASSWORD@HOST/DATABASE; kept until another is named",
    )


def answer(options: argparse.Namespace) -> int:
    """Run Airflow in the foreground; return its exit code, 0 after Ctrl-C."""
    return up(options.port, options.database)


def up(port: int, database: str = "") -> int:
    """Run `airflow standalone` in the foreground with everything embedded, until Ctrl-C."""
    _require_free(port)
    airflow_home.require_plugin()
    home = state_folder() / "airflow"
    os.environ["AIRFLOW__API__PORT"] = str(port)
    with metadata_database(home, database):
        return _run(home)


def _run(home: Path) -> int:
    env = airflow_home.environment(home)
    ensure_compiled(sys.stdout)
    sys.stdout.write(f"preparing Airflow in {home} ...\n")
    airflow_home.migrate(home, env)
    os.environ.update(env)  # clients look up the worker daemon by these variables
    log = home / "standalone.log"
    airflow = _start(log)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not _is_ready(airflow, env["AIRFLOW__API__BASE_URL"]):
            message = f"Airflow did not start; its log: {log}"
            raise RecipeError(message)
        sys.stdout.write(welcome(home, env))
        sys.stdout.flush()
        return airflow.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _stop(airflow)


@contextlib.contextmanager
def metadata_database(home: Path, named: str = "") -> Iterator[None]:
    """Have the metadata database of a home at work: the one that is `named`, else that of last time.

    A server of this machine is started, and stopped at the end.
    """
    if named == SQLITE:
        airflow_home.choose_database(home, "")
    elif named == POSTGRESQL or (not named and postgresql.is_of(home, airflow_home.database_url(home))):
        with postgresql.running(postgresql.server_of(home), postgresql.password_of(home)) as url:
            airflow_home.choose_database(home, url)
            yield
        return
    elif named:
        url = postgresql.sqlalchemy_url(named)
        postgresql.require_database(url)
        airflow_home.choose_database(home, url)
    yield


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            message = f"port {port} of this machine is in use ({error}); stop the process that listens or choose --port"
            raise RecipeError(message) from error


def _start(log: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-u", "-m", "refinery_airflow.embedded.standalone"]  # its log has the last lines, too
    with log.open("w") as stream:
        return subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)  # noqa: S603


def _is_ready(airflow: "subprocess.Popen[bytes]", url: str) -> bool:
    """Wait until the web server answers and its parts are healthy; return False if Airflow ended or took too long."""
    deadline = time.monotonic() + STARTUP
    while time.monotonic() < deadline and airflow.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"{url}/api/v2/monitor/health", timeout=10) as reply:  # noqa: S310 -- our own
                health = json.load(reply)
            if all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "dag_processor")):
                return True
        time.sleep(1)
    return False


def welcome(home: Path, env: Mapping[str, str]) -> str:
    """Return what is said once Airflow is ready: address, login, folders, and what to try first."""
    passwords = json.loads((home / "simple_auth_manager_passwords.json.generated").read_text())
    logins = ", ".join(f"{user} / {password}" for user, password in passwords.items())
    return (
        f"Airflow is ready: {env['AIRFLOW__API__BASE_URL']}\n"
        f"  login     {logins}\n"
        f"  snapshots land in  {env['REFINERY_LANDING']}/<date>\n"
        f"  output goes to     {env['REFINERY_ROOT']}{_of_demo(env['REFINERY_ROOT'])}\n"
        "  unpause the DAG `refine` to refine one every day; Ctrl-C stops everything\n"
        f"{_first_run(env['REFINERY_ROOT'], env['REFINERY_LANDING'])}"
    )


def _of_demo(root: str) -> str:
    """Return that a root is the demo's, if it is, and how to name another."""
    return " (the demo's, which the pages show; REFINERY_ROOT names another)" if Path(root) == demo_root() else ""


def _first_run(root: str, landing: str) -> str:
    """Return how to refine the newest snapshot that has landed, or the crawl of the demo for a root that is new."""
    if days := _folders(Path(landing)):
        return f"  to try it: open the DAG `refine`, press Trigger, and enter {days[-1]} as Snapshot\n"
    crawl = Path(FOLDER).absolute() / "crawl"
    if Path(root).exists() and Path(root) != demo_root():
        return ""
    days = [day for day in _folders(crawl) if (crawl / day / "snapshot.json").exists()]
    if not days:
        return "  nothing to refine yet? `refinery demo` writes a small crawl\n"
    return (
        f"  to try it: open the DAG `refine`, press Trigger, and enter {days[0]} as Snapshot and, further down under\n"
        f"  Advanced, {crawl}/{{snapshot}} as Input\n"
    )


def _folders(place: Path) -> list[str]:
    """Return the names of the folders in a folder of this machine, sorted; none in one that is not there."""
    return sorted(path.name for path in place.glob("*/")) if place.is_dir() else []


def _stop(airflow: "subprocess.Popen[bytes]") -> None:
    daemon.stop()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(airflow.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        airflow.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(airflow.pid, signal.SIGKILL)
