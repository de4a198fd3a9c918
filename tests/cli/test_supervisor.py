"""A command that is stopped ends with all processes below it, and none of them says why another one died."""

import signal
import subprocess
import sys

import pytest

OTHERS, WATCHERS = 200, 30
"""Processes that are ended meanwhile, and those that see the first one die, as the worker daemon sees the JVM."""

COMMAND = f"""
import os, sys, time
from pipeline_tasks.cli.supervisor import supervised

def work():
    read, write = os.pipe()
    if not os.fork():
        os.close(read)
        time.sleep(600)
    os.close(write)
    for _ in range({OTHERS}):
        if not os.fork():
            time.sleep(600)
    for _ in range({WATCHERS}):
        if not os.fork():
            os.read(read, 1)
            os.write(2, b"the JVM is gone\\n")
            time.sleep(600)
    print("ready", flush=True)
    time.sleep(600)

sys.exit(supervised(work))
"""


def test_no_process_says_that_another_died_when_a_command_is_stopped() -> None:
    """A run with Spark that was stopped said first that the Spark job had failed, and gave a remedy."""
    command = [sys.executable, "-c", COMMAND]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert said.startswith("refinery: stopped; ")
    assert "gone" not in said


def _ended(body: str) -> "subprocess.CompletedProcess[str]":
    """Run a command whose work is `body`."""
    program = f"import os, sys, time\nfrom pipeline_tasks.cli.supervisor import supervised\ndef work(): {body}\nsys.exit(supervised(work))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("below", ["", "os.fork() or time.sleep(600); "])
def test_a_command_that_something_in_it_ends_is_no_success(code: int, below: str) -> None:
    """A kernel that called `os._exit(0)` ended a run as if all of it had been done, without a line."""
    done = _ended(f"{below}os._exit({code})")
    assert done.returncode == 70
    assert f"ended it with exit code {code}, a kernel or a library" in done.stderr


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("how", ["return ", "sys.exit"])
def test_a_command_that_ends_by_itself_has_its_own_exit_code(code: int, how: str) -> None:
    done = _ended(f"{how}({code})")
    assert (done.returncode, done.stderr) == (code, "")
