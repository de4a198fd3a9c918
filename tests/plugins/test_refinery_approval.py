"""The form that asks a person about a refused gate, and what is made of their answer."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_tasks.errors import GateRefused

LINES = [
    "critical: retention is 0.1, and must be at least 0.25",
    "    of 60 rows",
    "    bound of expectations/extract.json: the <script> of *one* site | `robots`",
]
NOON = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)


def review(**facts: Any) -> Any:
    from pipeline_tasks.flow.gates import Review

    named = {"gate": "extract", "subject": "extract/2f/manifest.json", "data": "snapshot a_b of recipe web"}
    return Review(**{**named, "lines": LINES, "docs": "extract/2f/gate/1/docs/index.html", **facts})


def event(option: str, **params: Any) -> dict[str, Any]:
    user = {"id": "7", "name": "Ada Lovelace"}
    return {"chosen_options": [option], "params_input": params, "responded_at": NOON, "responded_by_user": user}


def decided(answer: dict[str, Any]) -> str:
    from refinery_airflow.tasks.approval import approval

    context: Any = {"ti": SimpleNamespace(task_id="extract.gate")}
    return approval(context, review(), answer, NOON)


# --- Form --------------------------------------------------------------------------------------------------------------


def test_the_form_says_what_is_out_of_bounds_what_would_pass_and_where_to_look() -> None:
    from refinery_airflow.tasks.approval import body

    pages = {"Data Docs": "/airflow/refinery/files/extract/2f/docs/index.html", "Manifest": ""}
    text = body(review(passing={"kept": "6 of 60 rows", "rejected, too_short": "54"}, pages=pages))
    assert "**extract** refuses snapshot a\\_b of recipe web." in text
    assert "- critical: retention is 0.1, and must be at least 0.25" in text
    assert "- kept: 6 of 60 rows\n- rejected, too\\_short: 54" in text
    assert "[Data Docs](/airflow/refinery/files/extract/2f/docs/index.html)" in text
    assert "Manifest" not in text


def test_nothing_in_the_form_is_markup_of_what_it_shows() -> None:
    from refinery_airflow.tasks.approval import body

    text = body(review())
    assert r"the \<script\> of \*one\* site \| \`robots\`" in text
    assert "<script>" not in text


def test_the_most_frequent_reasons_are_counted_and_no_row_is_left_out() -> None:
    from pipeline_tasks.flow.gates import MOST_REASONS, rows_of

    rejected = {f"reason_{number}": number for number in range(1, 31)}
    reply = {"rows_in": 1000, "rows": 500, "rejected": rejected, "quarantined": {"truncated": 35}}
    rows = rows_of(reply)
    assert rows["kept"] == "500 of 1,000 rows"
    assert list(rows)[1:3] == ["quarantined, truncated", "rejected, reason_30"]
    assert len(rows) == MOST_REASONS + 2
    assert sum(int(count.replace(",", "")) for name, count in rows.items() if name != "kept") == 500


# --- Answers -----------------------------------------------------------------------------------------------------------


def test_an_approval_carries_the_reason_the_name_and_the_time() -> None:
    assert decided(event("Approve", reason="a crawl\n of one site")) == (
        "a crawl of one site (approved by Ada Lovelace, 2026-11-20 12:00:30 UTC)"
    )


@pytest.mark.parametrize("reason", [None, "", " \n", 7, ["why"], "x" * 1001, "a\x00b", "\ud800"])
def test_a_reason_that_cannot_be_stored_is_none(reason: object) -> None:
    """Airflow's API checks no param of a form."""
    from refinery_airflow.tasks.approval import override_of

    assert override_of(event("Approve", reason=reason)) == ""
    assert override_of(event("Approve")) == ""
    assert override_of(event("Approve", reason="x" * 1000)) != ""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            event("Reject", reason="robots only"),
            "It was rejected: robots only (Ada Lovelace, 2026-11-20 12:00:30 UTC).",
        ),
        (event("Reject"), "It was rejected: no reason was given (Ada Lovelace, 2026-11-20 12:00:30 UTC)."),
        ({"error": "too late", "error_type": "timeout"}, "Nobody approved it by 2026-11-20 12:00 UTC."),
    ],
)
def test_a_refusal_names_who_rejected_or_that_nobody_answered(answer: dict[str, Any], words: str) -> None:
    with pytest.raises(GateRefused) as refused:
        decided(answer)
    lines = str(refused.value).splitlines()
    assert lines[:4] == ["the gate of extract refuses extract/2f/manifest.json", *LINES]
    assert lines[4] == words
    assert "run again with --override extract=WHY." in lines[-2]
    assert lines[-1] == "DAG with extract under Gates to accept, and a reason; or clear this task, and approve it."
    assert all(len(line) <= 100 for line in lines)


def test_a_refusal_is_never_retried_and_has_an_exit_code() -> None:
    """Airflow logs no traceback of a SystemExit, but would try it again."""
    from airflow.sdk import RetryAction
    from refinery_airflow.alerts.alerts import Refusal
    from refinery_airflow.tasks.retry import POLICY

    refusal = Refusal("the gate of extract refuses")
    assert (str(refusal), refusal.code, refusal.exit_code) == ("the gate of extract refuses", 65, 65)
    assert isinstance(refusal, SystemExit)
    assert POLICY.evaluate(refusal, 1, 3).action == RetryAction.FAIL


# --- Time --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "run_type", "conf", "hours"),
    [
        ({"approval": 24}, "scheduled", {}, 24),
        ({"approval": 24}, "backfill", {}, 0),
        ({"approval": 24}, "backfill", None, 0),
        ({"approval": 2}, "backfill", {"approval": 2}, 2),
        ({"approval": 0}, "manual", {"approval": 0}, 0),
        ({}, "manual", {}, 0),
    ],
)
def test_a_backfill_asks_nobody_unless_it_is_to(
    params: dict[str, Any], run_type: str, conf: dict[str, Any] | None, hours: float
) -> None:
    """The days behind a refused one would wait."""
    from refinery_airflow.runs.run import run_of

    run = SimpleNamespace(run_id="r", run_type=run_type, conf=conf)
    given = {"root": "r", "partitions": 0, "engines": {}, "override": {}, **params}
    assert run_of({"params": given, "dag_run": run}).approval == hours  # type: ignore[typeddict-item]
