"""Progress of a run: what a stage is about to do, how far it is, and the sum of it all."""

import io
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.flow.progress import Progress, step_line
from pipeline_tasks.flow.summary import summary_lines
from pipeline_tasks.run.tracker import Step
from tests.refining import commit_parent, refined
from tests.toys import table


class Steps(logging.Handler):
    """Keeps the steps that are logged, each with the receipts that were stored by then."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Step, set[str]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        step = record.refinery["step"]  # type: ignore[attr-defined]
        self.seen.append((step, step.finished()))


@pytest.fixture
def steps() -> Iterator[Steps]:
    handler, logger = Steps(), logging.getLogger("refinery")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.parametrize("stage", ["toy_map", "toy_group"])
@pytest.mark.usefixtures("toys")
def test_tasks_are_announced_and_found_finished(stage: str, tmp_path: Path, steps: Steps) -> None:
    tables = [table(start, 20) for start in (0, 20, 40)]
    parent = commit_parent(tmp_path, tables)
    _, manifest = refined(tmp_path, stage, parent)
    assert steps.seen
    for step, before in steps.seen:
        assert (step.stage, before) == (stage, set())
        assert step.finished() == step.weights.keys()
    first = steps.seen[0][0]
    assert sum(first.weights.values()) == pytest.approx(manifest.bytes_in)
    steps.seen.clear()
    refined(tmp_path, stage, parent)
    assert steps.seen == []


STEP = Step("extract", "/nowhere", {"a": 30e6, "b": 30e6, "c": 60e6})


@pytest.mark.parametrize(
    ("finished", "seconds", "expected"),
    [
        (set(), 12, "extract            0 of 3 tasks done, 12 s"),
        ({"a"}, 10, "extract            1 of 3 tasks done, 10 s, 3.0 MB/s, about 30 s left"),
        ({"a", "b"}, 600, "extract            2 of 3 tasks done, 600 s, 0.1 MB/s, about 10 min left"),
        ({"a"}, 3600, "extract            1 of 3 tasks done, 3600 s, 0.0 MB/s, about 3.0 h left"),
    ],
)
def test_a_line_says_how_far_and_how_long(finished: set[str], seconds: float, expected: str) -> None:
    assert step_line(STEP, finished, seconds) == expected


class Screen(io.StringIO):
    """A screen that says when it shows a word."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word, self.shown = word, threading.Event()

    def write(self, text: str) -> int:
        if self.word in text:
            self.shown.set()
        return super().write(text)


def record(message: str, level: int = logging.INFO, **facts: Any) -> logging.LogRecord:
    line = logging.LogRecord("refinery", level, "", 0, message, (), None)
    line.refinery = facts
    return line


def test_a_silent_stage_is_shown_until_its_line_comes(tmp_path: Path) -> None:
    screen = Screen("0 of 3 tasks done")
    progress = Progress(screen, silence=0.05)
    with progress.watching():
        progress.emit(record("3 tasks", step=replace(STEP, root=str(tmp_path))))
        assert screen.shown.wait(120)
    progress.emit(record("extract  done", stage="extract", reply={"rows_in": 1}, which=""))
    before = screen.getvalue()
    with progress.watching():
        assert threading.Event().wait(0.2) is False
    assert screen.getvalue() == before


def test_a_retry_of_many_partitions_is_one_line_and_the_next_another() -> None:
    screen = io.StringIO()
    progress = Progress(screen)
    for number in (1, 1, 2, 2):
        failed = {"task": "extract.partition", "try": number, "error": OSError("x"), "final": False}
        progress.emit(record("extract.partition  is tried again: x", logging.WARNING, **failed))
    assert screen.getvalue().count("is tried again") == 2
    assert len(progress.warnings) == 2


def reply(wall: float, rejected: Mapping[str, int]) -> dict[str, Any]:
    return {"wall": wall, "rejected": rejected, "quarantined": {"error:bad": 1} if rejected else {}}


def test_the_sum_of_a_run_names_the_largest() -> None:
    stages = {
        "ingest": reply(1.0, {}),
        "extract": reply(9.04, {"extract:short": 1200, "extract:empty": 7}),
        "filter_url": reply(2.0, {"filter_url:host": 30}),
        "dedup": reply(3.0, {"dedup:url": 9, "dedup:text": 2}),
    }
    assert list(summary_lines(stages, ["extract gate  warns", "extract gate  warns"])) == [
        "removed   extract:short 1,200, filter_url:host 30, dedup:url 9, 5 others 12",
        "slowest   extract 9.0 s, dedup 3.0 s, filter_url 2.0 s, 1 other 1.0 s",
        "warnings  2 lines above with !: extract gate  warns",
    ]
    assert list(summary_lines({}, [])) == []
