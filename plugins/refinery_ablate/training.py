"""Trains a run of a comparison in a process of its own: by an interpreter that has torch, and killed with its starter.

`python -m refinery_ablate.training FOLDER RUN` is that process. It needs torch and the loader only.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline_tasks.errors import RecipeError, RefineryError, Transient, error_of
from pipeline_tasks.service.processes import environment, interpreter, require_code

Say = Callable[[str], None]

TRAIN_PYTHON = "REFINERY_TRAIN_PYTHON"
"""Names the interpreter of an environment with the extra `ablate`, by which models are trained."""

LOOK = "--look"
"""In place of a folder: say what would train, or that torch is missing, and train nothing."""


# --- Who starts it --------------------------------------------------------------------------------------------------


def require_trainer(say: Say) -> None:
    """Have the interpreter that would train say what it trains by; RecipeError with the way out if it cannot train."""
    try:
        _answer([LOOK], say)
    except RefineryError as error:
        message = f"{error}; {TRAIN_PYTHON} may name another interpreter, of an environment with the extra `ablate`"
        raise RecipeError(message) from error


def train_run(folder: str, run: str, say: Say) -> None:
    """Train a run, or go on where it was killed; `say` takes each line that it prints."""
    _answer([folder, run], say)


def _answer(arguments: Sequence[str], say: Say) -> None:
    """Start the process and wait for it. It ends with this one, however that ends: its input is closed then."""
    python = os.environ.get(TRAIN_PYTHON) or interpreter()
    command = [python, "-m", "refinery_ablate.training", *arguments]
    try:
        process = subprocess.Popen(  # noqa: S603 -- our own interpreter and module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(python=python),
            text=True,
            errors="replace",
        )
    except OSError as error:
        message = f"{python} cannot be run ({error.strerror})"
        raise RecipeError(message) from error
    last = ""
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                last = line.strip() or last
                say(line.rstrip())
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        message = f"{python}: {last or 'it has printed nothing'} (ended with {process.returncode})"
        raise error_of(process.returncode)(message)


# --- The process ----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Train the run of a folder; return the exit code of `errors`, with the error as the last line."""
    from refinery_ablate.running import device_name, require_torch, run_job

    require_code()
    threading.Thread(target=_end_with_starter, daemon=True).start()
    try:
        require_torch()
        if list(arguments) == [LOOK]:
            _say(f"models are trained by {sys.executable} on {device_name()}")
        else:
            folder, run = arguments
            run_job(Path(folder), run, _say)
    except RefineryError as error:
        _say(str(error))
        return error.exit_code
    return 0


def _end_with_starter() -> None:
    """End this process once its starter is gone, which closes its input; what was kept of the run is gone on from."""
    os.read(0, 1)  # not by `sys.stdin`, whose lock a thread must not hold as the process ends
    os._exit(Transient.exit_code)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
