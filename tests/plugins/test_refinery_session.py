"""Requests to a session: a driver starts with the first, replies come back as themselves, and lost drivers are named."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from refinery_ray import cluster_jobs, ray_jobs

from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.service import session as sessions
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.stages import LandRequest
from pipeline_tasks.service.requests.wire import encode
from pipeline_tasks.service.session import LOST, REPLIED, Session, Watch, open_jobs
from tests.chain import PROJECT
from tests.cluster.containers import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def request_here(tmp_path: Path) -> Iterator[RefineRequest]:
    """The request to ingest a small snapshot; its driver is a process of this machine, and gone at the end."""
    day, root = tmp_path / "day", str(tmp_path / "root")
    day.mkdir()
    for name in "abcde":
        (day / f"{name}.jsonl").write_text('{"text": "hello"}\n')
    landed = handle(LandRequest(root, str(day), snapshot="day"))["manifest"]
    with tempfile.TemporaryDirectory(prefix="session-") as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", name)
        named = {"landing": str(day), "recipe": "web", "snapshot": "day", "run_id": "r"}
        yield RefineRequest(root, "ingest", {}, landed, span=(0, 1), **named)
        for process in drivers():
            for started in [*process.children(recursive=True), process]:  # a JVM that waits for its master would stay
                started.kill()
            process.wait()


def drivers() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [child for child in children if child.is_running() and "service.driver" in " ".join(_words(child))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def run_trigger(trigger: Any) -> dict[str, Any]:
    """Return the payload of a trigger's event; the trigger is made from its serialized form, as the triggerer does."""
    from refinery_airflow.tasks.session import ReplyTrigger

    path, arguments = trigger.serialize()
    assert path == "refinery_airflow.tasks.session.ReplyTrigger"

    async def event() -> Any:
        async for fired in ReplyTrigger(**json.loads(json.dumps(arguments))).run():
            return fired.payload
        return None

    payload: dict[str, Any] = asyncio.run(event())
    return payload


def test_two_requests_share_a_driver_and_a_trigger_sees_the_reply(request_here: RefineRequest) -> None:
    from refinery_airflow.tasks.session import ReplyTrigger, Waiting, collect, log_place, post

    first = post(request_here, "try1")
    log, _, host = log_place(first).removeprefix("its log is ").partition(" on ")
    assert first.session in Path(log).read_text()
    assert host == socket.gethostname()
    second = post(replace(request_here, span=(1, 2)), "try1")
    assert (first.session, first.driver) == (second.session, second.driver)
    for waiting in (first, second):
        event = run_trigger(ReplyTrigger(asdict(waiting), poll=0.2))
        assert event["state"] == REPLIED
        assert collect(Waiting(**event["waiting"]), event["state"])["rows"] == 1
    assert len(drivers()) == 1
    Session(first.root, first.session).close_all()
    for _ in wait_until("the driver ends", 60, each=0.2):
        if not drivers():  # one that waits to be reaped has no command line
            break


def test_a_refusal_comes_back_as_itself(request_here: RefineRequest) -> None:
    from refinery_airflow.tasks.session import post, wait

    with pytest.raises(RecipeError, match=r"ingest: .*'no'"):
        wait(post(replace(request_here, params={"no": "such"}), "try1"))


