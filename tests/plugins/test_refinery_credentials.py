"""Credentials of buckets come from the environment, else from the connection of their kind, as `aws_default`."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.service.requests.wire import encode
from pipeline_tasks.store import store_settings
from pipeline_tasks.store.s3 import client as s3_client
from tests import cloud_servers
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


@pytest.fixture(autouse=True)
def _nothing_given() -> Iterator[None]:
    """Forget what a test gave to URIs: other tests have the same ones."""
    yield
    store_settings._GIVEN.clear()


Give = Callable[[str], None]


@pytest.fixture(params=["triggerer", "pages"])
def give(request: pytest.FixtureRequest) -> Give:
    """What lets the clients of a URI in a process that others share have the credentials of the connection."""
    from refinery_airflow.runs import credentials as refinery_credentials

    def in_triggerer(uri: str) -> None:
        asyncio.run(refinery_credentials.give_credentials_in_triggerer(uri))

    def to_pages(uri: str) -> None:
        refinery_credentials._ask.cache_clear()  # a minute has passed
        refinery_credentials.give_credentials_to_pages(uri)

    return in_triggerer if request.param == "triggerer" else to_pages


def credentials(uri: str) -> tuple[Any, ...] | None:
    """Return key, secret and token of the client of a URI; None without any."""
    found = s3_client.s3_client(uri=uri)._request_signer._credentials
    return None if found is None else tuple(found.get_frozen_credentials())[:3]


def forget_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what the fixtures of the server set."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)  # restored afterwards, whatever is set in between


@pytest.mark.usefixtures("bare")
def test_a_connection_serves_where_the_environment_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.runs.credentials import adopt_credentials

    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection(endpoint_url="http://127.0.0.1:9", region_name="eu-1"))
    adopt_credentials("s3://refinery/root", None)
    assert {name: os.environ.get(name) for name in VARIABLES} == {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_REGION": "eu-1",
        "AWS_SESSION_TOKEN": None,
    }


@pytest.mark.usefixtures("bare")
def test_a_process_that_others_share_follows_a_connection_that_changes_and_keeps_its_environment(
    give: Give, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A triggerer lives for weeks, and the triggers of other teams run in it."""
    keyed = {"conn_type": "aws", "login": "key", "password": "of June", "extra": {"aws_session_token": "short"}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(keyed))
    before = dict(os.environ)
    give("s3://refinery/root")
    assert dict(os.environ) == before
    assert credentials("s3://refinery/root/of/it") == ("key", "of June", "short")
    assert credentials("s3://refinery2/root") is None
    assert credentials("") is None
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps({**keyed, "password": "of July", "extra": {}}))
    give("s3://refinery/root")
    assert credentials("s3://refinery/root") == ("key", "of July", None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "too")
    give("s3://other/root")
    assert credentials("s3://other/root") == ("mine", "too", None)


