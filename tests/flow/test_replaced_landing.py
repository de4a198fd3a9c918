"""Another folder under the name of a published snapshot is said aloud by the task that lands it, and goes on."""

import json
from pathlib import Path

import pytest

from pipeline_tasks.publish.logs import version_log
from tests.commands import Refinery

TEXT = "The river rose through the night, and by the morning the lower fields were under water again."

RECIPE = """
name: own
run: {engines: {ingest: local}}
stages:
  ingest: {}
"""

pytestmark = pytest.mark.slow


def folder_of(crawl: Path, documents: int) -> Path:
    crawl.mkdir(parents=True, exist_ok=True)
    records = [
        {"text": f"{TEXT} {crawl.parent.name} {number}.", "url": f"https://a.example/{number}"}
        for number in range(documents)
    ]
    (crawl / "a.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return crawl


def test_another_folder_of_the_same_name_is_said_aloud_and_the_same_bytes_are_not(
    tmp_path: Path, refinery: Refinery
) -> None:
    (tmp_path / "own.yaml").write_text(RECIPE)
    root = str(tmp_path / "root")

    def run(folder: Path, *words: str) -> str:
        places = ("--input", folder, "--output", root, "--recipe", tmp_path / "own.yaml", "--engine", "local")
        done = refinery("run", *places, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    wiki, code = folder_of(tmp_path / "wiki" / "train", 12), folder_of(tmp_path / "code" / "train", 10)
    assert "takes the place" not in run(wiki)
    said = run(code)
    assert f"snapshot train came from {wiki} before (version 1, 12 documents), and comes from {code} now" in said
    assert "`--snapshot NAME`" in said
    assert [version.landing for version in version_log.latest_by_snapshot(root, "own")] == [str(code)]
    folder_of(code, 11)
    assert "takes the place" not in run(code), "files of a folder may change"
    moved = tmp_path / "moved" / "train"
    moved.mkdir(parents=True)
    (moved / "a.jsonl").write_bytes((code / "a.jsonl").read_bytes())
    assert "takes the place" not in run(moved)
    assert "takes the place" not in run(wiki, "--snapshot", "wiki")
