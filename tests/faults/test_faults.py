"""Real processes are killed, stopped and raced at chosen writes; what readers see is always whole, and always the same."""

import hashlib
import os
import signal
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.manifest import Manifest, load
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.tasks.task import load_receipt
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_shards
from tests.faults.forked import SERVER, ended, forked
from tests.faults.victim import main
from tests.refining import commit_parent
from tests.toys import GroupParams, table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("toys")]

STAGES = ("toy_map", "toy_group")


@dataclass(frozen=True, slots=True)
class Golden:
    """A stage's undisturbed run: its manifest's path and bytes, and how many objects were written for it."""

    path: str
    body: bytes
    writes: int


BUCKETS = GroupParams().buckets
"""Of `toy_group`, the one stage here that shuffles: a scratch object ends with where the pieces of each bucket end."""


def land(root: str) -> str:
    return commit_parent(root, [table(0, 40), table(40, 0), table(40, 25)])  # type: ignore[arg-type] -- any root will do


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Golden]:
    golden = {}
    for stage in STAGES:
        folder = tmp_path_factory.mktemp(stage)
        root, log = str(folder / "root"), folder / "log"
        assert ended(forked(main, root, stage, land(root), log=log)) == 0, log.read_text()
        [path] = [entry.path for entry in storage.connect(root).list(stage) if entry.path.endswith("manifest.json")]
        golden[stage] = Golden(path, storage.connect(root).read(path), int(log.read_text()))
    return golden


def write_number(golden: Golden, point: str) -> int:
    return {
        "first": 0,
        "second": 1,
        "middle": golden.writes // 2,
        "last receipt": golden.writes - 2,
        "manifest": golden.writes - 1,
    }[point]


def require_whole(root: str, stage: str) -> int:
    """Everything that a reader or a later attempt could find under the stage is whole; return how many objects it is."""
    store = storage.connect(root)
    entries = list(store.list(stage))
    for entry in entries:
        body = store.read(entry.path)
        kind, name = entry.path.split("/")[2:][0], entry.path.rpartition("/")[2]
        if kind in ("data", "rejects", "quarantine"):
            assert name.partition(".")[0] == hashlib.sha256(body).hexdigest()[:32], entry.path
        elif kind == "scratch":
            assert name.endswith(".index") or len(body) == int.from_bytes(body[-8:], "little") + 8 * BUCKETS
        elif kind == "receipts":
            receipt = load_receipt(body, entry.path)
            stored = [shard for shard in (receipt.shard, receipt.rejects, receipt.quarantine) if shard]
            assert [store.size(shard.path) for shard in stored] == [shard.bytes for shard in stored]
        else:
            assert read_all(root, load(body, entry.path)) == 65
    return len(entries)


def read_all(root: str, manifest: Manifest) -> int:
    """Read every row that a manifest names, digests checked; return how many there are."""
    shards = (*manifest.shards, *manifest.rejects, *manifest.quarantine)
    return sum(pa.Table.from_batches(list(read_shards(root, [shard]))).num_rows for shard in shards)


def require_golden(root: str, stage: str, parent: str, golden: Golden) -> None:
    """A further attempt ends with the undisturbed run's manifest, byte for byte."""
    path, manifest, _ = refine(RefineRequest(root, stage, {}, parent), LocalEngine)
    assert path == golden.path
    assert storage.connect(root).read(path) == golden.body
    assert read_all(root, manifest) == 65
    assert require_whole(root, stage) > len(manifest.stored)


def kept_short(short: bool) -> tuple[pytest.MarkDecorator, ...]:
    return () if short else (pytest.mark.nightly,)


KILLS = [
    pytest.param(
        store, stage, when, point, marks=kept_short(point == "manifest" or (point, store) == ("middle", "local"))
    )
    for store, moments in (("local", ("before", "inside", "after")), ("s3", ("before", "after")))
    for stage in STAGES
    for when in moments
    for point in ("first", "second", "middle", "last receipt", "manifest")
]
"""An S3 server shows an object whole or not at all: tests of the store kill inside its writes."""

ZOMBIES = [
    pytest.param(store, stage, point, marks=kept_short(point == "manifest" or (point, store) == ("middle", "local")))
    for store in ("local", "s3")
    for stage in STAGES
    for point in ("second", "middle", "manifest")
]


@pytest.mark.parametrize(("any_root", "stage", "when", "point"), KILLS, indirect=["any_root"])
def test_a_killed_attempt_leaves_nothing_half_done(
    any_root: str, stage: str, when: str, point: str, golden: dict[str, Golden], tmp_path: Path
) -> None:
    parent, log = land(any_root), tmp_path / "log"
    process = forked(main, any_root, stage, parent, "die", when, str(write_number(golden[stage], point)), log=log)
    assert ended(process) == -signal.SIGKILL, log.read_text()
    committed = point == "manifest" and when == "after"
    assert (storage.connect(any_root).size(golden[stage].path) is not None) is committed
    require_whole(any_root, stage)
    require_golden(any_root, stage, parent, golden[stage])


def wait_until_stopped(zombie: ForkServerProcess) -> None:
    while zombie.is_alive() and psutil.Process(zombie.pid).status() != psutil.STATUS_STOPPED:
        os.sched_yield()
    assert zombie.is_alive()


@pytest.mark.parametrize(("any_root", "stage", "point"), ZOMBIES, indirect=["any_root"])
def test_an_attempt_that_wakes_after_its_retry_changes_nothing(
    any_root: str, stage: str, point: str, golden: dict[str, Golden], tmp_path: Path
) -> None:
    parent, log = land(any_root), tmp_path / "log"
    zombie = forked(main, any_root, stage, parent, "stop", "before", str(write_number(golden[stage], point)), log=log)
    try:
        wait_until_stopped(zombie)
        require_golden(any_root, stage, parent, golden[stage])
        before = {entry.path for entry in storage.connect(any_root).list(stage) if "/scratch/" not in entry.path}
        psutil.Process(zombie.pid).resume()
        assert ended(zombie) == 0, log.read_text()
    finally:
        zombie.kill()
    assert {entry.path for entry in storage.connect(any_root).list(stage)} == before
    require_golden(any_root, stage, parent, golden[stage])


@pytest.mark.parametrize("stage", STAGES)
def test_attempts_that_race_agree(any_root: str, stage: str, golden: dict[str, Golden], tmp_path: Path) -> None:
    parent, logs = land(any_root), [tmp_path / f"log-{number}" for number in range(3)]
    together = SERVER.Barrier(len(logs))
    racers = [forked(main, any_root, stage, parent, log=log, together=together) for log in logs]
    assert [ended(racer) for racer in racers] == [0] * 3, [log.read_text() for log in logs]
    require_golden(any_root, stage, parent, golden[stage])
    assert not [entry.path for entry in storage.connect(any_root).list(stage) if "/scratch/" in entry.path]
