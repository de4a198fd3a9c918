"""Where requests run: the connections decide."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from refinery_models.requests import CheckModelRequest, TrainModelRequest

from pipeline_tasks.errors import GateRefused, JobLost, RecipeError, RefineryError
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.service.requests.stages import LandRequest
from pipeline_tasks.service.requests.wire import raise_refusal
from pipeline_tasks.store import store_settings

EMR = "emr-serverless://00fg0oh5mvbu4d0l/;role=arn:aws:iam::123456789012:role/refinery"

REQUEST = RefineRequest("/r", "extract", {}, "p", engine="spark")


@pytest.mark.parametrize(
    ("engine", "connection", "expected"),
    [
        ("spark", {"conn_type": "spark", "host": "local[2]"}, "local[2]"),
        ("spark", {"conn_type": "spark", "host": "spark://master", "port": 7077}, "spark://master:7077"),
        ("spark", {"conn_type": "spark_connect", "host": "connect", "port": 15002}, "sc://connect:15002"),
        ("ray", {"conn_type": "generic", "host": "local"}, "local"),
        ("ray", {"conn_type": "generic", "host": "http://ray-head", "port": 8265}, "http://ray-head:8265"),
        ("ray", {"conn_type": "generic", "host": "ray-head", "port": 6379}, "ray-head:6379"),
        ("ray", {"conn_type": "generic", "host": "auto"}, "auto"),
        ("ray", {"conn_type": "http", "host": "gate", "port": 8443, "schema": "https"}, "https://gate:8443"),
        ("ray", "http://ray-head:8265", "http://ray-head:8265"),
        ("ray", "ray://ray-head:10001", "ray://ray-head:10001"),
        ("spark", {"conn_type": "spark", "host": EMR}, EMR),
        ("spark", {"conn_type": "emr_serverless", "host": EMR.removeprefix("emr-serverless://")}, EMR),
        ("spark", EMR.replace("/refinery", "%2Frefinery"), EMR),
        ("spark", EMR, EMR),
        ("spark", "spark://master:7077", "spark://master:7077"),
        ("spark", "sc://connect:15002", "sc://connect:15002"),
    ],
)
def test_an_engine_is_where_its_connection_says(
    monkeypatch: pytest.MonkeyPatch, engine: str, connection: dict[str, object] | str, expected: str
) -> None:
    """A connection is JSON or a URI; a host without a scheme lost its port."""
    from refinery_airflow.tasks.launch import address_of

    written = connection if isinstance(connection, str) else json.dumps(connection)
    monkeypatch.setenv(f"AIRFLOW_CONN_{engine.upper()}_DEFAULT", written)
    assert address_of(engine) == expected


@pytest.mark.parametrize(
    ("connection", "address"),
    [
        ({"conn_type": "spark_connect", "host": "gate", "port": 15002}, "sc://gate:15002/;use_ssl=True"),
        ({"conn_type": "spark_connect", "host": "gate", "port": 15002, "login": "me"}, None),
        ({"conn_type": "spark", "host": "sc://gate/;use_ssl=True;token=a%20key"}, "sc://gate:15002/;use_ssl=True"),
        ({"conn_type": "spark", "host": "sc://gate/;token=a%20key"}, "sc://gate:15002"),
    ],
)
def test_a_token_of_spark_connect_is_in_no_request(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, object], address: str | None
) -> None:
    from refinery_airflow.tasks.launch import address_of
    from refinery_spark.engine import CONNECT_TOKEN

    secret = {"password": "a key", "extra": {"use_ssl": True}} if connection["conn_type"] == "spark_connect" else {}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection | secret))
    monkeypatch.setenv(CONNECT_TOKEN, "")
    assert address_of("spark") == (address or "sc://gate:15002/;user_id=me;use_ssl=True")
    assert os.environ[CONNECT_TOKEN] == "a key"


@pytest.mark.parametrize("is_landed", [False, True])
def test_a_task_finds_the_connection_of_a_store_that_its_landing_names_and_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_landed: bool
) -> None:
    """The list names a store, and what it says of another connection is not heeded."""
    from airflow.sdk import Connection
    from refinery_airflow.tasks.launch import prepared

    asked: list[str] = []

    def kept(name: str) -> Connection:
        asked.append(name)
        return Connection(conn_id=name, conn_type="aws", login="key", password="s3cret")

    monkeypatch.setattr(store_settings, "_GIVEN", {})
    monkeypatch.setattr(Connection, "get", kept)
    monkeypatch.setenv("REFINERY_PLACES", f"partner+s3://crawls {tmp_path} /r")
    file = {"path": "a.jsonl", "bytes": 1, "sha256": "", "address": "s3://crawls/a", "etag": "1", "store": "partner"}
    evil = {"partner": {"connection": "aws_default"}}
    (tmp_path / "snapshot.json").write_text(json.dumps({"stores": evil, "files": [file]}))
    local = replace(REQUEST, root="/r", engine="local")
    prepared(replace(local, landing=f"{tmp_path}/plain"))
    assert asked == []
    prepared(replace(local, landing=f"{tmp_path}/snapshot.json") if is_landed else LandRequest("/r", str(tmp_path)))
    assert asked == ["refinery_store_partner"]
    assert "s3cret" in store_settings.sendable()
    file["store"] = "other"  # which may be a store of another team
    (tmp_path / "snapshot.json").write_text(json.dumps({"files": [file]}))
    prepared(LandRequest("/r", str(tmp_path)))
    assert asked == ["refinery_store_partner"]


def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.tasks.launch import address_of

    monkeypatch.setenv("AIRFLOW_CONN_RAY_DEFAULT", json.dumps({"conn_type": "generic", "host": "ray-head"}))
    with pytest.raises(RecipeError, match=r"'ray-head' .* ray_default "):
        address_of("ray")


def test_a_jobs_api_that_is_not_there_is_named(closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.tasks.launch import submit

    place = f"127.0.0.1:{closed_port}"
    monkeypatch.setenv("AIRFLOW_CONN_RAY_DEFAULT", json.dumps({"conn_type": "generic", "host": f"http://{place}"}))
    with pytest.raises(JobLost, match=re.escape(f"http://{place} ")):
        submit(replace(REQUEST, engine="ray"), "try1")


def test_requests_that_need_no_engine_need_no_connection() -> None:
    from refinery_airflow.tasks.launch import address_of

    assert address_of("local") == ""
    assert address_of("") == ""


@pytest.mark.parametrize(
    ("address", "session", "session_here"),
    [
        ("", False, False),
        ("local", False, False),
        ("local[2]", False, False),
        ("spark://m:7077", True, False),
        ("sc://m:15002", True, False),
        ("yarn", True, False),
        ("k8s://https://m:443", True, False),
        ("ray://m:10001", True, False),
        ("m:6379", True, False),
        ("auto", True, False),
        ("http://m:8265", True, True),
        (EMR, True, True),
    ],
)
def test_a_cluster_is_driven_from_a_session(
    monkeypatch: pytest.MonkeyPatch, address: str, session: bool, session_here: bool
) -> None:
    """But for Ray's Jobs API and EMR Serverless, `refinery run` drives clusters itself."""
    from refinery_airflow.runs.run import HERE
    from refinery_airflow.tasks.launch import needs_session

    engine = "ray" if address.startswith("http") else "spark"
    request = replace(REQUEST, engine=engine, address=address)
    assert needs_session(request) == session
    monkeypatch.setenv(HERE, "1")
    assert needs_session(request) == session_here


