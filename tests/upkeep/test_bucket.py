"""The compose file's object store gets a user for each zone, who may only read and write objects, and no log from an engine."""

import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy
from pipeline_tasks.stages import NAMES
from pipeline_tasks.store.storage import connect
from pipeline_tasks.upkeep import bucket, zone_users
from pipeline_tasks.upkeep.zone_users import LOGS, Keys, users_of
from tests.iam import allows
from tests.s3_server import S3Server
from tests.small_root import STAGES, SmallRoot

KEYS = Keys("root", "root-secret")

PROJECT = Path(__file__).parents[2]


class Admin(BaseHTTPRequestHandler):
    """Records the requests to RustFS's admin API."""

    requests: ClassVar[list[tuple[str, str, str]]] = []
    status: ClassVar[int] = 200

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.requests.append((self.path, body, self.headers["Authorization"]))
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Admin, "requests", [])
    with served(Admin) as address:
        yield address


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def environment(endpoint: str, **more: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "refinery",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "REFINERY_LANDING": "s3://crawls/landing",
        "REFINERY_ROOT": "s3://corpus/team/root",
        **more,
    }


ENGINES = {
    "SPARK_S3_ACCESS_KEY": "spark",
    "SPARK_S3_SECRET_KEY": "spark-secret",
    "RAY_S3_ACCESS_KEY": "ray",
    "RAY_S3_SECRET_KEY": "ray-secret",
}


def test_no_user_may_do_anything_but_use_objects() -> None:
    for user in users_of(environment("", **ENGINES)):
        statements = user.policy["Statement"]
        actions = {action for statement in statements for action in statement["Action"]}
        assert not [action for action in actions if "*" in action or "Policy" in action or "CreateBucket" in action]
        assert "s3:DeleteBucket" not in actions
        buckets = {each.split(":::")[1].split("/")[0] for one in statements for each in one["Resource"]}
        assert buckets == {"crawls", "corpus"}


WRITTEN = "arn:aws:s3:::corpus/team/root/extract/a/shards/0.parquet"


@pytest.mark.parametrize("zone", ["airflow", "spark", "ray"])
def test_an_engine_writes_what_stages_write_and_no_log(zone: str) -> None:
    [policy] = [user.policy for user in users_of(environment("", **ENGINES)) if user.zone == zone]
    for resource in (WRITTEN, "arn:aws:s3:::crawls/landing/day/a.warc.gz"):
        assert allows(policy["Statement"], "s3:GetObject", resource)
    assert allows(policy["Statement"], "s3:PutObject", WRITTEN)
    assert allows(policy["Statement"], "s3:DeleteObject", WRITTEN)
    assert not allows(policy["Statement"], "s3:PutObject", "arn:aws:s3:::elsewhere/a")
    for other in (*(f"corpus/team/root/{folder}/a" for folder in LOGS), "crawls/landing/a", "corpus/other/a"):
        for action in ("s3:PutObject", "s3:DeleteObject"):
            assert allows(policy["Statement"], action, f"arn:aws:s3:::{other}") == (zone == "airflow"), other


def test_the_logs_of_a_root_are_all_that_a_log_has_been_seen_in(small_root: SmallRoot) -> None:
    """What is at the top of a root is a stage's, or a log's, or what stages share."""
    top = {path.name for path in Path(small_root.root).iterdir() if path.is_dir()}
    assert top - {*STAGES, "filter_quality"} <= {*LOGS}


def test_no_engine_may_write_a_folder_that_is_not_its_own() -> None:
    """Folders that no stage writes are found by the page on formats and by the code that names one; a new one, too."""
    page = (PROJECT / "docs/reference/formats.md").read_text()
    listed = {line.split("/")[0] for line in page.split("```text\n")[1].split("```")[0].splitlines() if "/" in line}
    named = set(re.findall(r'^(?:[A-Z]+) = "(readings|intruders|maps|vectors)"$', sources(), re.MULTILINE))
    assert named == {"readings", "intruders", "maps", "vectors"}
    tops = {name for name in listed | named if re.fullmatch(r"[a-z]+", name)}
    own = {*NAMES, "cache", "requests", "tokenizers"}
    _, spark, _ = users_of(environment("", **ENGINES))
    written = {
        top
        for top in tops | {"compose"}
        if allows(spark.policy["Statement"], "s3:PutObject", f"arn:aws:s3:::corpus/team/root/{top}/a")
    }
    assert written <= own


