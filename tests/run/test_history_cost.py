"""Near duplicates against all earlier days: what a day reads follows its own size, and compaction changes no byte."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import Cost, refine
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.upkeep import compact
from tests import refining
from tests.documents import documents

STAGES = ("dedup_exact", "dedup_minhash")
BUCKETS = 2


def texts(seed: int, count: int, words: int = 25) -> list[str]:
    draws = random.Random(seed)
    return [" ".join(f"w{draws.randrange(10**6)}" for _ in range(words)) for _ in range(count)]


def near(text: str, last: str = "other") -> str:
    """The text with its last word changed: Jaccard 20 / 22 of its 5-grams."""
    return f"{text.rpartition(' ')[0]} {last}"


def refined(root: Path, name: str, new: Sequence[str]) -> dict[str, tuple[str, Cost]]:
    """Deduplicate a day's texts against all published days before it."""
    table = documents(new)
    at = table.schema.get_field_index("snapshot")
    table = table.set_column(at, "snapshot", pa.array([name] * table.num_rows, pa.string()))
    parent, manifest = refining.commit_parent(root, [table], f"given-{name}"), {}
    for stage in STAGES:
        before = tuple(version.manifests[stage] for version in version_log.earlier(str(root), "ours", name))
        parent, _, cost = refine(RefineRequest(str(root), stage, {"buckets": BUCKETS}, parent, before), LocalEngine)
        manifest[stage] = parent, cost
    return manifest


def publish(root: Path, name: str, new: Sequence[str]) -> None:
    manifests = {stage: path for stage, (path, _) in refined(root, name, new).items()}
    facts = {"recipe": "ours", "snapshot": name, "landing": "", "verdicts": {}, "prefix": "", "documents": 0}
    version_log.append(str(root), {**facts, "manifests": manifests, "tokens": 0, "sequences": 0})


def test_near_duplicates_are_the_same_with_and_without_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "FANOUT", 3)
    root, apart = tmp_path / "root", tmp_path / "apart"
    for number in range(4):
        publish(root, f"d{number}", [*texts(number, 40), *map(near, texts(number - 1, 6)), *texts(number - 2, 3)])
    shutil.copytree(root, apart)
    manifest = compact.compact(str(root), LocalEngine)
    assert sorted((merged.stage, len(merged.parents)) for merged in manifest) == [(stage, 3) for stage in STAGES]
    # Each is near what a compaction has, or a single day, or both.
    last = [*texts(9, 5), *(near(texts(number, 1)[0], "new") for number in (0, 2, 3)), *texts(1, 2)]
    for folder in (root, apart):
        publish(folder, "d5", last)
    for stage in STAGES:
        path = version_log.current(str(root), "ours").manifests[stage]
        assert (root / path).read_bytes() == (apart / path).read_bytes()
    made_last = read_manifest(str(root), path)
    lost = sum(shard.rows for shard in made_last.history["superseded"])  # earlier winners that a new document beats
    assert made_last.rejected == {"dedup_minhash:near_duplicate": 3 - lost}


def test_a_day_reads_by_its_own_size_and_not_by_that_of_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document costs at most one page for each of its 14 bands, and one for each document it is compared with."""
    monkeypatch.setattr(compact, "FANOUT", 2)
    spent = {}
    for days in (1, 2, 4, 8):
        for number in range(days // 2, days):
            publish(tmp_path, f"d{number}", texts(number, 1500))
        compact.compact(str(tmp_path), LocalEngine)
        for docs in (4, 8):
            new = [*texts(100 + docs, docs), near(texts(0, 1)[0])]
            spent[days, docs] = refined(tmp_path, f"new{docs}-{days}", new)["dedup_minhash"][1].history_reads
    for (days, docs), read in spent.items():
        keys = 14 * (docs + 1)
        # Per bucket and section: a root, the first page, and pages of the index.
        assert read["pages"] <= keys + BUCKETS * 3 * (1 + 1 + 6), (days, docs)
        assert read["rows"] <= 128 * (keys + BUCKETS * 2), (days, docs)
    for docs in (4, 8):
        assert spent[8, docs]["rows"] <= 1.5 * spent[1, docs]["rows"]
        assert spent[8, docs]["bytes"] <= 1.6 * spent[1, docs]["bytes"]
    assert spent[8, 8]["rows"] <= 2.2 * spent[8, 4]["rows"], "less where a filter is known by then"
