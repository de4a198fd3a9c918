"""Manages the environment of the peers in benchmarks: installed from PyPI when absent, separate from Refinery's own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def install(pins: str = "peers.txt", name: str = "peers") -> Path:
    """Return the Python of an environment of peers, installing what a file pins if that has not been done."""
    place = HERE.parent / ".refinery" / name
    done, wanted = place / pins, (HERE / pins).read_text()
    python = place / "bin" / "python"
    if not done.exists() or done.read_text() != wanted:
        installed = Path(sys.executable).with_name("uv")
        uv = str(installed) if installed.exists() else "uv"
        subprocess.run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(place)], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", str(python), "-r", str(HERE / pins)], check=True)
        done.write_text(wanted)
    return python


def install_with_pip(pins: str, name: str) -> Path:
    """Return the Python of another environment, for pins with torch: pip knows builds for machines without a GPU."""
    place = HERE.parent / ".refinery" / name
    done, wanted = place / pins, (HERE / pins).read_text()
    python = place / "bin" / "python"
    if not done.exists() or done.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(HERE / pins)], check=True)
        done.write_text(wanted)
    return python


def run(script: str, *arguments: str, python: Path | str = sys.executable) -> Any:  # noqa: ANN401 -- any JSON
    """Run a script of this folder in a separate process; return the JSON of its last line."""
    command = [str(python), str(HERE / script), *arguments]
    environ = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE.parent, env=environ)
    return json.loads(done.stdout.splitlines()[-1])


def write_documents(path: Path, texts: Iterable[str]) -> None:
    """Write one JSON string per line, as `peer_datatrove.py` reads them."""
    path.write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="ascii")
