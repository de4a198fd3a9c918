"""The session of a stage: one driver answers all that is posted, and its death, end and silence are noticed."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.recipe import Resources
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.service import driver as drivers
from pipeline_tasks.service import session as sessions
from pipeline_tasks.service.driver import Driver
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.stages import LandRequest, RecordRequest, SealRequest, SpansRequest
from pipeline_tasks.service.session import LOST, REPLIED, Session, Watch, open_jobs
from tests.cluster.containers import wait_until
from tests.embedded import PROJECT
from tests.faulty_s3 import faulty_s3
from tests.refining import commit_parent
from tests.s3_server import S3Server
from tests.toys import table

FILES = 3


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let drivers and those who wait for them in this process look again soon, and not after seconds."""
    monkeypatch.setattr(drivers, "POLL", 0.05)
    monkeypatch.setattr(sessions, "FRESH", 0.05)


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[[int], RefineRequest]:
    """The requests to ingest one file each of a small snapshot."""
    day, root = tmp_path / "day", str(tmp_path / "root")
    day.mkdir()
    for number in range(FILES):
        (day / f"{number}.jsonl").write_text("".join(f'{{"text": "text {number} {row}"}}\n' for row in range(5)))
    landed = handle(LandRequest(root, str(day), snapshot="day"))["manifest"]
    whole = RefineRequest(root, "ingest", {}, landed, landing=str(day), recipe="web", snapshot="day", run_id="r")
    spans = handle(SpansRequest(root, landed, "ingest", FILES))["spans"]
    return lambda number: replace(whole, span=tuple(spans[number]))


@contextmanager
def serving(session: Session, number: int, idle: float = 60.0) -> Iterator[Driver]:
    """Have a driver in this process, which is closed at the end."""
    driver = Driver(session, number, idle=idle)
    thread = threading.Thread(target=driver.serve)
    thread.start()
    try:
        yield driver
    finally:
        session.close(number)
        thread.join()


def start(session: Session, number: int, **env: str) -> subprocess.Popen[bytes]:
    """Start a driver as a process of its own."""
    command = [sys.executable, "-m", "pipeline_tasks.service.driver", session.root, session.name, str(number)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(PROJECT), **env})


