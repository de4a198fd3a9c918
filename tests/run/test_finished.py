"""What a driver keeps of tasks that have run is what their receipts say together, whichever of their shards are kept."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.run.finished import Collector, kept_profile
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.tasks.task import Receipt, StageIO, load_receipt
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Shards
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.text.base.tables import unchanged
from tests.refining import commit_parent
from tests.toys import table

pytestmark = pytest.mark.usefixtures("toys")

TABLES = [table(0, 40), table(40, 25), table(65, 30)]


@pytest.fixture
def mapped(tmp_path: Path) -> tuple[LocalEngine, Shards]:
    """An engine that has run one verb over three shards, and their shards."""
    parent = read_manifest(str(tmp_path), commit_parent(tmp_path, TABLES))
    on = LocalEngine(Tracker(StageIO(str(tmp_path), "toy_map/f", profiled=("id", "text"))))
    return on, on.map(unchanged, parent.shards)


def receipts(root: Path) -> dict[str, Receipt]:
    """The stored receipts of the stage `toy_map`, by the path of their shard."""
    stored = [load_receipt(path.read_bytes()) for path in root.glob("toy_map/*/receipts/*.json")]
    return {receipt.shard.path: receipt for receipt in stored}


@pytest.mark.parametrize("ranks", [(), (0,), (2, 1), (0, 1, 2), (2, 1, 0), (0, 1, 2, 1), (1, 0, 1, 2)])
def test_the_profile_is_that_of_the_kept_shards(
    tmp_path: Path, mapped: tuple[LocalEngine, Shards], ranks: tuple[int, ...]
) -> None:
    """Some of the shards of a verb, in another order or more than once: their receipts are read again."""
    on, shards = mapped
    known = receipts(tmp_path)
    expected = merge(known[shards[rank].path].kept_profile for rank in ranks)
    kept = tuple(shards[rank] for rank in ranks)
    assert kept_profile(str(tmp_path), on.tracker.finished, kept) == expected
    assert bool(expected) == bool(ranks)


def test_receipts_are_not_read_again_where_all_shards_are_kept(
    tmp_path: Path, mapped: tuple[LocalEngine, Shards]
) -> None:
    on, shards = mapped
    expected = kept_profile(str(tmp_path), on.tracker.finished, shards)
    for path in tmp_path.glob("toy_map/*/receipts/*.json"):
        path.unlink()
    assert kept_profile(str(tmp_path), on.tracker.finished, shards) == expected
    with pytest.raises(FileNotFoundError):
        kept_profile(str(tmp_path), on.tracker.finished, shards[:1])


def test_what_is_taken_does_not_depend_on_the_order_of_receipts(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, TABLES)
    refine(RefineRequest(str(tmp_path), "toy_map", {}, parent), LocalEngine)
    known = list(enumerate(receipts(tmp_path).values()))
    taken = []
    for order in permutations(known):
        collector = Collector("toy_map/f", [receipt.key for _, receipt in known])
        for rank, receipt in order:
            collector.take(rank, receipt)
        done = collector.finished()
        assert [shard.path for shard in done.shards] == [receipt.shard.path for _, receipt in known]
        unordered = {"rejecting": sorted(done.rejecting), "rejects": (), "quarantine": ()}
        taken.append((replace(done, **unordered), set(done.rejects), set(done.quarantine), collector.tally))
    assert all(each == taken[0] for each in taken)
    assert taken[0][0].rejecting


@given(st.lists(st.integers(0, 5), max_size=12))
def test_a_stage_run_again_has_the_manifest_of_the_first_run(
    tmp_path_factory: pytest.TempPathFactory, lost: list[int]
) -> None:
    """Of an attempt that died some receipts are there: what they say and what runs again is put together."""
    root = tmp_path_factory.mktemp("root")
    request = RefineRequest(str(root), "toy_map", {}, commit_parent(root, TABLES))
    path, first, _ = refine(request, LocalEngine)
    body = (root / path).read_bytes()
    (root / path).unlink()
    stored: list[Any] = sorted(root.glob("toy_map/*/receipts/*.json"))
    for number in {number for number in lost if number < len(stored)}:
        stored[number].unlink()
    assert refine(request, LocalEngine).manifest == first
    assert (root / path).read_bytes() == body
