"""What is wrong with the machine is one paragraph with the way out, and not a stack trace."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from tests.embedded import PROJECT


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


def refused(command: str, folder: Path | None = None, **settings: str) -> str:
    """Return the one line that a command ends with, whose request makes no sense on this machine."""
    go = f"import os; os.chdir({str(folder)!r}); os.rmdir({str(folder)!r}); " if folder else ""
    script = f"{go}import sys; from pipeline_tasks.cli.main import main; sys.exit(main({command.split()}))"
    env = os.environ | {"PYTHONPATH": str(PROJECT)} | settings
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == RecipeError.exit_code
    return done.stderr.splitlines()[-1] if "Traceback" not in done.stderr else done.stderr


def test_a_folder_for_compiled_loops_that_cannot_be_written_is_named_at_once(tmp_path: Path) -> None:
    """It was a stack trace, after two minutes of compiling."""
    (tmp_path / "file").touch()
    line = refused("setup compile", NUMBA_CACHE_DIR=f"{tmp_path}/file/cache")
    assert re.match(
        rf"refinery: {tmp_path}/file/\S+: Not a directory; let this user write there, or .*NUMBA_CACHE", line
    )


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    line = refused("status", tmp_path)
    assert line == "refinery: the folder in which this command was started is gone; change to another and run it again"
