"""Packages that bring parts, as a process finds them that they are installed for."""

import os
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import invalidate_caches
from pathlib import Path

import pytest

from pipeline_tasks import cards, seams
from pipeline_tasks.ask import known
from pipeline_tasks.gate import judging
from pipeline_tasks.landing import brought_formats
from pipeline_tasks.service import verbs
from pipeline_tasks.upkeep import followers

PROJECT = Path(__file__).parents[1]

Points = Mapping[str, Mapping[str, str]]
"""Places of parts by their names, by seam."""


def write_metadata(folder: Path, name: str, version: str, points: Points, modules: Iterable[str]) -> None:
    """Write the metadata that pip writes of a package below a folder that is on the path."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [line for seam, of in points.items() for line in (f"[{seam}]", *(f"{part} = {of[part]}" for part in of))]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    (metadata / "top_level.txt").write_text("\n".join(modules))


def installed(packages: Iterable[Path]) -> dict[str, str]:
    """Give each package the metadata that pip writes; return the variables of processes that have them all."""
    folders = [*packages]
    for folder in folders:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        modules = [file.parent.name for file in folder.glob("*/__init__.py")]
        write_metadata(folder, project["name"], project["version"], project["entry-points"], modules)
    return {"PYTHONPATH": os.pathsep.join(map(str, (*folders, PROJECT)))}


class Site:
    """A folder on the path of this process, in which a test installs packages of one module, `brought_NAME`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, seam: str, points: Mapping[str, str], code: str = "", version: str = "1.2") -> None:
        """Install a package with entry points of a seam."""
        write_metadata(self.folder, name, version, {seam: points}, [f"brought_{name}"])
        (self.folder / f"brought_{name}.py").write_text(code)
        invalidate_caches()
        forget()


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Yield a place for packages, which are gone behind it."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield Site(folder)
    forget()


def forget() -> None:
    """Forget which parts there were, and their modules."""
    for cached in (seams._brought, seams.own_parts, seams.part_at, brought_formats._by_ending, cards._brought_card):
        cached.cache_clear()
    for cached in (known.questions, verbs.verbs, judging.judge_here, followers.followers):
        cached.cache_clear()
    for name in [name for name in sys.modules if name.startswith("brought_")]:
        del sys.modules[name]
