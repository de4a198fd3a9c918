"""A package from outside brings a part of every seam: where it is installed, every part of it is known and works."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PLACE = Path(__file__).parent
PACKAGE = PLACE / "package"
PROJECT = PLACE.parents[1]


@pytest.fixture
def stranger(tmp_path: Path) -> dict[str, str]:
    """Install the package in a folder, as pip does: its metadata; return the variables of processes that have it."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    named = f"Name: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\n{named}")
    lines = []
    for seam, points in project["entry-points"].items():
        lines += [f"[{seam}]", *(f"{name} = {place}" for name, place in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    (metadata / "top_level.txt").write_text("stranger\n")
    return {"PYTHONPATH": os.pathsep.join(map(str, (tmp_path, PACKAGE, PROJECT)))}


@pytest.mark.slow
def test_every_part_of_a_package_from_outside_works(stranger: dict[str, str]) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *map(str, sorted(PLACE.glob("*where_installed.py"))),
    ]
    done = subprocess.run(
        command, cwd=PROJECT, env=os.environ | stranger, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_core_names_no_part_of_it() -> None:
    core = [path for room in ("pipeline_tasks", "plugins", "dags") for path in (PROJECT / room).rglob("*.py")]
    assert [path for path in core if "stranger" in path.read_text()] == []
