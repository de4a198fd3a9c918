"""What a run asks of its stores grows with its files and not with their square; what it hands on does not grow."""

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.bill import Prices, bill_of
from pipeline_tasks.run.sizes import sizes_of
from tests import refining
from tests.documents import documents

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
FEW, MANY = 4, 12
"""Files of a day; a step that asks for each file of the day before, of each file, adds 8 times as many for each more."""

MOST = {"land": 0.1, "ingest": 53, "extract": 11, "dedup_exact": 2, "gates": 4, "publish": 5}
"""Requests that one more file adds to each step, at most; commits look at shards and at the log behind their writes,
and each task of `extract` at its model."""


@pytest.fixture(scope="module")
def growth() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("growth")


@pytest.fixture(scope="module")
def sizes(growth: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    return {files: growth.measured(tmp_path_factory.mktemp("growth"), files) for files in (FEW, MANY)}


@pytest.mark.parametrize("step", MOST)
def test_each_more_file_adds_the_same_few_requests(sizes: dict[int, Any], step: str) -> None:
    few, many = (sum(sizes[files].requests[step].values()) for files in (FEW, MANY))
    assert (many - few) / (MANY - FEW) <= MOST[step]


def test_landed_bytes_are_read_once_where_a_list_promises_digests(sizes: dict[int, Any]) -> None:
    reads = sizes[MANY].landed_reads
    assert reads["ingest"] == 1.0, "behind a history, too"
    assert reads["extract"] <= 0.6, "two of three pages are new, and half of the records are requests"
    first_records = 2 * sizes[FEW].landed_reads["land"] * sizes[FEW].landed / sizes[MANY].landed
    assert reads["land"] <= first_records, "the first records of a few files are looked at, and no file is hashed"


def test_without_such_a_list_each_is_read_once_more(growth: Any, tmp_path: Path) -> None:
    reads = growth.measured(tmp_path, FEW, promised=False).landed_reads
    assert 1.0 <= reads["land"] <= 2.0, "and the first records of a few are looked at"
    assert reads["ingest"] == 1.0


def test_what_landing_hands_on_has_one_size_behind_any_number_of_versions(growth: Any, tmp_path: Path) -> None:
    few, many = growth.with_history(tmp_path, (2, 130))
    assert many["xcom_kb"] == few["xcom_kb"] < 1
    added = sum(many["land"].values()) - sum(few["land"].values())
    assert added <= 130 / 64 + 2, "pages of the log, and what is behind the last one"


def test_what_lint_foretells_is_what_is_counted(growth: Any, tmp_path: Path) -> None:
    """The first day of a crawl by the recipe `web`, gates and publication included."""
    recipe, landing = load_recipe("web"), tmp_path / "crawl" / "2026-11-01"
    growth.write_snapshot(landing, 3 * MANY, 1)
    run = growth.CountedRun(str(tmp_path / "root"), landing.name, recipe, str(landing))
    run.refine(str(landing))
    verbs = sum((requests.verbs for requests in run.requests.values()), Counter[str]())
    bill = bill_of(sizes_of(recipe, list_snapshot(str(landing))), Prices())
    assert bill.reads == pytest.approx(verbs["GET"] + verbs["HEAD"], rel=0.2)
    assert bill.writes == pytest.approx(verbs["PUT"] + verbs["POST"] + verbs["LIST"], rel=0.2)


def test_a_driver_keeps_of_a_shard_what_manifests_name(growth: Any) -> None:
    """Of profiles, tasks and plain objects of a manifest a driver had 3.7 KB for each shard."""
    few, many = growth.driver_of(500), growth.driver_of(8500)
    assert (many - few) * (1 << 20) / 8000 <= 2500


def test_a_partition_asks_for_nothing_that_other_partitions_have_asked_for(growth: Any) -> None:
    """Each parsed its parent's whole manifest, and those of all earlier snapshots."""
    few, many = (growth.partitions_of(64, 32, days) for days in (1, 65))
    assert many["requests"] - few["requests"] == 64, "each earlier manifest once, by all partitions together"
    assert few["requests"] <= 4
    assert many["manifest_kb"] == few["manifest_kb"], "what a partition says does not grow with its history"


@pytest.mark.parametrize("stage", ["pack", "tokenize"])
def test_a_shard_does_not_ask_for_each_other_shard(growth: Any, tmp_path: Path, stage: str) -> None:
    """Each read the counts of all shards, one after the other: 4 billion requests of 65,536 shards."""
    params = {"pack": {"length": 4, "pad_id": 0}, "tokenize": {"train": {"vocab_size": 300}}}
    requests = {}
    for shards in (4, 16):
        root, tables = tmp_path / str(shards), [documents([f"{at} words and more"]) for at in range(shards)]
        columns = {"tokens": pa.array([[1, 2, 3]], pa.list_(pa.int32())), "n_tokens": pa.array([3], pa.int64())}
        tokens = [pa.table({"id": table["id"], **columns}) for table in tables]
        parent = refining.commit_parent(root, tokens if stage == "pack" else tables)
        with growth.counted(counts := growth.Requests()):
            refining.refined(root, stage, parent, params[stage])
        requests[shards] = counts.total
    assert requests[16] <= 4 * requests[4]


def test_sealing_lists_shards(growth: Any, tmp_path: Path) -> None:
    few, many = (growth.sealed(tmp_path / str(shards), shards, 4).verbs for shards in (200, 1200))
    assert many["HEAD"] == few["HEAD"] <= 4
    assert many["LIST"] - few["LIST"] <= 6, "a page has 1,000 objects: shards and receipts, looked at twice"


def test_publishing_asks_for_a_fiftieth_of_its_shards_and_keeps_little_of_each(growth: Any) -> None:
    """It asked for three files of each, and the log named them all."""
    few, many = (growth.publishing_of(shards) for shards in (500, 4500))
    assert many["requests"] - few["requests"] <= 0.02 * 4000
    assert (many["peak_mb"] - few["peak_mb"]) * (1 << 20) / 4000 <= 12_000
