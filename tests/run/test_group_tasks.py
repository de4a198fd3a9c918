"""What a group's driver does, and what its workers are sent, grows with shards plus buckets, and not with their product."""

from dataclasses import replace
from unittest.mock import PropertyMock

import pytest

from pipeline_tasks.run.tasks.task import KEY_DIGITS, StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Batches, Shard

SHARDS = tuple(Shard(f"given/data/{at:032x}.parquet", 10, 100, f"{at:064x}") for at in range(50))


def kernel(rows: Batches) -> Batches:
    yield from rows


def test_each_shard_is_named_once_and_not_for_each_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    named = PropertyMock(return_value="a digest")
    monkeypatch.setattr(Shard, "identity", named)
    Tracker(StageIO("/root", "stage/f00")).group_tasks(kernel, SHARDS, "id", (), 64)
    assert named.call_count == len(SHARDS)


def test_tasks_of_buckets_differ_in_their_keys_alone() -> None:
    """Spark's workers make the task of a bucket from the first one and its key."""
    tasks = Tracker(StageIO("/root", "stage/f00")).group_tasks(kernel, SHARDS, "id", ("text",), 64)
    assert all(replace(task, key=tasks[0].key) == tasks[0] for task in tasks)
    assert len({task.key for task in tasks}) == 64
    assert {len(task.key) for task in tasks} == {KEY_DIGITS}


@pytest.mark.parametrize("changes", [{"by": "text"}, {"order": ("text",)}, {"buckets": 65}, {"rows": SHARDS[1:]}])
def test_another_group_has_other_keys(changes: dict[str, object]) -> None:
    tracker = Tracker(StageIO("/root", "stage/f00"))
    how = {"kernel": kernel, "rows": SHARDS, "by": "id", "order": (), "buckets": 64}
    before, after = (
        {task.key for task in tracker.group_tasks(**given)}  # type: ignore[arg-type]
        for given in (how, how | changes)
    )
    assert not before & after
