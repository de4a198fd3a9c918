"""Starts processes that do the work: in this environment, or in that of REFINERY_PYTHON where Airflow's own is thin."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.shipped import SHIPPED, code, python_path
from pipeline_tasks.store import store_settings

PYTHON = "REFINERY_PYTHON"
"""Names the interpreter of an environment with the extra `refine`; this one's without it."""

CODE = "REFINERY_CODE"
"""The code of who started a process in another environment, which has to have the same."""


def interpreter() -> str:
    """Return the interpreter of the processes that do the work."""
    return os.environ.get(PYTHON) or sys.executable


def environment(variables: Mapping[str, str] = MappingProxyType({}), python: str = "") -> dict[str, str]:
    """Return the environment of such a process: another interpreter finds nothing of this one's packages.

    `python` is its interpreter, "" for that of the work. What this process was given to reach its stores with is in it,
    and stays out of this process's own.
    """
    stores = store_settings.given()
    variables = {**variables, **({store_settings.STORES: stores} if stores else {})}
    if (python or interpreter()) == sys.executable:
        return {**os.environ, "PYTHONPATH": python_path(), **variables}
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**inherited, CODE: code_digest(), **variables}


def start_lasting(
    module: str, arguments: Sequence[str], log: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> "subprocess.Popen[bytes]":
    """Start a module of this package as a process that outlives this one; what it prints is appended to `log`."""
    command = [interpreter(), "-m", module, *arguments]
    with log.open("ab") as sink:
        try:
            return subprocess.Popen(  # noqa: S603 -- our own interpreter and module
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=environment(variables),
                start_new_session=True,
            )
        except OSError as error:
            message = f"{command[0]} cannot be run ({error.strerror}); correct {PYTHON}"
            raise RecipeError(message) from error


def last_words(log: Path) -> str:
    """Return the last line of a log, "" without one."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def require_code() -> None:
    """End this process, as a RecipeError does, if who started it has other code of Refinery."""
    if os.environ.get(CODE, "") not in ("", code_digest()):
        sys.stderr.write(f"{sys.executable} has other code of Refinery than Airflow; install the same wheel in both\n")
        sys.exit(RecipeError.exit_code)


def code_digest() -> str:
    """Return a digest of our modules, which a wheel and its checkout have alike."""
    modules = {path.relative_to(folder.parent): path for folder in code() for path in folder.rglob("*.py")}
    digest = sha256()
    for module, path in sorted(modules.items()):
        if module.parts[1] not in SHIPPED:
            digest.update(f"{module.as_posix()}\n".encode() + sha256(path.read_bytes()).digest())
    return digest.hexdigest()
