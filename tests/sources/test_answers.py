"""Each answer closes no more than it forbids, redirects stay within a site, and no secret leaves its origin."""

import contextlib
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from refinery_sources.budget import OPEN, circuits
from refinery_sources.download import download
from refinery_sources.ranged import read_range
from refinery_sources.redirects import HOPS
from refinery_sources.source import Flow, Part
from refinery_sources.web import PIECE, answered, contents

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete, SourceBusy, SourceRefused
from tests.sources.pulling import on_loopback

pytestmark = pytest.mark.usefixtures("budgets")

Answers = Mapping[str, httpx.Response]
SECRET = {"Authorization": "Bearer secret", "X-Key": "secret", "Accept": "application/json"}


def asked(answers: Answers, url: str) -> tuple[httpx.Response, list[httpx.Request]]:
    """Ask a web of these answers for a URL, with secrets; return the answer, and all requests."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return answers.get(str(request.url.copy_with(query=None)), httpx.Response(404))

    with on_loopback() as on:
        own = replace(on, client=httpx.Client(transport=httpx.MockTransport(answer)))
        with answered(own, url, headers=SECRET, secret={"key": "secret"}) as response:
            response.read()
            return response, requests


def is_open(host: str) -> bool:
    return all(circuit.state == OPEN for circuit in circuits() if circuit.host == host)


@pytest.mark.parametrize(
    ("status", "headers", "error", "opened"),
    [
        (401, {}, RecipeError, True),
        (401, {"WWW-Authenticate": "Bearer"}, RecipeError, True),
        (403, {}, SourceRefused, False),
        (403, {"x-ratelimit-remaining": "7", "x-ratelimit-reset": "9"}, SourceRefused, False),
        (404, {}, SnapshotIncomplete, True),
        (418, {}, RecipeError, True),
        (503, {}, SourceBusy, True),
    ],
)
def test_an_answer_closes_its_host_only_if_it_refuses_the_host(
    status: int, headers: dict[str, str], error: type[Exception], opened: bool
) -> None:
    url = "https://api.example.org/items"
    with pytest.raises(error, match=f"https://api.example.org/items .*{status}|{status}") as caught:
        asked({url: httpx.Response(status, headers=headers)}, url)
    assert isinstance(caught.value, SourceRefused) == (not opened)
    assert is_open("api.example.org") == opened
    assert "secret" not in str(caught.value)
    assert ("credential" in str(caught.value)) == (status == 401)


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    "headers",
    [
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "3"},
        {"retry-after": "3"},
        {"ratelimit": '"api";r=0;t=3'},
    ],
)
def test_a_limit_of_requests_is_waited_for_and_closes_nothing(headers: dict[str, str], status: int) -> None:
    url = "https://api.example.org/items"
    with pytest.raises(SourceBusy, match=str(status)):
        asked({url: httpx.Response(status, headers=headers)}, url)
    (circuit,) = circuits()
    assert (circuit.host, circuit.state) == ("api.example.org", "paused")


@pytest.mark.parametrize(
    ("first", "second", "carries"),
    [
        ("https://api.github.com/repos/old/name", "https://api.github.com/repositories/7", True),
        ("http://api.github.com/repos", "https://api.github.com/repos", False),
        ("https://archive.org/download/x", "https://ia800.us.archive.org/1/x", False),
        ("https://data.bbc.co.uk/x", "https://mirror.bbc.co.uk/x", False),
    ],
)
def test_a_redirect_within_a_site_is_followed_and_secrets_stay(first: str, second: str, carries: bool) -> None:
    moved = httpx.Response(301, headers={"Location": second})
    response, requests = asked({first: moved, second: httpx.Response(200, content=b"{}")}, first)
    assert (response.content, len(requests)) == (b"{}", 2)
    assert all(request.headers["accept"] == "application/json" for request in requests)
    assert [b"secret" in str(request.url).encode() for request in requests] == [True, carries]
    assert ["secret" in str(request.headers.get("authorization", "")) for request in requests] == [True, carries]
    assert ["x-key" in request.headers for request in requests] == [True, carries]


def test_a_secret_does_not_come_back_through_another_host() -> None:
    here, there = "https://archive.org/x", "https://ia800.us.archive.org/x"
    answers = {
        here: httpx.Response(302, headers={"Location": there}),
        there: httpx.Response(302, headers={"Location": "https://archive.org/y"}),
        "https://archive.org/y": httpx.Response(200),
    }
    _, requests = asked(answers, here)
    assert [("authorization" in request.headers, "key" in request.url.params) for request in requests] == [
        (True, True),
        (False, False),
        (False, False),
    ]


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("https://example.com/x", "site"),
        ("https://co.uk/x", "site"),
        ("https://evil.co.uk/x", "site"),
        ("https://one.bbc.co.uk:8443/x", "site"),
        ("http://one.bbc.co.uk/x", "TLS"),
        ("https://127.0.0.1/x", "number"),
        ("https://[::1]/x", "number"),
        ("https://localhost/x", "number"),
        ("https://169.254.169.254/latest/meta-data", "number"),
        ("https://user:word@one.bbc.co.uk/x", "web"),
        ("file:///etc/passwd", "web"),
        ("", "web"),
    ],
)
def test_a_redirect_out_of_a_site_is_not_followed(location: str, named: str) -> None:
    url = "https://one.bbc.co.uk/file"
    with pytest.raises(RecipeError, match=f"^{re.escape(url)} is redirected .*{named}"):
        asked({url: httpx.Response(302, headers={"Location": location})}, url)


def test_tenants_of_a_host_are_no_site() -> None:
    url = "https://one.github.io/x"
    with pytest.raises(RecipeError, match="another site"):
        asked({url: httpx.Response(302, headers={"Location": "https://two.github.io/x"})}, url)


def test_redirects_without_end_are_ended() -> None:
    url = "https://example.org/x"
    with pytest.raises(RecipeError, match=f"more than {HOPS} times"):
        asked({url: httpx.Response(302, headers={"Location": url})}, url)


def test_a_person_reopens_a_host_as_its_refusal_says(capsys: pytest.CaptureFixture[str]) -> None:
    url = "https://api.example.org/items"
    with pytest.raises(SourceRefused) as caught:
        asked({url: httpx.Response(403)}, url)
    command = re.search(r"`refinery (look sources --reopen \S+)`", str(caught.value))
    assert command
    assert main(command[1].split()) == 0
    assert "api.example.org" in capsys.readouterr().err
    assert asked({url: httpx.Response(200)}, url)[0].status_code == 200
    assert main(["look", "sources", "--reopen", "other.example.org"]) == RecipeError.exit_code
    assert "api.example.org" in capsys.readouterr().err


ZEROS = bytes(8 << 20)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip, gzip", gzip.compress(gzip.compress(ZEROS))),
        ("br", pa.compress(ZEROS, "brotli", asbytes=True)),
        ("zstd", pa.compress(ZEROS, "zstd", asbytes=True)),
    ],
)
def test_a_coding_that_nobody_asked_for_is_not_unpacked(coding: str, body: bytes) -> None:
    answer = httpx.Response(200, headers={"Content-Encoding": coding}, stream=httpx.ByteStream(body))
    with pytest.raises(RecipeError, match=f"'{coding}', which nobody asked for"):
        [*contents(answer, "https://api.example.org/items")]


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate"])
def test_a_small_answer_that_is_large_unpacked_comes_in_pieces(coding: str) -> None:
    body = zlib.compress(ZEROS) if coding == "deflate" else gzip.compress(ZEROS)
    answer = httpx.Response(200, headers={"Content-Encoding": coding}, stream=httpx.ByteStream(body))
    pieces = [*contents(answer, "https://api.example.org/items")]
    assert b"".join(pieces) == ZEROS
    assert max(map(len, pieces)) <= PIECE


def test_an_answer_that_is_no_gzip_is_damaged() -> None:
    answer = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b'{"items": []}'))
    with pytest.raises(ContractError, match="is damaged"):
        [*contents(answer, "https://api.example.org/items")]


@pytest.mark.parametrize("digits", ["9" * 5_000, "٣", "²", "-1"])
def test_a_length_that_is_none_is_damage_and_no_other_error(digits: str, tmp_path: Path) -> None:
    for status, name, value in ((200, b"Content-Length", digits), (206, b"Content-Range", f"bytes 0-1/{digits}")):
        answer = httpx.Response(status, headers=[(name, value.encode())], stream=httpx.ByteStream(b"ab"))

        @contextlib.contextmanager
        def ask(*_: object, answer: httpx.Response = answer) -> Iterator[httpx.Response]:
            yield answer

        part = Part("a.warc.gz", "https://api.example.org/a.warc.gz")
        with on_loopback() as on, pytest.raises((ContractError, SourceBusy)):
            download(on, part, tmp_path / "a", Flow(), ask)
        own = httpx.Client(transport=httpx.MockTransport(lambda _, answer=answer: answer))
        if status == 206:
            with on_loopback() as on, pytest.raises(ContractError, match="answered with"):
                read_range(replace(on, client=own), part.address, 0, 2)
