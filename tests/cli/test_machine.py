"""What is wrong with the machine is one paragraph with the way out, and not a stack trace."""

import errno
import re
import resource
import sqlite3
import subprocess
import sys

import pytest

from pipeline_tasks.embedded.airflow_home import PROJECT
from pipeline_tasks.embedded.machine import named
from pipeline_tasks.errors import JobLost, NoSpace, RecipeError, RefineryError, StorageBusy


def test_a_small_limit_of_addresses_is_named_before_anything_starts() -> None:
    """With 200 MB OpenBLAS gave up, with 2.5 GB LLVM did not load, after minutes and four tries of a task."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (900 * 1024**2, 900 * 1024**2))

    command = [sys.executable, "-m", "pipeline_tasks.cli", "run", "--input", "nowhere"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert done.returncode == RecipeError.exit_code
    (line,) = done.stderr.splitlines()
    assert line.startswith("refinery: `ulimit -v` allows 921,600 KiB of addresses")
    assert "ulimit -v unlimited" in line


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MemoryError("realloc of size 1024 failed"), JobLost, "no more memory.*free some"),
        (RuntimeError("can't start new thread"), JobLost, "no more memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), JobLost, "no more memory"),
        (OSError("Could not find/load shared object file 'libllvmlite.so'"), RecipeError, "compiler does not load"),
        (RuntimeError("cannot cache function: no locator available for file x"), RecipeError, "set NUMBA_CACHE_DIR"),
        (sqlite3.OperationalError("database is locked"), StorageBusy, "run the same command again"),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), NoSpace, "/tmp/x: no space left.*TMPDIR"),
        (OSError(errno.EMFILE, "Too many open files"), JobLost, "ulimit -n"),
    ],
)
def test_the_machines_failures_are_named_through_their_causes(
    error: Exception, kind: type[RefineryError], words: str
) -> None:
    wrapped = ValueError("a library gave up")
    wrapped.__cause__ = error
    for raised in (error, wrapped):
        refusal = named(raised)
        assert type(refusal) is kind
        assert re.search(words, str(refusal))
    assert named(KeyError("a defect")) is None
