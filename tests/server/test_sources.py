"""From a source to a published version under Airflow's own scheduler and triggerer, and nothing is started twice."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from pipeline_tasks.publish import version_log
from tests.airflow_server import Airflow, airflow_server, archive_of, until
from tests.crawl_mirror import CRAWL, mirrored
from tests.s3_server import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

RECIPE = """
name: rolled
rollout: [0.5, 1]
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
run: {partitions: 1, engines: {ingest: local, extract: local}}
gates: {}
"""


@contextmanager
def unpaused(api: Airflow, dag: str) -> Iterator[Airflow]:
    """Let a DAG run; yield the API, which speaks of it."""
    of_dag = Airflow(api.url, api.passwords, dag, api.log)
    until(of_dag.is_known, lambda: f"{dag} was not read")
    of_dag.pause(paused=False)
    yield of_dag
    of_dag.pause(paused=True)


def started(api: Airflow, run: str) -> bool:
    return run in [known["dag_run_id"] for known in api.runs()]


@pytest.fixture
def queue(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, dict[str, str]]:
    """A client of SQS, and the variables by which Airflow finds its queue."""
    settings = {**s3_server.env, "AWS_ENDPOINT_URL": s3_server.endpoint, "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    settings["AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL"] = "30"  # a watcher begins when its file is read again
    sqs = boto3.client("sqs")
    return sqs, settings | {"REFINERY_QUEUE": sqs.create_queue(QueueName="rolled")["QueueUrl"]}


def woken(arrivals: Airflow) -> int:
    return sum(known["run_type"] == "asset_triggered" for known in arrivals.runs())


def test_what_a_source_lands_is_rolled_out_step_by_step_and_once(
    tmp_path: Path, queue: tuple[Any, dict[str, str]]
) -> None:
    """Only this shows that events of assets and messages start `arrivals`, and what it starts goes on to a version."""
    source = tmp_path / "news.yaml"
    with mirrored() as mirror:
        mirror.add({f"part-{number}.warc.gz": archive_of(20 * number) for number in range(4)})
        mirror.files["/collinfo.json"] = json.dumps([{"id": CRAWL}]).encode()
        query = f"{{crawl: latest, address: '{mirror.address}'}}"
        source.write_text(f"rate: 1000\nsource:\n  common_crawl: {query}\n")
        sqs, settings = queue
        with airflow_server(tmp_path, {"rolled": RECIPE}, REFINERY_SOURCES=str(source), **settings) as server:
            api = server.api("rolled")
            with (
                unpaused(api, "refine_rolled") as refine,
                unpaused(api, "rollout_rolled") as rollout,
                unpaused(api, "arrivals") as arrivals,
                unpaused(api, "pull_news") as pull,
            ):
                pull.call("POST", "/api/v2/dags/pull_news/dagRuns", {"logical_date": None, "dag_run_id": "first"})
                pull.waits_until("first", "success")
                run = f"arrival__{CRAWL}"
                until(lambda: started(rollout, run), lambda: f"nothing was started: {arrivals.runs()}")
                trial = f"rollout_50__{CRAWL}"
                until(lambda: started(refine, trial), lambda: f"no trial was started: {rollout.states(run)}")
                refine.waits_until(trial, "success")
                root = server.root("rolled")
                assert [version.snapshot for version in version_log.versions(root, "rolled.trial")] == [CRAWL]
                assert version_log.versions(root, "rolled") == []
                rollout.waits_until(run, "awaiting_input", "approve_100")
                approve = {"chosen_options": ["Approve"], "params_input": {}}
                form = "/taskInstances/approve_100/-1/hitlDetails"
                assert f"/snapshot/rolled.trial/{CRAWL}" in rollout.of_run(run, form)["body"]
                rollout.decide(
                    run,
                    "approve_100",
                    lambda: rollout.of_run(run, form, "PATCH", approve),
                    lambda: rollout.state(run, "approve_100") == "success",
                )
                rollout.waits_until(run, "success")
                [version] = version_log.versions(root, "rolled")
                assert (version.snapshot, version.documents) == (CRAWL, 36)
                again: Any = {"logical_date": None, "dag_run_id": "second"}
                pull.call("POST", "/api/v2/dags/pull_news/dagRuns", again)
                pull.waits_until("second", "success")
                assert pull.state("second", "pull") == "skipped"
                events = pull.call("GET", "/api/v2/assets/events?limit=100")["asset_events"]
                landed = [event for event in events if event["source_dag_id"] == "pull_news"]
                assert {event["source_run_id"] for event in landed} == {"first"}
                assert [event["extra"]["snapshot"] for event in landed] == [CRAWL] * 2
                before = woken(arrivals)
                assert before >= 1
                sqs.send_message(QueueUrl=settings["REFINERY_QUEUE"], MessageBody=f"{CRAWL}/snapshot.json")
                until(lambda: woken(arrivals) > before, lambda: f"no message woke it: {arrivals.runs()}")
                until(
                    lambda: all(known["state"] == "success" for known in arrivals.runs()), lambda: f"{arrivals.runs()}"
                )
                assert [known["dag_run_id"] for known in rollout.runs()] == [run]
