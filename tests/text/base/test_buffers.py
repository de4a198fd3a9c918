"""Buffers are views of Arrow text, and rows of it are taken without a copy where that is possible."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import buffers

TEXTS = st.lists(st.none() | st.text(max_size=8), max_size=12)


@given(TEXTS, st.integers(0, 12), st.sampled_from([pa.string(), pa.large_string()]))
def test_views_of_a_slice(texts: list[str | None], start: int, form: pa.DataType) -> None:
    offsets, data = buffers.views(pa.array(texts, form).slice(start))
    begins_and_ends = pairwise(offsets)
    assert [bytes(data[begin:end]).decode() for begin, end in begins_and_ends] == [text or "" for text in texts[start:]]


ROWS = st.lists(st.tuples(st.none() | st.just("") | st.text(max_size=8), st.booleans()), max_size=12)
FORMS = st.sampled_from([pa.string(), pa.large_string(), pa.large_binary()])


@given(ROWS, st.integers(0, 12), FORMS)
def test_rows_are_taken(cases: list[tuple[str | None, bool]], start: int, form: pa.DataType) -> None:
    column = pa.array([text for text, _ in cases], pa.large_string()).cast(form).slice(start)
    rows = np.flatnonzero([is_taken for _, is_taken in cases[start:]])
    taken = buffers.take_rows(column, rows)
    taken.validate(full=True)
    assert taken.equals(column.take(pa.array(rows)))


def test_bytes_are_shared_where_what_is_left_out_is_empty() -> None:
    column = pa.array([b"a", None, b"bc", b"", b"d"], pa.large_binary())
    taken = buffers.take_rows(column, np.array([0, 2, 4]))
    assert taken.to_pylist() == [b"a", b"bc", b"d"]
    assert taken.buffers()[2].address == column.buffers()[2].address
