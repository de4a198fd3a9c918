"""`docker compose up` comes up and refines the demo's crawl as one process does, whatever is stopped in the middle.

`make compose-test` runs it. It builds the images (made of Debian's packages where no registry answers), needs Docker with
its compose plugin, 10 GB of memory, 10 GB of disk, and tens of minutes on two cores.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from pipeline_tasks.demo.crawl import write_crawl
from tests.cluster.airflow_api import Airflow
from tests.cluster.stack import SECONDS, Stack, embedded_run, land, wait_for_task, written
from tests.compose import browser
from tests.compose.docker import Services, docker, missing
from tests.compose.images import images
from tests.embedded import PROJECT
from tests.ports import free_port
from tests.test_compose import ONCE, OURS, THEIRS, made_env, of_one_user

pytestmark = [pytest.mark.compose, pytest.mark.nightly, pytest.mark.timeout(5400)]

DAYS = ("2026-11-19", "2026-11-20")

RECIPE = "demo"
CRAWL = ".refinery/demo/crawl"
"""Where the recipe has its evaluation questions, below the folder that a run starts in."""

READERS = ("airflow-scheduler", "airflow-dag-processor", "spark-worker", "ray-head", "ray-worker")
"""Services that read the recipe's evaluation questions."""

LOOPERS = ("airflow-scheduler", "spark-worker", "ray-head", "ray-worker")
"""Services whose processes call compiled loops."""

KEPT = ("/scratch", "/tmp", "/home", "/dev/shm")
"""Folders in which a process of theirs could keep loops."""

SHOTS = PROJECT / ".refinery" / "compose-test"
"""Where screenshots and the logs of all services are kept."""

SMALL = {
    "AIRFLOW_MEMORY": "1500m",
    "SCHEDULER_MEMORY": "4g",
    "OBJECT_STORE_MEMORY": "1g",
    "SPARK_WORKER_CORES": "1",
    "SPARK_WORKER_MEMORY": "1g",
    "SPARK_WORKER_LIMIT": "2500m",
    "RAY_CPUS": "1",
    "RAY_MEMORY": "2500m",
    "RAY_SHM": "512m",
    "REFINERY_IMAGE": "refinery-test/refinery",
}
"""What a machine of two cores and 16 GB sets in `.env`."""

PORTS = ("AIRFLOW_PORT", "OBJECT_STORE_PORT", "SPARK_UI_PORT", "RAY_DASHBOARD_PORT")


@dataclass(frozen=True, slots=True)
class Running:
    """The services, the `.env` that they were started with, and the host's folder of the crawl."""

    services: Services
    env: Mapping[str, str]
    folder: Path

    @property
    def url(self) -> str:
        """Airflow's web server, as `AIRFLOW__API__BASE_URL` has it: a login elsewhere is none here."""
        return f"http://localhost:{self.env['AIRFLOW_PORT']}"

    @property
    def s3(self) -> dict[str, str]:
        """What makes any program of this machine use the object store."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.env['OBJECT_STORE_PORT']}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.env["S3_ACCESS_KEY"],
            "AWS_SECRET_ACCESS_KEY": self.env["S3_SECRET_KEY"],
        }


def env_file(named: Mapping[str, str]) -> dict[str, str]:
    """Return a `.env` as `.env.example` asks for it; a store without RustFS's users has one key."""
    made = made_env()
    same = of_one_user(made) if named else {}
    return made | same | SMALL | {name: str(free_port()) for name in PORTS} | dict(named)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("compose")
    env = env_file(images())
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in env.items()))
    write_crawl(folder / CRAWL, DAYS)
    mounted = {"volumes": [f"{folder / CRAWL}:/opt/refinery/{CRAWL}:ro"]}
    (folder / "changes.yaml").write_text(yaml.safe_dump({"services": dict.fromkeys(READERS, mounted)}))
    services = Services(folder / ".env", folder / "changes.yaml")
    SHOTS.mkdir(parents=True, exist_ok=True)
    try:
        services.compose("build", "--quiet")
        services.compose("up", "--detach", "--wait", "--scale", "spark-worker=2")
        yield Running(services, env, folder)
    finally:
        (SHOTS / "services.log").write_text(services.compose("logs", "--no-color"))
        services.compose("down", "--volumes", "--timeout", "5")


@pytest.fixture(scope="module")
def stack(running: Running) -> Iterator[Stack]:
    airflow = Airflow.login(running.url, running.env["ADMIN_PASSWORD"], f"refine_{RECIPE}")
    airflow.unpause()
    here = Stack(running.s3, airflow, {})
    for day in DAYS:
        crawl = running.folder / CRAWL / day
        files = sorted((path.name for path in crawl.iterdir()), key=lambda name: name == "snapshot.json")
        land(running.s3, crawl, files, f"landing/{day}")
        embedded_run(running.s3, RECIPE, day, running.folder)
        here.expected[day] = here.digests("embedded")
    yield here
    print("\n" + written(here.table))