def test_a_triggerer_and_pages_read_a_bucket_by_the_connection_alone(
    give: Give, s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of the process says of another server, which the triggers of others need."""
    from pipeline_tasks.store import storage

    forget_variables(monkeypatch)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_REGION", "eu-9")
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection(endpoint_url=s3_server.endpoint))
    give(f"{s3_root}/landing")
    store = storage.connect(s3_root)
    assert store.create("one", b"1")
    assert store.read("one") == b"1"
    options = s3_client.options_of_other_clients(s3_root)
    assert (options["aws_endpoint"], options["aws_access_key_id"]) == (s3_server.endpoint, "key")


def test_a_triggerer_and_pages_take_the_role_of_the_connection_at_its_own_place(
    give: Give, s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline_tasks.store import storage

    forget_variables(monkeypatch)
    place = {"endpoint_url": s3_server.endpoint}
    extra = {"role_arn": ROLE, "region_name": "us-east-1", **place, "service_config": {"sts": place}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection(**extra))
    before = dict(os.environ)
    give(s3_root)
    assert storage.connect(s3_root).create("one", b"1")
    taken = credentials(s3_root)
    assert taken is not None
    assert taken[0] != "key"
    assert taken[2]
    assert dict(os.environ) == before


@pytest.mark.usefixtures("bare")
def test_local_roots_need_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.runs.credentials import adopt_credentials

    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection())
    adopt_credentials("/data/root", None)
    assert "AWS_ACCESS_KEY_ID" not in os.environ


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.runs.credentials import adopt_credentials

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection())
    adopt_credentials("s3://refinery/root")
    assert os.environ["AWS_ACCESS_KEY_ID"] == "mine"


@pytest.mark.usefixtures("bare")
def test_a_profile_is_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.runs.credentials import adopt_credentials

    given = {"conn_type": "aws", "extra": {"profile_name": "crawl", "service_config": {"s3": {"endpoint_url": "x"}}}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(given))
    adopt_credentials("s3://refinery/root")
    settings = {name: os.environ.get(name) for name in (*VARIABLES, *OTHERS) if os.environ.get(name)}
    assert settings == {"AWS_PROFILE": "crawl", "AWS_ENDPOINT_URL_S3": "x"}


@pytest.mark.usefixtures("bare")
def test_storage_takes_the_role_of_the_connection_and_boto3_can_take_it_again(
    s3_server: S3Server, s3_root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from refinery_airflow.runs.credentials import adopt_credentials

    from pipeline_tasks.store import storage

    forget_variables(monkeypatch)
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
    from refinery_airflow.runs.credentials import adopt_credentials

    given = {"conn_type": "aws", "extra": {"role_arn": ROLE, **extra}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(given))
    adopt_credentials("s3://refinery/root")
    config = Path(os.environ["AWS_CONFIG_FILE"]).read_text().splitlines()
    assert config[:2] == ["[profile refinery]", f"role_arn = {ROLE}"]
    assert config[2:-1] == lines


@pytest.mark.parametrize("here", [None, "of the environment"])
def test_the_key_of_pseudonyms_comes_from_its_connection(monkeypatch: pytest.MonkeyPatch, here: str | None) -> None:
    from refinery_airflow.runs.credentials import adopt_secret

    monkeypatch.setenv("REFINERY_PII_KEY", here or "")
    monkeypatch.setenv("AIRFLOW_CONN_REFINERY_PII", json.dumps({"conn_type": "generic", "password": "of Airflow"}))
    adopt_secret("")
    assert os.environ["REFINERY_PII_KEY"] == (here or "")
    adopt_secret("REFINERY_PII_KEY")
    assert os.environ["REFINERY_PII_KEY"] == (here or "of Airflow")


def test_a_request_for_pseudonyms_takes_the_key_and_does_not_hold_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.runs.run import HERE
    from refinery_airflow.tasks.launch import send

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
    forget_variables(monkeypatch)
    monkeypatch.setenv("REFINERY_ROOT", s3_root)
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", connection(endpoint_url=s3_server.endpoint))
    page = visitor.get("/snapshot/web/2026-11-19")
    assert (page.status_code, "credentials" in page.text) == (404, False)
    assert "AWS_ACCESS_KEY_ID" not in os.environ, "other pages of the web server have no use for it"


# --- Google and Azure -------------------------------------------------------------------------------------------------

_BLOBS = "https://team.blob.core.windows.net"

AZURE_CONNECTIONS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"login": "team", "password": "a2V5"}, {"STORAGE_ACCOUNT_NAME": "team", "STORAGE_ACCOUNT_KEY": "a2V5"}),
    (
        {"host": _BLOBS, "extra": {"sas_token": "?sv=1&sig=x"}},
        {"STORAGE_ACCOUNT_NAME": "team", "STORAGE_ENDPOINT": _BLOBS, "STORAGE_SAS_KEY": "sv=1&sig=x"},
    ),
    (
        {"host": _BLOBS, "login": "client", "password": "secret", "extra": {"extra__wasb__tenant_id": "tenant"}},
        {
            "STORAGE_ACCOUNT_NAME": "team",
            "STORAGE_ENDPOINT": _BLOBS,
            "TENANT_ID": "tenant",
            "CLIENT_ID": "client",
            "CLIENT_SECRET": "secret",
        },
    ),
    (
        {"extra": {"connection_string": "AccountName=team;AccountKey=a2V5==;EndpointSuffix=core.windows.net"}},
        {"STORAGE_ACCOUNT_NAME": "team", "STORAGE_ACCOUNT_KEY": "a2V5==", "STORAGE_ENDPOINT": _BLOBS},
    ),
    (
        {"login": "team", "extra": {"managed_identity_client_id": "id"}},
        {"STORAGE_ACCOUNT_NAME": "team", "CLIENT_ID": "id"},
    ),
]


def _connection(**fields: object) -> Any:
    from airflow.sdk import Connection

    return Connection.from_json(json.dumps({"conn_type": "wasb", **fields}), conn_id="wasb_default")


@pytest.mark.parametrize(("fields", "expected"), AZURE_CONNECTIONS)
def test_a_connection_of_azure_says_account_and_key(fields: dict[str, Any], expected: dict[str, str]) -> None:
    from refinery_airflow.runs.clouds import azure_variables

    assert azure_variables(_connection(**fields)) == {f"AZURE_{name}": value for name, value in expected.items()}


def test_a_connection_of_azure_without_account_is_refused() -> None:
    from refinery_airflow.runs.clouds import azure_variables

    for fields in ({"password": "key"}, {"extra": {"connection_string": "AccountKey=a2V5"}}):
        with pytest.raises(RecipeError, match=r"account|AccountName"):
            azure_variables(_connection(**fields))


def test_a_connection_of_google_says_the_key_itself(tmp_path: Path) -> None:
    """Workers on other machines have no file of Airflow's."""
    from refinery_airflow.runs.clouds import google_variables

    key = {"type": "service_account", "client_email": "me@team.iam", "private_key": "of mine"}
    (tmp_path / "key.json").write_text(json.dumps(key))
    prefix = "extra__google_cloud_platform__"
    for extra in (
        {"keyfile_dict": json.dumps(key)},
        {f"{prefix}keyfile_dict": key},
        {"key_path": f"{tmp_path}/key.json"},
    ):
        found = google_variables(_connection(extra=extra))
        assert {name: json.loads(value) for name, value in found.items()} == {"GOOGLE_SERVICE_ACCOUNT_KEY": key}
    assert google_variables(_connection(extra={})) == {}
    assert google_variables(_connection(extra={"is_anonymous": True})) == {"GOOGLE_SKIP_SIGNATURE": "true"}


@pytest.mark.parametrize(
    "extra",
    [
        {"keyfile_dict": "no JSON: s3cret"},
        {"keyfile_dict": '["s3cret"]'},
        {"keyfile_dict": '{"type": "external_account", "token": "s3cret"}'},
        {"key_path": "/nowhere/key.json"},
        {"impersonation_chain": "other@team.iam"},
    ],
)
def test_a_connection_of_google_that_the_client_cannot_be_is_refused_without_its_secret(extra: dict[str, str]) -> None:
    from refinery_airflow.runs.clouds import google_variables

    with pytest.raises(RecipeError, match="wasb_default") as refusal:
        google_variables(_connection(extra=extra))
    assert "s3cret" not in str(refusal.value)


def test_a_triggerer_and_pages_read_a_container_by_the_connection_alone(
    give: Give, azurite: str, az_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline_tasks.store import storage

    cloud_servers.forget(monkeypatch, "AZURE_")
    said = {"conn_type": "wasb", "login": cloud_servers.ACCOUNT, "password": cloud_servers.KEY, "host": azurite}
    monkeypatch.setenv("AIRFLOW_CONN_WASB_DEFAULT", json.dumps(said))
    before = dict(os.environ)
    give(az_root)
    assert dict(os.environ) == before
    assert storage.connect(az_root).create("one", b"1")
    assert storage.connect(az_root).read("one") == b"1"
