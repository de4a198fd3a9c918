"""A cluster that cannot be reached ends `refinery run` within seconds, and each retry is one line."""

import contextlib
import functools
import json
import logging
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_tasks.errors import ClusterUnreachable
from tests.chain import command
from tests.commands import Refinery
from tests.engines.test_addresses import RECIPE

SOON = """
import importlib, os
from refinery_airflow.tasks import retry as refinery_retry
from pipeline_tasks.errors import ClusterUnreachable, JobLost

for here in ("1", ""):
    os.environ["REFINERY_LAUNCH_HERE"] = here
    policy = importlib.reload(refinery_retry).POLICY
    print([str(policy.evaluate(kind("why"), 1, 3).retry_delay) for kind in (ClusterUnreachable, JobLost)])
"""
"""Prints how soon `refinery run` tries again, and then how soon a task of the scheduler does."""


@pytest.fixture
def run(tmp_path: Path) -> tuple[str, ...]:
    """The words of the command that refines two files in two partitions."""
    (tmp_path / "landing").mkdir()
    for name in ("a", "b"):
        row = {"text": f"Sound rows of a small file {name}. " * 9}
        (tmp_path / "landing" / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "small.yaml").write_text(RECIPE)
    places = ("--input", str(tmp_path / "landing"), "--output", str(tmp_path / "root"))
    recipe = ("--recipe", str(tmp_path / "small.yaml"), "--partitions", "2")
    return ("run", *recipe, *places)


@pytest.mark.parametrize(("engine", "scheme"), [("spark", "spark"), ("spark", "sc"), ("ray", "ray"), ("ray", "http")])
def test_a_cluster_that_does_not_answer_is_said_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, engine: str, scheme: str, closed_port: int
) -> None:
    from refinery_airflow.tasks.launch import TRIES, require_clusters

    address = f"{scheme}://127.0.0.1:{closed_port}"
    connection = {"conn_type": "generic", "host": address}
    monkeypatch.setenv(f"AIRFLOW_CONN_{engine.upper()}_DEFAULT", json.dumps(connection))
    with pytest.raises(ClusterUnreachable, match=re.escape(f"{address} ")):
        require_clusters([engine], pause=0)
    assert TRIES > 1
    monkeypatch.setenv(f"AIRFLOW_CONN_{engine.upper()}_DEFAULT", json.dumps(connection | {"host": "local"}))
    require_clusters([engine])


def test_a_cluster_that_answers_at_the_second_look_is_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from refinery_airflow.tasks.launch import log, require_clusters

    class Starting(logging.Handler):
        """Starts the cluster when a look at it has failed."""

        def emit(self, record: logging.LogRecord) -> None:
            failed.append(record.getMessage())
            cluster.listen()

    failed: list[str] = []
    with socket.socket() as cluster, caplog.at_level(logging.WARNING, log.name):
        cluster.bind(("127.0.0.1", 0))  # until it listens, it refuses
        address = f"spark://127.0.0.1:{cluster.getsockname()[1]}"
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", address)
        starting = Starting()
        log.addHandler(starting)
        try:
            require_clusters(["spark"], pause=0)
        finally:
            log.removeHandler(starting)
    assert [address in message for message in failed] == [True]


@pytest.mark.slow
def test_a_run_whose_cluster_is_down_ends_soon_with_a_line_per_look(
    monkeypatch: pytest.MonkeyPatch, run: tuple[str, ...], tmp_path: Path, refinery: Refinery, closed_port: int
) -> None:
    """Between its looks it waits for seconds, and here not at all."""
    from refinery_airflow.tasks import launch as refinery_launch

    assert refinery_launch.TRIES * refinery_launch.PAUSE < 20
    looks = functools.partial(refinery_launch.require_clusters, pause=0)
    monkeypatch.setattr(refinery_launch, "require_clusters", looks)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", f"spark://127.0.0.1:{closed_port}")
    ended = refinery(*run, "--engine", "spark")
    assert ended.returncode == ClusterUnreachable.exit_code == 75
    assert ended.stdout.count("spark  is tried again in ") == refinery_launch.TRIES - 1
    assert ended.stderr.count("does not answer") == 1
    assert not [*tmp_path.glob("root/*/*/manifest.json")], "nothing has run"


@contextlib.contextmanager
def answering_once() -> Iterator[int]:
    """Have a port at which something listens until the first connection, and which nobody else gets after that."""
    with socket.socket() as taken, socket.socket() as cluster:
        for each in (taken, cluster):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # both may have the port, and one listen
        taken.bind(("127.0.0.1", 0))
        cluster.bind(taken.getsockname())
        cluster.listen()

        def leave() -> None:
            with contextlib.suppress(OSError):
                connection, _ = cluster.accept()
                connection.close()
            cluster.close()

        threading.Thread(target=leave, daemon=True).start()
        yield int(taken.getsockname()[1])


@pytest.mark.slow
@pytest.mark.nightly
def test_a_cluster_that_goes_away_is_tried_three_times_with_a_line_each(
    monkeypatch: pytest.MonkeyPatch, run: tuple[str, ...]
) -> None:
    """Two partitions fail with the same words at each try: each retry was two equal lines, for more than 200 s.

    No partition is refined alone on this machine: it is not what ends the try.
    """
    with answering_once() as port:
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", f"spark://127.0.0.1:{port}")
        ended = command("-m", "pipeline_tasks.cli", *run, "--engine", "spark")
    assert ended.returncode == 75
    lines = [line for line in ended.stdout.splitlines() if "is tried again" in line]
    assert len(lines) == 3, ended.stdout
    assert "alone" not in ended.stdout
    assert all("does not answer" in line for line in lines), "`SOON` says when such an error is tried again"
    assert ended.stderr.count("does not answer") == 1


def test_only_refinery_run_tries_soon_again() -> None:
    """A scheduled run has nobody who waits: its cluster may take minutes to come back."""
    printed = command("-c", SOON, PYTHONPATH="plugins:.").stdout.splitlines()
    assert printed == ["['0:00:05', 'None']", "['None', 'None']"]