# --- Undisturbed ------------------------------------------------------------------------------------------------------


def test_every_service_comes_up_and_can_do_its_work(running: Running) -> None:
    """`up --wait` has succeeded; one-shot services have ended well, and all others are healthy."""
    states = running.services.states()
    services = {re.sub(r"^.*?-test-(.*)-\d+$", r"\1", name): state for name, state in states.items()}
    assert services == {
        **dict.fromkeys(ONCE, ("exited 0", "")),
        **dict.fromkeys({*OURS, *THEIRS} - {*ONCE}, ("running 0", "healthy")),
    }


def loops(services: Services, service: str, *folders: str) -> dict[str, str]:
    """Return the time of each file of numba's that a service finds, by its path; numba writes a file that it renews."""
    times = services.times(service, "*.nb[ci]", *folders)
    return {path.removeprefix("numba/"): time for path, time in times.items()}


@pytest.mark.parametrize("service", LOOPERS)
def test_every_loop_was_compiled_in_the_image(running: Running, service: str) -> None:
    """The containers have started and the service `kernels` has ended; its command finds nothing to compile."""
    image = loops(running.services, service, "/opt/refinery/numba")
    assert image
    assert running.services.run(service, "id", "-u").strip() == "50000"
    assert "compiling" not in running.services.run(service, "python", "-m", "pipeline_tasks.cli", "setup", "compile")
    assert loops(running.services, service, *KEPT) == image
    assert running.services.run(service, "find", "/scratch/numba", "-name", ".part-*") == ""


def test_two_days_through_the_scheduler_are_what_one_process_refines(running: Running, stack: Stack) -> None:
    before = {service: loops(running.services, service, *KEPT) for service in LOOPERS}
    for day in DAYS:
        stack.end(stack.run(f"calm-{day}", day, {}, root="root"), day, when="the recipe's engines", root="root")
    for service in LOOPERS:
        after = loops(running.services, service, *KEPT)
        assert after == before[service], "a loop was compiled in a task: see pipeline_tasks/demo/loop_calls.py"


def test_the_web_ui_shows_the_run(running: Running, stack: Stack) -> None:
    if not browser.CHROMIUM:
        pytest.skip("install chromium")
    with browser.page() as page:
        page.login(running.url, running.env["ADMIN_PASSWORD"])
        page.go(f"{running.url}/dags/{stack.airflow.dag}/runs/calm-{DAYS[1]}")
        page.wait_for_text("Success")
        page.wait_for_text("publish_gate")
        page.screenshot(SHOTS / "run.png")
        page.go(f"{running.url}/refinery/page")
        page.wait_for_text(RECIPE)
        page.wait_for_text(DAYS[1])
        page.screenshot(SHOTS / "refinery.png")


# --- Stopped ----------------------------------------------------------------------------------------------------------


def test_a_spark_worker_is_stopped_in_the_middle_of_a_task(running: Running, stack: Stack) -> None:
    name = stack.run("spark-worker", DAYS[0], {"*": "local", "extract": "spark"})
    workers = running.services.containers("spark-worker")
    busy = running.services.wait_for_process(workers, "pyspark.daemon", SECONDS)
    docker("stop", busy)
    stack.end(name, DAYS[0], "one of two Spark workers", "its executor ran a task of extract")
    docker("start", busy)
    running.services.wait_for_health([busy], "healthy")


def test_the_ray_worker_is_stopped_in_the_middle_of_a_task(running: Running, stack: Stack) -> None:
    name = stack.run("ray-worker", DAYS[0], {"*": "local", "extract": "ray"})
    [worker] = running.services.containers("ray-worker")
    running.services.wait_for_process([worker], "ray::_run", SECONDS)
    docker("stop", worker)
    stack.end(name, DAYS[0], "the Ray worker", "it ran a task of extract")
    docker("start", worker)
    running.services.wait_for_health([worker], "healthy")


def test_postgres_is_restarted_in_the_middle_of_a_run(running: Running, stack: Stack) -> None:
    name = stack.run("postgres", DAYS[0], {"*": "local"})
    for task in ("extract.partition", "dedup_exact.refine"):
        wait_for_task(stack, name, task, "running", "success")
        running.services.compose("restart", "postgres")
    stack.end(name, DAYS[0], "Postgres, twice", "extract, dedup_exact had started")
    running.services.wait_for_health(running.services.containers("airflow-scheduler"), "healthy")
