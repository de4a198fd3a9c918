"""Examples that are not random are those of their test, whatever ran before it."""

import importlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[tuple[str, int, float]]:
    """The examples of a test that CI runs."""
    seen = []

    @settings(derandomize=True, max_examples=60, database=None)
    @given(st.text(), st.integers(), st.floats(allow_nan=False))
    def note(text: str, number: int, ratio: float) -> None:
        seen.append((text, number, ratio))

    note()
    return seen


def test_examples_do_not_depend_on_what_was_imported_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test had other examples alone than in a whole run: words of every module of ours that was imported by then."""
    before = drawn()
    (tmp_path / "planted.py").write_text("WORDS = ['first planted', 'second planted', 424242, 434343, 77.25]\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("planted")
    assert drawn() == before
