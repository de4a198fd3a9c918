"""The schema of landed records is compared with that of the snapshots before, through the gate of `ingest`."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.errors import GateRefused
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest
from tests.commands import Done, Refinery

TEXT = "The river rose through the night, and by the morning the lower fields were under water again."

RECIPE = """
name: own
run: {engines: {ingest: local}}
stages:
  ingest: {}
"""

Land = Callable[..., Done]

pytestmark = pytest.mark.slow


def record(day: str, number: int, **fields: Any) -> dict[str, Any]:
    text = f"{TEXT} Page {number} of {day}."
    made = {"text": text, "url": f"https://a.example/{day}/{number}", "id": number, "score": number, **fields}
    return {name: value for name, value in made.items() if value is not ...}


@pytest.fixture
def land(tmp_path: Path, refinery: Refinery) -> Land:
    (tmp_path / "own.yaml").write_text(RECIPE)

    def landed(day: str, *words: str, promise: Mapping[str, Any] | None = None, **fields: Any) -> Done:
        """Refine a day of two files of JSON lines, whose records have these fields."""
        folder = tmp_path / "crawl" / day
        folder.mkdir(parents=True, exist_ok=True)
        for part in range(2):
            records = [record(day, number, **fields) for number in range(part, 40, 2)]
            (folder / f"{part}.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
        if promise:
            files = [{"path": path.name, "bytes": path.stat().st_size, "sha256": ""} for path in folder.glob("*.jsonl")]
            (folder / "snapshot.json").write_text(json.dumps({"snapshot": day, "files": files, **promise}))
        return refine(folder, *words)

    def refine(folder: Path, *words: str) -> Done:
        places = ("--input", folder, "--output", tmp_path / "root", "--recipe", tmp_path / "own.yaml")
        return refinery("run", *places, "--engine", "local", *words)

    return landed


def ingested(tmp_path: Path) -> Mapping[str, Any]:
    root = str(tmp_path / "root")
    version = version_log.versions(root, "own")[-1]
    fields: Mapping[str, Any] = read_manifest(root, version.manifests["ingest"]).metrics["fields"]
    return fields


def test_an_integer_that_became_text_is_refused_until_a_person_or_the_landing_accepts_it(
    land: Land, tmp_path: Path
) -> None:
    assert land("2026-01-01").returncode == 0
    assert ingested(tmp_path)["rest"] == {"score integer": 40}
    refused = land("2026-01-02", score="high")
    assert refused.returncode == GateRefused.exit_code
    assert "score was integer and is string" in refused.stderr
    assert "`schema_version` in `snapshot.json`" in " ".join(refused.stderr.split())
    assert land("2026-01-02", "--override", "ingest=the API has words now", score="high").returncode == 0
    assert land("2026-01-03", score="low").returncode == 0, "what was accepted is what the next is compared with"


def test_a_version_that_the_landing_raises_is_compared_with_none_before(land: Land, tmp_path: Path) -> None:
    land("2026-01-01")
    assert land("2026-01-02", promise={"schema_version": 2}, score="high").returncode == 0
    assert ingested(tmp_path)["version"] == 2
    assert "is no number" in land("2026-01-03", promise={"schema_version": "2"}).stderr


def test_a_read_field_that_vanished_is_refused_and_a_new_one_is_a_note(land: Land) -> None:
    land("2026-01-01")
    refused = land("2026-01-02", url=...)
    assert refused.returncode == GateRefused.exit_code
    assert "url was in 40 of 40 records" in refused.stderr
    passed = land("2026-01-03", lang="en", score=...)
    assert passed.returncode == 0
    said = passed.stdout + passed.stderr
    assert "note: new_fields is 1: lang" in said
    assert "note: left_fields is 1: score" in said


def test_a_trial_is_compared_and_is_no_version_of_the_schema(land: Land, tmp_path: Path) -> None:
    land("2026-01-01")
    refused = land("2026-01-02", "--sample", "0.5", score="high")
    assert refused.returncode == GateRefused.exit_code
    assert "score was integer and is string" in refused.stderr
    assert land("2026-01-02", "--sample", "0.5", "--override", "ingest=a trial", score="high").returncode == 0
    assert land("2026-01-03", score="high").returncode == GateRefused.exit_code


def test_both_types_of_a_file_are_stored_whatever_the_engine_and_the_partitions(
    tmp_path: Path, refinery: Refinery
) -> None:
    (tmp_path / "own.yaml").write_text(RECIPE)
    folder = tmp_path / "crawl" / "day"
    folder.mkdir(parents=True)
    mixed = [record("day", number, score=number if number % 4 else "none") for number in range(40)]
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in mixed))
    pq.write_table(pa.Table.from_pylist([record("day", number) for number in range(40, 60)]), folder / "b.parquet")
    found = []
    for name, words in (("one", ["--partitions", "1"]), ("two", ["--partitions", "2"])):
        root = str(tmp_path / name)
        places = ("--input", folder, "--output", root, "--recipe", tmp_path / "own.yaml", "--engine", "local")
        done = refinery("run", *places, *words)
        assert done.returncode == 0, done.stderr
        found.append(read_manifest(root, version_log.versions(root, "own")[-1].manifests["ingest"]).metrics["fields"])
    assert found[0]["rest"] == {"score integer": 50, "score string": 10}
    assert found[0]["read"] == {"text string": 60, "url string": 60, "id integer": 60}
    assert found[1] == found[0]
