"""What becomes of a partition that failed its last try: refined alone, quarantined, or failed."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline_tasks.errors import (
    BudgetExceeded,
    ClusterUnreachable,
    JobLost,
    KernelFailed,
    MachineFailed,
    NoSpace,
    StorageBusy,
    Transient,
)
from pipeline_tasks.manifest import PARTITION
from pipeline_tasks.run.request import RefineRequest
from tests.chain import reply
from tests.poison import POISON, poisoned

DAY = "2026-11-20"
PART = {"span": [1, 2], "of": 3, "name": "part-1"}


class Task(NamedTuple):
    """What Airflow says of a task's try."""

    try_number: int
    max_tries: int = 3


LAST, FIRST = Task(4), Task(1)


@pytest.fixture
def request_(tmp_path_factory: pytest.TempPathFactory) -> RefineRequest:
    """The request to extract the second of three files, whose first page is of the poisonous site."""
    folder = tmp_path_factory.mktemp("quarantine")
    (folder / DAY).mkdir()
    for file in range(3):
        host = POISON if file == 1 else "example.org"
        pages = [
            {"url": f"https://{host}/{file}/{page}", "text": f"Page {page} of file {file}. " * 9} for page in range(4)
        ]
        (folder / DAY / f"part-{file}.jsonl").write_text("\n".join(map(json.dumps, pages)) + "\n")
    root = str(folder / "root")
    landed = reply("land", root=root, input=str(folder / DAY))
    about = {"root": root, "params": {}, "landing": landed["landing"]}
    parent = reply("refine", **about, stage="ingest", parent=landed["manifest"])["manifest"]
    return RefineRequest(stage="extract", parent=parent, span=(1, 2), **about)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERY_LAUNCH_HERE", "1")


def ended(request: RefineRequest, error: Exception, task: Task = LAST, part: dict[str, Any] = PART) -> dict[str, Any]:
    from refinery_airflow.tasks.quarantine import after_last_try

    context: Any = {"ti": task, "part_name": part["name"]}
    answer = after_last_try(context, request, part, error)
    return {**answer, "shown": context["part_name"]}


@pytest.mark.parametrize(("how", "kind"), [("kill", "signal 9"), ("raise", "ValueError")])
@pytest.mark.parametrize(
    "error",
    [
        JobLost("the worker daemon died"),
        RuntimeError("ValueError: a traceback"),
        KernelFailed("extract/1: a kernel failed in a Ray worker (ValueError: text)"),
    ],
)
def test_what_ends_its_process_alone_too_is_quarantined(
    request_: RefineRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, kind: str, error: Exception
) -> None:
    for name, value in poisoned(tmp_path / "site", how).items():
        monkeypatch.setenv(name, value)
    answer = ended(request_, error)
    assert answer["poison"] == [{"name": "part-1", "error": kind}], "nothing of the error's text, whose lines are many"
    assert answer["quarantined"] == {PARTITION: 4}
    assert answer["shown"] == "QUARANTINED part-1"


def test_a_partition_that_died_beside_another_is_refined_alone(request_: RefineRequest) -> None:
    answer = ended(request_, JobLost("the worker daemon died"))
    assert (answer["rows"], answer["quarantined"], answer["shown"]) == (4, {}, "part-1")
    assert "poison" not in answer


@pytest.mark.parametrize(
    ("error", "task", "part"),
    [
        (JobLost("lost"), FIRST, PART),
        (RuntimeError("ValueError: x"), FIRST, PART),
        (BudgetExceeded("too many"), LAST, PART),
        (StorageBusy("503"), LAST, PART),
        (ClusterUnreachable("nothing answers"), LAST, PART),
        (RuntimeError("ValueError: x"), LAST, {**PART, "of": 1}),
        (RuntimeError("ValueError: x"), LAST, {**PART, "span": None}),
    ],
)
def test_another_failure_stays_one(request_: RefineRequest, error: Exception, task: Task, part: dict[str, Any]) -> None:
    """A try is left, a refusal, a store that is down, or a stage of which nothing would be left."""
    with pytest.raises(type(error)) as failure:
        ended(request_, error, task, part)
    assert failure.value is error


def test_a_lost_driver_on_a_cluster_is_no_poison(request_: RefineRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All partitions of a stage share it, and a network that is down ends it."""
    from dataclasses import replace

    monkeypatch.delenv("REFINERY_LAUNCH_HERE")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://127.0.0.1:7077")
    request = replace(request_, engine="spark")
    with pytest.raises(JobLost):
        ended(request, JobLost("driver 1 of extract ended"))


def test_a_kernel_that_failed_on_a_cluster_is_poison_only_after_another_try(
    request_: RefineRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was quarantined at its first one. Each try is a job of its own, and of other workers."""
    from dataclasses import replace

    monkeypatch.delenv("REFINERY_LAUNCH_HERE")
    monkeypatch.setenv("AIRFLOW_CONN_RAY_DEFAULT", "ray://127.0.0.1:10001")
    request, error = replace(request_, engine="ray"), KernelFailed("extract/1: a kernel failed in a Ray worker")
    for task in (FIRST, Task(1, max_tries=0)):
        with pytest.raises(KernelFailed):
            ended(request, error, task)
    assert ended(request, error)["poison"] == [{"name": "part-1", "error": "KernelFailed"}]


@pytest.mark.parametrize("kind", [MachineFailed, NoSpace])
def test_what_a_machine_did_is_no_poison(request_: RefineRequest, kind: type[Transient]) -> None:
    with pytest.raises(kind):
        ended(request_, kind("on node-3: a file or a connection failed"))


def test_a_full_disk_is_no_poison(request_: RefineRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in poisoned(tmp_path / "site", "disk").items():
        monkeypatch.setenv(name, value)
    error = RuntimeError("OSError: No space left on device")
    with pytest.raises(RuntimeError) as failure:
        ended(request_, error)
    assert failure.value is error


def test_a_defect_is_final_at_its_first_try_and_an_error_of_airflow_is_none(request_: RefineRequest) -> None:
    from airflow.sdk.exceptions import AirflowNotFoundException

    assert os.environ["REFINERY_LAUNCH_HERE"]
    assert ended(request_, ValueError("a defect of this process"), FIRST)["rows"] == 4
    with pytest.raises(AirflowNotFoundException):
        ended(request_, AirflowNotFoundException("no connection"))
