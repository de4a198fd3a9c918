"""Every way to write where an engine runs leads there, and one that leads nowhere is refused with the way out."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from refinery_ray import ray_jobs
from refinery_ray.address import OF_RAY, ray_address
from refinery_spark.address import OF_SPARK, spark_address

from pipeline_tasks.engines.address import Place
from pipeline_tasks.engines.choose import engine, start
from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.publish.logs import version_log
from tests.archives import response, zipped
from tests.chain import command
from tests.cluster.containers import wait_until
from tests.commands import Refinery
from tests.dags.test_run import page
from tests.embedded import PROJECT
from tests.engines.ray_head import RayHead, ray_head
from tests.refining import commit_parent, refined
from tests.toys import table

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
run: {partitions: 1, engines: {extract: ray}}
"""


# --- Words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place("http://head", 8265), "http://head:8265"),
        (Place("http://head:8265", 8265), "http://head:8265"),
        (Place("http://head:8265/"), "http://head:8265"),
        (Place("https://gate/ray", 8443), "https://gate:8443/ray"),
        (Place("https://gate/ray"), "https://gate/ray"),
        (Place("head", 8265, "http"), "http://head:8265"),
        (Place("head", 10001, "ray"), "ray://head:10001"),
        (Place("ray://head"), "ray://head:10001"),
        (Place("head", 6379), "head:6379"),
        (Place("head:6379"), "head:6379"),
        (Place("[::1]", 6379), "[::1]:6379"),
        (Place("auto", 0, "ray"), "auto"),
        (Place("local", 0, "ray"), "local"),
        (Place(""), "local"),
    ],
)
def test_a_ray_is_where_its_place_says(place: Place, expected: str) -> None:
    assert ray_address(place.written()) == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place("spark://master", 7077), "spark://master:7077"),
        (Place("spark://master"), "spark://master:7077"),
        (Place("master", 7077, "spark"), "spark://master:7077"),
        (Place("spark://a:1,b:2", 7077), "spark://a:1,b:2"),
        (Place("spark://a,b"), "spark://a:7077,b:7077"),
        (Place("sc://connect"), "sc://connect:15002"),
        (Place("connect", 15003, "sc"), "sc://connect:15003"),
        (Place("sc://connect/;token=t"), "sc://connect:15002/;token=t"),
        (Place("k8s://https://api", 443), "k8s://https://api:443"),
        (Place("local[4]", 0, "spark"), "local[4]"),
        (Place("yarn", 0, "spark"), "yarn"),
        (Place(""), "local[*]"),
    ],
)
def test_a_spark_is_where_its_place_says(place: Place, expected: str) -> None:
    assert spark_address(place.written()) == expected


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("head", "it has no port"),
        ("head:8265", "port 8265 is reached as http://head:8265"),
        ("head:10001", "port 10001 is reached as ray://head:10001"),
        ("head:port", "it names no host and port"),
        ("http://", "it names no host and port"),
        ("ray://head:10001/x", "it has a path"),
        ("spark://master:7077", "spark:// is no scheme of Ray"),
        ("local:6379,other:6379", "it names no host and port"),
    ],
)
def test_what_is_no_ray_is_refused_with_every_form_that_is(written: str, why: str) -> None:
    with pytest.raises(RecipeError) as refusal:
        ray_address(written)
    assert why in str(refusal.value)
    assert OF_RAY.forms in str(refusal.value)


@pytest.mark.parametrize(
    ("written", "why"),
    [("master:7077", "it has no scheme"), ("http://master", "http:// is no scheme"), ("spark://", "it names no host")],
)
def test_what_is_no_spark_is_refused_with_every_form_that_is(written: str, why: str) -> None:
    with pytest.raises(RecipeError) as refusal:
        spark_address(written)
    assert why in str(refusal.value)
    assert OF_SPARK.forms in str(refusal.value)


def test_two_ports_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"http://head:8265 .*8266"):
        Place("http://head:8265", 8266).written()


@pytest.mark.parametrize("use", [engine, start])
def test_tasks_are_not_sent_to_the_jobs_api(use: object) -> None:
    """`ray.init` ended in `ValueError: Invalid Ray address`."""
    with pytest.raises(RecipeError, match=r"http://head:8265 .* ray://host:10001"):
        use("ray", "http://head:8265")  # type: ignore[operator]


# --- A real head ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayHead]:
    with ray_head(tmp_path_factory.mktemp("ray")) as running:
        yield running


