"""Why a run ended is recorded in the ledger by the callback of every task that fails, and never fails itself."""

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_tasks.errors import ContractError
from pipeline_tasks.ledger import Ledger, ledger_of


def context(root: Path, task: str, error: BaseException | None, **params: Any) -> Any:
    """Return what the callback of a task is given; without an error its process was lost."""
    from airflow.sdk import DAG
    from refinery_airflow.tasks.operators import Publish

    with DAG("refine", schedule=None) as dag:
        Publish(task_id="publish", recipe="web", landed={}, gates={})
    ti = SimpleNamespace(dag_id="refine", run_id="r", task_id=task, map_index=-1, try_number=4)
    dag_run = SimpleNamespace(dag_id="refine", run_id="r", run_type="manual", conf={}, partition_key="2026-11-20")
    about = {"root": str(root), "input": "/landing/{snapshot}", "partitions": 0, "override": {}, **params}
    made = {"ti": ti, "dag": dag, "dag_run": dag_run, "params": about, "task": dag.get_task("publish")}
    return made if error is None else {**made, "exception": error}


def recorded(root: Path, recipe: str = "web") -> dict[str, Any]:
    with Ledger.open(ledger_of(str(root))) as ledger:
        [row] = ledger.query("failures", recipe=recipe, snapshot="2026-11-20")
    return row


def test_the_error_of_a_task_is_recorded(tmp_path: Path) -> None:
    from refinery_airflow.tasks.operators import log_failure

    log_failure(context(tmp_path, "extract.partition", ContractError("extract/2f: a row\nis lost")))
    row = recorded(tmp_path)
    assert (row["stage"], row["task"], row["error"]) == ("extract", "extract.partition", "ContractError")
    assert row["message"] == "ContractError: extract/2f: a row is lost"


def test_of_an_error_that_may_have_text_of_a_document_only_the_class_is_recorded(tmp_path: Path) -> None:
    from refinery_airflow.tasks.operators import log_failure

    log_failure(context(tmp_path, "extract.refine", ValueError("Dear Ada, my number is 555-1234")))
    assert "555-1234" not in str(recorded(tmp_path))
    assert recorded(tmp_path)["error"] == "ValueError"


def test_what_a_person_decided_is_recorded_with_the_refusal(tmp_path: Path) -> None:
    from refinery_airflow.alerts.alerts import Refusal
    from refinery_airflow.tasks.operators import log_failure

    decision = "It was rejected: robots only (Ada Lovelace, 2026-11-20 12:00:30 UTC)."
    log_failure(context(tmp_path, "publish_gate", Refusal("the gate of publish refuses", decision)))
    row = recorded(tmp_path)
    assert (row["stage"], row["error"], row["message"]) == ("publish", "GateRefused", decision)


def test_a_lost_process_is_recorded_and_a_trial_is_of_its_own_dataset(tmp_path: Path) -> None:
    from refinery_airflow.tasks.operators import log_failure

    log_failure(context(tmp_path, "land", None, sample=0.01))
    row = recorded(tmp_path, "web.trial")
    assert (row["stage"], row["error"]) == ("land", "")
    assert "killed" in row["message"]


def test_a_ledger_that_is_locked_or_damaged_leaves_the_error_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from refinery_airflow.tasks.operators import log_failure

    monkeypatch.setattr("pipeline_tasks.ledger.database.WAIT", 0.1)
    caplog.set_level("WARNING", logger="refinery")
    failed = context(tmp_path, "land", ContractError("a row is lost"))
    log_failure(failed)
    with sqlite3.connect(ledger_of(str(tmp_path)), isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        log_failure(failed)
    other.close()
    assert "was not recorded (StorageBusy)" in caplog.text
    (tmp_path / "ledger.sqlite").write_bytes(b"no database at all" * 99)
    log_failure(failed)
    assert "was not recorded (ContractError)" in caplog.text
    log_failure({**failed, "params": {}})
