"""What is wrong with the machine is named by its class, whatever library raised it, and work is tried again by that."""

import errno
import re
import resource
import socket
import sqlite3

import pytest

from pipeline_tasks.errors import JobLost, MachineFailed, NoMemory, NoSpace, RecipeError, RefineryError, StorageBusy
from pipeline_tasks.run.machine import machine_fault, named


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MemoryError("realloc of size 1024 failed"), NoMemory, "no more memory.*free some"),
        (RuntimeError("can't start new thread"), NoMemory, "no more memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), NoMemory, "no more memory"),
        (OSError("Could not find/load shared object file 'libllvmlite.so'"), RecipeError, "compiler does not load"),
        (RuntimeError("cannot cache function: no locator available for file x"), RecipeError, "set NUMBA_CACHE_DIR"),
        (sqlite3.OperationalError("database is locked"), StorageBusy, "run the same command again"),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), NoSpace, "/tmp/x: no space left.*TMPDIR"),
        (OSError(errno.ENOSPC, "No space left", "/from", None, "/full/to"), NoSpace, "^/full/to: no space left"),
        (OSError(errno.EROFS, "Read-only", "/ro/x"), RecipeError, "^/ro/x: Read-only file system; let this user write"),
        (PermissionError(errno.EACCES, "Permission denied", "/root/x"), RecipeError, "^/root/x: Permission denied"),
        (OSError(errno.EMFILE, "Too many open files"), JobLost, "ulimit -n"),
        (ModuleNotFoundError("No module named 'duckdb'", name="duckdb"), RecipeError, "^duckdb is not .*extra `sql`"),
        (ModuleNotFoundError("No module named 'x'", name="torch.nn.x"), RecipeError, "^torch.nn.x .*extra `models`"),
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
    assert named(None) is None


def test_what_stood_behind_an_error_is_searched_through_errors_that_name_each_other() -> None:
    first, second = KeyError("a defect"), ValueError("another")
    first.__cause__, second.__cause__ = second, first
    assert named(first) is None
    handled = KeyError("a defect while another error was handled")
    handled.__context__ = NoSpace("no space")
    assert named(handled) is handled.__context__


@pytest.mark.parametrize("error", [ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError])
def test_the_text_of_an_error_of_data_says_nothing_of_the_machine(error: type[Exception]) -> None:
    """A record may say what a machine says."""
    assert named(error("a page with the title: out of memory, database is locked, no locator available")) is None


def test_a_failed_gpu_is_the_machines() -> None:
    assert type(named(RuntimeError("CUDA error: device-side assert triggered"))) is MachineFailed


def test_the_limit_of_addresses_is_named_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, words in ((resource.RLIM_INFINITY, "free some"), (8192 * 1024, "8,192 KiB")):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert words in str(named(MemoryError()))


def test_a_fault_of_the_machine_is_named_with_its_host_and_one_of_the_work_is_none() -> None:
    host = f"on {socket.gethostname()}: "
    assert machine_fault(KeyError("a defect")) is None
    own = NoSpace("no space")
    assert machine_fault(own) is own
    behind = KeyError("a library gave up")
    behind.__cause__ = own
    located = machine_fault(behind)
    assert type(located) is NoSpace
    assert str(located) == f"{host}no space"
    assert located.__cause__ is behind


@pytest.mark.parametrize("is_cause", [False, True])
def test_a_file_or_connection_that_fails_is_the_machines_without_the_text_of_a_record(is_cause: bool) -> None:
    error: BaseException = OSError(errno.EIO, "Input/output error", "/data/x")
    if is_cause:
        behind = KeyError("a text of a record")
        behind.__cause__ = error
        error = behind
    located = machine_fault(error)
    assert type(located) is MachineFailed
    assert re.search(r"OSError: Input/output error /data/x\b", str(located))
    bare = machine_fault(ConnectionResetError("a text of a record"))
    assert type(bare) is MachineFailed
    assert "a text of a record" not in str(bare)
    handled = KeyError("a defect")
    handled.__context__ = OSError(errno.EIO, "Input/output error")
    assert machine_fault(handled) is None
