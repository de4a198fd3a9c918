"""What tasks read and wrote reaches Airflow's provider of OpenLineage as our own sender would say it."""

import importlib.util

import pytest

from pipeline_tasks.alerts.open_lineage import Dataset, Lineage, Work, facet, run_event

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("openlineage") is None,
    reason="apache-airflow-providers-openlineage is not installed (the extra `lineage` has it)",
)


def test_the_provider_hides_no_column_whose_name_is_like_a_secret_s() -> None:
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.serde import Serde
    from refinery_airflow.alerts.openlineage_provider import Traced

    columns = facet("1-2-0/SchemaDatasetFacet", fields=[{"name": "n_tokens", "type": "int64"}])
    tokens = {"n_tokens": {"inputFields": [{"namespace": "s3://b", "name": "web/extract", "field": "text"}]}}
    lineage = facet("1-2-0/ColumnLineageDatasetFacet", fields=tokens, dataset=[])
    written = Dataset("s3://b", "web/tokenize", "1", 3, facets={"schema": columns, "columnLineage": lineage})
    task = Traced()
    task.lineage = Lineage([Dataset("s3://b", "web/extract", rows=3)], [written])
    told = task.get_openlineage_facets_on_complete(None)
    run = Run("0176a8c2-fe01-7439-87e6-56a1a1b4029f")
    named = {"run": run, "job": Job("a", "b"), "eventType": RunState.COMPLETE, "eventTime": "2026-11-20T01:02:03Z"}
    event = RunEvent(**named, inputs=told.inputs, outputs=told.outputs)
    sent = Serde.to_dict(OpenLineageAdapter()._redacter.redact(event, max_depth=20))
    work = Work("refinery", "refine", "of 1", "tokenize", "tokenize.seal")
    ours = run_event("COMPLETE", "2026-11-20T01:02:03Z", work, task.lineage)
    assert (sent["inputs"], sent["outputs"]) == (ours["inputs"], ours["outputs"])


def test_a_try_that_failed_has_read_and_written_nothing() -> None:
    from refinery_airflow.alerts.openlineage_provider import Traced

    task = Traced()
    task.lineage = Lineage([Dataset("s3://b", "web/extract")], [Dataset("s3://b", "web/tokenize")])
    told = task.get_openlineage_facets_on_failure(None)
    assert told.inputs == told.outputs == []
