"""Which runs a run waits for: those of earlier snapshots that are under way."""

import pytest

STATES = {
    "own": {"sense": "success", "publish": None},
    "refines": {"sense": "success", "publish": None},
    "starts": {"sense": "queued", "publish": None},
    "waits for its files": {"sense": "deferred", "publish": None},
    "is skipped": {"sense": "skipped", "publish": "skipped"},
    "was refused": {"sense": "success", "publish": "upstream_failed"},
    "has published": {"sense": "success", "publish": "success"},
}


def test_runs_that_wait_for_files_or_have_ended_are_not_waited_for() -> None:
    """A day that never lands blocked the second of two places, and two such days blocked all others."""
    from refinery_airflow.tasks.turn import candidates

    assert candidates(STATES, "own") == ["refines", "starts", "waits for its files"]


@pytest.mark.parametrize(
    ("sense", "state", "landed"),
    [("success", "complete", True), ("deferred", "complete", True), ("deferred", "incomplete", False)],
)
def test_a_run_that_looks_whether_its_files_still_change_has_landed(sense: str, state: str, *, landed: bool) -> None:
    """A later day, whose files came a moment before, was published first."""
    from refinery_airflow.tasks.turn import has_landed

    assert has_landed({"state": state}, {"sense": sense}) is landed


@pytest.mark.parametrize(
    ("snapshot", "run_id", "root", "is_ahead"),
    [
        ("2026-11-19", "z", "r", True),
        ("2026-11-21", "a", "r", False),
        ("2026-11-19", "z", "other root", False),
        ("2026-11-20", "a", "r", True),
        ("2026-11-20", "z", "r", False),
    ],
)
def test_runs_go_by_snapshot_and_then_by_id_so_that_no_two_wait_for_each_other(
    snapshot: str, run_id: str, root: str, *, is_ahead: bool
) -> None:
    from refinery_airflow.tasks.turn import Place, is_before

    own = Place("refine", "own", "2026-11-20", "r")
    other = Place("refine", run_id, snapshot, root)
    assert is_before({"snapshot": snapshot, "root": root}, run_id, own) is is_ahead
    if root == "r":
        assert is_before({"snapshot": own.snapshot, "root": "r"}, own.run_id, other) is not is_ahead


def test_a_run_that_is_waited_for_says_whether_a_person_must_approve_it() -> None:
    from refinery_airflow.tasks.turn import approvals

    assert approvals({"ingest.gate": "success", "publish_gate": None}) == ""
    assert approvals({"ingest.gate": "success", "extract.gate": "awaiting_input"}) == (
        ", which awaits approval in extract.gate"
    )


def test_a_run_that_waits_asks_for_all_runs_only_when_none_that_it_waited_for_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A year of days has 365 runs; the states of all were asked for four times a minute by each that waits."""
    from refinery_airflow.tasks import turn as refinery_turn

    states = {f"day {day}": {"sense": "success", "publish": "success"} for day in range(300)}
    states |= {"first": {"sense": "success", "publish": None}, "second": {"sense": "success", "publish": None}}
    rows: list[int] = []

    class Airflow:
        @staticmethod
        def get_task_states(*_: str, run_ids: list[str] | None = None, **__: object) -> dict[str, object]:
            named = {run_id: states[run_id] for run_id in run_ids or states}
            rows.append(len(named))
            return named

        @staticmethod
        def get_dagrun_state(*_: str) -> str:
            return "running"

    def arrival(*, run_id: str, **_: str) -> dict[str, str]:
        return {"snapshot": run_id, "root": "r", "state": "complete"}

    monkeypatch.setattr(refinery_turn, "RuntimeTaskInstance", Airflow)
    monkeypatch.setattr(refinery_turn.BaseXCom, "get_one", arrival)
    place = refinery_turn.Place("refine", "own", "z", "r")
    ahead = refinery_turn.still_ahead(place, [])
    assert (list(ahead), max(rows)) == (["first", "second"], 302)
    rows.clear()
    states["first"]["publish"] = "success"
    ahead = refinery_turn.still_ahead(place, list(ahead))
    assert (list(ahead), max(rows)) == (["second"], 2)
    states["second"]["publish"] = "success"
    states["third"] = {"sense": "success", "publish": None}
    assert list(refinery_turn.still_ahead(place, list(ahead))) == ["third"]
