"""One Airflow for the tests of this folder: it starts once, and each test has a dataset of its own.

Runs mostly wait. So those of datasets that are fixtures here start before the first test that waits for any.
"""

import json
from collections.abc import Iterator

import pytest

from tests.airflow_server import Airflow, Server, airflow_server, land
from tests.channels import Hooks, Metrics, serving

RECIPES = {
    "shown": """
name: shown
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
  filter_language: {keep: [en]}
  filter_quality: {profiles: [gopher_quality], gopher_quality: {min_doc_words: 20, min_stop_words: 1}}
run: {partitions: 1, engines: {ingest: local, extract: local, filter_language: local, filter_quality: local}}
gates:
  extract: {retention: {max_value: 0.3}, needs: {}}
""",
    "approved": """
name: approved
stages:
  ingest: {}
  extract: {min_chars: 20}
run: {partitions: 1, engines: {ingest: local, extract: local}}
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


EARLIER, LATER = "2026-11-01", "2026-11-02"
"""Days of `ordered`, on the engines of the stages' own choice: Spark."""

ABSENT = "2026-10-30", "2026-10-31"
"""Days of `ordered` before all others, which never land."""


@pytest.fixture(scope="package")
def ordered(server: Server) -> Iterator[Airflow]:
    """The DAG `refine_ordered`, whose runs have started at once, of the later day first.

    The earlier day waits whether its file still changes, and the later one has a list: it could go first.
    """
    with server.airflow("ordered") as airflow:
        airflow.pause(paused=True)  # what is queued until then is seen at once
        for number, day in enumerate((LATER, EARLIER)):
            land(server.landing("ordered"), day, number * 20, listed=day == LATER)
            airflow.trigger(day)
        airflow.trigger(LATER, {"sample": 0.5}, kind="trial")
        for day in ABSENT:
            airflow.trigger(day)
        airflow.pause(paused=False)
        yield airflow
