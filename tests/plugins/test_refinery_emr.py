"""A stage whose driver is a job run of EMR Serverless: started once, waited for in its queue, replaced, canceled.

The service is that of `tests.emr_server`, and none is of AWS itself. Where its job runs are processes, they are
what `spark-submit` starts of the entry point that was put into the root.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.service import session as sessions
from pipeline_tasks.service.session import LOST, Session, open_jobs
from pipeline_tasks.store import storage
from pipeline_tasks.upkeep.doctor import Check, _engine, checks
from tests.archives import response, zipped
from tests.cluster.containers import wait_until
from tests.commands import Refinery
from tests.dags.test_run import page
from tests.embedded import PROJECT
from tests.emr_server import ADDRESS, Emr, emr_server

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
  dedup_exact: {}
run: {partitions: 1, engines: {ingest: local, extract: local, dedup_exact: spark}}
"""


@pytest.fixture
def emr(tmp_path: Path, s3_root: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emr]:
    """A service whose job runs wait in their queue; a worker looks for a driver's first beat for no time."""
    from refinery_airflow.tasks import session

    assert s3_root
    with emr_server(tmp_path) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EMR_SERVERLESS", server.endpoint)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        monkeypatch.setattr(session, "FIRST_BEAT", 0.0)
        monkeypatch.setattr(sessions, "LISTEN", 0.0)
        monkeypatch.setattr(sessions, "FRESH", 0.0)
        monkeypatch.setattr("refinery_spark.cluster_jobs.FRESH", 0.0)
        server.planned = ["SUBMITTED", "QUEUED"]
        yield server


@pytest.fixture
def asked(s3_root: str) -> RefineRequest:
    """A request of a stage, of which nothing has landed."""
    landing = s3_root.replace("/root", "/landing")
    about: dict[str, Any] = {"recipe": "web", "snapshot": "day", "run_id": "r", "engine": "spark"}
    return RefineRequest(s3_root, "extract", {}, "ingest/x/manifest.json", landing=landing, address=ADDRESS, **about)


