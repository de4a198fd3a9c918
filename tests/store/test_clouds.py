"""`gs://` and `az://`: each fault means what it means for S3, and what obstore cannot do is an error and no wait."""

import os
import re
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pipeline_tasks.errors import ContractError, NoSpace, RecipeError, StorageBusy
from pipeline_tasks.store import storage, store_settings
from pipeline_tasks.store.clouds import client as cloud_client
from pipeline_tasks.store.clouds import store as cloud_store
from pipeline_tasks.store.s3 import errors as s3_errors
from pipeline_tasks.store.storage import commit, connect
from tests import cloud_servers
from tests.faulty_s3 import Fault, FaultyS3, faulty_s3
from tests.s3_server import S3Server
from tests.store.test_s3_errors import VERBS as OF_S3
from tests.store.test_s3_errors import Verb, paths, put


@dataclass(frozen=True, slots=True)
class Cloud:
    """An empty root, the proxy before its server, and the setting that errors name for its keys."""

    root: str
    faults: FaultyS3
    keys: str
    condition: str
    delete: str
    """The method by which objects are removed: Azure's batch of one is a POST."""

    def method(self, verb: str) -> str:
        """Return the method of a verb."""
        return VERBS[verb][0] or self.delete


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_errors, "PAUSE", 0.001)
    monkeypatch.setattr(cloud_client, "FIRST_PAUSE", timedelta(milliseconds=1))
    monkeypatch.setattr(cloud_client, "RETRIES", 2)


@pytest.fixture(params=["gs", "az"])
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """A root of each kind, one after the other."""
    if request.param == "gs":
        s3_root, server = request.getfixturevalue("s3_root"), request.getfixturevalue("s3_server")
        with cloud_servers.google(server.endpoint, monkeypatch) as faults:
            root = s3_root.replace("s3://", "gs://")
            yield Cloud(root, faults, "GOOGLE_APPLICATION_CREDENTIALS", "x-goog-if-generation-match: 0", "DELETE")
        return
    endpoint, root = request.getfixturevalue("azurite"), request.getfixturevalue("az_root")
    with faulty_s3(endpoint.removesuffix(urlsplit(endpoint).path)) as faults:
        monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{faults.endpoint}/{cloud_servers.ACCOUNT}")
        yield Cloud(root, faults, "AZURE_STORAGE_ACCOUNT_KEY", "if-none-match: *", "POST")


VERBS: dict[str, Verb] = {
    **{name: OF_S3[name] for name in ("read", "ranges", "list", "size", "create", "put_file")},
    "delete": ("", OF_S3["delete"][1]),
    "delete many": ("", lambda root, _: connect(root).delete_many(["there"])),
}
"""Everything that is asked of a server, and the method that it is asked by."""

PASSING: list[Fault] = [(500, "InternalError"), (503, "SlowDown"), (429, "TooManyRequests")]

FINAL = [
    ((400, "InvalidArgument"), ContractError, ""),
    ((401, "Unauthorized"), RecipeError, "keys"),
    ((403, "AccessDenied"), RecipeError, "keys"),
    ((405, "MethodNotAllowed"), RecipeError, "doctor"),
    ((507, "InsufficientStorage"), NoSpace, ""),
]


@pytest.mark.parametrize("verb", VERBS)
def test_a_status_that_passes_is_no_failure_of_any_verb(verb: str, cloud: Cloud, tmp_path: Path) -> None:
    method, (_, call) = cloud.method(verb), VERBS[verb]
    for fault in PASSING:
        connect(cloud.root).create("there", b"body")
        cloud.faults.coming.append((method, fault))
        call(cloud.root, tmp_path)
        assert cloud.faults.happened == [(method, fault)]
        cloud.faults.happened.clear()


