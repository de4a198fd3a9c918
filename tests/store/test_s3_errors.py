"""Each status of an S3 server means the same for every verb, as the table in `docs/reference/failures.md` has it."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_tasks.errors import ContractError, NoSpace, RecipeError, StorageBusy
from pipeline_tasks.store.s3 import errors as s3_errors
from pipeline_tasks.store.s3 import store as s3_store
from pipeline_tasks.store.s3.client import s3_client
from pipeline_tasks.store.storage import connect
from tests.faulty_s3 import FaultyS3


def paths(root: str) -> list[str]:
    return [entry.path for entry in connect(root).list("")]


def put(root: str, path: str, body: bytes, place: Path) -> None:
    local = place / "local"
    local.write_bytes(body)
    connect(root).put_file(path, local, hashlib.sha256(body).hexdigest())


Verb = tuple[str, Callable[[str, Path], object]]

VERBS: dict[str, Verb] = {
    "read": ("GET", lambda root, _: connect(root).read("there")),
    "ranges": ("GET", lambda root, _: connect(root).read_ranges("there", [(1, 3)])),
    "list": ("GET", lambda root, _: paths(root)),
    "size": ("HEAD", lambda root, _: connect(root).size("there")),
    "create": ("PUT", lambda root, _: connect(root).create("new", b"mine")),
    "put_file": ("PUT", lambda root, place: put(root, "data/new", b"mine", place)),
    "large put_file": ("POST", lambda root, place: put(root, "data/large", bytes(9 * 1024 * 1024), place)),
    "part of a large put_file": ("PUT", lambda root, place: put(root, "data/large", bytes(9 * 1024 * 1024), place)),
    "delete": ("DELETE", lambda root, _: connect(root).delete("there")),
    "delete many": ("POST", lambda root, _: connect(root).delete_many(["there", "gone"])),
}
"""Everything that is asked of an S3 server, and the method that it is asked by."""

BOTO3S = [(500, "InternalError"), (502, "BadGateway"), (503, "SlowDown"), (504, "GatewayTimeout")]
"""Statuses that boto3 repeats by itself, half a second later."""

PASSING = [*BOTO3S, (520, "Unknown"), (409, "OperationAborted"), (412, "PreconditionFailed")]

FINAL = [
    ((400, "InvalidArgument"), ContractError, ""),
    ((401, "Unauthorized"), RecipeError, "AWS_ACCESS_KEY_ID"),
    ((403, "AccessDenied"), RecipeError, "AWS_ACCESS_KEY_ID"),
    ((405, "MethodNotAllowed"), s3_errors.Incapable, "AWS_ENDPOINT_URL"),
    ((501, "NotImplemented"), s3_errors.Incapable, "AWS_ENDPOINT_URL"),
    ((507, "InsufficientStorage"), NoSpace, ""),
]
"""Statuses that end a run, with the error and the setting that it names."""


@pytest.fixture(autouse=True)
def _with_short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_errors, "PAUSE", 0.001)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_store, "PART", 1024)


def passing(verb: str, form: str) -> list[tuple[int, str]]:
    """Return what a verb is answered in the short form: all that Refinery repeats, and one that boto3 repeats, in turn."""
    ours = PASSING[len(BOTO3S) :]
    return PASSING if form == "long" else [BOTO3S[list(VERBS).index(verb) % len(BOTO3S)], *ours]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("form", ["short", pytest.param("long", marks=pytest.mark.nightly)])
def test_a_status_that_passes_is_no_failure_of_any_verb(
    verb: str, form: str, s3_root: str, faults: FaultyS3, tmp_path: Path
) -> None:
    """409 and 412 on any verb but a conditional PUT ended the run: `ContractError`, never retried."""
    method, call = VERBS[verb]
    outcomes = []
    for fault in passing(verb, form):
        connect(s3_root).create("there", b"body")
        faults.coming.append((method, fault))
        call(s3_root, tmp_path)
        outcomes.append((faults.happened[:], sorted(paths(s3_root))))
        faults.happened.clear()
    written = {"create": ["new"], "put_file": ["data/new"]}.get(verb, ["data/large"] if "large" in verb else [])
    left = sorted([*written, *([] if "delete" in verb else ["there"])])
    assert outcomes == [([(method, fault)], left) for fault in passing(verb, form)]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("verb", VERBS)
def test_a_status_that_does_not_pass_is_busy_and_named(
    verb: str, s3_root: str, faults: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(s3_root).create("there", b"body")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    method, call = VERBS[verb]
    for fault in PASSING:
        faults.coming[:] = [(method, fault)] * 12
        with pytest.raises(StorageBusy, match=re.escape(s3_root)):
            call(s3_root, tmp_path)
        faults.coming.clear()
        assert paths(s3_root) == ["there"]
    assert {fault for _, fault in faults.happened} == set(PASSING)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("verb", VERBS)
def test_a_refusal_is_final_for_every_verb(verb: str, s3_root: str, faults: FaultyS3, tmp_path: Path) -> None:
    connect(s3_root).create("there", b"body")
    method, call = VERBS[verb]
    final = FINAL[verb == "size" :]  # boto3 takes 400 to a HEAD for another region, and asks again
    for fault, kind, setting in final:
        faults.coming.append((method, fault))
        with pytest.raises(kind, match=f"{re.escape(s3_root)}.*{setting}") as refusal:
            call(s3_root, tmp_path)
        assert refusal.type is kind
    assert faults.happened == [(method, fault) for fault, _, _ in final]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"])
def test_expired_credentials_are_asked_for_anew_by_every_verb(
    verb: str, code: str, s3_root: str, faults: FaultyS3, tmp_path: Path
) -> None:
    connect(s3_root).create("there", b"body")
    method, call = VERBS[verb]
    before = s3_client(uri=s3_root)
    faults.coming[:] = [(method, (400, code))] * (2 if verb == "size" else 1)
    if verb == "size":  # the answer to a HEAD has no body: boto3 looks for another region, then a listing says why
        faults.coming.append(("GET", (400, code)))
    with pytest.raises(StorageBusy, match=f"{re.escape(s3_root)}.*expired.*{code}"):
        call(s3_root, tmp_path)
    faults.coming.clear()
    assert s3_client(uri=s3_root) is not before
    call(s3_root, tmp_path)


def test_a_cut_transfer_is_named(
    s3_root: str, faults: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    connect(s3_root).create("there", bytes(100_000))
    for method, call in (VERBS["put_file"], VERBS["create"], VERBS["size"]):
        faults.coming.append((method, "lost_request"))
        with pytest.raises(StorageBusy, match=re.escape(s3_root)):
            call(s3_root, tmp_path)
    faults.coming += [("GET", "short_body")] * s3_store.BODY_TRIES
    with pytest.raises(StorageBusy, match=re.escape(f"{s3_root}/there: ")):
        connect(s3_root).read("there")
    assert not faults.coming
    assert paths(s3_root) == ["there"]


def test_a_server_without_conditional_puts_is_refused_by_its_first_commit(s3_root: str, faults: FaultyS3) -> None:
    """Two attempts committed there, the later over the earlier, and only `doctor` said so."""
    faults.coming += [("PUT", "no_condition"), ("PUT", "no_condition")]
    with pytest.raises(RecipeError, match=re.escape(f"{s3_root}/there: ")):
        connect(s3_root).create("there", b"body")
    assert connect(s3_root).create("next", b"body"), "a server that heeds them is asked once"
    before = faults.requests
    assert connect(s3_root).create("third", b"body")
    assert faults.requests == before + 1


@pytest.mark.slow
def test_a_store_that_refuses_half_of_its_requests_is_waited_for(
    s3_root: str, faults: FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    """boto3 has 500 tokens for what it repeats, and gave up at the first refusal when they were used up."""
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    store, faults.busy = connect(s3_root), 50
    for number in range(150):
        assert store.create(f"object-{number}", b"body")
        assert store.read(f"object-{number}") == b"body"
    faults.busy = 0
    assert len(paths(s3_root)) == 150
    assert faults.requests > 500


def test_a_body_that_changes_on_the_way_is_requested_again_and_then_called_corrupted(
    s3_root: str, faults: FaultyS3
) -> None:
    """It was said that the store did not answer, after one request."""
    connect(s3_root).create("there", b"body")
    faults.coming.append(("GET", "changed_body"))
    assert connect(s3_root).read("there") == b"body"
    faults.coming += [("GET", "changed_body")] * s3_store.BODY_TRIES
    with pytest.raises(StorageBusy, match=f"^{re.escape(s3_root)}.*corrupted") as busy:
        connect(s3_root).read("there")
    assert "did not answer" not in str(busy.value)
    assert not faults.coming


def test_a_pause_doubles_and_depends_on_what_is_asked_for_and_on_nothing_else() -> None:
    pauses = [s3_errors.pause(attempt, "s3://bucket/object") for attempt in range(1, 13)]
    assert pauses == [s3_errors.pause(attempt, "s3://bucket/object") for attempt in range(1, 13)]
    assert all(
        longest / 2 <= pause <= longest
        for pause, longest in zip(pauses, (min(0.001 * 2**at, 20) for at in range(12)), strict=True)
    )
    assert len({s3_errors.pause(3, f"s3://bucket/{number}") for number in range(100)}) == 100
