"""Bytes that are no UTF-8, and rows, are replaced without a change to the others."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import replacing


def test_invalid_utf8_is_replaced() -> None:
    raw = pa.array([b"ok", b"\xff\xc3\xa9", None], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 3, raw.buffers(), null_count=1)
    assert replacing.replace_invalid_utf8(broken).to_pylist() == ["ok", "\ufffd\u00e9", None]
    valid = pa.array(["é", None])
    assert replacing.replace_invalid_utf8(valid) is valid


@given(
    st.lists(st.integers(), max_size=10).flatmap(
        lambda row: st.tuples(st.just(row), st.sets(st.sampled_from(range(len(row))) if row else st.nothing()))
    )
)
def test_rows_are_replaced(case: tuple[list[int], set[int]]) -> None:
    column, rows = [number % 1000 for number in case[0]], sorted(case[1])
    replaced = replacing.replace_rows(pa.array(column, pa.int64()), rows, pa.array([-row for row in rows], pa.int64()))
    assert replaced.to_pylist() == [-row if row in rows else number for row, number in enumerate(column)]
