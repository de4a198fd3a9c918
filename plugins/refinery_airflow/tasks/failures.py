"""Records in the ledger why a run ended, so that commands and pages can say it where nothing was published."""

from airflow.sdk import Context

from pipeline_tasks.alerts.verdicts import failure_reason
from pipeline_tasks.deployment import deployment
from pipeline_tasks.errors import GateRefused
from pipeline_tasks.recipe import BUILD, trial_of
from refinery_airflow.alerts.alerts import Refusal
from refinery_airflow.runs.credentials import adopt_credentials
from refinery_airflow.runs.run import Run, harmless, recipe_of_dag, run_of

MOST = 1000
"""Characters of a reason that is recorded."""


def record_failure(context: Context) -> None:
    """Record why a task failed for good, and never raise: the task's own error is what counts.

    Without an error its process was lost, and Airflow calls this where it parses DAG files. So the ledger is opened
    here, and no worker daemon is asked.
    """
    with harmless("ledger", "why the run ended was not recorded"):
        from pipeline_tasks.publish.ledger import Ledger, RunFailure, ledger_of

        run, error = run_of(context), context.get("exception")
        if deployment().path:  # the ledger of a place that the run may not name is none of its own
            adopt_credentials(run.root, recipe=recipe_of_dag(context["ti"].dag_id))
        refused = isinstance(error, Refusal)
        failure = RunFailure(
            recipe=_dataset(context, run),
            snapshot=run.snapshot or BUILD,
            task=context["ti"].task_id,
            error=GateRefused.__name__ if refused else type(error).__name__ if error else "",
            message=" ".join((error.decision if refused else failure_reason(error)).split())[:MOST],
        )
        with Ledger.open(ledger_of(run.root)) as ledger:
            ledger.record_failure(run.root, failure)


def _dataset(context: Context, run: Run) -> str:
    """Return the dataset that a run was to publish into: the operators of its DAG have the recipe's name."""
    recipe = next(filter(None, (getattr(task, "recipe", "") for task in context["dag"].tasks)))
    return trial_of(recipe) if run.is_trial else recipe
