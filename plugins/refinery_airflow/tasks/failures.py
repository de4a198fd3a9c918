"""Records in the ledger why a run ended, so that commands and pages can say it where nothing was published."""

from airflow.sdk import Context

from pipeline_tasks.alerts.sent import harmless
from pipeline_tasks.deployment import deployment
from pipeline_tasks.flow import failures
from refinery_airflow.runs.credentials import adopt_credentials
from refinery_airflow.runs.run import recipe_of_dag, run_of


def record_failure(context: Context) -> None:
    """Record why a task failed for good, and never raise: the task's own error is what counts.

    Without an error its process was lost, and Airflow calls this where it parses DAG files. So the ledger is opened
    here, and no worker daemon is asked. The operators of the DAG have the recipe's name.
    """
    with harmless("ledger", "why the run ended was not recorded"):
        run, task = run_of(context), context["ti"]
        if deployment().path:  # the ledger of a place that the run may not name is none of its own
            adopt_credentials(run.root, recipe=recipe_of_dag(task.dag_id))
        recipe = next(filter(None, (getattr(task, "recipe", "") for task in context["dag"].tasks)))
        failures.record_failure(run, run.dataset(recipe), task.task_id, context.get("exception"))
