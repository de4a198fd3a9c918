"""Embedded engines listen on loopback alone, and Ray has no dashboard: nobody else may submit a job."""

import subprocess
import sys

import pytest

from tests.embedded import PROJECT

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, psutil
from pipeline_tasks.engines import choose
choose.start(sys.argv[1])
here = psutil.Process()
for process in (here, *here.children(recursive=True)):
    try:
        lines = process.net_connections("inet")
    except psutil.Error:
        continue
    for line in lines:
        if line.status == psutil.CONN_LISTEN:
            print(line.laddr.ip, line.laddr.port)
choose.stop_all()
"""


@pytest.mark.parametrize("engine", ["spark", "ray"])
def test_an_embedded_engine_listens_on_loopback_alone(engine: str) -> None:
    command = [sys.executable, "-c", PROGRAM, engine]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    listeners = [line.split() for line in done.stdout.splitlines()]
    assert listeners, "nothing listens: this test looks at the wrong processes"
    assert {host for host, _ in listeners} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, listeners
    assert "8265" not in {port for _, port in listeners}
