"""Packages from outside bring a part of every seam: where they are installed, every part is known and works.

`refinery new` writes those of the kinds that it knows.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from tests.brought import PROJECT, installed

PLACE = Path(__file__).parent
PARTS = {"brief": "stage", "calm": "filter", "diary": "source", "id_lines": "export"}


@pytest.fixture
def packages(tmp_path: Path) -> list[Path]:
    """Have `refinery new` write a package of each kind, and copy that of the other seams beside them."""
    for name, kind in PARTS.items():
        assert main(["new", kind, name, "--to", str(tmp_path)]) == 0
    return [*(tmp_path / name for name in PARTS), shutil.copytree(PLACE / "package", tmp_path / "others")]


@pytest.mark.slow
def test_every_part_of_a_package_from_outside_works(packages: list[Path]) -> None:
    """Half a minute or more: only here do parts of every seam work in processes that find them by installed metadata.

    What each part refuses is tested in one process, by `test_brought_parts`.
    """
    tests = [*PLACE.glob("*where_installed.py"), *(file for place in packages for file in place.glob("test_*.py"))]
    assert len(tests) == 5 + len(PARTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, sorted(tests))]
    env = os.environ | installed(packages)
    done = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_core_names_no_part_of_it() -> None:
    core = [path for room in ("pipeline_tasks", "plugins", "dags") for path in (PROJECT / room).rglob("*.py")]
    assert [path for path in core if "stranger" in path.read_text()] == []
