"""A server of OpenAI's protocol writes: what it answers, and what is made of its faults."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from refinery_models.generators import server as of_server

from pipeline_tasks.errors import RecipeError, Transient
from pipeline_tasks.generators.generator import Generator, Model, Request, Sampling, Written
from pipeline_tasks.generators.kinds import check, load
from pipeline_tasks.store.credential import masked
from pipeline_tasks.testing.generators import check_generator
from tests.generating_server import MODEL, Fault, GeneratingServer, generating_server, server_process
from tests.ports import closed_port

CHAT = Model(kind="endpoint", name=MODEL, revision="r1")
DRAWN = Sampling(temperature=0.7, top_p=0.9, max_tokens=40)
GREEDY = Sampling(max_tokens=40)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[GeneratingServer]:
    with generating_server() as running:
        reach(running, monkeypatch)
        yield running


def reach(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)


def requests(count: int) -> list[Request]:
    return [Request("Rewrite.", f"Number {each} of a list.", each) for each in range(count)]


def texts(generator: Generator, asked: list[Request]) -> list[Written]:
    said = dict(generator.write(asked))
    return [said[place] for place in range(len(asked))]


@pytest.mark.parametrize("kind", ["endpoint", "completions"])
@pytest.mark.parametrize("sampling", [GREEDY, DRAWN], ids=["greedy", "drawn"])
def test_the_suite(server: GeneratingServer, kind: str, sampling: Sampling) -> None:
    server.bad = {"POISON": "invalid_value"}
    check_generator(
        Model(kind=kind, name=MODEL),
        sampling,
        bad={"a POISON of words": "error", "word " * 5000: "too_long"},
    )


def test_a_server_gets_what_the_recipe_says(server: GeneratingServer) -> None:
    [said] = texts(load(CHAT, DRAWN), [Request("Be brief.", "Say it again.", 2**40 + 5)])
    [body] = server.asked
    assert body == {
        "model": MODEL,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say it again."}],
        "max_tokens": 40,
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 5,
        "n": 1,
        "stream": False,
    }
    assert (said.stop, said.tokens_in, said.tokens_out) == ("stop", 5, 4)
    assert server.paths == ["/v1/models", "/v1/chat/completions"]


def test_a_greedy_request_has_no_seed(server: GeneratingServer) -> None:
    texts(load(CHAT, GREEDY), requests(1))
    assert not {"seed", "top_p"} & server.asked[0].keys()


def test_a_model_without_a_template_goes_on_with_a_text(server: GeneratingServer) -> None:
    texts(load(Model(kind="completions", name=MODEL), GREEDY), [Request("Be brief.", "Say it.", 1)])
    assert (server.asked[0]["prompt"], server.paths[-1]) == ("Be brief.\n\nSay it.\n\n", "/v1/completions")


def test_a_text_ends_at_its_bound(server: GeneratingServer) -> None:
    [said] = texts(load(CHAT, Sampling(max_tokens=2)), requests(1))
    assert said == Written("Number 0", "length", 6, 2)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("refuse", Written(None, "refused", 1, 0, "content_filter")),
        ("content_filter", Written(None, "refused", 0, 0, "content_filter")),
        ("context_length_exceeded", Written(None, "too_long", 0, 0, "context_length_exceeded")),
        ("invalid value: POISON", Written(None, "error", 0, 0, "invalid_value_POISON")),
        ("500", Written(None, "error", 0, 0, "status_500")),
    ],
)
def test_a_bad_request_costs_itself(server: GeneratingServer, code: str, expected: Written) -> None:
    server.bad = {"POISON": code}
    asked = requests(5)
    said = texts(load(CHAT, GREEDY), [*asked[:2], Request("", "POISON", 1), *asked[2:]])
    assert said[2] == expected
    assert [each.stop for each in said].count("stop") == 5


@pytest.mark.parametrize(
    "fault",
    ["closed", "broken", "no_json", "hangs", (503, "loading"), (429, "rate_limit", "0.1"), (502, "bad_gateway")],
    ids=str,
)
def test_a_server_that_fails_is_asked_again(
    server: GeneratingServer, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(of_server.SECONDS, "1")
    monkeypatch.setenv(of_server.PATIENCE, "20")
    server.hanging = 1.5
    expected = texts(load(CHAT, DRAWN), requests(8))
    server.coming = [fault] * 3
    assert texts(load(CHAT, DRAWN), requests(8)) == expected
    assert not server.coming


@pytest.mark.parametrize("fault", ["closed", (503, "loading"), (429, "rate_limit", "9"), "no_json"], ids=str)
def test_a_server_that_stays_away_is_transient(server: GeneratingServer, fault: Fault) -> None:
    generator = load(CHAT, GREEDY)
    server.always = fault
    with pytest.raises(Transient, match="REFINERY_ENDPOINT_PATIENCE"):
        texts(generator, requests(40))
    assert len(server.asked) < 200


def test_what_was_written_before_a_failure_stays(server: GeneratingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(of_server.REQUESTS, "4")
    monkeypatch.setenv(of_server.PATIENCE, "0.2")
    generator, said, sent = load(CHAT, GREEDY), [], []
    with pytest.raises(Transient):
        said.extend(failing_after(20, generator, server, sent))
    assert len(said) >= 20
    assert all(written.stop == "stop" for _, written in said)
    assert len({*server_users(server)}) <= sent[0] + 4, "after a failure nothing new is sent"


def failing_after(
    count: int, generator: Generator, server: GeneratingServer, sent: list[int]
) -> Iterator[tuple[int, Written]]:
    for rank, answer in enumerate(generator.write(requests(60))):
        if rank == count:
            server.always = (503, "shutting_down")
            sent.append(len({*server_users(server)}))
        yield answer


def server_users(server: GeneratingServer) -> list[str]:
    return [body["messages"][-1]["content"] for body in server.asked]


def test_a_server_killed_in_the_middle_costs_what_was_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with server_process(0.01) as server:
        reach(server, monkeypatch)
        monkeypatch.setenv(of_server.PATIENCE, "60")
        asked, said = requests(300), {}
        expected = texts(load(CHAT, DRAWN), asked)
        for place, written in load(CHAT, DRAWN).write(asked):
            said[place] = written
            if len(said) == 100:
                server.kill()
                threading.Timer(0.5, server.start).start()
        assert [said[place] for place in range(300)] == expected
        assert server.written() <= 300 - 100 + 16


def test_requests_on_their_way_are_bounded(server: GeneratingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(of_server.REQUESTS, "3")
    server.pause = 0.02
    texts(load(CHAT, GREEDY), requests(30))
    assert server.most == 3


def test_nothing_is_sent_for_who_waits_no_more(server: GeneratingServer) -> None:
    server.pause = 0.05
    for _ in load(CHAT, GREEDY).write(requests(200)):
        break
    sent = len(server.asked)
    time.sleep(0.3)
    assert len(server.asked) == sent < 50


def test_a_redirect_is_not_followed(server: GeneratingServer) -> None:
    generator = load(CHAT, GREEDY)
    server.always = "redirect"
    with pytest.raises(RecipeError, match="leads elsewhere"):
        texts(generator, requests(1))


def test_a_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with generating_server(key="sk-of-tests-123456") as server:
        reach(server, monkeypatch)
        generator = load(CHAT, GREEDY)
        assert texts(generator, requests(1))[0].stop == "stop"
        assert "sk-of-tests" not in repr(generator)
        assert masked(b"x sk-of-tests-123456 y")[1] == 1
        monkeypatch.setenv(of_server.KEY, "sk-another-123456")
        with pytest.raises(RecipeError, match=r"does not take the key; set REFINERY_ENDPOINT_KEY") as error:
            texts(load(CHAT, GREEDY), requests(1))
        assert "sk-" not in str(error.value)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"REFINERY_ENDPOINT": ""}, "REFINERY_ENDPOINT is not set"),
        ({"REFINERY_ENDPOINT": "ftp://host/v1"}, "no address of a server"),
        ({"REFINERY_ENDPOINT": "http://me:secret@host/v1"}, "no address of a server"),
        ({"REFINERY_ENDPOINT": "http://host:x/v1"}, "no address of a server"),
        ({"REFINERY_ENDPOINT_REQUESTS": "many"}, "REFINERY_ENDPOINT_REQUESTS is 'many'"),
    ],
)
def test_what_an_operator_wrote_wrong_is_said(
    server: GeneratingServer, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RecipeError, match=message) as error:
        load(CHAT, GREEDY)
    assert "secret@" not in str(error.value)


def test_a_model_that_the_server_has_not_is_refused(server: GeneratingServer) -> None:
    with pytest.raises(RecipeError, match=f"no model 'tiny-writr'; the nearest are '{MODEL}'"):
        load(Model(kind="endpoint", name="tiny-writr"), GREEDY)


def test_an_answer_of_another_model_is_refused(server: GeneratingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = load(CHAT, GREEDY)
    server.model = "another"
    server.always = (200, "")
    monkeypatch.setattr(of_server, "_parsed", lambda _: {"model": "another", "choices": []})
    with pytest.raises(RecipeError, match="'another' answered"):
        texts(generator, requests(1))


def test_no_server_at_the_address(server: GeneratingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with closed_port() as port:
        monkeypatch.setenv(of_server.ENDPOINT, f"http://127.0.0.1:{port}/v1")
        monkeypatch.setenv(of_server.PATIENCE, "0.5")
        with pytest.raises(Transient, match="did not answer"):
            load(CHAT, GREEDY)


def test_a_revision_is_identity(server: GeneratingServer) -> None:
    one, other = (load(Model(kind="endpoint", name=MODEL, revision=each), GREEDY) for each in ("r1", "r2"))
    assert one.name.startswith(f"{MODEL}@")
    assert one.name != other.name
    assert one.hardware == "a server of tests"


def test_a_kind_says_what_it_needs() -> None:
    with pytest.raises(RecipeError, match=r"write what it calls the model in `name`$"):
        check(Model(kind="endpoint"))
    with pytest.raises(RecipeError, match="and no `model`"):
        check(Model(kind="endpoint", name="x", model="/a/folder"))
