"""Every engine gives the bytes that the local one gives, whatever happens to its workers."""

import gc
import json
import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pyarrow as pa
import pytest
from refinery_ray import ray as ray_engine
from refinery_ray.ray import actor_options, task_options
from refinery_ray.ray import connect as connect_ray
from refinery_spark.spark import SparkEngine, session, session_settings, task_settings
from refinery_spark.task_batch import task_batch

from pipeline_tasks import stages
from pipeline_tasks.engines.choose import cancel, engine, start
from pipeline_tasks.engines.job import working_for
from pipeline_tasks.engines.sent import sender
from pipeline_tasks.errors import (
    ClusterUnreachable,
    ContractError,
    DigestMismatch,
    JobLost,
    KernelFailed,
    MachineFailed,
    NoMemory,
    NoSpace,
    RecipeError,
    RefineryError,
    Transient,
)
from pipeline_tasks.manifest import Manifest, manifest_path
from pipeline_tasks.recipe import LOCAL, Resources, engine_names
from pipeline_tasks.run import shuffle
from pipeline_tasks.run.history import History
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import Cost, refine
from pipeline_tasks.run.tasks.task import StageIO, Task
from pipeline_tasks.run.tasks.task import run as run_task
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Batches, Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.testing.engines import check_engine
from pipeline_tasks.text.base.tables import unchanged
from tests.cluster.containers import wait_until
from tests.offspring import UNFOLD, UNFOLDER, WRITE, WRITER, brought, documents, ids_of
from tests.refining import commit_parent, refined, rows
from tests.toys import hang_or_fail, refuse, table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("toys")]

STAGES = ("toy_map", "toy_group", "toy_broadcast", "toy_history", "toy_lookup", "toy_state")
TABLES = [table(0, 40), table(40, 0), table(40, 25)]


