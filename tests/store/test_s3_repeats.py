"""An answer of S3 is asked for again as often as its kind says, a refusal never, and each is the error of its kind."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from xml.sax.saxutils import escape

import pytest
from botocore.awsrequest import AWSResponse
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError
from botocore.httpsession import HTTPClientError

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, NoSpace, RecipeError, StorageBusy, Transient
from pipeline_tasks.store.s3 import errors as s3_errors
from pipeline_tasks.store.s3.client import forget_clients, s3_client
from pipeline_tasks.store.s3.errors import (
    _CREDENTIALS,
    _ELSEWHERE,
    _EXPIRED,
    CONFLICT_TRIES,
    LOST_TRIES,
    TRIES,
    Incapable,
    listed_error,
    settled,
    translated,
)
from tests.pauses import slept

BUSY = [(status, "") for status in (408, 425, 429, 500, 502, 503, 504, 520, 599)] + [
    (400, code) for code in ("SlowDown", "Throttling", "RequestTimeout", "503", "429")
]
"""Statuses, and codes under a status of a refusal, of a store that cannot do it now."""

REFUSED = [(400, "InvalidArgument"), (401, "Unauthorized"), (403, "AccessDenied"), (404, "NoSuchKey"), (499, "Closed")]
INCAPABLE = [(405, "MethodNotAllowed"), (501, "NotImplemented"), (507, "InsufficientStorage")]
MET = [(409, "OperationAborted"), (412, "PreconditionFailed")]
"""Answers to a request that met another one."""


class Answers:
    """Answers every request of a client in the place of a server, and counts them."""

    def __init__(self, client: BaseClient) -> None:
        self.client, self.sent = client, 0
        self.answer: tuple[int, str] | Exception = (200, "")

    def __call__(self, request: Any, **_: object) -> AWSResponse:
        self.sent += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        status, code = self.answer
        body = f"<Error><Code>{escape(code)}</Code><Message>no</Message></Error>".encode()
        raw = SimpleNamespace(stream=lambda *_args, **_kwargs: iter([body]), read=lambda *_: body)
        return AWSResponse(request.url, status, {"content-type": "application/xml"}, raw)

    def times_sent(self, answer: tuple[int, str] | Exception, **condition: str) -> int:
        """Return how often a PUT is sent that is always answered so."""
        self.answer, self.sent = answer, 0
        with pytest.raises((ClientError, HTTPClientError, EndpointConnectionError)):
            self.client.put_object(Bucket="bucket", Key="key", Body=b"body", **condition)
        return self.sent


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Answers]:
    """A client of a store that no request reaches; the test's param, if it has one, is AWS_MAX_ATTEMPTS."""
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.delenv("AWS_MAX_ATTEMPTS", raising=False)
    if attempts := getattr(request, "param", ""):
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", attempts)
    monkeypatch.setattr(s3_errors, "PAUSE", 0.0)
    forget_clients()
    client = s3_client(uri="s3://bucket/root")
    answered = Answers(client)
    client.meta.events.register("before-send.s3", answered)
    yield answered
    forget_clients()


def test_each_answer_is_asked_for_as_often_as_its_kind_says(answers: Answers) -> None:
    expected = {
        **dict.fromkeys(BUSY, TRIES),
        **dict.fromkeys(MET, CONFLICT_TRIES),
        **dict.fromkeys([*REFUSED, *INCAPABLE], 1),
    }
    assert {answer: answers.times_sent(answer) for answer in expected} == expected


def test_a_conditional_put_that_met_another_one_is_sent_once(answers: Answers) -> None:
    assert [answers.times_sent(answer, IfNoneMatch="*") for answer in MET] == [1, 1]
    assert answers.times_sent((503, "SlowDown"), IfNoneMatch="*") == TRIES


def test_a_lost_connection_is_made_again_and_another_fault_of_this_side_is_not(answers: Answers) -> None:
    lost = EndpointConnectionError(endpoint_url="http://nowhere")
    assert answers.times_sent(lost) == LOST_TRIES
    with pytest.raises(ZeroDivisionError):
        answers.times_sent(ZeroDivisionError())
    assert answers.sent == 1


