"""The types of a loop's arguments are recorded as text and read again; `refinery setup compile` marks when it has ended."""

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numba
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import types

from pipeline_tasks.errors import JobLost
from pipeline_tasks.owned import require_own
from pipeline_tasks.text.base import loop_calls
from pipeline_tasks.text.base.compiled import stamp
from pipeline_tasks.text.base.loop_calls import RECORDED, is_compiled, mark_compiled, recorded_type, type_of
from pipeline_tasks.text.words.cutting import Words

HASHING = "pipeline_tasks.text.base.hashing"

NUMBERS = st.sampled_from([types.uint8, types.int32, types.int64, types.uint64, types.float32, types.float64])
ARRAYS = st.builds(
    lambda number, dimensions, layout, readonly: types.Array(number, dimensions, layout, readonly=readonly),
    NUMBERS | st.just(types.boolean),
    st.integers(1, 3),
    st.sampled_from("CFA"),
    st.booleans(),
)


def named(fields: Sequence[Any]) -> Any:
    return types.NamedUniTuple(fields[0], 5, Words) if len(set(fields)) == 1 else types.NamedTuple(fields, Words)


TYPES = st.recursive(
    NUMBERS | ARRAYS | st.just(types.boolean),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: types.Tuple(tuple(parts)))
        | st.lists(inner, min_size=5, max_size=5).map(named)
    ),
    max_leaves=8,
)


@given(TYPES)
def test_a_recorded_type_is_read_again(type_: Any) -> None:
    assert type_of(recorded_type(type_)) == type_


def test_what_no_loop_takes_is_refused() -> None:
    with pytest.raises(TypeError, match=re.escape(str(types.unicode_type))):
        recorded_type(types.unicode_type)


def nothing(_: object) -> None: ...


def test_it_is_said_how_many_loops_are_done_until_all_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine was silent for nine minutes."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setattr(loop_calls, "_compile", nothing)
    monkeypatch.setattr(loop_calls, "recorded_calls", lambda: {f"{HASHING}.{number}": [] for number in range(5)})
    monkeypatch.setattr(loop_calls, "EVERY", 0.01)
    said: list[tuple[int, int]] = []
    loop_calls.compile_ahead(lambda done, count: said.append((done, count)))
    assert said == sorted(said)
    assert (said[0][0] < 5, said[-1]) == (True, (5, 5))
    assert is_compiled()


def dies(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_is_named_and_nothing_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setattr(loop_calls, "_compile", dies)
    with pytest.raises(JobLost):
        loop_calls.compile_ahead()
    assert not is_compiled()


def test_another_processor_and_other_calls_are_not_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    assert not is_compiled()
    mark_compiled()
    assert is_compiled()
    other = tmp_path / "calls.json"
    other.write_bytes(RECORDED.read_bytes() + b"\n")
    monkeypatch.setattr(loop_calls, "RECORDED", other)
    assert not is_compiled()


def test_what_a_loop_is_made_of_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    mark_compiled()
    monkeypatch.setattr(loop_calls, "stamp", lambda file: "edited" if file.stem == "cutting" else stamp(file))
    assert not is_compiled()


def test_the_folder_of_loops_is_closed_to_others_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    before = os.umask(0o002)
    try:
        mark_compiled()
    finally:
        os.umask(before)
    require_own(str(tmp_path / "numba" / "loop"))
