"""Events have the fields that OpenLineage asks for, and name datasets as it does."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pipeline_tasks.alerts.open_lineage import Lineage, Work, dataset_of, manifest_dataset, run_event

WORK = Work("refinery", "refine", "manual__1", "extract", "extract.seal")


def facets(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every facet of an event."""
    if isinstance(value, dict):
        if "_schemaURL" in value:
            yield value
        for part in value.values():
            yield from facets(part)
    if isinstance(value, list):
        for part in value:
            yield from facets(part)


@pytest.mark.parametrize(
    ("uri", "below", "namespace", "name"),
    [
        ("s3://crawl/refined/web", ("web", "extract"), "s3://crawl", "refined/web/web/extract"),
        ("s3://crawl", (), "s3://crawl", "/"),
        ("/data/refined/", ("web",), "file", "/data/refined/web"),
        ("file:///data/refined", ("web",), "file", "/data/refined/web"),
    ],
)
def test_datasets_have_the_names_of_their_store(uri: str, below: tuple[str, ...], namespace: str, name: str) -> None:
    dataset = dataset_of(uri, *below)
    assert (dataset.namespace, dataset.name) == (namespace, name)


def test_a_manifest_is_a_version_of_its_stage() -> None:
    one, other = (
        manifest_dataset("s3://b/r", "web", f"extract/{key * 24}/manifest.json@sha256:{key * 64}") for key in "ab"
    )
    assert one.name == other.name == "r/web/extract"
    assert (one.version, other.version) == (f"extract/{'a' * 24}/manifest.json", f"extract/{'b' * 24}/manifest.json")


def test_an_event_has_the_fields_of_the_specification() -> None:
    read = manifest_dataset("s3://b/r", "web", "ingest/1/manifest.json", rows=12)
    written = manifest_dataset("s3://b/r", "web", "extract/2/manifest.json", rows=9, size=0)
    event = run_event("COMPLETE", "2026-11-20T01:02:03+00:00", WORK, Lineage([read], [written]))
    assert json.loads(json.dumps(event)) == event
    assert {"eventType", "eventTime", "producer", "schemaURL", "run", "job", "inputs", "outputs"} == event.keys()
    assert str(uuid.UUID(event["run"]["runId"])) == event["run"]["runId"]
    assert (event["job"]["namespace"], event["job"]["name"]) == ("refinery", "refine.extract")
    assert event["run"]["facets"]["parent"]["job"] == {"namespace": "refinery", "name": "refine"}
    statistics = event["outputs"][0]["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"]) == (9, 0)
    assert "size" not in event["inputs"][0]["inputFacets"]["inputStatistics"], "it is not known"
    kinds = {facet["_schemaURL"].rpartition("/")[2] for facet in facets(event["run"])} | {
        facet["_schemaURL"].rpartition("/")[2] for facet in facets(event["outputs"])
    }
    assert kinds == {"ParentRunFacet", "DatasetVersionDatasetFacet", "OutputStatisticsOutputDatasetFacet"}
    for facet in facets({**event, "schemaURL": ""}):
        assert facet["_producer"] == event["producer"]


def test_events_of_one_job_are_of_one_run_and_others_are_not() -> None:
    start, end = (run_event(kind, "2026-11-20T00:00:00Z", WORK)["run"]["runId"] for kind in ("START", "COMPLETE"))
    assert start == end
    others = [
        replace(WORK, job="ingest", task="ingest.seal"),
        replace(WORK, dag_run="manual__2"),
        replace(WORK, task="x"),
    ]
    assert len({WORK.run_id, WORK.parent_id, *(other.run_id for other in others)}) == 5
    assert others[0].parent_id == WORK.parent_id != others[1].parent_id


def test_a_failure_says_why() -> None:
    event = run_event("FAIL", "2026-11-20T00:00:00Z", WORK, error="ContractError: land it again")
    assert event["run"]["facets"]["errorMessage"]["message"] == "ContractError: land it again"
    assert event["inputs"] == event["outputs"] == []
