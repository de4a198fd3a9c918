"""Records in the ledger why a run ended, so that commands and pages can say it where nothing was published."""

from pipeline_tasks.alerts.verdicts import failure_reason
from pipeline_tasks.errors import GateRefused
from pipeline_tasks.flow.attempt import Run
from pipeline_tasks.flow.gates import Refusal
from pipeline_tasks.recipe import BUILD

MOST = 1000
"""Characters of a reason that is recorded."""


def record_failure(run: Run, dataset: str, task: str, error: BaseException | None) -> None:
    """Record why a task of a run into a dataset failed for good; without an error its process was lost."""
    from pipeline_tasks.ledger import Ledger, RunFailure, ledger_of

    name = type(error).__name__ if error else ""
    message = failure_reason(error)
    if isinstance(error, Refusal):
        name, message = GateRefused.__name__, error.decision
    message = " ".join(message.split())[:MOST]
    failure = RunFailure(dataset, run.snapshot or BUILD, task, name, message)
    with Ledger.open(ledger_of(run.root)) as ledger:
        ledger.record_failure(run.root, failure)
