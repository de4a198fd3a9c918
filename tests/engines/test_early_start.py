"""Engines of this machine start beside Airflow's import, and whoever needs one gets the one that started."""

import json
import threading
from pathlib import Path

import pytest

from pipeline_tasks.embedded.dag_run import engines_of
from pipeline_tasks.embedded.early_start import connections, start_engines
from pipeline_tasks.recipe import RAY, SPARK, load_recipe
from tests.chain import command
from tests.engines.test_addresses import RECIPE

STARTED = """
import json, os, sys, threading
from pipeline_tasks.embedded.early_start import start_engines
from pipeline_tasks.engines import choose, ray, spark
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
    assert engines_of(loaded, {}) == {SPARK, RAY}
    assert engines_of(loaded, {"*": "local"}) == frozenset()
    assert engines_of(loaded, {"*": "local", "ingest": "spark"}) == {SPARK}
    assert engines_of(loaded, {"ingest": "local"}) == {RAY}


def test_an_engine_with_a_connection_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connections() == frozenset()
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://master:7077")
    assert connections() == {SPARK}


def test_a_secrets_backend_may_have_every_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__SECRETS__BACKEND_CMD", "cat backend")
    assert connections() == {SPARK, RAY}


@pytest.mark.parametrize(("name", "host", "started"), [(SPARK, "local[1]", [1, False]), (RAY, "local", [0, True])])
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
    """Nothing but the stage speaks of it: there the message has the way out."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.jsonl").write_text(json.dumps({"text": "Sound rows of a small file. " * 9}) + "\n")
    run = command(
        *("-m", "pipeline_tasks.cli", "run", "--recipe", recipe, "--engine", "spark"),
        *("--input", str(tmp_path / "landing"), "--output", str(tmp_path / "root")),
    )  # fmt: skip
    assert run.returncode != 0
    assert (run.stdout + run.stderr).count(f"JAVA_HOME={tmp_path} has no bin/java") == 1


def test_nothing_starts_for_no_engine() -> None:
    start_engines([])
    assert not [thread for thread in threading.enumerate() if thread.name == "engines"]