@pytest.fixture
def own_offspring(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy stages of `tests.offspring` as own ones: workers have no package that brings them."""
    for card in (WRITE, UNFOLD):
        monkeypatch.setattr(stages, "NAMES", (*stages.NAMES, card.name))
        monkeypatch.setitem(sys.modules, f"pipeline_tasks.stages.{card.name}", SimpleNamespace(STAGE=card))


@pytest.fixture(params=engine_names()[1:])
def cluster(request: pytest.FixtureRequest) -> tuple[str, str]:
    """An engine that has workers, and the address of its one cluster of this test session: the fixture of its name."""
    return request.param, request.getfixturevalue(request.param)


@pytest.fixture(params=engine_names())
def any_engine(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Every engine, and its address."""
    return request.param, "" if request.param == LOCAL else request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root in which the local engine ran; stages are added as tests ask for them."""
    return tmp_path_factory.mktemp("golden")


def run(root: Path, on: tuple[str, str], stage: str, parent: str, **how: object) -> tuple[str, Manifest, Cost]:
    params = how.pop("params", {})
    return refine(RefineRequest(str(root), stage, params, parent, **how), engine(*on))  # type: ignore[arg-type]


def stored(root: Path, stage: str) -> dict[str, bytes]:
    """Return everything that a stage keeps: manifests, receipts and shards, by path."""
    store = storage.connect(str(root))
    return {entry.path: store.read(entry.path) for entry in store.list(stage)}


def test_an_engine_keeps_what_every_engine_promises(any_engine: tuple[str, str]) -> None:
    check_engine(*any_engine)


# --- The same bytes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000])
@pytest.mark.parametrize("stage", STAGES)
def test_every_engine_stores_what_the_local_one_stores(
    cluster: tuple[str, str], stage: str, batch_rows: int, golden: Path, tmp_path: Path
) -> None:
    refined(golden, stage, commit_parent(golden, TABLES))
    _, manifest, cost = run(tmp_path, cluster, stage, commit_parent(tmp_path, TABLES), batch_rows=batch_rows)
    assert stored(tmp_path, stage) == stored(golden, stage)
    assert manifest.rows + sum(manifest.rejected.values()) + sum(manifest.quarantined.values()) == 65
    assert cost.ran > 0


@pytest.mark.parametrize("stage", STAGES)
def test_a_snapshot_without_rows_is_the_same_everywhere(cluster: tuple[str, str], stage: str, tmp_path: Path) -> None:
    roots = [tmp_path / "here", tmp_path / "there"]
    for root, on in zip(roots, [("local", ""), cluster], strict=True):
        run(root, on, stage, commit_parent(root, [table(0, 0), table(0, 0)]))
    assert stored(roots[0], stage) == stored(roots[1], stage)


@pytest.mark.usefixtures("own_offspring")
def test_offspring_are_conserved_on_every_engine(cluster: tuple[str, str], tmp_path: Path) -> None:
    """Layers of sources and shards of their offspring take turns, and what shards bring is in their receipts."""
    roots, ids = [tmp_path / "here", tmp_path / "there"], ids_of(60)
    for root, on in zip(roots, [("local", ""), cluster], strict=True):
        given = commit_parent(root, [documents(ids[:40]), documents([]), documents(ids[40:])])
        written = run(root, on, WRITER, given)[0]
        manifest = run(root, on, UNFOLDER, written, batch_rows=7)[1]
        assert manifest.offspring_in == sum(map(brought, ids))
        assert manifest.accounted("offspring") == manifest.rows_due
    assert stored(roots[0], UNFOLDER) == stored(roots[1], UNFOLDER)


@pytest.mark.parametrize("taken", [1, 1 << 30])
def test_groups_do_not_see_how_their_input_was_cut(
    any_engine: tuple[str, str], taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle, "SCATTER_INPUT", taken)  # bytes that a scatter task takes: of a shard, or of all
    whole = run(tmp_path, any_engine, "toy_group", commit_parent(tmp_path, [table(0, 65)], "one"))[1]
    parts = run(tmp_path, any_engine, "toy_group", commit_parent(tmp_path, TABLES, "three"))[1]
    assert [shard.digest for shard in whole.shards] == [shard.digest for shard in parts.shards]
    assert whole.rejected == parts.rejected


@pytest.mark.parametrize(("by", "order"), [("key", ("id",)), ("n", ("id",)), ("key", ("share", "text", "id"))])
def test_a_bucket_that_does_not_fit_memory_has_the_same_bytes(
    any_engine: tuple[str, str], by: str, order: tuple[str, ...], tmp_path: Path
) -> None:
    """Nearly all rows have one key, and are sorted in runs of 300 bytes."""
    rows_ = [pa.concat_tables([table(start, 2), *([table(start, 1)] * 30)]) for start in (5, 40, 80)]
    hot = [
        rows.set_column(0, "id", pa.array(range(at, at + len(rows))))
        for at, rows in zip((0, 50, 99), rows_, strict=True)
    ]
    digests = []
    for root, run_bytes, on in ((tmp_path / "memory", 1 << 30, ("local", "")), (tmp_path / "runs", 300, any_engine)):
        shards = read_manifest(str(root), commit_parent(root, hot)).shards
        made = engine(*on)(Tracker(StageIO(str(root), "toy/f", run_bytes=run_bytes)), History())
        grouped = made.group(unchanged, shards, by=by, order=order, buckets=2)
        digests.append([shard.digest for shard in grouped])
        assert sum(shard.rows for shard in grouped) == 96
    assert digests[0] == digests[1]


NODE = pa.struct([("rank", pa.large_string()), ("known", pa.bool_())])

KEYS = pa.table(
    {
        "text": pa.array([None, "b", "", "ż", "b", "B", "\U0001f600", "\uffee"], pa.string()),
        "bytes": pa.array([b"\xff", None, b"", b"\0", b"a", b"a\0", b"\x80", b"\x7f"], pa.large_binary()),
        "fixed": pa.array([b"\xff\0", None, b"ab", b"\0\0", b"ba", b"bb", b"\x80a", b"zz"], pa.binary(2)),
        "small": pa.array([-1, None, 5, 127, -128, 0, 1, 2], pa.int8()),
        "whole": pa.array([-(2**63), None, 2**63 - 1, 0, -1, 1, 7, 7], pa.int64()),
        "counted": pa.array([2**32 - 1, None, 2**31, 0, 1, 2, 3, 4], pa.uint32()),
        "share": pa.array([float("nan"), None, -0.0, 0.0, 1.5, -1.5, float("inf"), float("-inf")], pa.float64()),
        "moment": pa.array([2**60, None, -1, 0, 1, 2, 3, 4], pa.timestamp("us")),
        "is_new": pa.array([True, None, False, True, False, None, True, False], pa.bool_()),
        "node": pa.array(
            [{"rank": "b", "known": None}, None, *[{"rank": f"{at}", "known": True} for at in range(6)]], NODE
        ),
        "SELECT": pa.array(range(8), pa.int64()),
    }
)
"""Rows of every type that keys have."""


@pytest.mark.parametrize(
    ("by", "order"),
    [
        *((name, ("whole", "text")) for name in ("text", "bytes", "fixed", "small", "counted", "SELECT")),
        ("whole", ("node", "share", "moment", "is_new", "text")),
        ("whole", ("share", "fixed")),
    ],
)
def test_keys_of_every_type_are_grouped_alike(
    any_engine: tuple[str, str], by: str, order: tuple[str, ...], tmp_path: Path
) -> None:
    """Rows of keys that a verb made: Spark has them with columns, and a bucket without rows has them, too."""
    kept = []
    for on in (("local", ""), any_engine):
        root = tmp_path / str(len(kept))
        parent = commit_parent(root, [KEYS.slice(0, 0), KEYS.slice(0, 5), KEYS.slice(5)])
        made = engine(*on)(Tracker(StageIO(str(root), "toy/f", batch_rows=2)), History())
        grouped = made.group(
            unchanged, made.map(unchanged, read_manifest(str(root), parent).shards), by=by, order=order, buckets=23
        )
        assert sum(shard.rows for shard in grouped) == len(KEYS)
        kept.append([(shard.digest, shard.rows) for shard in grouped])
    assert kept[0] == kept[1]
    assert 0 in [rows for _, rows in kept[0]]


@pytest.mark.parametrize("by", ["key", "n"])
def test_rows_without_a_key_are_one_group(any_engine: tuple[str, str], by: str, tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, TABLES)
    manifest = run(tmp_path, any_engine, "toy_group", parent, params={"by": by, "buckets": 4})[1]
    values = rows(tmp_path, manifest).column(by).to_pylist()
    assert values.count(None) == 1
    assert len(values) == len(set(values))


def test_history_is_the_same_everywhere(any_engine: tuple[str, str], tmp_path: Path) -> None:
    monday = run(tmp_path, any_engine, "toy_history", commit_parent(tmp_path, TABLES, "monday"))[0]
    manifest = run(
        tmp_path, any_engine, "toy_history", commit_parent(tmp_path, [table(50, 30)], "tuesday"), history=(monday,)
    )[1]
    assert manifest.rejected == {"toy_history:seen": 15}
    assert rows(tmp_path, manifest).column("id").to_pylist() == list(range(65, 80))


def test_lookups_read_the_same_everywhere(cluster: tuple[str, str], tmp_path: Path) -> None:
    read = []
    for on in (("local", ""), cluster):
        root = tmp_path / on[0]
        monday = run(root, ("local", ""), "toy_lookup", commit_parent(root, [table(0, 6000)], "monday"))[0]
        tuesday = commit_parent(root, [table(100, 2), table(5995, 10)], "tuesday")
        _, manifest, cost = run(root, on, "toy_lookup", tuesday, history=(monday,))
        assert manifest.rejected == {"toy_lookup:seen": 7}
        read.append(cost.history_reads)
    assert read[0] == read[1]
    assert 7 <= read[0]["rows"] <= 7 * 128


# --- Work that is done once, by whichever engine -------------------------------------------------------------------------


@pytest.mark.parametrize("stage", STAGES)
def test_an_engine_goes_on_where_another_stopped(cluster: tuple[str, str], stage: str, tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, TABLES)
    path, manifest, whole = run(tmp_path, ("local", ""), stage, parent)
    before = stored(tmp_path, stage)
    left = len(list((tmp_path / path).parent.glob("receipts/*")))  # those of intermediate shards went at the commit
    (tmp_path / path).unlink()
    (tmp_path / manifest.shards[-1].path).unlink()
    cost = run(tmp_path, cluster, stage, parent)[2]
    assert stored(tmp_path, stage) == before
    assert (cost.ran, cost.reused) == (1 + whole.ran - left, left - 1)


# --- Workers that die, and workers that refuse -----------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["toy_bad", "toy_bad_group"])
def test_a_killed_worker_changes_nothing(cluster: tuple[str, str], stage: str, tmp_path: Path) -> None:
    marker = tmp_path / "died"
    params = {"how": "die once", "marker": str(marker)}
    marker.touch()
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    run(calm, ("local", ""), stage, commit_parent(calm, TABLES), params=params)
    marker.unlink()
    run(stormy, cluster, stage, commit_parent(stormy, TABLES), params=params)
    assert marker.exists()
    assert stored(stormy, stage) == stored(calm, stage)


@pytest.mark.parametrize("stage", ["toy_bad", "toy_bad_group"])
def test_a_refusal_in_a_worker_arrives_as_what_it_is(any_engine: tuple[str, str], stage: str, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"^shard 7 ") as refusal:
        run(tmp_path, any_engine, stage, commit_parent(tmp_path, TABLES), params={"how": "refuse"})
    assert refusal.type is ContractError
    assert not [path for path in stored(tmp_path, stage) if path.endswith("manifest.json")]


@pytest.mark.parametrize("stage", STAGES)
def test_a_damaged_shard_is_named_by_every_engine(any_engine: tuple[str, str], stage: str, tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, TABLES)
    shard = max(tmp_path.glob("given/data/*.parquet"), key=lambda path: path.stat().st_size)
    shard.write_bytes(shard.read_bytes()[:-9] + b"\0" * 9)
    with pytest.raises(DigestMismatch, match=f"^{re.escape(str(shard))}: "):
        run(tmp_path, any_engine, stage, parent)
    left = stored(tmp_path, stage)
    assert not [path for path in left if path.endswith("manifest.json") or "/scratch/" in path]


@pytest.mark.parametrize("stage", ["toy_bad", "toy_bad_group"])
def test_a_defect_of_a_kernel_is_no_busy_world(cluster: tuple[str, str], stage: str, tmp_path: Path) -> None:
    with pytest.raises(KernelFailed, match=f"^{stage}/") as caught:
        run(tmp_path, cluster, stage, commit_parent(tmp_path, TABLES), params={"how": "defect"})
    assert not isinstance(caught.value, (Transient, ContractError))


@pytest.mark.parametrize(
    ("how", "kind"), [("full", NoSpace), ("broken", MachineFailed), ("refused", MachineFailed), ("memory", NoMemory)]
)
@pytest.mark.parametrize("stage", ["toy_bad", "toy_bad_group"])
def test_what_a_machine_does_to_a_kernel_has_one_class_on_every_engine(
    any_engine: tuple[str, str], stage: str, how: str, kind: type[Transient], tmp_path: Path
) -> None:
    """On a cluster it was KernelFailed, for which a partition is quarantined."""
    with pytest.raises(Transient, match=socket.gethostname()) as caught:
        run(tmp_path, any_engine, stage, commit_parent(tmp_path, TABLES), params={"how": how})
    assert caught.type is kind


def test_after_a_refusal_only_what_is_missing_runs(any_engine: tuple[str, str], tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, TABLES)
    body = {path: path.read_bytes() for path in tmp_path.glob("given/data/*.parquet")}
    worst = max(body, key=lambda path: len(body[path]))
    worst.write_bytes(b"")
    with pytest.raises(DigestMismatch):
        run(tmp_path, any_engine, "toy_map", parent)
    worst.write_bytes(body[worst])
    manifest, cost = run(tmp_path, any_engine, "toy_map", parent)[1:]
    assert (manifest.rows_in, manifest.rows) == (65, 42)
    assert cost.ran + cost.reused == 3


# --- What an engine is like ---------------------------------------------------------------------------------------------


def test_an_engine_of_another_name_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"'dask'.*local, ray, spark"):
        engine("dask")


def test_spark_without_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RecipeError, match="Java 17"):
        session("local[1]")


@pytest.fixture
def at_spark(spark: str, tmp_path: Path) -> SparkEngine:
    """A Spark engine without a stage, for tasks of any kind."""
    return SparkEngine(Tracker(StageIO(str(tmp_path), "tasks")), master=spark)


def test_spark_runs_even_the_smallest_tasks_in_workers(at_spark: SparkEngine) -> None:
    """A task that dies would take the driver with it, and the driver's clock counts what its other threads do."""
    assert os.getpid() not in at_spark._each([partial(os.getpid)] * 3, weight=0)


def test_what_all_tasks_share_is_sent_to_workers_once() -> None:
    """A history of thousands of shards was in each task of Ray's, and each Spark task is given the whole batch."""
    broadcast = tuple(Shard(f"some/{rank:064}", 1, 1, f"{rank:064}") for rank in range(2000))
    stage_io = StageIO("root", "prefix")
    tasks = [Task(stage_io, f"{rank}", unchanged, ((broadcast[rank],),), broadcast) for rank in range(100)]
    calls = [partial(run_task, task) for task in tasks]
    alone = sender(calls)
    assert max(len(alone.pickled([pair])) for pair in enumerate(calls)) < 1000  # as Ray gets each
    sent = task_batch(calls, 7)
    assert len(sent.common) + sum(map(len, sent.chunks)) < 1.2 * len(pickle.dumps(broadcast)) + 100 * 1000
    back = sorted(pair for part in range(7) for pair in sent.tasks(part))
    assert [rank for rank, _ in back] == list(range(100))
    assert [call.args for _, call in back] == [call.args for call in calls]


def test_what_a_spark_worker_imported_is_no_garbage_to_look_for_after_every_task(at_spark: SparkEngine) -> None:
    list(at_spark._each([partial(gc.get_freeze_count)] * 2, weight=0))
    assert next(at_spark._each([partial(gc.get_freeze_count)], weight=0)) > 0


# --- Jobs and resources ------------------------------------------------------------------------------------------------


def test_a_job_is_canceled_while_others_go_on(cluster: tuple[str, str], tmp_path: Path) -> None:
    start(*cluster)
    errors: list[BaseException] = []
    parent, marker = commit_parent(tmp_path, TABLES), tmp_path / "runs"

    def hang() -> None:
        try:
            with working_for("canceled"):
                run(tmp_path, cluster, "toy_bad", parent, params={"how": "hang", "marker": str(marker)})
        except RefineryError as error:
            errors.append(error)

    hanging = threading.Thread(target=hang)
    hanging.start()
    while not marker.exists():
        time.sleep(0.1)
    cancel(cluster[0], "canceled")
    with working_for("another"):
        assert run(tmp_path, cluster, "toy_map", parent)[1].rows
    hanging.join()
    assert [type(error) for error in errors] == [JobLost]


def test_tasks_beside_one_that_failed_are_canceled_on_ray(ray: str, tmp_path: Path) -> None:
    """They went on after their stage had failed, and held the cores that the next try needs."""
    running = engine("ray", ray)(Tracker(StageIO(str(tmp_path), "tasks")), History())
    tasks = [partial(hang_or_fail, tmp_path, number) for number in range(2)]
    with pytest.raises(KernelFailed):
        list(running._each(tasks, 0))  # type: ignore[attr-defined]
    worker = int((tmp_path / "begun").read_text())
    for _ in wait_until("the worker of the other task ends", 60, each=0.1):
        if not psutil.pid_exists(worker):
            break


class Lazy(Sequence[partial[Any]]):
    """Tasks that leave a file each; for each one that is asked for, how many have not run is noted."""

    def __init__(self, count: int, folder: Path) -> None:
        self._tasks = [partial((folder / str(number)).touch) for number in range(count)]
        self._folder, self.waiting = folder, [0]

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, rank: Any) -> Any:
        self.waiting.append(rank - len(list(self._folder.iterdir())))
        return self._tasks[rank]


