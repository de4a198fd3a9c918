"""Tests take pauses from one module, never from the whole process: its other threads sleep, too."""

import re
from pathlib import Path

WHOLE = re.compile(r"""setattr\(\s*(?:time,\s*["']|[\w.]*\btime,\s*["']|["'][\w.]*\btime\.)sleep["']""")
"""A patch of `time.sleep` itself, under whatever module's name."""


def test_no_test_patches_the_sleep_of_the_whole_process() -> None:
    assert WHOLE.search('monkeypatch.setattr("pipeline_tasks.flow.loop.time.sleep", slept.append)')
    assert WHOLE.search('monkeypatch.setattr(refinery_walk.time, "sleep", slept.append)')
    tests = [path for path in Path(__file__).parent.rglob("*.py") if path != Path(__file__)]
    found = [str(path) for path in tests if WHOLE.search(path.read_text("utf-8"))]
    assert len(tests) > 500
    assert not found, "tests.pauses.slept notes what one module sleeps"
