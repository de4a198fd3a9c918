"""A server of Spark Connect that somebody else started gives the bytes that the local engine gives."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from refinery_spark.spark import QUERY_SETTINGS

from tests.cluster.containers import wait_until
from tests.embedded import PROJECT
from tests.engines.test_conformance import STAGES, TABLES, stored
from tests.refining import commit_parent, refined

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("toys")]

STARTED = re.compile(r"Spark Connect server started at: (127\.0\.0\.1:\d+)")


@contextlib.contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[str]:
    """Run a server with settings of its own, at a port that it chooses (0); yield its address."""
    folder.mkdir()
    log = folder / "server.log"
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.sql.adaptive.enabled": "false",
    }
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    env = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": sys.executable}
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, cwd=folder, stdout=out, stderr=out, start_new_session=True)
    try:
        for _ in wait_until("the server starts", 120):
            if process.poll() is not None or STARTED.search(log.read_text()):
                break
        started = STARTED.search(log.read_text())
        assert started, log.read_text()[-2000:]
        yield f"sc://{started[1]}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("restarted", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_session_of_spark_connect_has_our_settings_and_our_bytes_before_and_after_a_restart(
    tmp_path: Path, *, restarted: bool
) -> None:
    """Only this test speaks with a server of Spark Connect, whose start takes most of its time."""
    here, there = tmp_path / "here", tmp_path / "there"
    for stage in STAGES:
        refined(here, stage, commit_parent(here, TABLES))
    parent = commit_parent(there, TABLES)
    with contextlib.ExitStack() as last:
        first = last.enter_context(contextlib.ExitStack())
        address = first.enter_context(serving(tmp_path / "first"))
        command = [sys.executable, "-m", "tests.engines.connect_client", address, str(there), parent, *STAGES]
        client = subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        last.callback(client.kill)
        assert client.stdout is not None
        assert client.stdout.readline() == "half\n"
        if restarted:
            first.close()
            last.enter_context(serving(tmp_path / "second", int(address.rpartition(":")[2])))
        out, errors = client.communicate("\n", timeout=240)
    assert client.returncode == 0, errors[-2000:]
    lost, settings = out.splitlines()
    assert json.loads(settings) == QUERY_SETTINGS
    assert json.loads(lost) <= restarted, "the next try has a session of the server that is there now"
    for stage in STAGES:
        assert stored(here, stage)
        assert stored(there, stage) == stored(here, stage)
