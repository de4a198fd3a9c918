"""Runs the `refine` DAG in this process with progress (`refinery run`), or all of Airflow on this machine (`up`)."""

import atexit
import contextlib
import importlib
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from pipeline_tasks.cli import airflow_home
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.ledger import Ledger
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.service import daemon
from pipeline_tasks.service.requests import ledger_of
from pipeline_tasks.upkeep import retract as taking_back

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class Stopped(BaseException):
    """Ends a run at the first task that failed for good; no `except Exception` on the way holds it up."""


@dataclass(slots=True)
class Progress(logging.Handler):
    """Shows what the operators log, line by line, and keeps their facts for the summary and the exit code."""

    out: TextIO
    started: float = field(default_factory=time.monotonic)
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    published: dict[str, Any] = field(default_factory=dict)
    error: BaseException | None = None

    def __post_init__(self) -> None:
        logging.Handler.__init__(self)

    def __hash__(self) -> int:
        return id(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Show one line, with the seconds since the start."""
        facts: Mapping[str, Any] = getattr(record, "refinery", {})
        if "error" in facts and (facts["final"] or isinstance(facts["error"], KeyboardInterrupt)):
            self.error = facts["error"]  # Airflow takes Ctrl-C for one more failure that it may try again
            raise Stopped
        if "stage" in facts:
            self._keep(facts)
        mark = "! " if record.levelno >= logging.WARNING else ""
        self.out.write(f"{time.monotonic() - self.started:6.1f} s  {mark}{record.getMessage()}\n")
        self.out.flush()

    def _keep(self, facts: Mapping[str, Any]) -> None:
        if facts["stage"] == "publish":
            self.published = facts["reply"]
        elif "rows_in" in facts["reply"] and not facts["which"]:
            self.stages[facts["stage"]] = facts["reply"]


def run(  # noqa: PLR0913 -- the options of `refinery run`
    *,
    input_uri: str,
    output: str,
    snapshot: str = "",
    recipe: str = "web",
    partitions: int = 0,
    engine: str = "",
    override: Mapping[str, str] | None = None,
    json_summary: bool = False,
) -> int:
    """Refine one snapshot by the same DAG that Airflow runs; return the exit code of `errors`."""
    name = load_recipe(recipe).name
    landing = _absolute(input_uri)
    snapshot = list_snapshot(landing, snapshot).snapshot  # refused here, and not after retries, if incomplete
    asked = {
        "input": landing,
        "output": _absolute(output),
        "snapshot": snapshot,
        "partitions": partitions,
        "engines": {"*": engine} if engine else {},
        "override": dict(override or {}),
        "patience": 0,
    }
    log = _log()
    with _quiet(log, 2 if json_summary else 1) as out:
        out.write(f"refining {landing} as snapshot {snapshot} by recipe {name} into {output}\n")
        out.flush()
        progress = Progress(out)
        try:
            failed = _run_dag(recipe, asked, progress)
        except KeyboardInterrupt as error:
            failed, progress.error = True, error
    if isinstance(progress.error, KeyboardInterrupt):
        sys.stderr.write("refinery: stopped; what is finished is kept, and the same command goes on from there\n")
        atexit.register(os.dup2, log.fileno(), 2)  # what is torn down may complain
        return INTERRUPTED
    if failed or not progress.published:
        return _explain(progress.error, Path(log.name))
    _summarize(progress, asked, recipe=name, as_json=json_summary)
    return 0


def _absolute(uri: str) -> str:
    return uri.rstrip("/") if "://" in uri else str(Path(uri).absolute())


@lru_cache(maxsize=1)
def _log() -> TextIO:
    """Open this process's log; it stays open, because loggers hold on to the stream they met first."""
    folder = airflow_home.place() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    return path.open("w", encoding="utf-8", buffering=1)


@contextlib.contextmanager
def _quiet(log: TextIO, screen: int) -> Iterator[TextIO]:
    """Send what Airflow, Spark and Ray print to a log file; yields what is still shown, on descriptor `screen`."""
    python = sys.stdout, sys.stderr
    for stream in python:
        stream.flush()
    kept = [os.dup(1), os.dup(2)]
    with os.fdopen(os.dup(screen), "w") as shown:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
        sys.stdout = sys.stderr = log
        try:
            yield shown
        finally:
            sys.stdout, sys.stderr = python
            for number, stream in zip((1, 2), kept, strict=True):
                os.dup2(stream, number)
                os.close(stream)


@lru_cache(maxsize=1)
def _home() -> Path:
    """Make this process's Airflow home, which goes away with it."""
    home = Path(tempfile.mkdtemp(prefix="refinery-airflow-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    quiet = {
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "REFINERY_LAUNCH_HERE": "1",
    }
    os.environ.update(airflow_home.fresh(home) | quiet)
    for folder in reversed(os.environ["PYTHONPATH"].split(os.pathsep)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return home


def _run_dag(recipe: str, asked: Mapping[str, Any], progress: Progress) -> bool:
    """Run the DAG of a recipe with `dag.test()`; tell whether it failed."""
    os.environ["REFINERY_RECIPE"] = str(Path(recipe).absolute()) if recipe.endswith((".yaml", ".yml")) else recipe
    _home()
    sys.path.insert(0, str(airflow_home.PROJECT / "dags"))
    try:
        wired = importlib.reload(importlib.import_module("refine"))
    finally:
        sys.path.pop(0)
    dag = wired.wire(load_recipe(recipe))
    logger = logging.getLogger("refinery")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(progress)
    try:
        return str(dag.test(run_conf=dict(asked)).state) != "success"
    except Stopped:
        return True
    finally:
        logger.removeHandler(progress)


def _explain(error: BaseException | None, log: Path) -> int:
    kind = type(error).__name__ if error else "the run did not finish"
    known = isinstance(error, RefineryError)
    sys.stderr.write(f"refinery: {error}\n" if known else f"refinery: {kind}: {error}; the whole log: {log}\n")
    return error.exit_code if isinstance(error, RefineryError) else RefineryError.exit_code


def _summarize(progress: Progress, asked: Mapping[str, Any], *, recipe: str, as_json: bool) -> None:
    seconds = round(time.monotonic() - progress.started, 1)
    made = progress.published
    if as_json:
        about = {"recipe": recipe, "snapshot": asked["snapshot"], "root": asked["output"], "seconds": seconds}
        sys.stdout.write(json.dumps({**about, **made, "stages": progress.stages}, sort_keys=True) + "\n")
        return
    sys.stdout.write(
        f"done in {seconds} s: version {made['version']}, {made['documents']:,} documents, {made['tokens']:,} tokens\n"
        f"  dataset {asked['output']}/{made['prefix']}\n  report  {asked['output']}/{made['report']}\n"
    )


def retract(  # noqa: PLR0913 -- the options of `refinery retract`
    *,
    output: str,
    recipe: str,
    snapshot: str,
    reason: str = "",
    undo: bool = False,
    dry_run: bool = False,
    engine: str = "",
    override: Mapping[str, str] | None = None,
) -> int:
    """Take a snapshot back (or bring it back) and refine again what was refined after it; return the exit code.

    First what must be refined again is told and its files are looked for, then the retraction is recorded, then the
    later snapshots are refined in order. Interrupted anywhere, the same command goes on from there.
    """
    root = _absolute(output)
    name = recipe if recipe in version_log.recipes(root) else load_recipe(recipe).name
    found = taking_back.later(root, name, snapshot, undo=undo)
    lines = [taking_back.opening(root, name, snapshot, undo=undo), *taking_back.told(snapshot, found)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    if found:
        load_recipe(recipe)  # what is needed to refine is looked for before anything is recorded
    for one in found:
        taking_back.landed(root, one.version)
    if dry_run:
        return 0
    with Ledger.open(ledger_of(root)) as ledger:
        taking_back.record(root, name, snapshot, reason, undo=undo, ledger=ledger)
    while (due := taking_back.due(root, name, snapshot)) is not None:
        before, uri = due.version, taking_back.landed(root, due.version)
        code = run(
            input_uri=uri, output=output, snapshot=before.snapshot, recipe=recipe, engine=engine, override=override
        )
        if code:
            sys.stderr.write("refinery: later snapshots are still as they were; the same command goes on from there\n")
            return code
        after = version_log.current(root, name, before.snapshot)
        if after.number == before.number:
            message = (
                f"snapshot {before.snapshot} was refined again and is the same, though its past is another; "
                "was it run with another recipe? Give that one by --recipe"
            )
            raise RecipeError(message)
        sys.stdout.write("".join(f"{line}\n" for line in taking_back.compared(root, before, after)))
    return 0


# --- refinery up -----------------------------------------------------------------------------------------------


def up(port: int = airflow_home.PORT) -> int:
    """Run `airflow standalone` in the foreground with everything embedded, until Ctrl-C."""
    _require_free(port)
    home = airflow_home.place() / "airflow"
    os.environ["AIRFLOW__API__PORT"] = str(port)
    env = airflow_home.environment(home)
    sys.stdout.write(f"preparing Airflow in {home} ...\n")
    airflow_home.migrate(home, env)
    log = home / "standalone.log"
    with log.open("w") as sink:
        command = [sys.executable, "-m", "airflow", "standalone"]
        os.environ.update(env)  # the warm host is found by its environment
        started = subprocess.Popen(command, stdout=sink, stderr=sink, start_new_session=True)  # noqa: S603
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not _ready(started, env["AIRFLOW__API__BASE_URL"]):
            message = f"Airflow did not start; its log: {log}"
            raise RecipeError(message)
        sys.stdout.write(_welcome(home, env))
        sys.stdout.flush()
        return started.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _stop(started)


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            message = f"port {port} of this machine is taken ({error}); stop what listens there or choose --port"
            raise RecipeError(message) from error


def _ready(started: "subprocess.Popen[bytes]", url: str, patience: float = 240.0) -> bool:
    """Wait until the web server answers and its parts are healthy."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and started.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"{url}/api/v2/monitor/health", timeout=10) as answer:  # noqa: S310 -- our own
                health = json.load(answer)
            if all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "dag_processor")):
                return True
        time.sleep(1)
    return False


def _welcome(home: Path, env: Mapping[str, str]) -> str:
    passwords = json.loads((home / "simple_auth_manager_passwords.json.generated").read_text())
    login = ", ".join(f"{user} / {password}" for user, password in passwords.items())
    return (
        f"Airflow is ready: {env['AIRFLOW__API__BASE_URL']}\n"
        f"  login     {login}\n"
        f"  snapshots land in  {env['REFINERY_LANDING']}/<date>\n"
        f"  output goes to     {env['REFINERY_ROOT']}\n"
        "  unpause the DAG `refine` to refine one every day; Ctrl-C stops everything\n"
        f"{_try_it()}"
    )


def _try_it() -> str:
    """Say what can be refined by hand right now: the demo's crawl, if it has been written."""
    crawl = airflow_home.place() / "demo" / "crawl"
    days = sorted(one.parent.name for one in crawl.glob("*/snapshot.json"))
    if not days:
        return "  nothing to refine yet? `make demo` writes a small crawl\n"
    return f"  to try it: trigger `refine` with input = {crawl}/{{snapshot}} and snapshot = {days[0]}\n"


def _stop(started: "subprocess.Popen[bytes]") -> None:
    daemon.stop()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
