"""A process that pulls from a table, files or a repository is killed again and again, and what lands is what it would be.

The process kills itself after a number of bytes, with SIGKILL: nothing of it cleans up.
"""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sources.pulling import digests_of, pull_source

pytestmark = pytest.mark.slow

PROSE = "The ferry leaves the harbor every morning before the fog has lifted from the water."

CHILD = """
import json, os, signal, sys
from pathlib import Path
from refinery_sources import budget
from tests.sources.pulling import pull_source
source, landings, left, place = json.loads(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
budget.PLACE = place
def on_bytes(_name, size):
    global left
    left -= size
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
pull_source(source, landings, on_bytes=on_bytes)
"""


def delta(folder: Path) -> dict[str, Any]:
    import pyarrow as pa

    deltalake = pytest.importorskip("deltalake")
    for first in range(0, 4_000, 1_000):
        rows = pa.table({"text": [f"{PROSE} {n * 7919}" for n in range(first, first + 1_000)]})
        deltalake.write_deltalake(str(folder), rows, mode="append")
    return {"delta": {"table": str(folder)}}


def files(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    for number in range(4):
        rows = "".join(f"{PROSE} {n * 7919},{n}\n" for n in range(1_000))
        (folder / f"{number}.csv").write_text(f"text,n\n{rows}")
    return {"files": {"place": str(folder), "format": "csv"}}


def repository(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    for number in range(200):
        (folder / f"{number:03d}.txt").write_text(f"{PROSE} {number * 7919}\n" * 20)
    (folder / "LICENSE").write_text("Do what you want.\n" * 1_000)
    who = ["-c", "user.name=Ann", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return {"git": {"repository": str(folder)}}


@pytest.mark.parametrize("made", [delta, files, repository])
def test_a_pull_that_is_killed_at_random_bytes_lands_the_same(
    made: Any, tmp_path: Path, budgets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # what is fetched of a repository is kept there
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    source = made(tmp_path / "source")
    whole, _ = pull_source(source, tmp_path / "whole")
    size = sum(file.stat().st_size for file in whole.rglob("*") if file.is_file())
    seeded = random.Random(37)
    ends = []
    for _ in range(5):
        left = seeded.randrange(1, max(size, 2))
        words = [json.dumps(source), str(tmp_path / "landings"), str(left), str(budgets)]
        done = subprocess.run([sys.executable, "-c", CHILD, *words], capture_output=True, check=False, env=environment)
        ends.append(done.returncode)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    assert -signal.SIGKILL in ends
    landed, _ = pull_source(source, tmp_path / "landings")
    assert landed.name == whole.name
    assert digests_of(landed) == digests_of(whole)
