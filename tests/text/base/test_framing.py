"""Each run that is not empty gets one number before and one after, and the others of its own are counted."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.framing import NONE, frame


@given(st.lists(st.lists(st.integers(0, 5), max_size=5), max_size=6), st.sampled_from([NONE, 1, 9]), st.integers(0, 9))
def test_runs_are_framed(runs: list[list[int]], before: int, after: int) -> None:
    offsets = np.cumsum([0, *map(len, runs)]).astype(np.int64)
    numbers = np.array([number for run in runs for number in run], np.int32)
    framed, ends, equal = frame(numbers, offsets, before, after)
    first = [] if before == NONE else [before]
    expected = [[*first, *run, after] if run else [] for run in runs]
    assert [framed[begin:end].tolist() for begin, end in pairwise(ends)] == expected
    assert equal.tolist() == [sum(number in (before, after) for number in run) for run in runs]
