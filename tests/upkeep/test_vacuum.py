"""A sweep takes what no manifest names, and nothing else; what it gave up cannot commit any more."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import ContractError, JobLost
from pipeline_tasks.manifest import ABANDONED
from pipeline_tasks.run.runner import Work, refine
from pipeline_tasks.stage import Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.upkeep import vacuum
from tests.refining import given, refined, rows
from tests.toys import table

pytestmark = pytest.mark.usefixtures("toys")

EVERYTHING = -3600.0
"""A grace that makes objects of this very second old."""


@pytest.fixture(autouse=True)
def toy_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vacuum, "STAGES", ("toy_map", "toy_group"))


@pytest.fixture
def parent(tmp_path: Path) -> str:
    return given(tmp_path, [table(0, 120), table(120, 80)])


def paths(found: vacuum.Sweep) -> list[str]:
    return [entry.path for entry, _ in found.doomed]


def test_nothing_of_committed_work_goes(tmp_path: Path, parent: str) -> None:
    _, made = refined(tmp_path, "toy_map", parent)
    before = rows(tmp_path, made)
    found = vacuum.survey(str(tmp_path), EVERYTHING)
    vacuum.sweep(str(tmp_path), found, limit=1.0)
    assert not found.doomed
    assert rows(tmp_path, made).equals(before)


def test_a_losers_shard_goes_and_the_winners_stay(tmp_path: Path, parent: str) -> None:
    _, made = refined(tmp_path, "toy_map", parent)
    loser = f"{Path(made.shards[0].path).parent}/{'0' * 32}.parquet"
    storage.connect(str(tmp_path)).create(loser, b"other bytes")
    found = vacuum.survey(str(tmp_path), EVERYTHING)
    assert paths(found) == [loser]
    vacuum.sweep(str(tmp_path), found)
    assert not (tmp_path / loser).exists()
    assert rows(tmp_path, made).num_rows == made.rows


def test_what_is_young_is_left_alone(tmp_path: Path, parent: str) -> None:
    refined(tmp_path, "toy_map", parent)
    store = storage.connect(str(tmp_path))
    store.create("toy_group/abandoned/data/one.parquet", b"half a day's work")
    (tmp_path / "toy_group/abandoned/data/.tmp-half").write_bytes(b"half")
    assert not vacuum.survey(str(tmp_path)).doomed
    long_ago = time.time() - 8 * vacuum.DAY
    for name in ("one.parquet", ".tmp-half"):
        os.utime(tmp_path / "toy_group/abandoned/data" / name, (long_ago, long_ago))
    assert {Path(path).name for path in paths(vacuum.survey(str(tmp_path)))} == {"one.parquet", ".tmp-half"}


def test_a_sweep_of_too_much_is_refused(tmp_path: Path) -> None:
    storage.connect(str(tmp_path)).create("toy_map/abandoned/data/one.parquet", bytes(1000))
    found = vacuum.survey(str(tmp_path), EVERYTHING)
    with pytest.raises(ContractError, match="raise --limit if it is right"):
        vacuum.sweep(str(tmp_path), found)
    assert (tmp_path / "toy_map/abandoned/data/one.parquet").exists()


def test_what_stages_leave_behind_is_no_loss(tmp_path: Path, parent: str) -> None:
    _, made = refined(tmp_path, "toy_map", parent)
    left = f"{Path(made.shards[0].path).parent}/{'0' * 32}.parquet"
    storage.connect(str(tmp_path)).create(left, bytes(10 * made.bytes))
    found = vacuum.survey(str(tmp_path), EVERYTHING)
    assert (found.lost, found.bytes) == (0, 10 * made.bytes)
    vacuum.sweep(str(tmp_path), found)
    assert not (tmp_path / left).exists()


class Sleeper(LocalEngine):
    """An engine whose attempt is swept between its last shard and its commit."""

    def map(self, *given: Any, **how: Any) -> Shards:
        shards = super().map(*given, **how)
        root = self.tracker.place.root
        vacuum.sweep(root, vacuum.survey(root, EVERYTHING), limit=1.0)
        return shards


def test_a_swept_attempt_cannot_commit_and_the_next_one_can(any_root: str, tmp_path: Path) -> None:
    del tmp_path
    root = any_root
    path = given(Path(root), [table(0, 50)]) if not root.startswith("s3://") else _given_on(root)
    work = Work(root, "toy_map", {}, path)
    with pytest.raises(JobLost, match="was given up and swept while it ran"):
        refine(work, Sleeper)
    slot, made, meter = refine(work, LocalEngine)
    assert slot.endswith("/manifest.1.json")
    assert meter.ran == 1
    assert storage.connect(root).read(slot.replace("manifest.1", "manifest")) == ABANDONED
    assert read_manifest(root, slot) == made
    found = vacuum.survey(root, EVERYTHING)
    assert not [entry for entry in paths(found) if "/data/" in entry]


def _given_on(root: str) -> str:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = given(Path(folder), [table(0, 50)])
        source, target = storage.connect(folder), storage.connect(root)
        for entry in source.list(""):
            target.create(entry.path, source.read(entry.path))
    return path


@pytest.mark.parametrize("wrong", [["--grace", "-1"], ["--expire", "soon"], ["--limit", "7"], ["--limit", "nan"]])
def test_numbers_that_make_no_sense_remove_nothing(
    wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["vacuum", str(tmp_path), "--delete", *wrong])
    assert f"{wrong[1]!r} is no number of 0" in capsys.readouterr().err


def test_an_unnamed_stage_expires_only_when_asked(tmp_path: Path, parent: str) -> None:
    _, made = refined(tmp_path, "toy_map", parent)
    assert not vacuum.survey(str(tmp_path), EVERYTHING).doomed
    found = vacuum.survey(str(tmp_path), EVERYTHING, expire=0.000001)
    assert not found.doomed or {why for _, why in found.doomed} == {"no version names this stage"}
    long_ago = time.time() - 40 * vacuum.DAY
    for one in (tmp_path / "toy_map").rglob("*"):
        os.utime(one, (long_ago, long_ago))
    found = vacuum.survey(str(tmp_path), expire=30 * vacuum.DAY)
    assert paths(found)[0].endswith("manifest.json")
    assert {shard.path for shard in made.shards} <= set(paths(found))
