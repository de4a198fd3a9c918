"""The worker daemon: one process handles all requests of a user, and losing it is a transient error."""

import json
import os
import re
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path

import psutil
import pytest

from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.service import daemon
from pipeline_tasks.service.requests.stages import LandRequest
from pipeline_tasks.service.requests.wire import encode
from tests.cluster.containers import wait_until
from tests.embedded import PROJECT
from tests.poison import POISON, poisoned
from tests.refining import commit_parent
from tests.toys import table

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the test's own for the socket, whose path may have only about a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="daemon-") as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", name)
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        yield Path(name)
        for process in daemons(Path(name)):
            process.kill()
            process.wait()


def daemons(folder: Path) -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    alive = [process for process in children if process.status() != psutil.STATUS_ZOMBIE]
    return [process for process in alive if str(folder) in " ".join(process.cmdline())]


def land(folder: Path, name: str) -> LandRequest:
    (folder / name).mkdir()
    (folder / name / "a.jsonl").write_text('{"text": "hello"}\n')
    return LandRequest(str(folder / "root"), str(folder / name), snapshot=name)


def test_requests_at_the_same_time_share_one_daemon_that_only_its_user_reaches(folder: Path) -> None:
    requests = [land(folder, f"s{number}") for number in range(4)]
    replies: list[object] = []
    threads = [
        threading.Thread(target=lambda request=request: replies.append(daemon.send(request)["snapshot"]))
        for request in requests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, replies)) == ["s0", "s1", "s2", "s3"]
    assert len(daemons(folder)) == 1
    private = folder / f"refinery-{os.getuid()}"
    assert private.stat().st_mode & 0o077 == 0
    assert [path.stat().st_mode & 0o077 for path in private.glob("*.key")] == [0]


def test_ray_outlives_the_request_that_started_it(folder: Path) -> None:
    """Linux kills Ray's own processes with the thread that started them, and a request's thread ends with it."""
    landed = daemon.send(land(folder, "day"))
    ingest = RefineRequest(str(folder / "root"), "ingest", {}, landed["manifest"], landing=str(folder / "day"))
    ingested = daemon.send(replace(ingest, engine="ray", recipe="web", snapshot="day"))
    extracted = daemon.send(replace(ingest, engine="ray", stage="extract", parent=ingested["manifest"]))
    assert (ingested["rows"], extracted["rows_in"], extracted["ran"]) == (1, 1, 1)


def test_a_long_tmpdir_is_no_hindrance(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a Unix socket has 107 characters, and TMPDIR of clusters and CI has more: no daemon started."""
    place = folder / ("x" * 120)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    request = land(folder, "day")
    started = set(psutil.Process().children())
    assert daemon.send(request)["snapshot"] == "day"
    [process] = set(psutil.Process().children()) - started
    daemon.stop()
    process.wait(60)


def test_a_refusal_comes_back_as_itself(folder: Path) -> None:
    with pytest.raises(RecipeError, match=re.escape(str(folder / "nowhere"))):
        daemon.send(LandRequest(str(folder / "root"), str(folder / "nowhere")))


def test_a_daemon_that_was_killed_is_replaced(folder: Path) -> None:
    assert daemon.send(land(folder, "before"))["snapshot"] == "before"
    (first,) = daemons(folder)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert daemon.send(land(folder, "after"))["snapshot"] == "after"


def test_a_request_that_is_lost_with_its_daemon_may_be_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        lost: list[BaseException] = []

        def send() -> None:
            try:
                daemon.send(LandRequest(str(folder / "root"), "s3://crawl/s"))
            except JobLost as error:
                lost.append(error)

        sending = threading.Thread(target=send)
        sending.start()
        line, _ = silent.accept()  # the daemon waits for the object store, which never answers
        with line:
            (process,) = daemons(folder)
            process.send_signal(signal.SIGKILL)
            process.wait()
            sending.join()
    assert "died during land" in str(lost[0])


@pytest.mark.usefixtures("toys")
def test_the_work_of_a_task_that_hangs_up_ends(tmp_path: Path) -> None:
    """A task that was cleared, failed or killed left its work running, beside that of its next try."""
    parent, marker = commit_parent(tmp_path, [table(0, 4)]), tmp_path / "runs"
    request = RefineRequest(str(tmp_path), "toy_bad", {"how": "endless", "marker": str(marker)}, parent)
    task, line = Pipe()
    serving = threading.Thread(target=daemon.Daemon().serve, args=(line,), daemon=True)
    serving.start()
    task.send_bytes(json.dumps(encode(request)).encode())
    for _ in wait_until("the work has begun", 60, each=0.1):
        if marker.exists():
            break
    task.close()
    serving.join(60)
    assert not serving.is_alive()
    assert not list(tmp_path.glob("toy_bad/*/manifest.json"))


def test_a_defect_comes_back_with_its_trace_and_the_next_request_gets_a_new_daemon(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in poisoned(tmp_path / "site", "raise").items():
        monkeypatch.setenv(name, value)
    (folder / "before").mkdir()
    (folder / "before" / "a.jsonl").write_text(json.dumps({"url": f"https://{POISON}/", "text": "hello"}))
    root, day = str(folder / "root"), str(folder / "before")
    parent = daemon.send(LandRequest(root, day, snapshot="before"))["manifest"]
    parent = daemon.send(RefineRequest(root, "ingest", {}, parent, landing=day))["manifest"]
    with pytest.raises(RuntimeError, match=r"(?s)^ValueError: .*a page that no extractor survives"):
        daemon.send(RefineRequest(root, "extract", {}, parent, landing=day))
    for process in daemons(folder):
        process.wait(timeout=120)
    assert daemon.send(land(folder, "after"))["snapshot"] == "after"


def test_a_daemon_of_older_code_is_replaced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "code").mkdir()
    (folder / "code" / "older.py").touch()
    with monkeypatch.context() as patch:
        patch.setattr(daemon, "code", lambda: [folder / "code"])
        patch.setenv("PYTHONPATH", str(PROJECT))
        daemon.send(land(folder, "before"))
        (older,) = daemons(folder)
        (folder / "code" / "newer.py").touch()
        daemon.send(land(folder, "after"))
    older.wait(timeout=120)
    assert len(daemons(folder)) == 1


def test_a_daemon_beside_which_something_was_installed_is_replaced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries that it has not imported yet would be others than those that it knows the versions of."""
    python = tmp_path / "bin" / "python"
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    monkeypatch.setenv("REFINERY_PYTHON", str(python))
    before = daemon._paths().socket
    assert daemon._paths().socket == before
    os.utime(packages, ns=(1, 1))  # as a new folder there does
    assert daemon._paths().socket != before


def test_a_daemon_exits_when_it_is_stopped(folder: Path) -> None:
    daemon.send(land(folder, "s"))
    (process,) = daemons(folder)
    daemon.stop()
    process.wait(timeout=120)
    assert daemons(folder) == []
