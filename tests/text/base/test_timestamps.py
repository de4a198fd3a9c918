"""Timestamps sort by time, whatever their punctuation."""

import pyarrow as pa
import pytest

from pipeline_tasks.text.base.timestamps import sortable_timestamps


@pytest.mark.parametrize(
    ("date", "number"),
    [
        ("2026-11-21T23:52:54Z", 20261121235254),
        ("20261121235254", 20261121235254),
        ("2026-11-21 23:52:54.123456", 20261121235254),
        ("2026-11", 20261100000000),
        ("soon", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_forms(date: str | None, number: int) -> None:
    assert sortable_timestamps(pa.array([date], pa.string())).to_pylist() == [number]
