"""What is committed of a run that published nothing is shown, with where and why it stopped and what to do next."""

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.unpublished import committed, unpublished_runs
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.rebuilding import rebuild
from pipeline_tasks.publish.logs import version_log
from tests.stopped_runs import DAY, LATER, RECIPE, Runs


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.fixture
def refused(runs: Runs) -> Runs:
    """A first run, of which the gate of `extract` refused what it kept."""
    runs.run(refused_by="extract")
    return runs


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    """Run a command that exits with `code`; return what it wrote to stdout and stderr."""
    capsys.readouterr()
    assert main(arguments) == code
    return capsys.readouterr()


def test_a_refused_run_shows_its_funnel_the_bound_and_the_next_step(
    refused: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, "look", "funnel", refused.root)[0].splitlines()
    assert lines[0] == f"{RECIPE} snapshot {DAY}, which is not published"
    assert [line.split()[0] for line in lines[:-1] if " in " in line] == ["ingest", "extract"]
    assert "extract:too_short" in "\n".join(lines)
    assert lines[-1].startswith(f"stopped at extract (refused {DAY[:2]}")
    assert "retention is 0.95, and must be at least 0.25 and at most 0.5" in lines[-1]
    docs = lines[-1].partition("(all bounds: ")[2].partition(")")[0]
    assert Path(docs).read_text().count("retention")
    assert "--override extract=WHY" in lines[-1]


ASKING: Mapping[str, tuple[str, ...]] = {
    **{name: ("look", name) for name in ("versions", "lineage", "redactions", "contamination")},
    **{name: (name,) for name in ("verify", "whatif")},
    **{name: (*name.split(), "0" * 32) for name in ("search", "document", "look duplicates")},
    "plan": ("plan", "--target-tokens", "1e9", "--days", "1", "--gpus", "1", "--from", "1"),
}
"""Commands about what is published, with what they ask for."""


