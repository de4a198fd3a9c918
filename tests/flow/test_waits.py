"""What S3 slowed down is in the line of the task, and added up by a run."""

import io
import logging
from typing import Any

from pipeline_tasks.flow.attempt import Attempt, Run
from pipeline_tasks.flow.lines import log_reply
from pipeline_tasks.flow.progress import Progress
from pipeline_tasks.service.handle import handle
from pipeline_tasks.store.s3.waits import Waits


def test_the_waits_of_tasks_are_in_their_lines_and_added_up() -> None:
    run = Run("", "root", "", 0, {}, {}, 0, 0)
    at = Attempt(run, "r", "corpus", "select.partition", handle, lambda _key, _value: None)
    progress = Progress(io.StringIO())
    log = logging.getLogger("refinery")
    log.addHandler(progress)
    level = log.level
    log.setLevel(logging.INFO)
    try:
        for stage, waits in (("select", (3, 1.25)), ("mix", None), ("pack", (1, 0.5))):
            reply: dict[str, Any] = {"s3_waits": {"requests": waits[0], "seconds": waits[1]}} if waits else {}
            log_reply(at, stage, reply, "done")
    finally:
        log.removeHandler(progress)
        log.setLevel(level)
    lines = [line.partition(" s  ")[2] for line in progress.out.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines == [
        "select             done  (S3 was busy: 3 requests sent again after 1.2 s)",
        "mix                done",
        "pack               done  (S3 was busy: 1 request sent again after 0.5 s)",
    ]
    assert progress.s3_waits == Waits(4, 1.75)