def test_a_lost_driver_is_named_with_its_log_and_the_next_try_starts_another(
    request_here: RefineRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.tasks.session import collect, post

    waiting = post(request_here, "try1")
    for _ in wait_until("the driver lives", 60, each=0.1):
        if drivers() and Session(waiting.root, waiting.session).driver_names(1):
            break
    monkeypatch.setattr(sessions, "LISTEN", 0.0)
    with pytest.raises(JobLost, match=rf"driver 1 of {waiting.session} .*{waiting.job}"):
        collect(waiting, LOST)
    again = post(request_here, "try2")
    assert again.driver == 2


def test_a_reply_that_went_with_its_root_is_a_lost_job(tmp_path: Path) -> None:
    from refinery_airflow.tasks.session import Waiting, collect

    with pytest.raises(JobLost, match=r"driver 1 of s .*j"):
        collect(Waiting(str(tmp_path / "removed"), "s", "j", 1, ""), REPLIED)


def test_a_task_that_a_person_clears_cancels_its_request(request_here: RefineRequest) -> None:
    from refinery_airflow.tasks.session import ReplyTrigger, post

    waiting = post(request_here, "try1")
    asyncio.run(ReplyTrigger(asdict(waiting)).on_kill())
    session = Session(waiting.root, waiting.session)
    assert f"{waiting.job}.canceled" in session.job_names()


def test_a_driver_that_ends_as_it_starts_is_known_at_once_by_all_who_wait_for_it(
    request_here: RefineRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.tasks.session import post

    monkeypatch.setattr(sessions, "LISTEN", 0.0)
    monkeypatch.setenv("PYTHONHOME", "/nowhere")  # as an image without what it needs
    with pytest.raises(JobLost, match=rf"(?s)driver 1 of {Session.of(request_here).name} .*encodings"):
        post(request_here, "try1")
    session = Session.of(request_here)
    (job,) = open_jobs(session.job_names())
    assert Watch(session, job, 1).look() == LOST
    monkeypatch.undo()
    assert post(request_here, "try2").driver == 2


def test_a_driver_that_cannot_be_started_leaves_the_session_open_for_the_next_try(
    request_here: RefineRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.tasks.session import post

    monkeypatch.setattr(os, "environ", {**os.environ, "BAD": "\0"})
    with pytest.raises(ValueError):  # noqa: PT011 -- of the system, which names nothing
        post(request_here, "try1")
    monkeypatch.undo()
    assert post(request_here, "try2").driver == 2


def test_a_task_that_waits_itself_stays_with_its_driver_until_others_have_their_replies(
    request_here: RefineRequest,
) -> None:
    """In a pod of the KubernetesExecutor the driver ended with the first task, and the others waited for the next."""
    from refinery_airflow.tasks.session import post, wait

    first = post(request_here, "try1")
    others = [post(replace(request_here, span=(at, at + 1)), "try1") for at in (1, 2, 3)]
    assert (first.is_starter, [other.is_starter for other in others]) == (True, [False] * 3)
    assert wait(first)["rows"] == 1
    session = Session(first.root, first.session)
    replies = [session.reply(other.job) or {} for other in others]
    assert [reply.get("rows") for reply in replies] == [1, 1, 1], replies
    assert "ended" in session.driver_names(1)
    later = post(replace(request_here, span=(4, 5)), "try1")
    assert (later.driver, wait(later)["rows"]) == (2, 1)


POD = """
import json, sys
sys.path.insert(0, "plugins")
from pipeline_tasks.service import session as sessions
from pipeline_tasks.service.requests.wire import decode
from refinery_airflow.tasks.session import post, wait
sessions.PATIENCE, sessions.LISTEN = float(sys.argv[3]), 1.0
waiting = post(decode(json.loads(sys.argv[1])), sys.argv[2])
print(waiting.driver, waiting.job, wait(waiting)["rows"])
"""
"""A task with REFINERY_DEFER=0, as the KubernetesExecutor runs it: all that it started ends with it."""


def pod(request: RefineRequest, attempt: str, patience: float = sessions.PATIENCE) -> "subprocess.Popen[str]":
    """Run a task as the first process of its own PID namespace: the kernel kills the others when it ends.

    It gives its driver up after `patience` seconds without a beat; a living one beats every ten.
    """
    alone = [
        "unshare",
        *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]),
        "--fork",
        "--pid",
        "--kill-child",
    ]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system makes no PID namespace")
    command = [*alone, sys.executable, "-c", POD, json.dumps(encode(request)), attempt, str(patience)]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end_of(task: "subprocess.Popen[str]") -> tuple[list[str], str]:
    """Return the words that a pod printed, and the last line of its errors."""
    said, failed = task.communicate(timeout=240)
    return said.split(), (failed.strip().splitlines() or [""])[-1]


def test_no_driver_is_lost_when_the_pods_of_tasks_end_one_after_the_other(request_here: RefineRequest) -> None:
    """Without the stay of the first task its driver is killed with its pod: seen to fail so."""
    requests = [replace(request_here, span=(at, at + 1)) for at in (1, 2, 3)]
    ends = [end_of(task) for task in [pod(request, f"try1-{rank}") for rank, request in enumerate(requests)]]
    assert [said[-1:] for said, _ in ends] == [["1"]] * 3, ends
    session = Session.of(request_here)
    drivers = {int(said[0]) for said, _ in ends}
    for number in drivers:
        assert "ended" in session.driver_names(number), "it ended by itself, and was not killed"


def test_the_retry_of_a_pod_that_was_killed_starts_another_driver_for_the_same_job(request_here: RefineRequest) -> None:
    (Path(request_here.landing) / "b.jsonl").write_text(f'{{"text": "{"hello " * 50}"}}\n' * 150_000)
    landed = handle(LandRequest(request_here.root, request_here.landing, snapshot="day"))["manifest"]
    request = replace(request_here, parent=landed, span=(1, 2))
    session = Session.of(request)
    first = pod(request, "try1")
    for _ in wait_until("the driver lives", 120, each=0.05):
        if any(name.startswith("beat-") for name in session.driver_names(1)):
            break
    (job,) = open_jobs(session.job_names())
    first.kill()
    first.communicate()
    assert session.reply(job) is None
    said, failed = end_of(pod(request, "try2", patience=12.0))
    assert (said, "JobLost" in failed, f"driver 1 of {session.name}" in failed) == ([], True, True), failed
    said, failed = end_of(pod(request, "try3"))
    assert said == ["2", job, "150000"], failed
    assert "ended" in session.driver_names(2)


def test_a_driver_that_ends_well_leaves_no_log(request_here: RefineRequest) -> None:
    from refinery_airflow.tasks.session import post, wait

    waiting = post(request_here, "try1")
    session = Session(waiting.root, waiting.session)
    assert "started" in session.driver_names(1)
    assert list(Path(tempfile.gettempdir()).rglob("refinery-*.log"))
    wait(waiting)
    session.close_all()
    for _ in wait_until("the driver has ended", 60, each=0.2):
        if not list(Path(tempfile.gettempdir()).rglob("refinery-*.log")):
            break


def test_a_try_that_starts_the_driver_after_a_lost_one_names_it_anew(
    request_here: RefineRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray's Jobs API refuses a name that it had, and the task lost a try by that."""
    from refinery_airflow.tasks import session as tasks

    names: list[str] = []
    monkeypatch.setattr(ray_jobs, "submit", lambda _address, _words, name: names.append(name))
    monkeypatch.setattr(ray_jobs, "log_end", lambda *_: "")
    monkeypatch.setattr(cluster_jobs, "require_answer", lambda _: None)
    monkeypatch.setattr(tasks, "_see_alive", lambda *_: None)
    there = replace(request_here, engine="ray", address="http://127.0.0.1:8265")
    waiting = tasks.post(there, "try1")
    with pytest.raises(JobLost, match=names[0]):
        tasks.collect(waiting, LOST)
    again = tasks.post(there, "try1")
    assert (again.driver, again.job) == (2, waiting.job)
    assert len(set(names)) == 2
    assert names[1] in tasks.log_place(again)


def test_a_task_keeps_its_try_when_a_driver_is_lost(
    request_here: RefineRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import TaskDeferred
    from refinery_airflow.tasks.operators import Refine

    with socket.create_server(("127.0.0.1", 0)) as master:
        place = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": master.getsockname()[1]}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(place))
        settings = {"params": {}, "engine": "spark", "resources": {}, "error_budget": {}}
        part = {"manifest": request_here.parent, "span": [0, 1], "name": "a", "of": 1, "verdict": ""}
        landed = {"earlier": "", "landing": request_here.landing}
        task = Refine(task_id="refine", recipe="web", stage="ingest", step=settings, landed=landed, part=part)
        params = {"input": "x", "root": request_here.root, "snapshot": "day", "partitions": 0, "patience": 0}
        context: Any = {
            "params": {**params, "engines": {}, "override": {}},
            "dag_run": None,
            "ti": SimpleNamespace(id="try1", run_id="r"),
        }
        with pytest.raises(TaskDeferred) as deferred:
            task.execute(context)
        for number in (2, 3, 4):
            waiting = deferred.value.trigger.waiting
            with pytest.raises(TaskDeferred) as deferred:
                task.resume(context, {"state": LOST, "waiting": waiting})
            assert deferred.value.trigger.waiting["driver"] == number
            assert deferred.value.trigger.waiting["job"] == waiting["job"]
        with pytest.raises(JobLost, match=f"driver 4 of {deferred.value.trigger.waiting['session']}"):
            task.resume(context, {"state": LOST, "waiting": deferred.value.trigger.waiting})