def wait_for(what: str, is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    for _ in wait_until(what, 120, each=0.1):
        if is_so():
            return


def state_of(watch: Watch) -> str:
    """Wait for what a watch sees."""
    for _ in wait_until("the watch sees an end", 120, each=0.1):
        if state := watch.look():
            return state
    raise AssertionError


def test_one_driver_answers_every_partition_of_a_stage(request_of: Callable[[int], RefineRequest]) -> None:
    requests = [request_of(number) for number in range(FILES)]
    (session,) = {Session.of(request) for request in requests}
    jobs = [session.post(request, "try1") for request in requests]
    assert session.driver({"host": "here"}) == (1, True)
    assert session.driver({"host": "there"}) == (1, False)
    assert session.starter(1) == {"host": "here"}
    with serving(session, 1):
        assert [state_of(Watch(session, job, 1)) for job in jobs] == [REPLIED] * FILES
    replies = [session.reply(job) for job in jobs]
    assert [(reply or {})["rows"] for reply in replies] == [5] * FILES
    assert "ended" in session.driver_names(1)
    assert session.driver({"host": "here"}) == (2, True)


def test_the_cost_of_a_stage_is_recorded_where_it_was_asked_for(request_of: Callable[[int], RefineRequest]) -> None:
    request = replace(request_of(0), span=None)
    session = Session.of(request)
    job = session.post(request, "try1")
    session.driver({})
    with serving(session, 1):
        assert state_of(Watch(session, job, 1)) == REPLIED
    reply = session.reply(job) or {}
    with Ledger.open(ledger_of(request.root)) as ledger:
        assert ledger.query("cost") == []
        handle(RecordRequest(request, reply["manifest"], wall=reply["wall"], cpu=reply["cpu"]))
        rows = ledger.query("cost")
    assert [row["stage"] for row in rows] == ["ingest"]


def test_other_runs_places_and_resources_have_other_sessions(request_of: Callable[[int], RefineRequest]) -> None:
    request = request_of(0)
    changes: list[dict[str, object]] = [
        {"root": "/other"},
        {"run_id": "again"},
        {"snapshot": "other"},
        {"engine": "spark"},
        {"address": "spark://m:7077"},
        {"resources": Resources(cores=2)},
        {"stage": "extract"},
    ]
    names = {Session.of(replace(request, **change)).name for change in changes}  # type: ignore[arg-type]
    assert len(names | {Session.of(request).name}) == len(changes) + 1
    assert Session.of(request_of(1)) == Session.of(request)


def test_several_drivers_share_a_stage_of_many_shards(
    request_of: Callable[[int], RefineRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SHARDS", 2)
    requests = [request_of(number) for number in range(FILES)]
    sessions_of = [Session.of(request) for request in requests]
    assert [session.name.count("-") for session in sessions_of] == [1, 1, 2], "the third file is the second driver's"
    jobs = [session.post(request, "try1") for session, request in zip(sessions_of, requests, strict=True)]
    for session in dict.fromkeys(sessions_of):
        session.driver({})
        with serving(session, 1):
            own = [job for job, of in zip(jobs, sessions_of, strict=True) if of == session]
            assert [state_of(Watch(session, job, 1)) for job in own] == [REPLIED] * len(own)
    spans = tuple(request.span for request in requests if request.span)
    sealed = handle(SealRequest(replace(requests[0], span=None), spans))
    assert sealed["rows"] == 5 * FILES


def test_all_drivers_of_a_stage_are_closed_when_it_is_done(
    request_of: Callable[[int], RefineRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SHARDS", 1)
    shared = [Session.of(request_of(number)) for number in range(FILES)]
    for session in shared:
        session.driver({})
    Session.of(replace(request_of(0), span=None)).close_all()
    assert all("closed" in session.driver_names(1) for session in shared)


def test_a_later_try_waits_for_the_job_of_an_earlier_one(request_of: Callable[[int], RefineRequest]) -> None:
    request = request_of(0)
    session = Session.of(request)
    first = session.post(request, "try1")
    assert session.post(request, "try2") == first
    session.cancel(first)
    second = session.post(request, "try2")
    assert second != first
    session.answer(second, {"error": "JobLost", "message": "gone"})
    assert session.post(request, "try2") == second  # the same try, which was woken up
    assert session.post(request, "try3") not in (first, second)


def test_what_was_canceled_is_not_begun(request_of: Callable[[int], RefineRequest]) -> None:
    requests = [request_of(0), request_of(1)]
    session = Session.of(requests[0])
    canceled, wanted = (session.post(request, "try1") for request in requests)
    session.cancel(canceled)
    session.driver({})
    with serving(session, 1):
        assert state_of(Watch(session, wanted, 1)) == REPLIED
    assert session.reply(canceled) is None


@pytest.mark.usefixtures("toys")
def test_a_refusal_and_a_defect_are_replies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "LISTEN", 0.0)
    parent = commit_parent(tmp_path, [table(0, 4)])
    refused = RefineRequest(str(tmp_path), "toy_bad", {"no": "such"}, parent)
    session = Session.of(refused)
    defect = replace(refused, params={"how": "defect"})
    first = session.post(refused, "try1")
    session.driver({})
    with serving(session, 1) as driver:
        assert state_of(Watch(session, first, 1)) == REPLIED
        second = session.post(defect, "try1")
        assert state_of(Watch(session, second, 1)) == REPLIED
        assert driver.ended.wait(60)  # a defect may have spoiled the engine
    assert (session.reply(first) or {})["error"] == "RecipeError"
    assert (session.reply(second) or {})["error"] == "LookupError"


def test_a_driver_that_nobody_asks_ends_and_misses_no_request(request_of: Callable[[int], RefineRequest]) -> None:
    session = Session.of(request_of(0))
    session.driver({})
    driver = Driver(session, 1, idle=0.0)
    late = session.post(request_of(0), "try1")  # before the driver closes itself
    driver.serve()
    assert session.reply(late)
    assert {"closed", "ended"} <= set(session.driver_names(1))


def test_a_driver_that_was_killed_is_missed_and_the_next_one_answers(
    request_of: Callable[[int], RefineRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LISTEN", 0.1)
    monkeypatch.setattr(sessions, "PATIENCE", 1.0)
    session = Session.of(request_of(0))
    session.driver({})
    process = start(session, 1)
    for _ in wait_until("the driver lives", 120, each=0.1):
        if "beat-0" in session.driver_names(1):
            break
    process.kill()
    process.wait()
    job = session.post(request_of(0), "try1")
    began = time.monotonic()
    assert state_of(Watch(session, job, 1)) == LOST
    assert time.monotonic() - began >= sessions.PATIENCE
    monkeypatch.setattr(sessions, "PATIENCE", 120.0)  # the next one lives
    session.close(1)
    assert session.driver({}) == (2, True)
    assert session.post(request_of(0), "try2") == job
    second = start(session, 2)
    assert state_of(Watch(session, job, 2)) == REPLIED
    session.close_all()
    assert second.wait(60) == 0


@pytest.mark.parametrize("is_started", [True, False])
def test_a_driver_that_never_starts_is_missed(
    request_of: Callable[[int], RefineRequest], monkeypatch: pytest.MonkeyPatch, *, is_started: bool
) -> None:
    """A driver may wait for a node of the cluster; a task that died after its claim has started none."""
    monkeypatch.setattr(sessions, "LISTEN", 0.0)
    monkeypatch.setattr(sessions, "START", 0.5 if is_started else 600.0)
    monkeypatch.setattr(sessions, "CLAIM_PATIENCE", 600.0 if is_started else 0.5)
    session = Session.of(request_of(0))
    session.driver({})
    if is_started:
        session.mark_started(1)
    assert state_of(Watch(session, session.post(request_of(0), "try1"), 1)) == LOST


def test_a_driver_that_was_replaced_takes_nothing_more(request_of: Callable[[int], RefineRequest]) -> None:
    session = Session.of(request_of(0))
    session.driver({})
    session.close(1)
    assert session.driver({}) == (2, True)
    job = session.post(request_of(0), "try1")
    Driver(session, 1).serve()  # it was only slow, and comes back
    assert session.reply(job) is None


def test_an_empty_object_that_a_killed_writer_left_counts_as_none(request_of: Callable[[int], RefineRequest]) -> None:
    """Some S3 servers keep an empty object of a PUT whose client died before its body."""
    requests = [request_of(number) for number in range(2)]
    session = Session.of(requests[0])
    died, wanted = (session.post(request, "try1") for request in requests)
    folder = Path(session.root, "requests", session.name)
    (folder / "jobs" / f"{died}.json").write_bytes(b"")
    for name in (f"{died}.reply.json", f"{wanted}.reply.json", f"{wanted}.canceled"):
        (folder / "jobs" / name).write_bytes(b"")
    assert session.driver({"host": "here"}) == (1, True)
    (folder / "drivers" / "1" / "closed").write_bytes(b"")
    with serving(session, 1):
        assert state_of(Watch(session, wanted, 1)) == REPLIED
        again = session.post(requests[0], "try2")
        assert state_of(Watch(session, again, 1)) == REPLIED
    assert [(session.reply(job) or {})["rows"] for job in (wanted, again)] == [5, 5]


def test_what_was_canceled_while_it_ran_is_not_answered(
    request_of: Callable[[int], RefineRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its engine is told again and again: between two verbs of a stage it runs nothing that it could cancel."""
    calls: list[tuple[str, str]] = []
    monkeypatch.setattr(drivers, "cancel", lambda engine, job: calls.append((engine, job)))
    session = Session.of(request_of(0))
    session.driver({})
    with serving(session, 1) as driver:
        with driver.dispatcher.starting:  # its engine takes long to start
            job = session.post(request_of(0), "try1")
            wait_for("the request is taken", lambda: job in driver.active)
            session.cancel(job)
            wait_for("the engine is told twice", lambda: len(calls) > 1)
        wait_for("the request is done", lambda: job not in driver.active)
    assert set(calls) == {("local", job)}
    assert session.reply(job) is None


def test_a_driver_that_was_replaced_leaves_its_requests_to_the_next_one(
    request_of: Callable[[int], RefineRequest],
) -> None:
    session = Session.of(request_of(0))
    session.driver({})
    driver = Driver(session, 1)
    with driver.dispatcher.starting:
        job = session.post(request_of(0), "try1")
        thread = threading.Thread(target=driver.serve)
        thread.start()
        wait_for("the request is taken", lambda: job in driver.active)
        session.close(1)
        assert session.driver({}) == (2, True)
        thread.join()
    wait_for("the request is done", lambda: job not in driver.active)
    assert session.reply(job) is None
    with serving(session, 2):
        assert state_of(Watch(session, job, 2)) == REPLIED


def test_requests_that_wait_for_their_turn_are_canceled_at_once(
    request_of: Callable[[int], RefineRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "ABREAST", 1)
    requests = [request_of(0), request_of(1)]
    session = Session.of(requests[0])
    session.driver({})
    with serving(session, 1) as driver, driver.dispatcher.starting:
        jobs = [session.post(requests[0], "try1")]
        wait_for("the first is taken", lambda: driver.active == set(jobs))
        jobs.append(session.post(requests[1], "try1"))
        wait_for("both are taken", lambda: driver.active == set(jobs))
        session.cancel(jobs[1])
        wait_for("the second is gone", lambda: driver.active == {jobs[0]})


def test_a_driver_whose_root_was_removed_ends_and_does_not_bring_it_back(
    request_of: Callable[[int], RefineRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "BEAT", 0.2)
    session = Session.of(request_of(0))
    session.driver({})
    driver = Driver(session, 1)
    thread = threading.Thread(target=driver.serve)
    thread.start()
    wait_for("the driver lives", lambda: "beat-1" in session.driver_names(1))
    Path(session.root).rename(f"{session.root}.removed")
    thread.join(60)
    assert not thread.is_alive()
    assert not Path(session.root).exists()


@pytest.mark.slow
def test_a_reply_outlasts_a_store_that_is_busy(
    s3_server: S3Server, s3_root: str, request_of: Callable[[int], RefineRequest]
) -> None:
    refused = replace(request_of(0), root=s3_root, params={"no": "such"})
    session = Session.of(refused)
    session.driver({"host": "here"})
    with faulty_s3(s3_server.endpoint) as faults:
        driver = start(session, 1, AWS_ENDPOINT_URL=faults.endpoint, AWS_MAX_ATTEMPTS="1")
        wait_for("the driver lives", lambda: "beat-0" in session.driver_names(1))
        faults.coming += [("PUT", (503, "SlowDown"))] * 2
        assert state_of(Watch(session, session.post(refused, "try1"), 1)) == REPLIED
        assert len(faults.happened) == 2
        session.close_all()
        assert driver.wait(60) == 0


@pytest.mark.slow
def test_those_who_wait_for_a_session_share_their_looks(
    s3_server: S3Server, s3_root: str, request_of: Callable[[int], RefineRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "FRESH", 3600.0)
    request = replace(request_of(0), root=s3_root)
    session = Session.of(request)
    session.driver({"host": "here"})
    jobs = [session.post(replace(request, span=(number, number + 1)), "try1") for number in range(20)]
    session.answer(jobs[0], {"rows": 1})
    with faulty_s3(s3_server.endpoint) as faults:
        monkeypatch.setenv("AWS_ENDPOINT_URL", faults.endpoint)
        states = [Watch(session, job, 1).look() for job in jobs]
        assert faults.requests == 1
    assert states == [REPLIED] + [""] * 19


def test_only_requests_without_reply_and_cancellation_are_open() -> None:
    names = ["a.json", "b.json", "b.reply.json", "c.json", "c.canceled"]
    assert open_jobs(names) == ["a"]


def test_a_session_holds_no_more_than_its_beats(request_of: Callable[[int], RefineRequest]) -> None:
    session = Session.of(request_of(0))
    session.driver({})
    for count in range(4):
        session.beat(1, count)
    assert session.driver_names(1) == ["beat-3", "claim.json"]