@pytest.mark.slow
@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    "form", ["ray://", *(pytest.param(form, marks=pytest.mark.nightly) for form in ("node", "auto"))]
)
def test_a_stage_runs_on_a_cluster_by_each_of_its_addresses(head: RayHead, form: str, tmp_path: Path) -> None:
    address = {"ray://": f"ray://{head.client}", "node": head.gcs, "auto": "auto"}[form]
    here, there = tmp_path / "here", tmp_path / "there"
    path, _ = refined(here, "toy_group", commit_parent(here, [table(0, 50)]))
    parent = commit_parent(there, [table(0, 50)])
    known = head.env | ({"RAY_ADDRESS": head.gcs} if form == "auto" else {})  # else `auto` is any Ray of this machine
    done = command("-m", "tests.faults.victim", str(there), "toy_group", parent, "", "", "-1", "ray", address, **known)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (here / path).read_bytes() == (there / path).read_bytes()


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The words of `refinery run` that refine one archive by a recipe whose second stage runs on Ray."""
    crawl = tmp_path / "crawl" / "2026-11-19"
    crawl.mkdir(parents=True)
    records = [response(f"https://a.example.org/{number}", page(number)) for number in range(3)]
    (crawl / "a.warc.gz").write_bytes(b"".join(zipped(records)))
    (tmp_path / "small.yaml").write_text(RECIPE)
    return ["run", "--input", str(crawl), "--recipe", str(tmp_path / "small.yaml"), "--no-build"]


@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_submits_its_stages_to_the_jobs_api(
    head: RayHead, words: list[str], tmp_path: Path, refinery: Refinery
) -> None:
    """It ended in `ValueError: Invalid Ray address`."""
    connection = json.dumps({"conn_type": "generic", "host": f"http://{head.jobs}"})
    roots = [tmp_path / "there", tmp_path / "here"]
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_", "RAY_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pipeline_tasks.cli", *words, "--output", str(roots[0])],
        env=keep | {"PYTHONPATH": str(PROJECT)} | head.env | {"AIRFLOW_CONN_RAY_DEFAULT": connection},
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [log] = (roots[0] / "requests").glob("extract-*/jobs/*.reply.json")
    assert json.loads(log.read_text())["rows"] == 3
    drivers = [path.relative_to(roots[0] / "requests") for path in roots[0].rglob("claim.json")]
    assert {path.parts[1:3] for path in drivers} == {("drivers", "1")}
    again = refinery(*words, "--output", roots[1], "--engine", "local")
    assert again.returncode == 0, again.stdout + again.stderr
    manifests = [version_log.current(str(root), "small").manifests for root in roots]
    assert manifests[0] == manifests[1]


@pytest.mark.slow
def test_a_job_is_started_and_followed_by_the_rest_of_its_cluster(
    head: RayHead, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = f"http://{head.jobs}"
    monkeypatch.setenv("RAY_AUTH_TOKEN", head.env["RAY_AUTH_TOKEN"])
    ray_jobs.submit(address, f"touch {tmp_path}/there; echo done", "first")
    for _ in wait_until("the job has ended", 120, each=0.5):
        if ray_jobs.has_ended(address, "first"):
            break
    assert (tmp_path / "there").exists()
    assert ray_jobs.log_end(address, "first", 5) == "done\n"
    with pytest.raises(JobLost, match="first"):
        ray_jobs.submit(address, "true", "first")
    with pytest.raises(JobLost, match="404"):
        ray_jobs.has_ended(address, "second")


@pytest.mark.slow
def test_the_token_of_a_cluster_is_taken_from_where_ray_takes_it(
    head: RayHead, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address, token = f"http://{head.jobs}", head.env["RAY_AUTH_TOKEN"]
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for named in ({}, {"RAY_AUTH_TOKEN": "8" * 64}, {"RAY_AUTH_TOKEN": token, "RAY_AUTH_MODE": "disabled"}):
        with monkeypatch.context() as patch:
            for name, value in named.items():
                patch.setenv(name, value)
            with pytest.raises(JobLost, match="RAY_AUTH_TOKEN"):
                ray_jobs.submit(address, "true", "refused")
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text(f"{token}\n")
    ray_jobs.submit(address, "true", "by-file")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "8" * 64)  # the variable wins
    with pytest.raises(JobLost, match="RAY_AUTH_TOKEN"):
        ray_jobs.has_ended(address, "by-file")


def test_a_jobs_api_that_is_not_there_is_a_lost_job(closed_port: int) -> None:
    address = f"http://127.0.0.1:{closed_port}"
    with pytest.raises(JobLost, match=address):
        ray_jobs.has_ended(address, "any")


@pytest.mark.slow
def test_a_run_names_an_address_that_is_none(
    words: list[str], tmp_path: Path, refinery: Refinery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_RAY_DEFAULT", json.dumps({"conn_type": "generic", "host": "head"}))
    done = refinery(*words, "--output", tmp_path / "root")
    assert done.returncode == 78, done.stderr
    assert "'head' is no address of Ray: it has no port" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
