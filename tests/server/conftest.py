"""One Airflow for the tests of this folder: it starts once, and each test has a dataset of its own."""

import json
from collections.abc import Iterator

import pytest

from tests.airflow_server import Server, airflow_server
from tests.channels import Hooks, Metrics, serving

RECIPES = {
    "shown": """
name: shown
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
  filter_language: {keep: [en]}
  filter_quality: {profiles: [gopher_quality], gopher_quality: {min_doc_words: 20, min_stop_words: 1}}
run: {partitions: 1}
gates:
  extract: {retention: {max_value: 0.3}, needs: {}}
""",
    "approved": """
name: approved
stages:
  ingest: {}
  extract: {min_chars: 20}
run: {partitions: 1}
gates:
  extract: {retention: {max_value: 0.5}, needs: {}}
  publish: {documents: {min_value: 1000}}
""",
    "ordered": """
name: ordered
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
run: {partitions: 1}
""",
}
"""The recipes of the datasets by their names; the web UI shows the first."""


@pytest.fixture(scope="package")
def hooks() -> Iterator[Hooks]:
    """What Airflow has sent as alerts, of every dataset."""
    with serving(Hooks()) as hooks:
        yield hooks


@pytest.fixture(scope="package")
def metrics() -> Iterator[Metrics]:
    """What Airflow has counted, of every dataset."""
    metrics = Metrics()
    yield metrics
    metrics.close()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory, hooks: Hooks, metrics: Metrics) -> Iterator[Server]:
    """`refinery up`, from the first test of this folder to the last."""
    webhook = json.dumps({"conn_type": "http", "host": hooks.url})
    settings = metrics.settings(METRICS_ALLOW_LIST="refinery") | {"AIRFLOW_CONN_REFINERY_ALERTS_WEBHOOK": webhook}
    with airflow_server(tmp_path_factory.mktemp("server"), RECIPES, **settings) as server:
        yield server