def test_a_refusal_on_the_cluster_is_the_same_refusal_here() -> None:
    raise_refusal({"manifest": "m"})
    with pytest.raises(GateRefused, match="unwelcome"):
        raise_refusal({"error": "GateRefused", "message": "unwelcome"})
    with pytest.raises(RefineryError):
        raise_refusal({"error": "FromAnotherVersion", "message": "?"})


def test_a_model_needs_the_credentials_of_all_that_it_is_trained_and_checked_on() -> None:
    from refinery_airflow.tasks.launch import uris_of

    good, crawl, old = "s3://a/good.jsonl", "s3://b/crawl.parquet", "s3://c/old.bin"
    assert {good, crawl, old} <= {*uris_of(TrainModelRequest("root", "quality", (good,), (crawl,), against=old))}
    assert crawl in uris_of(CheckModelRequest("root", "quality", "models/a/model.bin", "high", (crawl,)))


def test_in_a_run_of_one_process_requests_are_answered_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.runs.run import HERE
    from refinery_airflow.tasks.launch import send

    monkeypatch.setenv(HERE, "1")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"text": "hello"}\n')
    reply = send(LandRequest(str(tmp_path / "root"), str(tmp_path / "in"), snapshot="s"))
    assert (reply["snapshot"], reply["files"]) == ("s", 1)
