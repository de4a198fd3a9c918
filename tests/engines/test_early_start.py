"""Engines of this machine start beside Airflow's import, and whoever needs one gets the one that started."""

import json
import re
import threading
from pathlib import Path

import pytest
from refinery_airflow.embedded.runner import asks_airflow
from refinery_spark.java import require_java

from pipeline_tasks.engines.early_start import connections, engines_of, maybe_clusters, start_engines
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.preflight import PlannedRun, engines, refuse
from pipeline_tasks.recipe import Recipe, load_recipe
from tests.chain import command
from tests.engines.test_addresses import RECIPE

pytestmark = pytest.mark.slow

STARTED = """
import json, os, sys, threading
from pipeline_tasks.engines.early_start import start_engines
from pipeline_tasks.engines import choose
from refinery_ray import ray
from refinery_spark import spark
start_engines([sys.argv[1]])
[thread] = [each for each in threading.enumerate() if each.name == "engines"]
choose.start(sys.argv[1], os.environ["HOST"])
thread.join()
import pyspark
import ray as library
print(json.dumps([len(spark._ACTIVE), library.is_initialized()]))
choose.stop_all()
"""


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(RECIPE)
    return str(path)


@pytest.fixture(autouse=True)
def unconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW_CONN_SPARK_DEFAULT", "AIRFLOW_CONN_RAY_DEFAULT"):
        monkeypatch.delenv(name, raising=False)


def test_the_engines_of_a_run_are_those_of_its_stages(recipe: str) -> None:
    loaded = load_recipe(recipe)
    assert engines_of(loaded, {}) == {"spark", "ray"}
    assert engines_of(loaded, {"*": "local"}) == frozenset()
    assert engines_of(loaded, {"*": "local", "ingest": "spark"}) == {"spark"}
    assert engines_of(loaded, {"ingest": "local"}) == {"ray"}


def test_an_engine_with_a_connection_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connections() == frozenset()
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://master:7077")
    assert connections() == {"spark"}


def test_a_secrets_backend_may_have_every_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND_CMD", "cat backend")
    assert connections() == {"spark", "ray"}


@pytest.mark.parametrize(
    ("variable", "value", "asks"),
    [
        ("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}', False),
        ("AIRFLOW_CONN_RAY_DEFAULT", '{"conn_type": "generic", "host": "local"}', False),
        ("AIRFLOW_CONN_RAY_DEFAULT", "ray://head:10001", True),
        ("AIRFLOW_CONN_AWS_DEFAULT", "aws://", True),
        ("AIRFLOW_CONN_REFINERY_ALERTS_SLACK", "https://hooks.example.org", True),
        ("AIRFLOW__SECRETS__BACKEND", "a.vault", True),
        ("OPENLINEAGE_URL", "https://lineage.example.org", True),
        ("REFINERY_DEPLOYMENT", "teams.yaml", True),
        ("REFINERY_DEPLOYMENT", "", False),
        ("AIRFLOW_HOME", "/airflow", False),
    ],
)
def test_a_run_asks_airflow_only_where_the_environment_has_what_airflow_reads(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, *, asks: bool
) -> None:
    assert not asks_airflow()
    monkeypatch.setenv(variable, value)
    assert asks_airflow() == asks


@pytest.mark.parametrize(
    ("name", "host", "started"),
    [("spark", "local[1]", [1, False]), pytest.param("ray", "local", [0, True], marks=pytest.mark.nightly)],
)
def test_who_needs_an_engine_gets_the_one_that_starts(
    name: str, host: str, started: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}_DEFAULT", json.dumps({"host": host}))
    monkeypatch.setenv("HOST", host)
    run = command("-c", STARTED, name)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == started


def test_an_engine_that_cannot_start_fails_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, recipe: str, tmp_path: Path
) -> None:
    """Nothing but the stage speaks of it: there the message has the way out. This Java has a version and no more."""
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path, 'JAVA_VERSION="21.0.2"'))
    run = command(*run_of(recipe, tmp_path), "--engine", "spark")
    assert run.returncode != 0
    assert (run.stdout + run.stderr).count("Spark did not start") == 1


def java_home(folder: Path, release: str) -> str:
    """Return a JAVA_HOME whose Java fails, with what it says of its version beside it."""
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (folder / "java" / "release").write_text(f'IMPLEMENTOR="Somebody"\n{release}\n')
    return str(folder / "java")


def run_of(recipe: str, folder: Path) -> tuple[str, ...]:
    """Return the command that refines a file of one row."""
    (folder / "landing").mkdir()
    (folder / "landing" / "a.jsonl").write_text(json.dumps({"text": "Sound rows of a small file. " * 9}) + "\n")
    places = ("--input", str(folder / "landing"), "--output", str(folder / "root"))
    return ("-m", "pipeline_tasks.cli", "run", "--recipe", recipe, *places)


def test_a_run_that_needs_java_says_so_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, recipe: str, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    run = command(*run_of(recipe, tmp_path))
    assert run.returncode == 78
    assert f"on Spark of this machine (ingest first): JAVA_HOME={tmp_path} has no bin/java. Spark needs" in run.stderr
    assert "with `--engine local`" in run.stderr
    assert not run.stdout
    assert not (tmp_path / "root").exists()


def check_engines(recipe: Recipe, engine: str) -> None:
    """Raise what the pre-flight finds of the engines of a run on this machine."""
    chosen = {"*": engine} if engine else {}
    refuse(list(engines(PlannedRun("", (recipe,), engines=chosen, elsewhere=maybe_clusters()))))


@pytest.mark.parametrize(
    ("release", "named"),
    [
        ('JAVA_VERSION="11.0.2"', "/bin/java .*Java 11.*Java 17"),
        ('JAVA_VERSION="1.8.0_392"', "/bin/java .*Java 8.*Java 17"),
        ("", "/bin/java .*Java 17"),
    ],
)
def test_a_java_that_is_too_old_is_named_with_its_version(
    monkeypatch: pytest.MonkeyPatch, recipe: str, tmp_path: Path, release: str, named: str
) -> None:
    home = java_home(tmp_path, release)
    monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(RecipeError, match=re.escape(home) + named):
        check_engines(load_recipe(recipe), "")


@pytest.mark.parametrize("said", ['openjdk version "17.0.15" 2025-04-15', 'java version "25"'])
def test_a_java_without_a_release_file_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str) -> None:
    home = Path(java_home(tmp_path, ""))
    (home / "release").unlink()
    (home / "bin" / "java").write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert require_java() in (17, 25)


@pytest.mark.parametrize(
    ("connection", "needed"),
    [
        ("", True),
        ('{"conn_type": "spark", "host": "local[2]"}', True),
        ("spark://local%5B2%5D", True),
        ('{"conn_type": "spark", "host": "spark://master", "port": 7077}', False),
        ("spark://master:7077", False),
    ],
)
def test_java_is_only_needed_for_stages_on_spark_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, recipe: str, tmp_path: Path, connection: str, *, needed: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if connection:
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", connection)
    loaded = load_recipe(recipe)
    for engine in ("local", "ray"):
        check_engines(loaded, engine)
    if not needed:
        check_engines(loaded, "spark")
        return
    with pytest.raises(RecipeError, match=f"JAVA_HOME.*{re.escape(str(tmp_path))}.*bin/java"):
        check_engines(loaded, "spark")
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND", "a.vault")
    check_engines(loaded, "spark")  # its connection may be a cluster's


def test_nothing_starts_for_no_engine() -> None:
    start_engines([])
    assert not [thread for thread in threading.enumerate() if thread.name == "engines"]