def after(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let so much time have gone by for who waits for a driver."""
    monkeypatch.setattr(sessions, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + seconds))


# --- Starting ---------------------------------------------------------------------------------------------------------


def test_the_tasks_of_a_stage_share_a_job_run(emr: Emr, asked: RefineRequest) -> None:
    from refinery_airflow.tasks.session import log_place, post

    waits = [post(replace(asked, span=(rank, rank + 1)), f"try{rank}") for rank in range(3)]
    assert [waiting.driver for waiting in waits] == [1, 1, 1]
    [run] = emr.runs
    assert all(run in log_place(waiting) for waiting in waits)
    session = Session(asked.root, waits[0].session)
    assert {session.request(waiting.job)["address"] for waiting in waits} == {"submitted"}
    words = emr.runs[run].asked["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    assert words == ["pipeline_tasks.service.driver", asked.root, session.name, "1"]


def test_the_next_try_of_a_task_that_died_as_it_started_finds_the_same_job_run(
    emr: Emr, asked: RefineRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker went away between AWS's answer and our note of it."""
    from refinery_airflow.tasks.session import post

    with monkeypatch.context() as patch:
        patch.setattr(Session, "mark_started", die)
        patch.setattr(Session, "close", lambda *_: None)
        patch.setattr(Session, "end", lambda *_: None)
        with pytest.raises(Died):
            post(asked, "try1")
    waiting = post(asked, "try2")
    assert waiting.driver == 1
    assert len(emr.asked("StartJobRun")) == 2
    [run] = emr.runs
    assert Session(asked.root, waiting.session).run_of(1) == run
    post(asked, "try3")
    post(replace(asked, span=(1, 2)), "other")
    assert len(emr.asked("StartJobRun")) == 2, "it is noted now"


class Died(BaseException):
    """What ends a process, and no code of ours sees."""


def die(*_: object) -> None:
    raise Died


def test_a_start_that_is_throttled_leaves_the_session_open_for_the_next_try(emr: Emr, asked: RefineRequest) -> None:
    from refinery_airflow.tasks.session import post

    emr.faults = [("StartJobRun", (429, "ThrottlingException"))]
    with pytest.raises(JobLost, match="ThrottlingException"):
        post(asked, "try1")
    assert post(asked, "try2").driver == 2
    assert len(emr.runs) == 1


def test_a_role_that_is_refused_is_said_and_not_tried_again(emr: Emr, asked: RefineRequest) -> None:
    from refinery_airflow.tasks.session import post

    emr.faults = [("StartJobRun", (403, "AccessDeniedException"))]
    with pytest.raises(RecipeError, match="iam:PassRole"):
        post(asked, "try1")
    assert emr.runs == {}


@pytest.mark.parametrize("place", ["root", "landing"])
def test_a_root_that_no_job_run_reaches_is_refused_before_anything_is_posted(
    emr: Emr, asked: RefineRequest, place: str, tmp_path: Path
) -> None:
    from refinery_airflow.tasks.session import post

    with pytest.raises(RecipeError, match="is not in S3"):
        post(replace(asked, **{place: str(tmp_path / "here")}), "try1")
    assert emr.requests == []
    assert not (tmp_path / "here").exists()


def test_a_run_looks_at_its_application_and_places_before_its_first_stage(
    emr: Emr, s3_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.tasks.launch import require_clusters

    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": ADDRESS}))
    require_clusters({"spark"}, uris=[s3_root, ""])
    assert len(emr.asked("GetApplication")) == 1
    with pytest.raises(RecipeError, match="/data/landing is not in S3"):
        require_clusters({"spark"}, uris=[s3_root, "/data/landing"])


# --- Waiting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["SUBMITTED", "QUEUED", "PENDING", "SCHEDULED"])
def test_a_job_run_that_waits_for_machines_is_not_lost(
    emr: Emr, asked: RefineRequest, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    from refinery_airflow.tasks.session import post

    emr.planned = [state]
    watch = post(asked, "try1").watch()
    for hours in range(1, 4):
        after(hours * 3600, monkeypatch)
        assert watch.look() == ""
    [run] = emr.runs.values()
    run.planned = ["RUNNING"]
    assert watch.look() == ""
    after(3 * 3600 + 200, monkeypatch)
    assert watch.look() == "", "a driver has some time from its start to its first beat"
    after(3 * 3600 + 400, monkeypatch)
    assert watch.look() == LOST


@pytest.mark.parametrize("state", ["SUCCESS", "FAILED", "CANCELLED"])
def test_a_job_run_that_ends_without_a_beat_is_lost_at_once(emr: Emr, asked: RefineRequest, state: str) -> None:
    from refinery_airflow.tasks.session import post

    emr.planned = ["PENDING", "CANCELLING", state]
    watch = post(asked, "try1").watch()
    assert [watch.look() for _ in range(3)] == ["", "", LOST]


def test_a_service_that_does_not_say_takes_no_driver_for_lost(
    emr: Emr, asked: RefineRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.tasks.session import post

    watch = post(asked, "try1").watch()
    emr.faults = [("GetJobRun", (429, "ThrottlingException"))]
    after(250, monkeypatch)
    assert watch.look() == ""
    assert emr.faults == []
    after(350, monkeypatch)
    assert watch.look() == "", "it waits in its queue"


def test_who_may_not_look_goes_by_beats_alone(emr: Emr, asked: RefineRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.tasks.session import post

    waiting = post(asked, "try1")
    watch = waiting.watch()
    emr.faults = [("GetJobRun", (403, "AccessDeniedException"))] * 3
    assert watch.look() == ""
    after(250, monkeypatch)
    assert watch.look() == ""
    after(350, monkeypatch)
    assert watch.look() == LOST


def test_the_job_run_of_a_driver_that_has_begun_is_not_asked_for(emr: Emr, asked: RefineRequest) -> None:
    from refinery_airflow.tasks.session import post

    waiting = post(asked, "try1")
    Session(asked.root, waiting.session).beat(1, 0)
    before = len(emr.asked("GetJobRun"))
    assert waiting.watch().look() == ""
    assert len(emr.asked("GetJobRun")) == before


def test_the_driver_of_a_ray_or_a_machine_is_known_by_its_beats_alone() -> None:
    from refinery_airflow.tasks.session import Waiting

    for address in ("", "http://ray-head:8265"):
        assert Waiting("/r", "s", "j", 1, address, engine="ray").watch().standing is None


# --- Losing -----------------------------------------------------------------------------------------------------------


def test_a_job_run_that_failed_as_it_started_is_named_with_its_log_and_not_tried_again(
    emr: Emr, asked: RefineRequest
) -> None:
    from refinery_airflow.tasks.session import collect, post

    emr.planned, emr.details = ["PENDING", "FAILED"], "Job failed, please check complete logs. ExitCode: 1"
    waiting = post(asked, "try1")
    while not (state := waiting.watch().look()):
        pass
    [run] = emr.runs
    log = f"{asked.root}/requests/{waiting.session}/applications/00fg0oh5mvbu4d0l/jobs/{run}/SPARK_DRIVER/stderr.gz"
    with pytest.raises(RecipeError) as raised:
        collect(waiting, state)
    for part in (f"driver 1 of {waiting.session}", run, "FAILED", "ExitCode: 1", log, "same version"):
        assert part in str(raised.value)
    assert emr.asked("CancelJobRun") == []


def test_a_driver_whose_machine_is_lost_is_replaced_and_its_job_run_ended(
    emr: Emr, asked: RefineRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.tasks.session import collect, is_replaceable, post

    emr.planned = ["RUNNING"]
    waiting = post(asked, "try1")
    session, watch = Session(asked.root, waiting.session), waiting.watch()
    session.beat(1, 0)
    assert watch.look() == ""
    after(200, monkeypatch)
    assert watch.look() == LOST
    with pytest.raises(JobLost, match=rf"driver 1 of {session.name} .*RUNNING"):
        collect(waiting, LOST)
    assert is_replaceable(waiting, LOST)
    first, *_ = emr.runs
    assert [asked["jobRunId"] for asked in emr.asked("CancelJobRun")] == [first]
    again = post(asked, "try1")
    assert (again.driver, again.job, len(emr.runs)) == (2, waiting.job, 2)


# --- Canceling --------------------------------------------------------------------------------------------------------


def kill(waiting: Any) -> None:
    from refinery_airflow.tasks.session import ReplyTrigger

    asyncio.run(ReplyTrigger(asdict(waiting)).on_kill())


def test_a_task_that_a_person_clears_ends_the_job_run_that_worked_for_it_alone(emr: Emr, asked: RefineRequest) -> None:
    from refinery_airflow.tasks.session import post

    first, second = (post(replace(asked, span=(rank, rank + 1)), "try1") for rank in range(2))
    session = Session(asked.root, first.session)
    kill(first)
    assert emr.asked("CancelJobRun") == []
    assert open_jobs(session.job_names()) == [second.job]
    kill(second)
    [run] = emr.runs.values()
    assert run.state == "CANCELLED"
    assert post(asked, "try2").driver == 2


@pytest.mark.parametrize("fault", [(429, "ThrottlingException"), (403, "AccessDeniedException")])
def test_a_kill_that_aws_does_not_take_still_cancels_the_request(
    emr: Emr, asked: RefineRequest, fault: tuple[int, str]
) -> None:
    from refinery_airflow.tasks.session import post

    waiting = post(asked, "try1")
    emr.faults = [("CancelJobRun", fault)]
    kill(waiting)
    session = Session(asked.root, waiting.session)
    assert open_jobs(session.job_names()) == []
    assert "closed" in session.driver_names(1), "it ends as soon as it runs"


def test_a_request_that_was_answered_before_its_task_was_cleared_costs_no_second_end(
    emr: Emr, asked: RefineRequest
) -> None:
    from refinery_airflow.tasks.session import post

    emr.planned = ["SUCCESS"]
    waiting = post(asked, "try1")
    kill(waiting)
    assert emr.asked("CancelJobRun") == []


# --- Working ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def words(tmp_path: Path, s3_root: str) -> list[str]:
    """The words of `refinery run` that refine an archive in S3 by a recipe whose last stage runs on Spark."""
    records = [response(f"https://a.example.org/{number}", page(number % 3)) for number in range(5)]
    landing = s3_root.replace("/root", "/landing/2026-11-19")
    storage.connect(landing).create("a.warc.gz", b"".join(zipped(records)))
    (tmp_path / "small.yaml").write_text(RECIPE)
    return ["run", "--input", landing, "--recipe", str(tmp_path / "small.yaml"), "--no-build"]


def run_at(words: list[str], root: str, host: str) -> "subprocess.CompletedProcess[str]":
    connection = json.dumps({"conn_type": "spark", "host": host})
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_", "AWS_MAX_"))}
    return subprocess.run(
        [sys.executable, "-m", "pipeline_tasks.cli", *words, "--output", root],
        env=keep | {"PYTHONPATH": str(PROJECT), "AIRFLOW_CONN_SPARK_DEFAULT": connection},
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )


@pytest.mark.slow
def test_a_run_by_job_runs_has_the_bytes_of_one_without(
    emr: Emr, words: list[str], s3_root: str, refinery: Refinery
) -> None:
    """Only this starts the entry point as `spark-submit` does, and so a Spark around a driver."""
    emr.planned = []
    emr.env = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    emr.faults = [("GetApplication", (429, "ThrottlingException")), ("StartJobRun", "lost")]
    done = run_at(words, s3_root, ADDRESS)
    logs = "".join(path.read_text(errors="replace")[-3000:] for path in emr.folder.glob("*.log"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert len(emr.runs) == 1
    for run in emr.runs.values():
        for _ in wait_until("the driver ends with its stage", 60, each=0.2):
            if run.process is None or run.process.poll() is not None:
                break
        assert run.process is not None
        assert run.process.returncode == 0
    again = refinery(*words, "--output", f"{s3_root}2", "--engine", "local")
    assert again.returncode == 0, again.stdout + again.stderr
    manifests = [version_log.current(root, "small").manifests for root in (s3_root, f"{s3_root}2")]
    assert manifests[0] == manifests[1]
    secret = os.environ["AWS_SECRET_ACCESS_KEY"]
    assert secret not in json.dumps(emr.requests)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_names_a_driver_that_cannot_start(emr: Emr, words: list[str], s3_root: str) -> None:
    emr.planned = []
    emr.env = {name: value for name, value in os.environ.items() if name.startswith("AWS_")} | {
        "PYTHONHOME": "/nowhere"
    }
    done = run_at(words, s3_root, ADDRESS)
    assert done.returncode == RecipeError.exit_code, done.stdout + done.stderr
    [run] = emr.runs
    for part in (run, "FAILED", f"{run}/SPARK_DRIVER/stderr.gz, which ends: ", "encodings"):
        assert part in done.stderr
    assert "Traceback" not in done.stdout


def looked_at(root: str) -> list[Check]:
    """Return what `doctor` says of the application that the environment names."""
    return [check for check in _engine("spark", root) if check.name == "emr"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "application", "why"),
    [
        ("emr-serverless://00fg0oh5mvbu4d0l", {}, "it has no role"),
        (ADDRESS, {"type": "Hive"}, "is of Hive"),
        (ADDRESS, {"state": "TERMINATED"}, "is TERMINATED"),
        (ADDRESS, {}, "runs what it is given"),
    ],
)
def test_doctor_says_what_an_application_lacks(
    emr: Emr, s3_root: str, monkeypatch: pytest.MonkeyPatch, host: str, application: dict[str, Any], why: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": host}))
    emr.application = application
    found = [check for check in checks("") if check.name == "emr"]
    assert [(check.ok, why in check.message) for check in found] == [(why == "runs what it is given", True)]
    emr.application = {}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", ADDRESS.replace(":role", "%3Arole"))
    assert [check.ok for check in looked_at(s3_root)] == [True]
    [of_folder] = looked_at("/data/root")
    assert not of_folder.ok
    assert "is not in S3" in of_folder.message
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    assert looked_at(s3_root) == []
