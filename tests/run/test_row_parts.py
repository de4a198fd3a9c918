"""Rows that a kernel keeps while it runs are found by the next try, whatever ended the first one."""

import time
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.engines.job import cancel, working_for
from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.run.tasks import row_parts
from pipeline_tasks.run.tasks.model_budget import NO_HOURS, Hours, ModelBudget
from pipeline_tasks.run.tasks.row_cache import KnownRows, known_segments
from pipeline_tasks.run.tasks.row_parts import MERGED, RowParts
from pipeline_tasks.store import storage

PREFIX = "cache/stage/name-0123"


def parts(root: Path, hardware: str = "cpu") -> RowParts:
    """Return what a new try gets, over one input."""
    known = KnownRows(str(root), known_segments(str(root), PREFIX))
    return RowParts(str(root), PREFIX, "input", known, hardware, ModelBudget(str(root), NO_HOURS))


def rows(*numbers: int) -> pa.RecordBatch:
    texts = pa.array([f"text {number}" for number in numbers], pa.large_string())
    return pa.RecordBatch.from_arrays([texts, pa.array(numbers, pa.int64())], names=["text", "number"])


def found(of: RowParts, *numbers: int) -> list[int | None]:
    table = of.rows(pa.array([f"text {number}" for number in numbers], pa.large_string()))
    return table.column("number").to_pylist() if "number" in table.column_names else [None] * len(numbers)


def objects(root: Path) -> list[str]:
    return [entry.path for entry in storage.connect(str(root)).list("cache")]


def test_the_next_try_finds_what_was_kept(tmp_path: Path) -> None:
    first = parts(tmp_path)
    assert found(first, 1, 2) == [None, None]
    first.keep(rows(1, 2))
    assert found(first, 2, 3, 1) == [2, None, 1]
    assert found(parts(tmp_path), 1, 3) == [1, None], "they are stored where rows are asked for"


def test_rows_are_stored_beside_the_work_and_without_more_rows(tmp_path: Path) -> None:
    first = parts(tmp_path)
    first.keep(rows(1))
    until = time.monotonic() + 20
    while not objects(tmp_path) and time.monotonic() < until:
        time.sleep(0.01)
    assert found(parts(tmp_path), 1) == [1]


def test_a_task_that_fails_keeps_what_it_has(tmp_path: Path) -> None:
    first = parts(tmp_path)
    first.keep(rows(1, 2))
    first.stop()
    assert found(parts(tmp_path), 1, 2) == [1, 2]


def test_the_end_of_a_task_is_one_segment_and_no_part(tmp_path: Path) -> None:
    first = parts(tmp_path, "a GPU")
    first.keep(rows(1, 2))
    first.stop()
    second = parts(tmp_path)
    assert found(second, 1, 2, 3) == [1, 2, None]
    second.keep(rows(3))
    assert second.store() == {"a GPU": 2, "cpu": 1}
    left = objects(tmp_path)
    assert len(left) == 2
    assert all(path.startswith(f"{PREFIX}/") for path in left)
    third = parts(tmp_path)
    assert found(third, 3, 2, 1) == [3, 2, 1]
    assert third.store() == {"a GPU": 2, "cpu": 1}


def test_parts_stay_few(tmp_path: Path) -> None:
    """As many as a number has digits to the base of `MERGED`, each at most that often, and every row is found."""
    first = parts(tmp_path)
    for number in range(MERGED**2 + 3):
        first.keep(rows(number))
        first.flush()
    assert len(objects(tmp_path)) / 2 == 1 + 3
    assert found(parts(tmp_path), *range(MERGED**2 + 3)) == list(range(MERGED**2 + 3))


def test_a_damaged_part_is_computed_again(tmp_path: Path) -> None:
    first = parts(tmp_path)
    for number in (1, 2):
        first.keep(rows(number))
        first.flush()
    segments = sorted(tmp_path.rglob("*.segment"), key=lambda path: path.stat().st_mtime_ns)
    segments[0].write_bytes(b"damaged")
    assert sorted(found(parts(tmp_path), 1, 2), key=str) == [2, None]


def test_a_root_that_takes_nothing_fails_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> tuple[str, ...]:
        raise OSError(28, "No space left on device")

    first = parts(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(row_parts, "store_rows", full)
        first.keep(rows(1))
        first.flush()
    assert found(first, 1) == [1]
    assert first.store() == {"cpu": 1}


def test_a_canceled_task_ends_at_its_next_row(tmp_path: Path) -> None:
    first = parts(tmp_path)
    with working_for("job"):
        first.keep(rows(1))
        cancel("job")
        with pytest.raises(JobLost, match="nobody waits"):
            first.keep(rows(2))


def test_hours_are_of_all_tasks_together(tmp_path: Path) -> None:
    hours = Hours("stage", 0.4 / 3600, "input")
    for _ in range(2):
        spending = ModelBudget(str(tmp_path), hours)
        time.sleep(0.21)
        spending.note()
    with pytest.raises(RecipeError, match="goes on from here"):
        ModelBudget(str(tmp_path), hours)
    ModelBudget(str(tmp_path), Hours("stage", 1.0, "input")).spend()
    ModelBudget(str(tmp_path), Hours("stage", 0.4 / 3600, "another input")).spend()