@pytest.mark.parametrize("command", ASKING)
def test_a_root_with_stopped_runs_alone_names_them(
    command: str, refused: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is published there, and these commands said no more than that."""
    refused.fail("extract", "a disk is full", day=LATER)
    for named in ((), ("--recipe", RECIPE)):
        err = printed(capsys, *ASKING[command], refused.root, *named, code=RecipeError.exit_code)[1]
        assert f"snapshot {DAY} of recipe {RECIPE} stopped at extract (refused {DAY[:2]}" in err
        assert f"snapshot {LATER} of recipe {RECIPE} stopped at extract (failed " in err
        assert ("--override extract=WHY" in err, "a disk is full" in err) == (True, True)
    err = printed(capsys, *ASKING[command], refused.root, "--recipe", "web", code=RecipeError.exit_code)[1]
    assert "stopped at" not in err


def test_other_commands_show_what_is_committed_of_a_refused_run(
    refused: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each said that the recipe has not been published, and nothing else."""
    assert "extract:too_short" in printed(capsys, "rejects", refused.root, "--stage", "extract")[0]
    out, err = printed(capsys, "rejects", refused.root)
    assert ("extract:too_short" in out, err.count("is not published: stopped at extract")) == (True, 1)
    out = printed(capsys, "status", refused.root)[0]
    assert f"{DAY}          not published: stopped at extract (refused " in out
    assert "next step: mend the data" in out
    assert printed(capsys, "status", refused.root, "--snapshot", DAY)[0] == out
    err = printed(capsys, "look", "report", refused.root, code=RecipeError.exit_code)[1]
    assert f"refinery look funnel {refused.root} --recipe {RECIPE} --snapshot {DAY}" in err
    assert "must be at least 0.25 and at most 0.5" in err
    err = printed(capsys, "rejects", refused.root, "--stage", "dedup_exact", code=RecipeError.exit_code)[1]
    assert "it has land, ingest, extract: stopped at extract" in err


def test_programs_see_that_a_funnel_is_of_no_version(refused: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    steps = json.loads(printed(capsys, "look", "funnel", refused.root, "--json")[0])
    assert [(step["stage"], step["published"]) for step in steps] == [("ingest", False), ("extract", False)]
    [fact] = json.loads(printed(capsys, "status", refused.root, "--json")[0])
    assert (fact["snapshot"], fact["state"], fact["stage"]) == (DAY, "refused", "extract")
    assert fact["reason"] == "retention is 0.95, and must be at least 0.25 and at most 0.5"


def test_a_refusal_names_who_rejected_once(refused: Runs) -> None:
    refused.fail("extract.gate", "It was rejected: robots only (Ada, 2026-11-20 12:00:30 UTC).", error="GateRefused")
    run = unpublished_runs(refused.root, RECIPE)[DAY]
    assert (run.state, run.stage, list(run.manifests)) == ("refused", "extract", ["land", "ingest", "extract"])
    assert run.why == (
        "retention is 0.95, and must be at least 0.25 and at most 0.5. It was rejected: robots only (Ada, 2026-11-20 12:00:30 UTC)."
    )
    assert run.verdicts["extract"].outcome == "refuse"


def test_a_refused_snapshot_that_a_person_lets_pass_is_published(
    refused: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    refused.fail("extract.gate", "Nobody approved it by 2026-11-20 12:00 UTC.", error="GateRefused")
    refused.run()
    assert unpublished_runs(refused.root, RECIPE) == {}
    assert printed(capsys, "look", "funnel", refused.root)[0].startswith(f"{RECIPE} version 1, snapshot {DAY}\n")


def test_a_stage_that_failed_is_shown_with_its_error(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.run(until="ingest")
    runs.fail("extract.partition", "BudgetExceeded: extract/2f: 30 of 40 records are quarantined")
    out = printed(capsys, "look", "funnel", runs.root)[0]
    assert [line.split()[0] for line in out.splitlines() if " in " in line] == ["ingest"]
    assert "stopped at extract (failed " in out
    assert "UTC): BudgetExceeded: extract/2f: 30 of 40 records are quarantined; next step: mend" in out


def test_a_failure_before_all_stages_has_no_funnel(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.fail("land", "NothingLanded: /landing is empty")
    lines = printed(capsys, "look", "funnel", runs.root)[0].splitlines()
    assert (len(lines), lines[1].split(" (")[0]) == (2, "stopped at land")
    err = printed(capsys, "rejects", runs.root, code=RecipeError.exit_code)[1]
    assert "NothingLanded: /landing is empty" in err


def test_a_gate_that_failed_keeps_the_manifest_that_it_was_to_judge(runs: Runs) -> None:
    runs.run(until="extract")
    runs.fail("extract.gate", "StorageBusy: the root does not answer")
    run = committed(runs.root, RECIPE).shown
    assert list(run.manifests) == ["land", "ingest", "extract"]


def test_a_run_in_progress_shows_the_stages_so_far(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.run(until="extract")
    out = printed(capsys, "look", "funnel", runs.root)[0]
    assert "no stage after extract is committed (" in out
    assert "in progress, or was interrupted; next step: wait for it, or run the snapshot again" in out


def test_a_later_run_outdates_the_failure_of_an_earlier_one(runs: Runs) -> None:
    runs.run(until="ingest")
    runs.fail("extract.partition", "BudgetExceeded: too many")
    runs.run(until="ingest")
    assert unpublished_runs(runs.root, RECIPE)[DAY].state == "unfinished"
    runs.run()
    assert unpublished_runs(runs.root, RECIPE) == {}


def test_a_version_is_shown_before_a_newer_run_that_failed(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.run()
    before = printed(capsys, "look", "funnel", runs.root)
    assert before[1] == ""
    runs.params["extract"] = {"min_chars": 1}
    runs.run(until="extract")
    runs.fail("dedup_exact.refine", "NoSpace: the disk is full")
    out, err = printed(capsys, "look", "funnel", runs.root)
    assert out == before[0]
    assert err.startswith(f"refinery: a newer run of snapshot {DAY} is not published: stopped at dedup_exact (failed ")
    assert err.count("\n") == 1
    assert printed(capsys, "look", "report", runs.root)[0].strip().endswith(".html")
    run = unpublished_runs(runs.root, RECIPE)[DAY]
    assert list(run.manifests) == ["land", "ingest", "extract"]
    assert run.manifests["extract"] not in str(version_log.current(runs.root, RECIPE).manifests)
    assert "NoSpace" in printed(capsys, "status", runs.root)[0]


def test_a_run_that_finds_everything_done_is_no_newer_run(runs: Runs) -> None:
    runs.run()
    runs.run(until="extract")
    assert unpublished_runs(runs.root, RECIPE) == {}
    runs.fail("publish", "StorageBusy: the root does not answer")
    assert unpublished_runs(runs.root, RECIPE) == {}
    runs.run(refused_by="extract")
    assert unpublished_runs(runs.root, RECIPE)[DAY].state == "refused"


def test_a_day_after_the_last_version_is_named_if_its_run_stopped(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.run()
    runs.run(day=LATER, refused_by="ingest")
    out, err = printed(capsys, "look", "funnel", runs.root)
    assert out.startswith(f"{RECIPE} version 1, snapshot {DAY}\n")
    assert f"snapshot {LATER} is not published: stopped at ingest" in err
    assert printed(capsys, "look", "funnel", runs.root, "--snapshot", DAY)[1] == ""
    assert f"snapshot {LATER}, which is not" in printed(capsys, "look", "funnel", runs.root, "--snapshot", LATER)[0]


def test_a_retracted_snapshot_shows_a_newer_run(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.run()
    with Ledger.open(ledger_of(runs.root)) as ledger:
        ledger.record_retraction(version_log.retract(runs.root, RECIPE, DAY, "spam"))
    with pytest.raises(RecipeError, match="was retracted"):
        committed(runs.root, RECIPE, DAY)
    (runs.folder / "landing" / DAY / "b.jsonl").write_text(json.dumps({"text": "mended " * 30}) + "\n")
    runs.run(refused_by="extract")
    assert "spam; not published: stopped at extract" in printed(capsys, "status", runs.root)[0]
    assert committed(runs.root, RECIPE, DAY).run


def test_runs_of_another_root_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On S3 the ledger is by default that of the user, whatever the root."""
    monkeypatch.setenv("REFINERY_LEDGER", str(tmp_path / "shared.sqlite"))
    ours, other = Runs(tmp_path / "ours"), Runs(tmp_path / "other")
    other.params["extract"] = {"min_chars": 1}
    ours.run(until="ingest")
    other.run(refused_by="extract")
    other.fail("extract.gate", "", error="GateRefused")
    [run] = unpublished_runs(ours.root, RECIPE).values()
    assert (run.state, run.stage) == ("unfinished", "ingest")
    assert unpublished_runs(other.root, RECIPE)[DAY].state == "refused"


def test_a_locked_ledger_hides_no_version(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline_tasks.ledger.database.WAIT", 0.1)
    runs.run()
    with sqlite3.connect(ledger_of(runs.root), isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        out, err = printed(capsys, "look", "funnel", runs.root)
        assert f"snapshot {DAY}" in printed(capsys, "status", runs.root)[0] or DAY in out
    other.close()
    assert out.startswith(f"{RECIPE} version 1")
    assert "whether a newer run stopped is not known: " in err


def test_a_root_without_a_ledger_gets_none_by_a_question(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.run()
    Path(ledger_of(runs.root)).unlink()
    printed(capsys, "look", "funnel", runs.root)
    printed(capsys, "status", runs.root)
    assert not Path(ledger_of(runs.root)).exists()


def test_a_rebuilt_ledger_keeps_the_failures_of_the_old_one(runs: Runs) -> None:
    runs.run(until="ingest")
    runs.fail("extract.partition", "BudgetExceeded: too many")
    before = unpublished_runs(runs.root, RECIPE)[DAY].account
    rebuild(runs.root, ledger_of(runs.root))
    assert unpublished_runs(runs.root, RECIPE)[DAY].account == before
