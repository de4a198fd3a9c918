"""Airflow's provider of OpenLineage sends what our own sender does, in its place; a killed run has no event twice."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.alerts.lineage_facets import ROW_LINEAGE
from pipeline_tasks.manifest import load
from tests.airflow_server import land
from tests.channels import Hooks, serving
from tests.embedded import PLUGINS, PROJECT, embed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # two runs of Airflow, on a busy machine

needs_provider = pytest.mark.skipif(
    importlib.util.find_spec("openlineage") is None,
    reason="apache-airflow-providers-openlineage is not installed (the extra `lineage` has it)",
)

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
  dedup_exact: {}
run: {partitions: 2}
"""

WAYS = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import refine
from pipeline_tasks.recipe import load_recipe

dag = refine.wire(load_recipe(sys.argv[3]))
for way in sys.argv[6:]:
    given = {"snapshot": "2026-11-20", "patience": 0, "approval": 0, "engines": {"*": "local"}}
    conf = {"input": sys.argv[4], "root": f"{sys.argv[5]}/{way}", **given}
    if way == "walk":
        from refinery_airflow.tasks.walk import walk
        walk(dag, conf)
    else:
        assert str(dag.test(run_conf=conf).state) == "success"
"""
"""Runs the DAG by Airflow's own runner of tasks (`airflow`), to which the provider listens, or as `refinery run` does."""

Event = Mapping[str, Any]


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with serving(Hooks()) as hooks:
        yield hooks


@pytest.fixture
def environment(tmp_path: Path, hooks: Hooks) -> Mapping[str, str]:
    """A crawl and a recipe; the provider writes events to a file, and our own sender has a server."""
    land(tmp_path / "landing", "2026-11-20", 0)
    (tmp_path / "small.yaml").write_text(RECIPE)
    (tmp_path / "home").mkdir()
    transport = {"type": "file", "log_file_path": str(tmp_path / "events.jsonl"), "append": True}
    return {
        **embed(tmp_path / "home"),
        "PYTHONPATH": str(PROJECT),
        "REFINERY_RECIPE": str(tmp_path / "small.yaml"),
        "REFINERY_LAUNCH_HERE": "1",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW_CONN_REFINERY_OPENLINEAGE": json.dumps({"conn_type": "http", "host": hooks.url}),
    }


def start(tmp_path: Path, environment: Mapping[str, str], *ways: str) -> "subprocess.Popen[str]":
    """Start runs of the crawl by these ways, each into a root of that name; a killed one takes its forks with it."""
    places = [PROJECT / "dags", PLUGINS, tmp_path / "small.yaml", tmp_path / "landing/2026-11-20", tmp_path]
    command = [sys.executable, "-c", WAYS, *map(str, places), *ways]
    with (tmp_path / "log").open("w") as log:
        return subprocess.Popen(
            command, env={**environment}, cwd=PROJECT, stdout=log, stderr=log, text=True, start_new_session=True
        )


def run(tmp_path: Path, environment: Mapping[str, str], *ways: str) -> None:
    assert start(tmp_path, environment, *ways).wait(600) == 0, (tmp_path / "log").read_text()[-3000:]


def written(tmp_path: Path) -> list[Event]:
    """The events that the provider has written, in order; a line that is being written is none yet."""
    path = tmp_path / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def job_of(event: Event) -> str:
    """The job of an event as our own sender names it: the provider's are of tasks."""
    job = str(event["job"]["name"]).removeprefix("refine_small").removeprefix(".")
    return job.removesuffix(".seal").removesuffix(".refine")


def datasets(events: list[Event], root: str) -> dict[str, Any]:
    """What the events of jobs that ended say of datasets, as if their root were another."""
    named = {job_of(event): [event["inputs"], event["outputs"]] for event in events if event["eventType"] == "COMPLETE"}
    found: dict[str, Any] = json.loads(json.dumps(named).replace(root, "ROOT"))
    return {job: sides for job, sides in found.items() if any(sides)}


@needs_provider
def test_both_ways_send_the_same_facets_and_one_of_them_is_silent(
    tmp_path: Path, hooks: Hooks, environment: Mapping[str, str]
) -> None:
    run(tmp_path, environment, "airflow", "walk")
    ours = hooks.bodies()
    by_provider = datasets(written(tmp_path), f"{tmp_path}/airflow")
    assert by_provider == datasets(ours, f"{tmp_path}/walk")
    assert set(by_provider) == {
        *("land", "ingest", "ingest.gate", "extract", "extract.gate", "dedup_exact", "dedup_exact.gate"),
        *("publish_gate", "publish"),
    }
    assert f"{tmp_path}/airflow/" not in json.dumps(ours), "the provider has sent that run"
    assert f"{tmp_path}/walk/" not in json.dumps(written(tmp_path)), "the provider does not listen to `refinery run`"
    for events in (ours, written(tmp_path)):
        assert set(Counter((event["run"]["runId"], event["eventType"]) for event in events).values()) == {1}
    parts = [event for event in written(tmp_path) if event["job"]["name"].endswith(".partition")]
    assert {event["eventType"] for event in parts} == {"START", "COMPLETE"}
    assert all(event["inputs"] == event["outputs"] == [] for event in parts), "their rows are those of the seal"
    for stage in ("ingest", "extract", "dedup_exact"):
        [output] = by_provider[stage][1]
        rows = output["outputFacets"][ROW_LINEAGE]
        manifest = load((tmp_path / "airflow" / rows["written"]["manifest"]["path"]).read_bytes())
        assert (rows["rowsIn"], rows["written"]["count"]) == (manifest.rows_in, manifest.rows)
        assert rows["rejected"] == manifest.rejected


@pytest.mark.parametrize("way", [pytest.param("airflow", marks=needs_provider), "walk"])
def test_a_killed_run_and_the_next_one_have_no_event_twice(
    way: str, tmp_path: Path, hooks: Hooks, environment: Mapping[str, str]
) -> None:
    def events() -> list[Event]:
        return written(tmp_path) if way == "airflow" else list(hooks.bodies())

    def has_ingested() -> bool:
        return any((job_of(event), event["eventType"]) == ("ingest", "COMPLETE") for event in events())

    process = start(tmp_path, environment, way)
    wait_until(has_ingested, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = len(events())
    assert "publish" not in {job_of(event) for event in events()}
    run(tmp_path, environment, way)
    assert set(Counter((event["run"]["runId"], event["eventType"]) for event in events()).values()) == {1}
    counted = [
        job_of(event)
        for event in events()[before:]
        for output in event["outputs"]
        if ROW_LINEAGE in output["outputFacets"]
    ]
    assert counted == ["ingest", "extract", "dedup_exact"]


def wait_until(done: Callable[[], bool], process: "subprocess.Popen[str]", patience: float = 300.0) -> None:
    deadline = time.monotonic() + patience
    while not done():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
