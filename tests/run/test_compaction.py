"""Compactions: the same bytes in fewer entries, used for exactly their parts, and committed whole or not at all."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import DigestMismatch, JobLost, RowsVanished
from pipeline_tasks.manifest import ABANDONED, Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.run import history as run_history
from pipeline_tasks.run.history import compactions, cover
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import Cost, refine
from pipeline_tasks.run.shuffle import bucket_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.upkeep import compact as compaction
from pipeline_tasks.upkeep import vacuum
from tests import refining
from tests.chain import reply
from tests.documents import documents
from tests.faulty_s3 import FaultyS3

PROJECT = Path(__file__).parents[2]
STAGE = "dedup_exact"
EVERYTHING = -3600.0
"""A grace that makes objects of this very second old."""


def day(root: Any, number: int, docs: int = 30, seed: int | None = None, **params: Any) -> str:
    """Refine and publish a day of texts, some of them of the day before, with all earlier days as history."""
    draws = random.Random(number if seed is None else seed)
    texts = [f"text {number} {draws.random()}" for _ in range(docs)]
    texts += [f"text {number - 1} {random.Random(number - 1).random()}"]
    table = documents(texts)
    at = table.schema.get_field_index("snapshot")
    name = f"d{number:03}"
    table = table.set_column(at, "snapshot", pa.array([name] * table.num_rows, pa.string()))
    path, _, _ = refined(root, refining.commit_parent(root, [table]), history(root, name), **params)
    publish(root, name, path)
    return path


def refined(root: str | Path, parent: str, before: Sequence[str], **params: Any) -> tuple[str, Manifest, Cost]:
    return refine(RefineRequest(str(root), STAGE, {"buckets": 2, **params}, parent, tuple(before)), LocalEngine)


def history(root: str | Path, name: str) -> list[str]:
    return [version.manifests[STAGE] for version in version_log.earlier(str(root), "ours", name)]


def publish(root: str | Path, name: str, path: str) -> None:
    facts = {"recipe": "ours", "snapshot": name, "landing": "", "verdicts": {}, "prefix": "", "documents": 0}
    version_log.append(str(root), {**facts, "manifests": {STAGE: path}, "tokens": 0, "sequences": 0})


def compact(root: str | Path) -> list[Manifest]:
    return compaction.compact(str(root), LocalEngine)


def segments(root: str | Path) -> list[int]:
    """How many snapshots each entry has that a run after all of them reads."""
    manifests = [read_manifest(str(root), path) for path in history(root, "z")]
    return [len(run.parts) for run, _ in cover(manifests, compactions(str(root)))]


def everything(root: str | Path, prefix: str) -> dict[str, bytes]:
    store = storage.connect(str(root))
    return {entry.path: store.read(entry.path) for entry in store.list(prefix)}


@pytest.fixture
def by_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FANOUT", 3)


@pytest.fixture
def seven_days(by_three: None, tmp_path: Path) -> Path:
    """Seven days that were compacted, and the same seven days that were not, in `apart`."""
    root = tmp_path / "root"
    for number in range(7):
        day(root, number)
    shutil.copytree(root, tmp_path / "apart")
    compact(root)
    return root


# --- The same, from fewer places -------------------------------------------------------------------------------------


def test_a_day_is_the_same_with_and_without_compaction(seven_days: Path) -> None:
    assert segments(seven_days) == [3, 3, 1]
    apart = seven_days.parent / "apart"
    assert day(seven_days, 7) == day(apart, 7)
    manifest = read_manifest(str(apart), history(apart, "z")[-1])
    assert manifest.rejected == {"dedup_exact:seen_before": 1}
    prefix = history(apart, "z")[-1].rpartition("/")[0]
    for part in ("data", "rejects", "manifest.json"):
        assert everything(seven_days, f"{prefix}/{part}") == everything(apart, f"{prefix}/{part}")


def test_compactions_hold_the_rows_of_their_parts_in_order(seven_days: Path) -> None:
    known = compactions(str(seven_days))
    assert [len(parents) for parents in known] == [3, 3]
    parts = {
        manifest.fingerprint: manifest
        for manifest in (read_manifest(str(seven_days), path) for path in history(seven_days, "z"))
    }
    for fingerprints, made in known.items():
        [manifest] = made.values()
        for rank, shard in enumerate(manifest.history["documents"]):
            merged = rows(seven_days, [shard])
            assert merged == sorted(merged)
            assert merged == sorted(
                rows(seven_days, [parts[fingerprint].history["documents"][rank] for fingerprint in fingerprints])
            )


def rows(root: Path, shards: Any) -> list[tuple[str, str]]:
    return [(row["id"], row["snapshot"]) for batch in read_shards(str(root), shards) for row in batch.to_pylist()]


def test_there_are_few_places_however_many_days(by_three: None, tmp_path: Path) -> None:
    for number in range(14):
        day(tmp_path, number, docs=2)
        compact(tmp_path)
    assert segments(tmp_path) == [9, 3, 1, 1]
    assert compact(tmp_path) == []


def test_a_run_uses_only_what_is_exactly_its_history(seven_days: Path) -> None:
    paths = history(seven_days, "z")
    manifests = [read_manifest(str(seven_days), path) for path in paths]
    known = compactions(str(seven_days))

    def cut(days: Sequence[Manifest]) -> list[int]:
        return [len(run.parts) for run, _ in cover(days, known)]

    assert cut(manifests[:2]) == [1, 1]
    assert cut(manifests[:4]) == [3, 1]
    assert cut([manifests[0], *manifests[2:]]) == [1, 1, 3, 1]  # the second day was retracted
    assert cut([*manifests[:3], manifests[6], *manifests[3:6]]) == [3, 1, 3]  # a backfill came between
    assert cut([manifests[1], manifests[0], *manifests[2:]]) == [1, 1, 1, 3, 1]
    assert cut([]) == []


def test_a_day_that_is_refined_anew_is_not_taken_from_a_compaction(seven_days: Path) -> None:
    other = refining.commit_parent(seven_days, [documents(["another text"])], "anew")
    path, _, _ = refined(seven_days, other, history(seven_days, "d001"))
    publish(seven_days, "d001", path)
    assert segments(seven_days) == [1, 1, 1, 3, 1]
    seen = refining.commit_parent(seven_days, [documents(["another text"])], "again")
    assert refined(seven_days, seen, history(seven_days, "z"))[1].rejected == {"dedup_exact:seen_before": 1}


def test_days_of_other_params_are_not_merged(by_three: None, tmp_path: Path) -> None:
    for number in range(3):
        parent = refining.commit_parent(tmp_path, [documents([f"{number}"])], f"{number}")
        keep = ["oldest", "newest", "oldest"][number]
        publish(tmp_path, f"d{number}", refined(tmp_path, parent, (), keep=keep)[0])
    assert compact(tmp_path) == []


@pytest.mark.parametrize(
    "buckets", [(2, 2, 8, 8), (1, 2, 8, 8), (8, 4, 2, 2), (2, 8, 4, 8), (3, 1, 6, 2), (2, 2, 2, 8)], ids=str
)
def test_days_of_other_buckets_are_merged_into_those_of_the_newest(
    buckets: tuple[int, ...], by_three: None, tmp_path: Path
) -> None:
    root, apart = tmp_path / "root", tmp_path / "apart"
    for number in range(3):
        day(root, number, buckets=buckets[number])
    shutil.copytree(root, apart)
    [manifest] = compact(root)
    assert segments(root) == [3]
    parts = [read_manifest(str(root), path).history["documents"] for path in history(root, "z")]
    merged = manifest.history["documents"]
    assert len(merged) == buckets[2]
    whole = sorted(row for part in parts for row in rows(root, part))
    assert sorted(rows(root, merged)) == whole
    for rank, shard in enumerate(merged):
        ids = [row[0] for row in rows(root, [shard])]
        assert ids == sorted(ids)
        assert set(bucket_of(pa.array(ids, pa.string()), len(merged)).tolist()) <= {rank}
    assert day(root, 3, buckets=buckets[3]) == day(apart, 3, buckets=buckets[3])
    prefix = history(apart, "z")[-1].rpartition("/")[0]
    for part in ("data", "rejects", "manifest.json"):
        assert everything(root, f"{prefix}/{part}") == everything(apart, f"{prefix}/{part}")


def test_buckets_that_do_not_divide_each_other_stay_apart(by_three: None, tmp_path: Path) -> None:
    for number, buckets in enumerate((2, 2, 3)):
        day(tmp_path, number, buckets=buckets)
    assert compact(tmp_path) == []
    seen = refining.commit_parent(tmp_path, [documents([f"text 1 {random.Random(1).random()}"])], "seen")
    assert refined(tmp_path, seen, history(tmp_path, "z"), buckets=5)[1].rejected == {"dedup_exact:seen_before": 1}


@given(
    streams=st.lists(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30), min_size=1, max_size=5),
    size=st.sampled_from([1, 2, 7]),
)
def test_merging_sorts_whatever_is_sorted(streams: list[list[tuple[int, int]]], size: int) -> None:
    tables = [
        pa.Table.from_pylist(
            [{"k": k, "n": n} for k, n in sorted(stream)], pa.schema([("k", pa.int64()), ("n", pa.int64())])
        )
        for stream in streams
    ]
    batches = [
        table.to_batches(max_chunksize=size) or [pa.RecordBatch.from_pylist([], table.schema)] for table in tables
    ]
    merged = pa.Table.from_batches(list(compaction.merge(*map(iter, batches), keys=("k", "n"))))
    assert [tuple(row.values()) for row in merged.to_pylist()] == sorted(pair for stream in streams for pair in stream)


# --- What it costs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def by_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FANOUT", 2)


def test_runs_of_every_length_are_found(by_two: None, tmp_path: Path) -> None:
    for number in range(7):
        day(tmp_path, number)
    compact(tmp_path)
    assert segments(tmp_path) == [4, 2, 1]


def test_a_day_reads_by_its_own_size_and_not_by_that_of_history(by_two: None, tmp_path: Path) -> None:
    """One key costs one page; with 1, 2, 4 and 8 times the history, the same day reads the same, but for chance."""
    spent: dict[tuple[int, int], Mapping[str, int]] = {}
    for days in (1, 2, 4, 8):
        for number in range(days // 2, days):
            day(tmp_path, number, docs=6000)
        compact(tmp_path)
        assert segments(tmp_path) == [days]
        for docs in (20, 40):
            draws = random.Random(docs)
            new = refining.commit_parent(
                tmp_path, [documents([f"new {draws.random()}" for _ in range(docs)])], f"new{docs}"
            )
            spent[days, docs] = Counter(refined(tmp_path, new, history(tmp_path, "z"))[2].history_reads)
    assert len(spent) == 4 * 2
    for (days, docs), read in spent.items():
        # Of two shards each: one page for each new id, one of the index at most (8 x 6000 / 128 pages), its root, and
        # its first row's page.
        assert read["rows"] <= 128 * (docs + 2), (days, docs)
        assert read["pages"] <= docs + 2 * (4 + 1 + 1), (days, docs)
    for docs in (20, 40):
        assert spent[8, docs]["pages"] <= 1.5 * spent[1, docs]["pages"] + 2, "filters"
        assert spent[8, docs]["bytes"] <= 1.5 * spent[1, docs]["bytes"]
        assert spent[8, docs]["rows"] <= 1.5 * spent[1, docs]["rows"]
    for days in (4, 8):
        assert spent[days, 40]["rows"] <= 2.5 * spent[days, 20]["rows"], "less where a filter is known by then"


# --- Faults ------------------------------------------------------------------------------------------------------------


def victim(root: Path, *strike: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.faults.victim", str(root), "compact", "", *strike]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def eight_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("eight")
    for number in range(8):
        day(root, number, docs=5)
    return root


@pytest.fixture(scope="module")
def calm(eight_days: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The eight days after a compaction that nobody disturbed."""
    root = shutil.copytree(eight_days, tmp_path_factory.mktemp("calm") / "root")
    compact(root)
    return root


