"""`refinery run` refuses junk end to end: no version is made, and the refusal says why."""

import json
import random
from pathlib import Path

import pytest

from pipeline_tasks.errors import GateRefused, RecipeError
from pipeline_tasks.publish.logs import version_log
from tests.commands import Refinery
from tests.dags.test_run import words

pytestmark = pytest.mark.slow

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
  filter_url: {}
  filter_language: {keep: [en], threshold: 0.5}
run: {partitions: 1}
"""


def gibberish(number: int) -> str:
    chosen = random.Random(-1 - number)
    return " ".join("".join(chosen.choice("bcdfgklmprtxz#~^") for _ in range(14)) for _ in range(80))


def crawl(folder: Path, texts: list[str]) -> Path:
    day = folder / "crawl" / "2026-11-20"
    day.mkdir(parents=True)
    rows = [{"url": f"https://e{n % 7}.example.org/{n}", "text": text} for n, text in enumerate(texts)]
    (day / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return day


def test_a_folder_of_garbage_is_refused(tmp_path: Path, refinery: Refinery) -> None:
    """Twenty-five texts without a word; before, they were published as version 1 with 0 documents and exit code 0."""
    garbage = crawl(tmp_path, [gibberish(n) for n in range(25)])
    refused = refinery(*words(tmp_path, garbage, recipe=RECIPE))
    assert refused.returncode == GateRefused.exit_code, refused.stderr
    assert "the gate of filter_language refuses filter_language/" in refused.stderr
    assert "Not one row is in a wanted language" in refused.stderr
    assert version_log.versions(str(tmp_path / "root"), "small") == []


def test_a_snapshot_of_one_unreadable_file_is_refused_by_the_first_stage(tmp_path: Path, refinery: Refinery) -> None:
    """It walked all stages with no row before the gate of `publish` refused it."""
    day = tmp_path / "crawl" / "2026-11-20"
    day.mkdir(parents=True)
    (day / "a.warc.gz").write_bytes(b"no archive at all")
    refused = refinery(*words(tmp_path, day, recipe=RECIPE))
    assert refused.returncode == GateRefused.exit_code, refused.stderr
    assert "the gate of ingest refuses ingest/" in refused.stderr
    assert "error:not_an_archive" in refused.stderr + refused.stdout
    assert not (tmp_path / "root/extract").exists()


def test_an_unknown_gate_is_not_overridden(tmp_path: Path, refinery: Refinery) -> None:
    junk = crawl(tmp_path, [gibberish(0)])
    refused = refinery(*words(tmp_path, junk, "--override", "nosuch=why", recipe=RECIPE))
    assert refused.returncode == RecipeError.exit_code
    assert "nosuch" in refused.stderr
    assert not (tmp_path / "root").exists()
