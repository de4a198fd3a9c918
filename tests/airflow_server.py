"""Starts Airflow's own scheduler, triggerer and web server by `refinery up`, with DAGs of tests, and speaks to them."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from tests.archives import http, response, zipped
from tests.embedded import PROJECT, migrated
from tests.ports import free_port

USERS = {"admin": "admin", "ada": "user", "vera": "viewer"}
"""The users of the web API: their roles by name."""

PATIENCE = 900.0
"""Seconds after which a test gives up; a minute or two is enough on an idle machine."""

ANSWER = 300.0
"""Seconds that the web API may take: it waits a minute each time that it finds SQLite locked."""

SIGHT = 30.0
"""Seconds that a test waits for the scheduler to see the end of a task's process before it answers anyway."""


class Airflow:
    """Airflow's web API, with the token of its administrator or another user, and the DAG that a test runs."""

    def __init__(self, url: str, passwords: Mapping[str, str], dag: str, log: Path, user: str = "admin") -> None:
        self.url, self.passwords, self.dag, self.log, self.token = url, passwords, dag, log, ""
        named = {"username": user, "password": passwords[user]}
        self.token = self.call("POST", "/auth/token", named)["access_token"]

    def as_user(self, user: str) -> "Airflow":
        """Return the API as another of `USERS` sees it."""
        return Airflow(self.url, self.passwords, self.dag, self.log, user)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request; return its reply. It is sent again while SQLite is locked by the scheduler (503)."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._call(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                    raise
            time.sleep(1)

    def _call(self, method: str, path: str, body: Any) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers["Authorization"] = f"Bearer {self.token}"
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=ANSWER) as reply:
            return json.load(reply)

    def trigger(self, snapshot: str, conf: Mapping[str, Any] | None = None, kind: str = "of") -> str:
        """Start a run of a snapshot by hand; return its id: its kind and the snapshot."""
        run = f"{kind}_{snapshot}"
        body = {"logical_date": None, "dag_run_id": run, "conf": {"snapshot": snapshot, "settling": 1, **(conf or {})}}
        self.call("POST", f"/api/v2/dags/{self.dag}/dagRuns", body)
        return run

    def is_known(self) -> bool:
        """Whether Airflow has read the DAG."""
        try:
            self.call("GET", f"/api/v2/dags/{self.dag}")
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def pause(self, *, paused: bool) -> None:
        """Pause the DAG, or let it run."""
        self.call("PATCH", f"/api/v2/dags/{self.dag}", {"is_paused": paused})

    def runs(self) -> list[Mapping[str, Any]]:
        """Return what the API says of every run of the DAG."""
        runs: list[Mapping[str, Any]] = self.call("GET", f"/api/v2/dags/{self.dag}/dagRuns?limit=100")["dag_runs"]
        return runs

    def of_run(self, run: str, path: str = "", method: str = "GET", body: Any = None) -> Any:
        """Return what the API says of a run, or of something below it; or send it a request."""
        return self.call(method, f"/api/v2/dags/{self.dag}/dagRuns/{quote(run)}{path}", body)

    def state(self, run: str, task: str = "") -> str:
        """Return the state of a run, or of one of its tasks."""
        return str(self.of_run(run, f"/taskInstances/{task}" if task else "")["state"])

    def states(self, run: str) -> dict[str, str]:
        """Return the states of a run's tasks, of mapped ones in turn; "" for a task that has none yet."""
        tasks = self.of_run(run, "/taskInstances?limit=100")["task_instances"]
        states: dict[str, list[str]] = {}
        for task in tasks:
            states.setdefault(task["task_id"], []).append(task["state"] or "")
        return {task: ", ".join(dict.fromkeys(values)) for task, values in states.items()}

    def waits_until(self, run: str, state: str, task: str = "", patience: float = PATIENCE) -> None:
        """Wait until a run or task has a state; fail as soon as it has failed otherwise."""

        def reached() -> bool:
            now = self.state(run, task)
            assert now == state or now not in ("failed", "upstream_failed"), (run, task, self.states(run))
            return now == state

        until(reached, lambda: f"{run} {task} is not {state}: {self.states(run)}", patience)

    def clear(self, run: str, task: str) -> None:
        """Clear a task and what follows it, once the run has ended.

        Airflow loses a clear that its scheduler's own end of the run overtakes: the task then has no state, and the run
        is over for ever.
        """
        until(lambda: self.state(run) in ("success", "failed"), lambda: f"{run} goes on: {self.states(run)}")
        body = {"dry_run": False, "dag_run_id": run, "task_ids": [task], "include_downstream": True}
        self.call("POST", f"/api/v2/dags/{self.dag}/clearTaskInstances", body)

    def answer(self, run: str, gate: str, option: str, **params: Any) -> None:
        """Answer the form of a gate that waits for a person."""
        answer = {"chosen_options": [option], "params_input": params}
        self.of_run(run, f"/taskInstances/{gate}/-1/hitlDetails", "PATCH", answer)

    def decide(self, run: str, gate: str, answer: Callable[[], None], done: Callable[[], bool]) -> None:
        """Call `answer` as often as the gate asks, until `done`.

        Airflow loses an answer that comes before its scheduler has seen the task pause; the gate is then tried again.
        """

        def decided() -> bool:
            if done():
                return True
            if self.state(run, gate) == "awaiting_input":
                self.wait_for_sight(run, gate)
                answer()
            return False

        until(decided, lambda: f"{run} is not decided: {self.states(run)}")

    def wait_for_sight(self, run: str, task: str) -> None:
        """Wait until the scheduler has seen the end of every process of a task that it has started, as its log says.

        It takes a task that is cleared or answered before that for one that was killed. A person is not that fast.
        """
        deadline = time.monotonic() + SIGHT
        while not self._is_seen(run, task) and time.monotonic() < deadline:
            time.sleep(0.5)

    def _is_seen(self, run: str, task: str) -> bool:
        lines = self.log.read_text().splitlines()
        queued = [line for line in lines if "Trying to enqueue tasks" in line and f"{self.dag}.{task} {run} [" in line]
        ended = f"TaskInstance Finished: dag_id={self.dag}, task_id={task}, run_id={run},"
        return sum(ended in line for line in lines) == len(queued)


