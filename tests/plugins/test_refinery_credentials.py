"""S3 credentials come from the environment, else from the connection `aws_default`."""

import asyncio
import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.run.plan import RefineRequest
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.service.requests import encode
from tests.refining import commit_parent
from tests.s3_server import S3Server

VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_SESSION_TOKEN")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "")  # restored afterwards, whatever is set in between
        monkeypatch.delenv(name)


def connection(**extra: str) -> str:
    return json.dumps({"conn_type": "aws", "login": "key", "password": "secret", "extra": extra})


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("in_triggerer", [False, True])
def test_a_connection_serves_where_the_environment_is_silent(
    monkeypatch: pytest.MonkeyPatch, *, in_triggerer: bool
) -> None:
    from refinery_credentials import adopt_credentials, adopt_credentials_in_triggerer

    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection(endpoint_url="http://127.0.0.1:9", region_name="eu-1"))
    if in_triggerer:
        asyncio.run(adopt_credentials_in_triggerer("s3://refinery/landing"))
    else:
        adopt_credentials("s3://refinery/root", None)
    assert {name: os.environ.get(name) for name in VARIABLES} == {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_REGION": "eu-1",
        "AWS_SESSION_TOKEN": None,
    }


@pytest.mark.usefixtures("bare")
def test_local_roots_need_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_credentials import adopt_credentials

    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection())
    adopt_credentials("/data/root", None)
    assert "AWS_ACCESS_KEY_ID" not in os.environ


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_credentials import adopt_credentials

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection())
    adopt_credentials("s3://refinery/root")
    assert os.environ["AWS_ACCESS_KEY_ID"] == "mine"


def test_storage_works_with_what_the_connection_says(
    s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_credentials import adopt_credentials

    from pipeline_tasks.store import storage

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)  # restored afterwards, whatever is set in between
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection(endpoint_url=s3_server.endpoint))
    adopt_credentials(s3_root)
    assert os.environ["AWS_ENDPOINT_URL"] == s3_server.endpoint
    assert storage.connect(s3_root).create("one", b"1")
    assert storage.connect(s3_root).read("one") == b"1"


@pytest.mark.parametrize("here", [None, "of the environment"])
def test_the_key_of_pseudonyms_comes_from_its_connection(monkeypatch: pytest.MonkeyPatch, here: str | None) -> None:
    from refinery_credentials import adopt_secret

    monkeypatch.setenv("REFINERY_PII_KEY", here or "")
    monkeypatch.setenv("AIRFLOW_CONN_REFINERY_PII", json.dumps({"conn_type": "generic", "password": "of Airflow"}))
    adopt_secret("")
    assert os.environ["REFINERY_PII_KEY"] == (here or "")
    adopt_secret("REFINERY_PII_KEY")
    assert os.environ["REFINERY_PII_KEY"] == (here or "of Airflow")


def test_a_request_for_pseudonyms_takes_the_key_and_does_not_hold_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_launch import HERE, send

    monkeypatch.setenv("REFINERY_PII_KEY", "")
    monkeypatch.setenv("AIRFLOW_CONN_REFINERY_PII", json.dumps({"conn_type": "generic", "password": "k" * 32}))
    monkeypatch.setenv(HERE, "1")
    documents = pa.table({name: pa.nulls(1, DOCUMENT.field(name).type) for name in DOCUMENT.names})
    parent = commit_parent(tmp_path, [documents])
    request = RefineRequest(str(tmp_path), "scrub_pii", {"action": "pseudonymize"}, parent)
    send(request)
    assert os.environ["REFINERY_PII_KEY"] == "k" * 32
    assert "k" * 32 not in json.dumps(encode(request))
