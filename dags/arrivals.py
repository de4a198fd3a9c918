"""Start `refine` for every snapshot that has landed under `landing`, whatever its name.

Every ten minutes, and when a `pull_` DAG has landed something or the queue `REFINERY_QUEUE` has a message, each folder
that no run has seen landed, and that is not published, is started once: its run is named `arrival__<snapshot>`. What it
starts follows from the folders alone: a message may be lost, or come twice. Each recipe is looked at where the
deployment's file says. A date whose own run is queued or waits is
left to that run. DAGs that are paused are left out.

**Runbook**

- *What has landed, and what is missing*: the log of `look` has a line for each folder that is not refined yet.
- *A snapshot is not started.* Its run `arrival__<snapshot>` exists: clear that run. Or its DAG is paused: unpause it.
- *A backlog*: the log of `look` names snapshots that are not published for longer than
  `alerts: backlog:` of the recipe says, once a day.
- *Snapshots are stale* (the log of `publish` and `refinery status` say so): trigger this DAG with `stale` on. The first
  stale snapshot and all after it are refined again in their order. What has not changed is found committed.
"""

from datetime import UTC, datetime

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, AssetOrTimeSchedule, CronTriggerTimetable, Param
from refinery_airflow.alerts.alerts import FailureAlert
from refinery_airflow.tasks.arrivals import Look
from refinery_airflow.tasks.wiring import (
    asset_of,
    dag_arguments,
    dag_id_of,
    refine_recipes,
    rollout_of,
    task_arguments,
    wakes,
)

from pipeline_tasks.deployment import deployed

_recipes = refine_recipes()

with DAG(
    "arrivals",
    description="Starts `refine` for landed snapshots of any name, and for stale ones on request",
    schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("*/10 * * * *", timezone="UTC"), assets=wakes()),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={**task_arguments(), "on_failure_callback": FailureAlert()},
    params={
        "landing": Param(
            deployed().its_landing, type="string", description="Of recipes for which the deployment names none"
        ),
        "root": Param(deployed().its_root, type="string", description="As the landing"),
        "stale": Param(default=False, type="boolean", description="Refine stale snapshots and all after them"),
    },
    doc_md=__doc__,
    **dag_arguments(),
) as dag:
    assets = [asset_of(recipe.name, "arrivals") for recipe in _recipes]
    look = Look(
        task_id="look",
        dags={dag_id_of(recipe): recipe.name for recipe in _recipes},
        backlog={recipe.name: recipe.alerts.backlog for recipe in _recipes},
        accept={recipe.name: recipe.accept_partial for recipe in _recipes},
        rollouts={recipe.name: rollout_of(recipe) for recipe in _recipes if recipe.rollout},
        inlets=assets,
    )
    TriggerDagRunOperator.partial(
        task_id="start",
        skip_when_already_exists=True,
        max_active_tis_per_dagrun=1,  # in order: a run waits for earlier ones only if it sees them
        map_index_template="{{ task.trigger_run_id }}",
    ).expand_kwargs(look.output)
