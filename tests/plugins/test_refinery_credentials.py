"""S3 credentials come from the environment, else from the connection `aws_default`."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

from pipeline_tasks.run.plan import RefineRequest
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.service.requests import encode
from tests.refining import commit_parent
from tests.s3_server import S3Server

VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_SESSION_TOKEN")
OTHERS = ("AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS")

ROLE = "arn:aws:iam::000000000000:role/reader"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *OTHERS):
        monkeypatch.setenv(name, "")  # restored afterwards, whatever is set in between
        monkeypatch.delenv(name)


def connection(**extra: object) -> str:
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
def test_a_process_that_lives_on_follows_a_connection_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A triggerer lives for weeks: keys are rotated, those of a role that only the provider can take expire."""
    from refinery_credentials import adopt_credentials, adopt_credentials_in_triggerer

    def settings() -> dict[str, str]:
        asyncio.run(adopt_credentials_in_triggerer("s3://refinery/root"))
        return {name: os.environ[name] for name in (*VARIABLES, *OTHERS) if os.environ.get(name)}

    keyed = {"conn_type": "aws", "login": "key", "password": "of June", "extra": {"aws_session_token": "short"}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(keyed))
    assert settings()["AWS_SESSION_TOKEN"] == "short"
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps({**keyed, "password": "of July", "extra": {}}))
    assert settings() == {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "of July"}
    role = {**keyed, "extra": {"role_arn": ROLE}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(role))
    first = settings()
    assert settings() == first
    assert set(first) == {"AWS_PROFILE", "AWS_CONFIG_FILE"}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps({"conn_type": "aws", "extra": {"role_arn": ROLE}}))
    assert "of June" not in Path(settings()["AWS_CONFIG_FILE"]).read_text()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    adopt_credentials("s3://refinery/root")
    assert os.environ["AWS_ACCESS_KEY_ID"] == "mine"


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


@pytest.mark.usefixtures("bare")
def test_a_profile_is_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_credentials import adopt_credentials

    given = {"conn_type": "aws", "extra": {"profile_name": "crawl", "service_config": {"s3": {"endpoint_url": "x"}}}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(given))
    adopt_credentials("s3://refinery/root")
    settings = {name: os.environ.get(name) for name in (*VARIABLES, *OTHERS) if os.environ.get(name)}
    assert settings == {"AWS_PROFILE": "crawl", "AWS_ENDPOINT_URL_S3": "x"}


@pytest.mark.usefixtures("bare")
def test_storage_takes_the_role_of_the_connection_and_boto3_can_take_it_again(
    s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from refinery_credentials import adopt_credentials

    from pipeline_tasks.store import storage

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)  # restored afterwards, whatever is set in between
    mine = tmp_path / "config"
    mine.write_text("[profile mine]\nregion = eu-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(mine))
    extra = {
        "role_arn": ROLE,
        "assume_role_kwargs": {"ExternalId": "partner 100%", "RoleSessionName": "refine"},
        "endpoint_url": s3_server.endpoint,
        "region_name": "us-east-1",
        "service_config": {"sts": {"endpoint_url": s3_server.endpoint}},
    }
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection(**extra))
    adopt_credentials(s3_root)
    assert "AWS_ACCESS_KEY_ID" not in os.environ
    assert storage.connect(s3_root).create("one", b"1")
    assert storage.connect(s3_root).read("one") == b"1"
    taken = boto3.session.Session().get_credentials()
    assert taken.method == "assume-role"
    assert taken.get_frozen_credentials().token
    config = Path(os.environ["AWS_CONFIG_FILE"])
    assert config.stat().st_mode & 0o077 == 0
    assert "external_id = partner 100%" in config.read_text()
    assert boto3.session.Session().available_profiles == ["mine", "refinery", "refinery-base"]


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("extra", "lines"),
    [
        (
            {
                "assume_role_method": "assume_role_with_web_identity",
                "assume_role_with_web_identity_federation": "file",
                "assume_role_with_web_identity_token_file": "/var/token",
            },
            ["web_identity_token_file = /var/token"],
        ),
        ({"profile_name": "base"}, ["source_profile = base"]),
        ({}, ["credential_source = Ec2InstanceMetadata"]),
    ],
)
def test_a_role_is_taken_from_what_the_connection_names(
    monkeypatch: pytest.MonkeyPatch, extra: dict[str, object], lines: list[str]
) -> None:
    from refinery_credentials import adopt_credentials

    given = {"conn_type": "aws", "extra": {"role_arn": ROLE, **extra}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(given))
    adopt_credentials("s3://refinery/root")
    config = Path(os.environ["AWS_CONFIG_FILE"]).read_text().splitlines()
    assert config[:2] == ["[profile refinery]", f"role_arn = {ROLE}"]
    assert config[2:-1] == lines


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


@pytest.mark.parametrize("root", [None])
def test_pages_read_a_root_with_what_the_connection_says(
    s3_server: S3Server, s3_root: str, visitor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks took their credentials from the connection, and the pages of what they had made found none."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)  # restored afterwards, whatever is set in between
    monkeypatch.setenv("REFINERY_ROOT", s3_root)
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection(endpoint_url=s3_server.endpoint))
    page = visitor.get("/snapshot/web/2026-11-19")
    assert (page.status_code, "credentials" in page.text) == (404, False)
    assert os.environ["AWS_ACCESS_KEY_ID"] == "key"
