"""The compose file's object store gets a user that may only read and write objects."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from pipeline_tasks.errors import RecipeError, StorageBusy
from pipeline_tasks.upkeep import bucket
from tests.s3_server import free_port

KEYS = ("root", "root-secret")


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
    with ThreadingHTTPServer(("127.0.0.1", 0), Admin) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def environment(endpoint: str) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "refinery", "AWS_SECRET_ACCESS_KEY": "secret"}


def test_the_user_may_read_and_write_objects_and_nothing_else() -> None:
    statements = bucket.policy(["landing", "root"])["Statement"]
    actions = {action for statement in statements for action in statement["Action"]}
    assert not [action for action in actions if "*" in action or "Policy" in action or "CreateBucket" in action]
    assert "s3:DeleteBucket" not in actions
    resources = {resource for statement in statements for resource in statement["Resource"]}
    assert resources == {f"arn:aws:s3:::{name}{end}" for name in ("landing", "root") for end in ("", "/*")}


def test_policy_user_and_their_tie_are_put_with_the_root_key(endpoint: str) -> None:
    bucket._make_user(environment(endpoint), KEYS, ["refinery"])
    paths = [path.removeprefix("/rustfs/admin/v3/") for path, _, _ in Admin.requests]
    assert paths == [
        "add-canned-policy?name=refinery",
        "add-user?accessKey=refinery",
        "set-user-or-group-policy?policyName=refinery&userOrGroup=refinery&isGroup=false",
    ]
    assert json.loads(Admin.requests[0][1]) == bucket.policy(["refinery"])
    assert json.loads(Admin.requests[1][1]) == {"secretKey": "secret", "status": "enabled"}
    assert all(signature.startswith("AWS4-HMAC-SHA256 Credential=root/") for _, _, signature in Admin.requests)


def test_a_store_that_makes_no_users_is_named(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Admin, "status", 404)
    with pytest.raises(RecipeError, match=re.escape(endpoint) + ".* 404: .*S3_ROOT_ACCESS_KEY"):
        bucket._make_user(environment(endpoint), KEYS, ["refinery"])
    nowhere = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(StorageBusy, match=re.escape(f"{nowhere}/")):
        bucket._make_user(environment(nowhere), KEYS, ["refinery"])
