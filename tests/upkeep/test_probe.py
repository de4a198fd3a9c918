"""A probe fails unless what it asks can do its work; Spark's and Ray's are asked in `tests/test_compose.py`."""

import http.server
import json
import threading
from collections.abc import Iterator

import pytest

from pipeline_tasks.upkeep import probe

Answers = dict[str, tuple[int, str]]


@pytest.fixture
def answers() -> Answers:
    """What the server answers at a path: a status and a text."""
    return {}


@pytest.fixture
def server(answers: Answers) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = answers.get(self.path, (404, "nothing here"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "code"), [("healthy", 0), ("unhealthy", 1)])
def test_a_web_server_without_its_database_is_not_healthy(
    server: str, answers: Answers, status: str, code: int
) -> None:
    """Airflow answers 200 in both cases."""
    answers["/api/v2/monitor/health"] = (200, json.dumps({"metadatabase": {"status": status}}))
    assert probe.main(["airflow-server", server]) == code


def test_a_standby_master_and_one_without_workers_are_not_healthy(
    server: str, answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    for state, workers, why in (
        ("STANDBY", ["ALIVE"], "is STANDBY"),
        ("ALIVE", ["DEAD"], "no Spark worker is registered"),
        ("ALIVE", ["DEAD", "ALIVE"], ""),
    ):
        answers["/json/"] = (200, json.dumps({"status": state, "workers": [{"state": each} for each in workers]}))
        assert probe.main(["spark-master", server]) == bool(why)
        assert why in capsys.readouterr().err


def test_a_worker_that_its_master_lists_as_dead_is_not_healthy(
    server: str, answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    answers["/json/"] = (200, json.dumps({"id": "worker-1", "workers": [{"id": "worker-1", "state": "DEAD"}]}))
    assert probe.main(["spark-worker", server, server]) == 1
    assert "lists this worker, worker-1, as DEAD" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reply", "why"),
    [((503, "Local Raylet failed"), "answered 503: Local Raylet failed"), ((200, "<html>"), "did not answer in JSON")],
)
def test_what_a_server_says_is_the_reason(
    server: str, answers: Answers, capsys: pytest.CaptureFixture[str], reply: tuple[int, str], why: str
) -> None:
    answers["/json/"] = reply
    assert probe.main(["spark-master", server]) == 1
    assert why in capsys.readouterr().err


def test_nothing_that_answers_is_not_healthy(closed_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe.main(["spark-master", f"http://127.0.0.1:{closed_port}"]) == 1
    assert "did not answer" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["postgres"]])
def test_an_unknown_part_is_named_wrongly(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert probe.main(words) == 2
    assert "usage: " in capsys.readouterr().err