@pytest.mark.parametrize("answers", ["3"], indirect=True)
def test_a_set_number_of_tries_is_that_of_busy_stores_and_lost_connections(answers: Answers) -> None:
    assert answers.times_sent((503, "SlowDown")) == 3
    assert answers.times_sent(EndpointConnectionError(endpoint_url="http://nowhere")) == 3
    assert answers.times_sent((403, "AccessDenied")) == 1


MEANINGS: dict[str, tuple[type[Exception], list[tuple[int, str]]]] = {
    "cannot answer now": (StorageBusy, BUSY),
    "did not settle": (StorageBusy, MET),
    "credentials have expired": (StorageBusy, [(400, code) for code in _EXPIRED]),
    "the bucket's policy": (RecipeError, [(401, "Unauthorized"), *((403, code) for code in _CREDENTIALS)]),
    "bucket bucket does not exist": (RecipeError, [(404, "NoSuchBucket")]),
    "set AWS_REGION": (RecipeError, [(301, code) for code in _ELSEWHERE]),
    "clock": (RecipeError, [(403, "RequestTimeTooSkewed")]),
    "correct AWS_ENDPOINT_URL": (Incapable, [(405, "MethodNotAllowed"), (501, "Unknown"), (400, "NotImplemented")]),
    "free space": (NoSpace, [(507, "InsufficientStorage")]),
    "refused the request": (ContractError, [(400, "InvalidArgument"), (404, "NoSuchKey"), (499, "Closed")]),
}
"""What answers that are no success mean for Refinery, by words of the message."""


def answered(status: int, code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


@pytest.mark.parametrize("words", MEANINGS)
def test_each_answer_is_the_error_of_its_kind_and_names_a_way_out(words: str) -> None:
    kind, given = MEANINGS[words]
    for status, code in given:
        error = translated("s3://bucket/root/there", "bucket", answered(status, code))
        assert type(error) is kind, (status, code)
        assert re.search(f"^s3://bucket/root/there: .*{words}", str(error)), str(error)


def test_no_answer_is_busy_and_names_the_endpoint() -> None:
    for error in (EndpointConnectionError, ConnectTimeoutError):
        silent = translated("s3://bucket/root", "bucket", error(endpoint_url="http://nowhere:9/bucket?list-type=2"))
        assert type(silent) is StorageBusy
        assert re.search(
            "the object store at http://nowhere:9 did not .* check that it runs, AWS_ENDPOINT_URL", str(silent)
        )
    nameless = str(translated("s3://bucket/root", "bucket", ValueError("odd")))
    assert nameless.startswith("s3://bucket/root: the object store did not answer (odd); ")


def test_a_command_whose_store_is_not_reachable_ends_as_one_that_may_succeed_later(
    closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "REGION": "us-east-1", "MAX_ATTEMPTS": "1"}
    for name, value in {**settings, "ENDPOINT_URL": f"http://127.0.0.1:{closed_port}"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    assert main(["look", "versions", "s3://bucket/root"]) == StorageBusy.exit_code == Transient.exit_code == 75
    said = capsys.readouterr().err
    assert f"s3://bucket/root/: the object store at http://127.0.0.1:{closed_port} did not answer (" in said
    assert "check that it runs, AWS_ENDPOINT_URL, and the network" in said


@pytest.mark.parametrize("code", [*(code for _, code in BUSY if code), "InternalError", "ServiceUnavailable"])
def test_an_object_of_a_list_that_a_store_cannot_delete_now_is_busy(code: str) -> None:
    assert type(translated("s3://b/r", "b", listed_error({"Code": code}, "DeleteObjects"))) is StorageBusy


def test_an_object_of_a_list_that_is_refused_is_refused() -> None:
    for code, kind in (("AccessDenied", RecipeError), ("MalformedXML", ContractError)):
        assert type(translated("s3://b/r", "b", listed_error({"Code": code}, "DeleteObjects"))) is kind


def test_a_conditional_put_is_tried_until_it_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = slept(monkeypatch, s3_errors)
    for ending in (True, False):
        outcomes = iter([None] * (CONFLICT_TRIES - 1) + [ending])
        assert settled("s3://b/r/path", "path", outcomes.__next__) is ending
    assert pauses == [s3_errors.pause(number, "path") for number in range(1, CONFLICT_TRIES)] * 2
    with pytest.raises(StorageBusy, match=f"^s3://b/r/path: .* {CONFLICT_TRIES} tries"):
        settled("s3://b/r/path", "path", lambda: None)
