"""Packages that bring parts, as a process finds them that they are installed for."""

import os
import tomllib
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def installed(packages: Iterable[Path]) -> dict[str, str]:
    """Give each package the metadata that pip writes; return the variables of processes that have them all."""
    folders = [*packages]
    for folder in folders:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        metadata.mkdir()
        named = f"Name: {project['name']}\nVersion: {project['version']}\n"
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\n{named}")
        lines = []
        for seam, points in project["entry-points"].items():
            lines += [f"[{seam}]", *(f"{name} = {place}" for name, place in points.items())]
        (metadata / "entry_points.txt").write_text("\n".join(lines))
        (metadata / "top_level.txt").write_text("\n".join(file.parent.name for file in folder.glob("*/__init__.py")))
    return {"PYTHONPATH": os.pathsep.join(map(str, (*folders, PROJECT)))}
