"""A run sends OpenLineage events to a lineage server, and is as green without one that answers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import GateRefused
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_manifest
from tests.airflow_server import land
from tests.channels import Hooks, serving
from tests.commands import Done, Refinery

pytestmark = pytest.mark.slow

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
run: {partitions: 1}
gates:
  extract: {retention: {max_value: 0.5}, needs: {}}
"""

JOBS = ("land", "ingest", "ingest.gate", "extract", "extract.gate")


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with serving(Hooks()) as hooks:
        yield hooks


@pytest.fixture
def connected(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process the lineage server."""
    monkeypatch.setenv("OPENLINEAGE_URL", hooks.url)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "a key")


def run(refinery: Refinery, tmp_path: Path, *options: str) -> Done:
    """Refine a small day by `refinery run`, which runs the DAG `refine_small`."""
    places = ["--input", f"{tmp_path}/landing/2026-11-20", "--output", f"{tmp_path}/root"]
    return refinery("run", *places, "--recipe", f"{tmp_path}/small.yaml", "--engine", "local", *options)


def named(event: dict[str, Any]) -> tuple[str, str]:
    return event["job"]["name"].removeprefix("refine_small."), event["eventType"]


def test_each_job_of_a_run_says_what_it_read_and_wrote(
    tmp_path: Path, hooks: Hooks, connected: None, refinery: Refinery
) -> None:
    land(tmp_path / "landing", "2026-11-20", 0)
    (tmp_path / "small.yaml").write_text(RECIPE)
    refused = run(refinery, tmp_path)
    assert refused.returncode == GateRefused.exit_code, refused.stderr
    assert {(path, headers["Authorization"]) for path, headers, _ in hooks.received} == {
        ("/api/v1/lineage", "Bearer a key")
    }
    events = hooks.bodies()
    assert [named(event) for event in events] == [
        *((job, event) for job in JOBS[:-1] for event in ("START", "COMPLETE")),
        ("extract.gate", "START"),
        ("extract.gate", "FAIL"),
    ]
    assert events[-1]["run"]["facets"]["errorMessage"]["message"].startswith("Refusal: ")
    assert len({event["run"]["facets"]["parent"]["run"]["runId"] for event in events}) == 1
    for started, ended in zip(events[::2], events[1::2], strict=True):
        assert started["run"]["runId"] == ended["run"]["runId"]
        assert started["eventTime"] < ended["eventTime"]

    hooks.received.clear()
    passed = run(refinery, tmp_path, "--override", "extract=a crawl of one site")
    assert passed.returncode == 0, passed.stderr
    ended = {job: event for event in hooks.bodies() for job, kind in [named(event)] if kind == "COMPLETE"}
    assert set(ended) == {*JOBS, "publish_gate", "publish"}
    root, (version,) = f"{tmp_path}/root", version_log.versions(f"{tmp_path}/root", "small")
    manifests = {stage: read_manifest(root, path) for stage, path in version.manifests.items()}
    (read,), (written,) = ended["extract"]["inputs"], ended["extract"]["outputs"]
    assert (read["namespace"], read["name"]) == ("file", f"{root}/small/ingest")
    assert read["facets"]["version"]["datasetVersion"] == path_of(version.manifests["ingest"])
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == manifests["extract"].rows_in
    assert written["facets"]["version"]["datasetVersion"] == path_of(version.manifests["extract"])
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == manifests["extract"].rows
    assert [each["name"] for each in ended["land"]["inputs"]] == [f"{tmp_path}/landing/2026-11-20"]
    assert ended["ingest"]["inputs"][0]["name"] == ended["land"]["outputs"][0]["name"] == f"{root}/small/land"
    assert ended["extract.gate"]["inputs"][0]["name"] == ended["publish_gate"]["inputs"][0]["name"] == written["name"]
    (published,) = ended["publish"]["outputs"]
    assert (published["name"], published["facets"]["version"]["datasetVersion"]) == (f"{root}/datasets/small", "1")
    assert published["outputFacets"]["outputStatistics"]["rowCount"] == version.documents