def sources() -> str:
    folders = (PROJECT / "pipeline_tasks", PROJECT / "plugins")
    return "\n".join(path.read_text() for folder in folders for path in folder.rglob("*.py"))


def test_each_zone_has_a_user_that_is_made_with_the_root_key(endpoint: str) -> None:
    users = users_of(environment(endpoint, **ENGINES))
    for user in users:
        bucket._make_user(user, KEYS, endpoint)
    paths = [path.removeprefix("/rustfs/admin/v3/") for path, _, _ in Admin.requests]
    assert paths[:3] == [
        "add-canned-policy?name=refinery-airflow",
        "add-user?accessKey=refinery",
        "set-user-or-group-policy?policyName=refinery-airflow&userOrGroup=refinery&isGroup=false",
    ]
    assert [json.loads(body) for _, body, _ in Admin.requests[::3]] == [user.policy for user in users]
    asked = {path.rpartition("accessKey=")[2]: body for path, body, _ in Admin.requests[1::3]}
    assert json.loads(asked["spark"]) == {"secretKey": "spark-secret", "status": "enabled"}
    assert all(signature.startswith("AWS4-HMAC-SHA256 Credential=root/") for _, _, signature in Admin.requests)


def test_a_store_that_lets_an_engine_write_a_log_stops_the_start(
    s3_root: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server of the tests lets every key do everything."""
    own = {name: s3_server.env[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL")}
    root = {"S3_ROOT_ACCESS_KEY": own["AWS_ACCESS_KEY_ID"], "S3_ROOT_SECRET_KEY": own["AWS_SECRET_ACCESS_KEY"]}
    places = {"REFINERY_LANDING": f"{s3_root}/landing", "REFINERY_ROOT": f"{s3_root}/root"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    bucket.prepare(own | root | places)
    with pytest.raises(ContractError, match=re.escape(f"may write below {s3_root}/landing")):
        bucket.prepare(own | root | places | ENGINES)
    assert list(connect(s3_root).list("")) == []


class Refusing(BaseHTTPRequestHandler):
    """Answers each PUT of an object as the policy of its sender says."""

    policies: ClassVar[dict[str, Mapping[str, Any]]] = {}
    put: ClassVar[list[str]] = []

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        [access] = re.findall("Credential=([^/]+)/", self.headers["Authorization"])
        resource = f"arn:aws:s3:::{self.path.split('?')[0].removeprefix('/')}"
        is_allowed = allows(self.policies[access]["Statement"], "s3:PutObject", resource)
        self.put.append(resource)
        body = b"" if is_allowed else b"<Error><Code>AccessDenied</Code></Error>"
        self.send_response(200 if is_allowed else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_what_an_engine_may_not_write_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    users = users_of(environment("", **ENGINES))
    monkeypatch.setattr(Refusing, "policies", {user.keys.access: user.policy for user in users})
    monkeypatch.setattr(Refusing, "put", [])
    with served(Refusing) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        bucket._try_refusals(users[1], "s3://crawls/landing", "s3://corpus/team/root")
    assert len(Refusing.put) == len(LOGS) + 2, "each log, a verdict, and the landing"


def test_a_store_that_makes_no_users_is_named(endpoint: str, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Admin, "status", 404)
    user, *_ = users_of(environment(endpoint))
    with pytest.raises(RecipeError, match=re.escape(endpoint) + ".* 404: .*S3_ROOT_ACCESS_KEY"):
        bucket._make_user(user, KEYS, endpoint)
    nowhere = f"http://127.0.0.1:{closed_port}"
    with pytest.raises(StorageBusy, match=re.escape(f"{nowhere}/")):
        bucket._make_user(user, KEYS, nowhere)


@pytest.mark.parametrize("root", ["refinery/root", "/srv/root", "gs://refinery/root"])
def test_policies_are_printed_of_places_in_s3_alone(
    root: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["zone_users", "s3://refinery/landing", root])
    with pytest.raises(SystemExit) as refused:
        zone_users.main()
    assert refused.value.code == 2
    assert root in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["zone_users", "s3://refinery/landing", "s3://refinery/root"])
    zone_users.main()
    assert json.loads(capsys.readouterr().out).keys() == {"airflow", "engines"}
