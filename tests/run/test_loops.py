"""Whoever waits for the loops to be compiled sees why, and how far that is, before it is done."""

import io

import pytest

from pipeline_tasks.run.loops import COMPILING, ensure_compiled
from pipeline_tasks.text.base import loop_calls


class Terminal(io.StringIO):
    """Text that is seen when it is flushed, as through a pipe."""

    seen = ""

    def flush(self) -> None:
        self.seen = self.getvalue()


def test_compiling_says_at_once_why_a_run_waits_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    out, seen = Terminal(), []

    def compile_ahead(calls: object, tell: object) -> None:
        seen.append(out.seen)
        assert callable(tell)
        tell(1, 2)
        seen.append(out.seen)

    monkeypatch.setattr(loop_calls, "is_compiled", lambda _: False)
    monkeypatch.setattr(loop_calls, "compile_ahead", compile_ahead)
    ensure_compiled(out)
    assert seen == [f"{COMPILING}\n", f"{COMPILING}\n{COMPILING} 1 of 2\n"]


def test_loops_that_are_compiled_are_not_spoken_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_calls, "is_compiled", lambda _: True)
    out = Terminal()
    ensure_compiled(out, all_loops=True)
    assert not out.getvalue()
