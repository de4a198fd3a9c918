"""Which release of pyarrow and zstandard wrote a shard is its bytes and not its rows: identity has what decides rows."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import DeterminismViolation
from pipeline_tasks.manifest import Manifest, identified, manifest_path
from pipeline_tasks.store.committing import commit_manifest
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.shards import file
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.store.storage import connect

MAJOR = pa.__version__.partition(".")[0]
PATCH, FEATURE = f"{MAJOR}.99.7", f"{int(MAJOR) + 1}.0.0"

RUN = """
import json, sys
import pyarrow

root, landing, recipe, pyarrow.__version__, level = sys.argv[1:]
from pipeline_tasks.store.shards import file
from tests.chain import How, refined

file.LEVEL = int(level)
chain = refined(root, landing, How(recipe=recipe))
manifests = {stage: chain.manifest(stage) for stage in ("ingest", "extract", "dedup_exact")}
print(json.dumps({stage: [made.fingerprint, [shard.digest for shard in made.shards]] for stage, made in manifests.items()}))
print(json.dumps([row["text"] for row in chain.rows("dedup_exact")]))
"""

DAYS = ("2026-11-20", "2026-11-21")


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """Two days of documents, of which the second has one of the first again."""
    for day, numbers in zip(DAYS, (range(8), range(7, 16)), strict=True):
        (tmp_path / "crawl" / day).mkdir(parents=True)
        lines = [{"text": f"A text of some words, number {n}. " * 20, "url": f"https://a.example/{n}"} for n in numbers]
        (tmp_path / "crawl" / day / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    stages = {"ingest": {}, "extract": {"min_chars": 20}, "dedup_exact": {"buckets": 2}}
    (tmp_path / "tiny.yaml").write_text(json.dumps({"name": "tiny", "stages": stages}))
    return tmp_path


def refined(crawl: Path, root: str, day: str, version: str, level: int) -> tuple[dict[str, Any], list[str]]:
    """Refine a day in a process that has another pyarrow; return fingerprint and digests by stage, and the texts."""
    given = [str(crawl / root), str(crawl / "crawl" / day), str(crawl / "tiny.yaml"), version, str(level)]
    done = subprocess.run([sys.executable, "-c", RUN, *given], check=True, stdout=subprocess.PIPE, text=True)
    made, texts = map(json.loads, done.stdout.splitlines()[-2:])
    return made, texts


def test_a_patch_release_gives_other_files_of_the_same_rows(crawl: Path) -> None:
    ours, texts = refined(crawl, "ours", DAYS[0], pa.__version__, 3)
    patch, same = refined(crawl, "patch", DAYS[0], PATCH, 9)
    feature, _ = refined(crawl, "feature", DAYS[0], FEATURE, 3)
    assert texts == same
    assert len(texts) == 8
    assert {stage: fingerprint for stage, (fingerprint, _) in ours.items()} == {
        stage: fingerprint for stage, (fingerprint, _) in patch.items()
    }
    assert ours["dedup_exact"][1] != patch["dedup_exact"][1]
    assert ours["dedup_exact"][0] != feature["dedup_exact"][0]


def test_after_a_patch_release_a_day_is_not_refined_again_and_the_next_one_has_its_history(crawl: Path) -> None:
    before, _ = refined(crawl, "root", DAYS[0], pa.__version__, 3)
    assert refined(crawl, "root", DAYS[0], PATCH, 9)[0] == before
    _, texts = refined(crawl, "root", DAYS[1], PATCH, 9)
    assert len(texts) == 8, "one of nine was there the day before"
    assert main(["verify", str(crawl / "root")]) == 0


def stored(root: Path, writer: str, rows: int, level: int = 3) -> Manifest:
    """A manifest of stored rows, as a writer that compresses by a level would commit it."""
    ids = [str(row * row) for row in range(rows)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "LEVEL", level)
        shard = ShardWriter(pa.schema([("id", pa.string())]))
        shard.write(pa.record_batch({"id": ids}))
        kept = shard.store(str(root), "extract/data")
    counts: dict[str, Any] = {"rows_in": len(ids), "bytes_in": 0, "rejected": {}, "quarantined": {}}
    about: dict[str, Any] = dict.fromkeys(("parents", "covers", "rejects", "quarantine"), ())
    made = Manifest("extract", 1, "", {}, schema=(("id", "string"),), shards=(kept,), history={}, **about, **counts)
    return identified(replace(made, writer=writer))


def test_of_two_attempts_by_two_writers_the_first_counts(tmp_path: Path) -> None:
    ours, patch = (stored(tmp_path, f"pyarrow-{MAJOR}.{of} zstandard-0.2{of}", 900, of) for of in (1, 9))
    store, path = connect(str(tmp_path)), manifest_path("extract", ours.fingerprint)
    assert patch.fingerprint == ours.fingerprint
    assert patch.shards != ours.shards
    assert commit_manifest(store, path, ours) == ours
    assert commit_manifest(store, path, patch) == ours
    assert read_manifest(str(tmp_path), path) == ours


@pytest.mark.parametrize("writer", ["0.2", "1.2"])
def test_other_rows_are_refused_whoever_wrote_them(tmp_path: Path, writer: str) -> None:
    ours = stored(tmp_path, f"pyarrow-{MAJOR}.0.2 zstandard-0.2", 1)
    other = stored(tmp_path, f"pyarrow-{MAJOR}.{writer} zstandard-0.2", 2)
    store, path = connect(str(tmp_path)), manifest_path("extract", ours.fingerprint)
    commit_manifest(store, path, ours)
    with pytest.raises(DeterminismViolation):
        commit_manifest(store, path, other)
    assert read_manifest(str(tmp_path), path) == ours
