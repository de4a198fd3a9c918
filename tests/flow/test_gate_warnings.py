"""A gate that lets data pass sends an alert where a bound is broken, and none where rows are too few to tell."""

from typing import Any

import pytest

from pipeline_tasks.flow.gates import Review, warnings_of
from pipeline_tasks.service.requests.gates import JudgeReply

REVIEW = Review("extract", "extract", "snapshot 2026-11-20 of recipe web", ["a line"], "")
BROKEN: dict[str, Any] = {"column": "retention", "severity": "warning"}


@pytest.mark.parametrize(
    ("outcome", "failures", "alerts"),
    [("warn", [BROKEN], ["gate_warned"]), ("warn", [], []), ("pass", [], [])],
    ids=["broken", "undecided", "met"],
)
def test_an_undecided_bound_is_no_alert(outcome: str, failures: list[dict[str, Any]], alerts: list[str]) -> None:
    verdict = JudgeReply(outcome=outcome, failures=failures, lines=["a line"], verdict="", docs="", spending={})
    assert [alert.kind for alert in warnings_of(REVIEW, verdict)] == alerts