SHORT = {(0, "before"), (1, "inside"), (3, "after"), (4, "before"), (4, "inside"), (4, "after")}
"""A kill before anything, one beside each kind of write, and all beside the manifest; the others are nightly."""

KILLS = [
    pytest.param(write, when, marks=() if (write, when) in SHORT else pytest.mark.nightly)
    for write in (0, 1, 3, 4)
    for when in ("before", "inside", "after")
]


@pytest.mark.slow
@pytest.mark.parametrize(("write", "when"), KILLS)
def test_a_killed_compaction_is_no_compaction_and_is_made_again(
    write: int, when: str, eight_days: Path, calm: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    shutil.copytree(eight_days, root)
    struck = victim(root, "die", when, str(write))  # two shards with their receipts, then the manifest
    _, errors = struck.communicate()
    assert struck.returncode == -signal.SIGKILL, errors
    assert segments(root) == ([8] if (write, when) == (4, "after") else [1] * 8)
    day(root, 8)
    compact(root)
    assert segments(root) == [8, 1]
    assert everything(root, "compacted") == everything(calm, "compacted")


@pytest.mark.slow
def test_a_compaction_that_wakes_after_another_made_it_changes_nothing(eight_days: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(eight_days, root)
    sleeper = victim(root, "stop", "before", "3")
    try:
        _, status = os.waitpid(sleeper.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        compact(root)
        before = everything(root, "compacted")
        sleeper.send_signal(signal.SIGCONT)
        _, errors = sleeper.communicate()
    finally:
        sleeper.kill()
    assert sleeper.returncode == 0, errors
    assert everything(root, "compacted") == before


@pytest.mark.slow
def test_a_bucket_is_compacted_to_the_same_bytes_whatever_its_network_does(
    s3_root: str, faults: FaultyS3, by_three: None, tmp_path: Path
) -> None:
    for root in (s3_root, tmp_path):
        for number in range(3):
            day(root, number)
    compact(tmp_path)
    faults.coming += [("GET", "lost_answer"), ("GET", (503, "SlowDown"))]
    faults.coming += [("PUT", "lost_answer"), ("PUT", (500, "InternalError"))]
    compact(s3_root)
    assert len(faults.happened) == 4
    assert everything(s3_root, "compacted") == everything(tmp_path, "compacted")
    assert segments(s3_root) == [3]


def test_a_damaged_compaction_is_named_and_can_be_removed(seven_days: Path) -> None:
    apart = day(seven_days.parent / "apart", 7)
    for path in (seven_days / "compacted").rglob("*.segment"):
        path.write_bytes(path.read_bytes()[:-60] + bytes(60))
    with pytest.raises(DigestMismatch, match=re.escape(f"remove {seven_days}/compacted/")):
        day(seven_days, 7)
    shutil.rmtree(seven_days / "compacted")
    assert day(seven_days, 7) == apart


def test_a_compaction_that_is_swept_under_a_run_is_a_lost_job(seven_days: Path) -> None:
    for path in (seven_days / "compacted").rglob("*.segment"):
        path.unlink()
    with pytest.raises(JobLost, match=re.escape(f"{seven_days}/compacted/")):
        day(seven_days, 7)


def test_a_damaged_part_is_not_merged(by_three: None, tmp_path: Path) -> None:
    paths = [day(tmp_path, number) for number in range(3)]
    shard = tmp_path / read_manifest(str(tmp_path), paths[1]).history["documents"][0].path
    shard.write_bytes(b"x" * 50 + shard.read_bytes()[50:])
    with pytest.raises(DigestMismatch, match=shard.name):
        compact(tmp_path)
    assert compactions(str(tmp_path)) == {}


class Forgetful(LocalEngine):
    """An engine that loses what it merged last."""

    def save_history(self, section: str, *inputs: Any, kernel: Any = None) -> None:
        super().save_history(section, *inputs, kernel=kernel)
        self.saved = {section: self.saved[section][:1] * 2}


def test_a_merge_that_loses_rows_commits_nothing(by_three: None, tmp_path: Path) -> None:
    for number in range(3):
        day(tmp_path, number)
    with pytest.raises(RowsVanished):
        compaction.compact(str(tmp_path), Forgetful)
    assert compactions(str(tmp_path)) == {}


# --- Vacuum ----------------------------------------------------------------------------------------------------------


def age(folder: Path, days: float) -> None:
    long_ago = time.time() - days * vacuum.DAY
    for path in folder.rglob("*"):
        os.utime(path, (long_ago, long_ago))


def test_what_a_larger_compaction_replaced_goes_when_that_is_old(seven_days: Path) -> None:
    root = str(seven_days)
    small = set(everything(root, "compacted"))
    for number in (7, 8):
        day(seven_days, number)
    age(seven_days / "compacted", 30)
    compact(seven_days)
    assert segments(seven_days) == [9]
    assert not orphans(root)  # a run that began before may still use them
    age(seven_days / "compacted", 30)
    vacuum.remove(root, vacuum.find_orphans(root))
    assert segments(seven_days) == [9]
    assert not small & set(everything(root, "compacted"))


def orphans(root: str, **options: float) -> list[str]:
    return [
        entry.path for entry, _ in vacuum.find_orphans(root, **options).files if entry.path.startswith("compacted/")
    ]


def test_a_compaction_whose_part_is_no_history_any_more_goes(seven_days: Path) -> None:
    root = str(seven_days)
    age(seven_days / "compacted", 30)
    assert not orphans(root)
    assert not orphans(root, expire=vacuum.DAY)
    path, _, _ = refined(
        seven_days, refining.commit_parent(seven_days, [documents(["other"])], "anew"), history(seven_days, "d001")
    )
    publish(seven_days, "d001", path)
    orphan_paths = orphans(root)
    assert len({path.split("/")[1] for path in orphan_paths}) == 1
    vacuum.remove(root, vacuum.find_orphans(root))
    assert segments(seven_days) == [1, 1, 1, 3, 1]
    assert not orphans(root)


def test_half_a_compaction_is_fenced_and_made_again(by_three: None, tmp_path: Path) -> None:
    for number in range(3):
        day(tmp_path, number)
    [manifest] = compact(tmp_path)
    prefix = tmp_path / "compacted" / manifest.fingerprint
    (prefix / "manifest.json").unlink()
    vacuum.remove(str(tmp_path), vacuum.find_orphans(str(tmp_path), EVERYTHING), limit=1.0)
    assert (prefix / "manifest.json").read_bytes() == ABANDONED
    assert not list(prefix.rglob("*.segment"))
    assert segments(tmp_path) == [1, 1, 1]
    assert compact(tmp_path) == [manifest]
    assert (prefix / "manifest.1.json").exists()
    assert segments(tmp_path) == [3]


def test_a_request_compacts(by_three: None, tmp_path: Path) -> None:
    for number in range(3):
        day(tmp_path, number)
    compacted = reply("compact", root=str(tmp_path))["compacted"]
    assert [len(parts) for parts in compacted.values()] == [3]
    assert segments(tmp_path) == [3]


# --- Engines -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("spark", marks=pytest.mark.nightly), "ray"])
def test_every_engine_compacts_to_the_same_bytes(
    name: str, eight_days: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    roots = [tmp_path / "here", tmp_path / "there"]
    for root, on in zip(roots, [("local", ""), (name, request.getfixturevalue(name))], strict=True):
        shutil.copytree(eight_days, root)
        compaction.compact(str(root), engine(*on))
    assert everything(roots[0], "compacted") == everything(roots[1], "compacted")
    assert segments(roots[1]) == [8]


def test_compactions_of_another_writer_are_made_again_once(seven_days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are there then, with the same parents; the name says which is used."""
    before = compactions(str(seven_days))
    assert before
    monkeypatch.setattr(run_history, "FORMAT", 3)
    assert compact(seven_days)
    assert compact(seven_days) == []
    known = compactions(str(seven_days))
    assert {parents: len(made) for parents, made in known.items()} == dict.fromkeys(before, 2)
    assert segments(seven_days) == [3, 3, 1]
    monkeypatch.setattr(run_history, "FORMAT", 2)
    assert compact(seven_days) == []