def test_ray_is_sent_few_tasks_ahead_of_those_that_have_run(
    ray: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tasks of a stage waited in the driver: a hundred thousand of them were gigabytes there."""
    window = 4 * (os.cpu_count() or 1)
    monkeypatch.setattr(ray_engine, "WINDOW", 1)
    running, tasks = engine("ray", ray)(Tracker(StageIO(str(tmp_path), "tasks")), History()), Lazy(100, tmp_path)
    assert list(running._each(tasks, 0)) == [None] * 100  # type: ignore[attr-defined]
    assert len(list(tmp_path.iterdir())) == 100
    assert 0 < max(tasks.waiting) <= window


def test_after_a_refusal_ray_is_sent_no_more_tasks(ray: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "WINDOW", 1)
    running = engine("ray", ray)(Tracker(StageIO(str(tmp_path), "tasks")), History())
    later = [partial((tmp_path / str(number)).touch) for number in range(5000)]  # more than run before it is known
    with pytest.raises(ContractError, match=r"^a refusal"):
        list(running._each([partial(refuse, "a refusal"), *later], 0))  # type: ignore[attr-defined]
    assert len(list(tmp_path.iterdir())) < 2500


def test_what_runs_here_is_canceled_between_two_batches(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [table(0, 40)])
    seen: list[int] = []

    def slow(batches: Batches) -> Batches:
        for batch in batches:
            seen.append(batch.num_rows)
            cancel("local", "mine")
            yield batch

    tracker = Tracker(StageIO(str(tmp_path), "tasks", batch_rows=10))
    shards = read_manifest(str(tmp_path), parent).shards
    with working_for("mine"), pytest.raises(JobLost, match="nobody waits"):
        engine("local")(tracker, History()).map(slow, shards)
    assert seen == [10]


@pytest.mark.parametrize("master", ["spark://m:7077", "yarn", "k8s://https://m:443"])
def test_the_driver_of_a_cluster_is_not_bound_to_loopback(master: str) -> None:
    assert not [
        name for name in session_settings(master) if name.startswith(("spark.driver.host", "spark.driver.bind"))
    ]
    assert session_settings("local[2]")["spark.driver.host"] == "127.0.0.1"


def test_resources_reach_spark() -> None:
    resources = Resources(cores=2, memory=1.5, gpus=0.5)
    gpus = {"spark.task.resource.gpu.amount": "0.5", "spark.executor.resource.gpu.amount": "1"}
    task = {"spark.task.cpus": "2", "spark.executor.cores": "2"}
    assert task_settings("spark://m:7077", resources) == task | gpus | {"spark.executor.memory": "1536m"}
    assert task_settings("yarn", resources) == task | gpus | {"spark.executor.memoryOverhead": "1536m"}
    assert task_settings("spark://m:7077", Resources()) == {}
    with pytest.raises(RecipeError, match=r"\bSpark Connect\b"):
        task_settings("sc://m:15002", resources)
    with pytest.raises(RecipeError, match=r"450 MiB .*`memory` .*256 MiB"):
        task_settings("spark://m:7077", Resources(memory=0.25))


def test_resources_of_a_spark_of_this_machine_are_the_machines(tmp_path: Path) -> None:
    request = RefineRequest(str(tmp_path), "toy_map", {}, commit_parent(tmp_path, TABLES))
    with pytest.raises(RecipeError, match=r"local\[2\] .*GPUs"):
        refine(request, engine("spark", "local[2]", Resources(gpus=1)))


def test_resources_reach_ray(ray: str, tmp_path: Path) -> None:
    resources, task = Resources(cores=2, memory=1.5, gpus=0.5), {"num_cpus": 2, "memory": 3 << 29}
    assert task_options(resources) == task  # a task that decides holds no GPU
    assert actor_options(resources) == task | {"num_gpus": 0.5}
    parent = commit_parent(tmp_path, TABLES)
    request = RefineRequest(str(tmp_path), "toy_map", {}, parent)
    assert refine(request, engine("ray", ray, Resources(cores=1, memory=0.25))).manifest.rows
    with pytest.raises(RecipeError, match="1,000 of CPU"):
        refine(replace(request, params={"every": 2}), engine("ray", ray, Resources(cores=1000)))


@pytest.mark.parametrize(("stage", "jobs"), [("toy_map", 1), ("toy_group", 2)])
def test_a_verb_is_one_query_and_none_where_nothing_is_missing(
    stage: str, jobs: int, spark: str, tmp_path: Path
) -> None:
    """A job of a map is one Spark stage; adaptive execution makes a job of a group's exchange, and one of the rest."""
    context = session(spark).sparkContext
    context.setJobGroup(str(tmp_path), "one verb")
    parent = commit_parent(tmp_path, TABLES)
    try:
        path, _, cost = run(tmp_path, ("spark", spark), stage, parent)
        done = context.statusTracker().getJobIdsForGroup(str(tmp_path))
        (tmp_path / path).unlink()
        _, _, again = run(tmp_path, ("spark", spark), stage, parent)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert len(done) == jobs
    assert (again.ran, again.reused) == (0, cost.ran)
    assert context.statusTracker().getJobIdsForGroup(str(tmp_path)) == done


@pytest.fixture(scope="module")
def own_spark(workers_find_tests: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a process with a Spark of its own has refined into `root`.

    Its events are in `events`; the path of its temporary files has no room for a socket.
    """
    folder = tmp_path_factory.mktemp("own")
    scratch, events, root = (folder / name for name in ("long" * 20, "events", "root"))
    for place in (scratch, events, root):
        place.mkdir()
    arguments = [str(root), "toy_lookup", commit_parent(root, TABLES), "", "", "-1", "spark", "local[1]"]
    command = [sys.executable, "-m", "tests.faults.victim", *arguments]
    env = os.environ | {"TMPDIR": str(scratch), "REFINERY_SPARK_EVENTS": events.as_uri()}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_spark_works_where_a_socket_has_no_room_and_leaves_no_folder(own_spark: Path, tmp_path: Path) -> None:
    manifest, _, _ = run(tmp_path, ("local", ""), "toy_lookup", commit_parent(tmp_path, TABLES))
    assert (own_spark / "root" / manifest).read_bytes() == (tmp_path / manifest).read_bytes()
    assert list((own_spark / ("long" * 20)).glob("refinery-*")) == []


def test_sparks_event_log_has_our_words(own_spark: Path) -> None:
    """Every stage was `collect at spark.py:122`."""
    logged = []
    for path in sorted((own_spark / "events").rglob("events_*")):
        with pa.input_stream(str(path), compression="zstd") as log:
            logged += [json.loads(line) for line in log.read().splitlines()]
    stages = [event["Properties"] for event in logged if event["Event"] == "SparkListenerStageSubmitted"]
    assert [stage["spark.job.description"] for stage in stages] == [
        "toy_lookup: group by id into 3 buckets, then keep",
        "toy_lookup: group by id into 3 buckets, then keep",
        "toy_lookup: map lookup over 3 shards",
        "toy_lookup: map keep_ids over 3 shards",
        "toy_lookup: map unchanged over 3 shards",
    ]


def test_sparks_ui_is_off_unless_it_has_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    assert session_settings("spark://m:7077")["spark.ui.enabled"] == "false"
    monkeypatch.setenv("REFINERY_SPARK_UI", "4041")
    settings = session_settings("spark://m:7077")
    assert (settings["spark.ui.enabled"], settings["spark.ui.port"]) == ("true", "4041")


@pytest.fixture
def ray_processes(ray: str) -> Iterator[list[psutil.Process]]:
    connect_ray(ray)
    return psutil.Process().children(recursive=True)


def test_a_ray_of_our_own_listens_on_loopback_alone(ray_processes: list[psutil.Process]) -> None:
    places = {
        connection.laddr.ip
        for process in ray_processes
        if "java" not in process.name()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert places
    assert places <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_a_ray_of_our_own_lets_nobody_in_without_its_token(ray_processes: list[psutil.Process]) -> None:
    import ray

    address = ray.get_runtime_context().gcs_address
    program = "import ray, sys; ray.init(address=sys.argv[1], configure_logging=False); print('in', len(ray.nodes()))"
    tokens = ("0" * 64, os.environ["RAY_AUTH_TOKEN"])
    outside, inside = (
        subprocess.run(
            [sys.executable, "-c", program, address],
            env=os.environ | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token},
            capture_output=True,
            text=True,
            check=False,
        )
        for token in tokens
    )
    assert "in 1" in inside.stdout
    assert (outside.stdout, outside.returncode) == ("", 1)
    assert "nauthen" in outside.stderr


@pytest.mark.parametrize(
    ("address", "connect"),
    [("", connect_ray), ("ray://", connect_ray), ("spark://", session), ("sc://", session)],
)
def test_a_cluster_that_is_not_there_is_named(address: str, connect: Callable[[str], object], closed_port: int) -> None:
    place = f"127.0.0.1:{closed_port}"
    with pytest.raises(ClusterUnreachable, match=re.escape(f"{address}{place} ")):
        connect(f"{address}{place}")


def test_golden_is_what_it_was(golden: Path) -> None:
    """The local engine over a copy of golden's input gives golden's manifests again."""
    for stage in STAGES:
        refined(golden, stage, commit_parent(golden, TABLES))
    again = golden.parent / f"{golden.name}-again"
    shutil.copytree(golden / "given", again / "given")
    parent = next(path for path in again.rglob("manifest.json")).relative_to(again)
    made = {stage: refined(again, stage, str(parent)) for stage in STAGES}
    assert {path for path, _ in made.values()} == {
        manifest_path(stage, manifest.fingerprint) for stage, (_, manifest) in made.items()
    }
    files = {stage: stored(golden, stage) for stage in STAGES}
    assert {stage: stored(again, stage) for stage in STAGES} == files
    assert all(files.values())
