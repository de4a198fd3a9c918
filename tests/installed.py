"""The project as a wheel, in an environment of its own: with the packages of this one, and without its editable install."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.embedded import PROJECT

PROJECT_FACTS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]

FOLDERS = ("pipeline_tasks", "plugins", "dags", "expectations", "sql")
"""The folders of the checkout that an installed project needs."""

OURS = ("refinery", "pipeline_tasks", "__editable__")
"""How the names begin of what our own package puts into an environment."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the wheel, and the folder in which its commands run."""

    python: Path
    folder: Path

    @property
    def packages(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.python.parents[1] / "lib" / version / "site-packages"

    def run(self, *arguments: str | Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run this Python in the folder, with nothing of this process's environment that could lead to the checkout."""
        env = {"PATH": f"{self.python.parent}:{os.defpath}", "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        command = [str(self.python), *map(str, arguments)]
        return subprocess.run(
            command, cwd=self.folder, env=env | variables, capture_output=True, text=True, check=False, timeout=1700
        )


def source_files() -> Iterator[Path]:
    """Yield the files of the checkout that an installed project needs, without what Python and numba make of them."""
    for folder in FOLDERS:
        for path in sorted((PROJECT / folder).rglob("*")):
            made = {"__pycache__"} & set(path.parts) or path.suffix in {".nbi", ".nbc"} or path.name.startswith(".")
            if path.is_file() and not made:
                yield path.relative_to(PROJECT)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of a copy of the checkout: a build leaves files in the folder that it builds."""
    source = folder / "source"
    for path in [*source_files(), *map(Path, ("pyproject.toml", "setup.py", "README.md", "requirements.txt"))]:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT / path, source / path)
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, extra: str = "") -> Installed:
    """Install a wheel into a new environment, beside links to all packages of this one but ours.

    With an `extra`, the links are only to what the package asks for with it.
    """
    venv.create(folder / "venv", symlinks=True)
    here = Installed(folder / "venv" / "bin" / "python", folder / "work")
    here.folder.mkdir()
    for package in asked_for(extra) if extra else Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith((*OURS, "__pycache__")):
            (here.packages / package.name).symlink_to(package)
    _pip("--python", here.python, "install", "--no-deps", "--no-index", wheel)
    return here


def asked_for(extra: str) -> list[Path]:
    """Return the files and folders of all packages that the project asks for with an extra, directly or not."""
    files = {
        (found, file.parts[0])
        for found in distributions_of(extra)
        for file in found.files or ()
        if file.parts[0] != ".."
    }
    return sorted({Path(str(found.locate_file(name))) for found, name in files})


def lines_of(extra: str) -> list[str]:
    """Return what the project asks for with an extra, and with those of its own that this names."""
    found: list[str] = []
    for line in PROJECT_FACTS["optional-dependencies"][extra]:
        asked = Requirement(line)
        own = asked.name == PROJECT_FACTS["name"]
        found += [each for name in sorted(asked.extras) for each in lines_of(name)] if own else [line]
    return found


def distributions_of(extra: str) -> list[Distribution]:
    """Return all packages that the project asks for with an extra, directly or not."""
    waiting = [Requirement(line) for line in (*PROJECT_FACTS["dependencies"], *lines_of(extra))]
    known: dict[tuple[str, frozenset[str]], Distribution] = {}
    while waiting:
        asked = waiting.pop()
        key = asked.name.lower(), frozenset(asked.extras)
        if key not in known:
            known[key] = distribution(asked.name)
            lines = map(Requirement, known[key].requires or ())
            waiting += [line for line in lines if _applies(line, asked.extras)]
    return [*known.values()]


def _applies(line: Requirement, extras: set[str]) -> bool:
    return line.marker is None or any(line.marker.evaluate({"extra": extra}) for extra in (*extras, ""))


def _pip(*arguments: str | Path) -> None:
    """Run pip where it does not take the checkout for what is installed, as it does by the `PYTHONPATH` of some tests."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