def until(done: Callable[[], bool], fault: Callable[[], str], patience: float = PATIENCE) -> None:
    """Wait until `done`; fail with what `fault` says after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not done():
        assert time.monotonic() < deadline, fault()
        time.sleep(1)


DAG = """
import os
import sys

before = dict(os.environ)
os.environ |= {environment}
sys.path.insert(0, {folder})
from refine import *  # the DAG of Airflow that `dags/refine.py` wires
os.environ |= before
"""
"""A DAG file: that of the project, with the recipe, the landing zone and the root of a dataset of its own.

Tasks have the environment of the server again: a worker daemon, with its Spark, serves one environment.
"""

DATASET = "REFINERY_RECIPE", "REFINERY_LANDING", "REFINERY_ROOT"
"""The variables that say what a DAG refines."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running `refinery up`: its process, its port, and the folder of what it reads and writes.

    Each dataset has the name of its recipe, and a folder of that name with `landing` and `root`.
    """

    folder: Path
    process: "subprocess.Popen[str]"
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What Airflow has logged."""
        return self.log_file.read_text()

    @property
    def log_file(self) -> Path:
        return self.folder / "home/airflow/standalone.log"

    def landing(self, dataset: str) -> Path:
        return self.folder / dataset / "landing"

    def recipe(self, dataset: str) -> str:
        return str(self.folder / dataset / "recipe.yaml")

    def root(self, dataset: str) -> str:
        return str(self.folder / dataset / "root")

    def api(self, dataset: str) -> Airflow:
        """Return the API, which speaks of the DAG of a dataset."""
        passwords = json.loads((self.folder / "home/airflow/simple_auth_manager_passwords.json.generated").read_text())
        return Airflow(self.url, passwords, f"refine_{dataset}", self.log_file)

    @contextmanager
    def airflow(self, dataset: str) -> Iterator[Airflow]:
        """Unpause the DAG of a dataset; yield the API, which speaks of it."""
        api = self.api(dataset)
        until(api.is_known, lambda: f"{api.dag} was not read: {self.log}")
        api.pause(paused=False)
        try:
            yield api
        finally:
            api.pause(paused=True)

    def end(self) -> None:
        """Send it SIGTERM; fail unless it ends with every process below it, and leaves nothing but its daemons' files."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        assert self.process.returncode in (0, 128 + signal.SIGTERM)
        assert [child for child in below if child.is_running()] == []
        left = [path.name for path in (self.folder / f"refinery-{os.getuid()}").iterdir()]
        assert "runs.lock" in left
        of_daemons = (".lock", ".log", ".key", ".sock")  # a daemon that was killed leaves its socket
        assert [name for name in left if not name.endswith(of_daemons)] == [], left


@contextmanager
def airflow_server(folder: Path, recipes: Mapping[str, str], **settings: str) -> Iterator[Server]:
    """Run `refinery up` below `folder` with a DAG for each of the recipes, given by their names; its end is judged.

    The web UI shows the root of the first one. `settings` are more variables of its environment.
    """
    places = {name: _place(folder, name, recipe) for name, recipe in recipes.items()}
    first, *others = places
    bundles = [_bundle("dags-folder"), *(_bundle(name, _dag_folder(places[name])) for name in others)]
    port, home = free_port(), folder / "home"
    migrated(home / "airflow")
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_"))}
    ours = places[first] | {
        "PYTHONPATH": str(PROJECT),
        "HOME": str(home),  # the ledger of buckets is there: that of an earlier session knows buckets of these names
        "TMPDIR": str(folder),
        "REFINERY_HOME": str(home),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in USERS.items()),
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # none changes while it runs
    }
    command = [sys.executable, "-u", "-m", "pipeline_tasks.cli", "up", "--port", str(port)]
    env = keep | ours | settings
    with subprocess.Popen(command, env=env, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            server = Server(folder, process, port)
            assert any("Airflow is ready" in line for line in iter(process.stdout.readline, "")), server.log
            yield server
            server.end()
        finally:
            process.kill()


def _place(folder: Path, name: str, recipe: str) -> dict[str, str]:
    """Write a recipe into the folder of its dataset; return the variables that say what its DAG refines."""
    place = folder / name
    place.mkdir()
    (place / "recipe.yaml").write_text(recipe)
    return dict(zip(DATASET, map(str, (place / "recipe.yaml", place / "landing", place / "root")), strict=True))


def _dag_folder(environment: Mapping[str, str]) -> str:
    """Write the DAG file of a dataset; return its folder."""
    folder = Path(environment["REFINERY_RECIPE"]).parent / "dags"
    folder.mkdir()
    (folder / "dataset.py").write_text(DAG.format(environment=dict(environment), folder=repr(str(PROJECT / "dags"))))
    return str(folder)


def _bundle(name: str, folder: str = "") -> dict[str, Any]:
    """Return a bundle of DAGs in a folder of this machine: in Airflow's own, unless one is named."""
    settings = {"path": folder} if folder else {}
    return {"name": name, "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle", "kwargs": settings}


def archive_of(first: int, pages: int = 9) -> bytes:
    """Return a WARC file of pages whose texts have the numbers from `first` on."""
    line = "leaves the harbor every morning before the fog has lifted from the water."
    ships = ("ferry", "tug", "barge", "pilot")
    articles = [
        "".join(f"<p>The {ship} number {number} {line}</p>" for ship in ships) for number in range(first, first + pages)
    ]
    bodies = [http(f"<html><body><article>{article}</article></body></html>".encode()) for article in articles]
    return b"".join(zipped([response(f"https://x.example.org/{first + at}", body) for at, body in enumerate(bodies)]))


def land(landing: Path, day: str, first: int, *, listed: bool = False, more: bytes = b"") -> None:
    """Land a day of one file, which may have more records; with a list of files nobody waits whether they change."""
    folder = landing / day
    folder.mkdir(parents=True)
    archive = archive_of(first) + more
    (folder / "a.warc.gz").write_bytes(archive)
    if listed:
        file = {"path": "a.warc.gz", "bytes": len(archive), "sha256": hashlib.sha256(archive).hexdigest()}
        (folder / "snapshot.json").write_text(json.dumps({"snapshot": day, "files": [file]}))
