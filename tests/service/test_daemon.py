"""The warm host: one process answers all tasks of a user, and losing it is a transient error."""

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pipeline_tasks.embedded.airflow_home import PROJECT
from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.service import daemon

pytestmark = pytest.mark.slow


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of the test's own for the socket, whose path may have only about a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="warm-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", folder)
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        yield Path(folder)
        for host in hosts(Path(folder)):
            host.kill()
            host.wait()


def hosts(place: Path) -> list[psutil.Process]:
    alive = [one for one in psutil.Process().children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]
    return [one for one in alive if str(place) in " ".join(one.cmdline())]


def land(place: Path, name: str) -> dict[str, object]:
    (place / name).mkdir()
    (place / name / "a.jsonl").write_text('{"text": "hello"}\n')
    return {"verb": "land", "root": str(place / "root"), "input": str(place / name), "snapshot": name}


def test_tasks_that_ask_at_once_share_one_host_that_only_its_user_reaches(place: Path) -> None:
    asked = [land(place, f"s{number}") for number in range(4)]
    replies: list[object] = []
    threads = [threading.Thread(target=lambda one=one: replies.append(daemon.send(one)["snapshot"])) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, replies)) == ["s0", "s1", "s2", "s3"]
    assert len(hosts(place)) == 1
    folder = place / f"refinery-{os.getuid()}"
    assert folder.stat().st_mode & 0o077 == 0
    assert [path.stat().st_mode & 0o077 for path in folder.glob("*.key")] == [0]


def test_ray_outlives_the_request_that_started_it(place: Path) -> None:
    """Linux kills Ray's own processes with the thread that started them, and a request's thread ends with it."""
    landed = daemon.send(land(place, "day"))
    asked = {"verb": "refine", "root": str(place / "root"), "recipe": "web", "snapshot": "day", "engine": "ray"}
    asked["landing"] = str(place / "day")
    made = daemon.send({**asked, "stage": "ingest", "parent": landed["manifest"]})
    again = daemon.send({**asked, "stage": "extract", "parent": made["manifest"]})
    assert (made["rows"], again["rows_in"], again["ran"]) == (1, 1, 1)


def test_a_refusal_comes_back_as_itself(place: Path) -> None:
    with pytest.raises(RecipeError, match="unknown verb 'dance'"):
        daemon.send({"verb": "dance"})


def test_a_host_that_was_killed_is_replaced(place: Path) -> None:
    assert daemon.send(land(place, "before"))["snapshot"] == "before"
    (first,) = hosts(place)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert daemon.send(land(place, "after"))["snapshot"] == "after"


def test_a_request_that_is_lost_with_its_host_may_be_tried_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        lost: list[BaseException] = []

        def ask() -> None:
            try:
                daemon.send({"verb": "land", "root": str(place / "root"), "input": "s3://crawl/s"})
            except JobLost as error:
                lost.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        line, _ = silent.accept()  # the host is at work: it asks the object store, which never answers
        with line:
            (host,) = hosts(place)
            host.send_signal(signal.SIGKILL)
            host.wait()
            asking.join()
    assert "went away during land" in str(lost[0])


def test_a_defect_is_told_with_its_trace_and_the_next_request_gets_a_new_host(place: Path) -> None:
    with pytest.raises(RuntimeError, match=r"AttributeError: Traceback"):
        daemon.send(land(place, "before") | {"root": 5})
    for host in hosts(place):
        host.wait(timeout=30)
    assert daemon.send(land(place, "after"))["snapshot"] == "after"


def test_a_host_of_older_code_is_replaced(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "code").mkdir()
    (place / "code" / "older.py").touch()
    with monkeypatch.context() as patch:
        patch.setattr(daemon, "PACKAGE", place / "code")
        patch.setenv("PYTHONPATH", str(PROJECT))
        daemon.send(land(place, "before"))
        (older,) = hosts(place)
        (place / "code" / "newer.py").touch()
        daemon.send(land(place, "after"))
    older.wait(timeout=30)
    assert len(hosts(place)) == 1


def test_a_host_leaves_when_it_is_asked_to(place: Path) -> None:
    daemon.send(land(place, "s"))
    (host,) = hosts(place)
    daemon.stop()
    host.wait(timeout=30)
    assert hosts(place) == []
