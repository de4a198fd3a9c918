"""No request ends a driver or a daemon, whatever its bytes: it is refused, its task is told, and the next one is done."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.service import driver as drivers
from pipeline_tasks.service.daemon import Daemon
from pipeline_tasks.service.driver import Driver
from pipeline_tasks.service.requests.stages import LandRequest
from pipeline_tasks.service.requests.wire import DEEPEST, encode
from pipeline_tasks.service.session import Session
from pipeline_tasks.service.verbs import verbs
from tests.cluster.containers import wait_until
from tests.service.test_requests import request


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def garbage(verb: str) -> Iterator[bytes]:
    """Yield what a verb's request is not: cut, of other types, too deep, with bytes that no text has."""
    whole = json.dumps(request(verb, "root")).encode()
    yield from (whole[:-1], whole[: len(whole) // 2], whole + b"}", whole[:9] + b"\0" + whole[9:], b"\xff" + whole)
    yield from (b"[%s]" % whole, json.dumps(whole.decode()).encode(), b"7" * 5_000, b"null", b"{}")
    yield from (nested(levels).encode() for levels in (DEEPEST + 1, 100_000))
    for name in (entry.name for entry in fields(verbs()[verb].request)):
        yield json.dumps({**request(verb, "root"), name: "VALUE"}).replace('"VALUE"', nested(DEEPEST)).encode()
        yield json.dumps({**request(verb, "root"), name: {"\0": "\0\ud800"}}).encode()
    yield json.dumps({**request(verb, "root"), "engine": {"engine": []}, "\0": 1}).encode()


EVERY = [body for verb in verbs() for body in garbage(verb)]


def valid(root: Path) -> LandRequest:
    """A request that can be done."""
    (root / "day").mkdir(parents=True)
    (root / "day" / "0.jsonl").write_text('{"text": "text"}\n')
    return LandRequest(str(root / "root"), str(root / "day"), snapshot="day")


def test_a_driver_refuses_what_is_no_request_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "POLL", 0.05)
    session = Session(str(tmp_path / "root"), "ingest-0")
    bodies = {f"job{number}": body for number, body in enumerate(EVERY[::3])}  # an object each; a daemon has them all
    for job, body in bodies.items():
        session.store.create(session.path(f"{job}.json"), body)
    session.driver({})
    driver = Driver(session, 1)
    serving = threading.Thread(target=driver.serve, daemon=True)
    serving.start()
    wait_for(lambda: len(session.job_names()) == 2 * len(bodies) or not serving.is_alive())
    assert serving.is_alive()
    replies = {job: session.reply(job) or {} for job in bodies}
    assert {job: bodies[job][:200] for job, reply in replies.items() if reply.get("error") != "RecipeError"} == {}
    session.store.create(session.path("last.json"), json.dumps(encode(valid(tmp_path))).encode())
    wait_for(lambda: session.reply("last") or not serving.is_alive())
    assert (session.reply("last") or {}).get("snapshot") == "day"
    assert not driver.dispatcher.spoiled.is_set()
    session.close(1)
    serving.join(60)


def wait_for(is_so: Callable[[], object]) -> None:
    for _ in wait_until("every request has a reply", 120, each=0.1):
        if is_so():
            return


def test_a_daemon_refuses_what_is_no_request_and_goes_on(tmp_path: Path) -> None:
    daemon, (here, there) = Daemon(), Pipe()
    serving = threading.Thread(target=daemon.serve, args=(there,), daemon=True)
    serving.start()

    def answered(body: bytes) -> Any:
        here.send_bytes(body)
        return json.loads(here.recv_bytes()) if here.poll(60) else {}

    for body in EVERY:
        assert answered(body).get("error") == "RecipeError", body[:200]
    assert answered(json.dumps(encode(valid(tmp_path))).encode())["snapshot"] == "day"
    assert not daemon.dispatcher.spoiled.is_set()
    here.close()
    serving.join(60)


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\0"])
def test_a_reply_that_is_none_is_that_of_a_lost_driver(body: bytes, tmp_path: Path) -> None:
    session = Session(str(tmp_path), "ingest-0")
    session.store.create(session.path("job.reply.json"), body)
    assert (session.reply("job") or {})["error"] == "JobLost"