@pytest.mark.parametrize("verb", VERBS)
def test_a_status_that_does_not_pass_is_busy_and_named(verb: str, cloud: Cloud, tmp_path: Path) -> None:
    connect(cloud.root).create("there", b"body")
    method, (_, call) = cloud.method(verb), VERBS[verb]
    cloud.faults.coming[:] = [(method, (503, "SlowDown"))] * 40
    with pytest.raises(StorageBusy, match=re.escape(cloud.root)):
        call(cloud.root, tmp_path)
    cloud.faults.coming.clear()
    assert paths(cloud.root) == ["there"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_token_that_a_role_gives_is_asked_for_anew(
    verb: str, cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(cloud.root).create("there", b"body")
    method, (_, call) = cloud.method(verb), VERBS[verb]
    monkeypatch.setattr(cloud_client, "FIXED", ())  # as if Azure's key were a role
    cloud.faults.coming.append((method, (401, "Unauthorized")))
    with pytest.raises(StorageBusy, match=re.escape(cloud.root)):
        call(cloud.root, tmp_path)
    call(cloud.root, tmp_path)


@pytest.mark.parametrize("verb", VERBS)
def test_a_refusal_is_final_for_every_verb(verb: str, cloud: Cloud, tmp_path: Path) -> None:
    connect(cloud.root).create("there", b"body")
    method, (_, call) = cloud.method(verb), VERBS[verb]
    final = [case for case in FINAL if case[0][0] != 401 or not cloud_client.renews(cloud.root)]
    for fault, kind, named in final:
        cloud.faults.coming.extend([(method, fault)] * (cloud_client.RETRIES + 1))
        setting = cloud.keys if named == "keys" else named
        with pytest.raises(kind, match=f"{re.escape(cloud.root)}.*{setting}") as refusal:
            call(cloud.root, tmp_path)
        assert refusal.type is kind, fault
        cloud.faults.coming.clear()


@pytest.mark.parametrize("fault", ["lost_request", "lost_answer", (503, "SlowDown")])
def test_a_commit_survives_what_networks_do(cloud: Cloud, fault: Fault) -> None:
    """The object of a lost answer is our own: the retry meets it, and equal bytes are success."""
    cloud.faults.coming.append(("PUT", fault))
    commit(connect(cloud.root), "manifest.json", b"body")
    assert cloud.faults.happened == [("PUT", fault)]
    assert connect(cloud.root).read("manifest.json") == b"body"
    assert connect(cloud.root).create("manifest.json", b"body"), "equal bytes are ours"
    assert not connect(cloud.root).create("manifest.json", b"other")


def test_a_body_that_breaks_off_is_requested_again_and_never_taken_as_whole(cloud: Cloud) -> None:
    body = os.urandom(300_000)
    connect(cloud.root).create("object", body)
    cloud.faults.coming += [("GET", "short_body")] * 2
    assert connect(cloud.root).read("object") == body
    cloud.faults.coming += [("GET", "short_body")] * 2
    assert connect(cloud.root).read_ranges("object", [(10, 200_000)]) == [body[10:200_000]]
    cloud.faults.coming[:] = [("GET", "short_body")] * 100
    with pytest.raises(StorageBusy, match=re.escape(f"{cloud.root}/object: ")):
        connect(cloud.root).read("object")


def test_every_commit_has_the_condition_that_its_store_documents(cloud: Cloud) -> None:
    store = connect(cloud.root)
    assert store.create("first", b"body")
    store.create("second", b"body")
    assert cloud.faults.conditions[-1] == cloud.condition
    assert set(cloud.faults.conditions) == {cloud.condition}


def test_a_server_without_conditional_puts_is_refused_by_its_first_commit(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The condition is left out where it is sent: Azure's requests sign it, so no proxy can take it away."""
    with monkeypatch.context() as unheeded:
        unheeded.setattr(cloud_store, "IF_ABSENT", {"use_multipart": False})
        for call in (
            lambda: connect(cloud.root).create("there", b"body"),
            lambda: storage.require_conditional(cloud.root),
        ):
            with pytest.raises(RecipeError, match=f"{re.escape(cloud.root)}.*doctor"):
                call()
    assert connect(cloud.root).create("next", b"body"), "a server that heeds them is asked once"
    before = cloud.faults.requests
    assert connect(cloud.root).create("third", b"body")
    assert cloud.faults.requests == before + 1


def test_parts_of_a_large_file_are_one_object(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud_store, "PART", 5 * 1024 * 1024)
    body = os.urandom(12 * 1024 * 1024)
    cloud.faults.coming.append(("PUT", (503, "SlowDown")))
    put(cloud.root, "data/large", body, tmp_path)
    assert cloud.faults.happened
    assert connect(cloud.root).read("data/large") == body


def test_a_large_file_that_breaks_off_is_no_object(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_store, "PART", 5 * 1024 * 1024)
    cloud.faults.coming += [("PUT", (503, "SlowDown"))] * 60
    with pytest.raises(StorageBusy, match=re.escape(f"{cloud.root}/data/large: ")):
        put(cloud.root, "data/large", bytes(12 * 1024 * 1024), tmp_path)
    cloud.faults.coming.clear()
    assert paths(cloud.root) == []


def test_a_missing_bucket_is_named(cloud: Cloud, tmp_path: Path) -> None:
    root = f"{cloud.root[:5]}refinery-nobody-made-this/root"
    calls: list[Callable[[], object]] = [
        lambda: connect(root).read("object"),
        lambda: connect(root).size("object"),
        lambda: connect(root).create("object", b""),
        lambda: put(root, "object", b"", tmp_path),
        lambda: paths(root),
        lambda: storage.require_usable(root),
    ]
    for call in calls:
        with pytest.raises(RecipeError, match="refinery-nobody-made-this does not exist"):
            call()


@pytest.mark.parametrize("path", ["a//b", "./a", "a/.", "a/", ""])
def test_a_path_that_obstore_would_write_in_another_way_is_refused(cloud: Cloud, path: str) -> None:
    with pytest.raises(ContractError, match=re.escape(cloud.root)):
        connect(cloud.root).create(path, b"body")
    assert paths(cloud.root) == []


def test_a_process_that_was_forked_after_a_request_is_refused_and_does_not_wait(cloud: Cloud) -> None:
    """obstore's threads stay with the parent: the child waited for ever."""
    connect(cloud.root).create("there", b"body")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)  # it would wait for ever
        try:
            connect(cloud.root).read("there")
        except RecipeError as error:
            os.write(writer, str(error).encode())
        except BaseException:  # noqa: BLE001 -- the parent shows it
            os.write(writer, traceback.format_exc().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    assert text.startswith(f"{cloud.root}: this process was forked")
    assert "spawn" in text


def test_what_a_uri_was_given_decides_alone(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A triggerer serves two teams: the keys of one are in its environment, those of the other were given."""
    connect(cloud.root).create("there", b"body")
    prefix = "GOOGLE_" if cloud.root.startswith("gs://") else "AZURE_"
    known = {name: value for name, value in os.environ.items() if name.startswith(prefix)}
    monkeypatch.setattr(store_settings, "_GIVEN", {})
    if prefix == "AZURE_":
        monkeypatch.setenv("AZURE_STORAGE_TOKEN", "of-another-team")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "another")
    else:
        monkeypatch.setenv("GOOGLE_BASE_URL", "http://127.0.0.1:9")
    store_settings.give(cloud.root, known)
    assert connect(cloud.root).read("there") == b"body"


def test_google_refuses_to_mix_what_was_given_with_a_variable_that_obstore_heeds(
    s3_root: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = s3_root.replace("s3://", "gs://")
    monkeypatch.setattr(store_settings, "_GIVEN", {})
    with cloud_servers.google(s3_server.endpoint, monkeypatch) as faults:
        store_settings.give(root, {"GOOGLE_BASE_URL": faults.endpoint, "GOOGLE_BEARER_TOKEN": "of-tests"})
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "/of/another/team.json")
        with pytest.raises(RecipeError, match="GOOGLE_SERVICE_ACCOUNT is set"):
            connect(root).read("there")


def test_a_store_without_account_or_credentials_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cloud_servers.forget(monkeypatch, "AZURE_", "GOOGLE_")
    with pytest.raises(RecipeError, match=r"az://container: .*AZURE_STORAGE_ACCOUNT_NAME"):
        storage.require_usable("az://container/root")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(RecipeError, match=r"gs://bucket: .*GOOGLE_APPLICATION_CREDENTIALS"):
        storage.require_usable("gs://bucket/root")
