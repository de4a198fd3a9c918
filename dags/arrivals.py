"""Start `refine` for every snapshot that has landed under `landing`, whatever its name.

Every ten minutes, and when a `pull_` DAG has landed something or the queue `REFINERY_QUEUE` has a message, each folder
that no run has seen landed, and that is not published, is started once: its run is named `arrival__<snapshot>`. What it
starts follows from the folders alone: a message may be lost, or come twice. A date whose own run is queued or waits is
left to that run. DAGs that are paused are left out. Places of their own that the deployment's file gives to recipes
have a DAG of their own, `arrivals_ENTRY`.

**Runbook**

- *What has landed, and what is missing*: the log of `look` has a line for each folder that is not refined yet.
- *A snapshot is not started.* Its run `arrival__<snapshot>` exists: clear that run. Or its DAG is paused: unpause it.
- *A backlog*: the log of `look` names snapshots that are not published for longer than
  `alerts: backlog:` of the recipe says, once a day.
- *Snapshots are stale* (the log of `publish` and `refinery status` say so): trigger this DAG with `stale` on. The first
  stale snapshot and all after it are refined again in their order. What has not changed is found committed.
"""

from collections.abc import Sequence

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, AssetOrTimeSchedule, CronTriggerTimetable, Param
from refinery_airflow.runs.form import labeled
from refinery_airflow.tasks.arrivals import Look
from refinery_airflow.tasks.wiring import (
    arguments_of,
    asset_of,
    confined,
    dag_id_of,
    of_roots,
    refine_recipes,
    rollout_of,
    task_arguments_by,
    wakes,
)

from pipeline_tasks.deployment import Settings, deployment
from pipeline_tasks.recipe import Recipe

_recipes = refine_recipes()


def recipes_of(entry: str) -> list[Recipe]:
    """Return the recipes whose snapshots land at places of an entry; "" has all that share the default places."""
    known = deployment()
    own = {name for name, _ in known.landed()}
    at = [(recipe, known.entry_of(recipe.name)) for recipe in _recipes]
    return [recipe for recipe, its in at if its not in known.refused and (its if its in own else "") == entry]


def wire(name: str, settings: Settings, recipes: Sequence[Recipe]) -> DAG:
    """Wire the look at one landing, for the recipes that read it."""
    with DAG(
        name,
        description="Starts `refine` for landed snapshots of any name, and for stale ones on request",
        schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("*/10 * * * *", timezone="UTC"), assets=wakes()),
        max_active_runs=1,
        default_args=task_arguments_by(settings),
        params=labeled(
            {
                "landing": Param(settings.its_landing, type="string", **confined(settings.its_landing)),
                "root": Param(settings.its_root, type="string", **confined(settings.its_root)),
                "stale": Param(default=False, type="boolean", description="Refine stale snapshots and all after them"),
            }
        ),
        doc_md=__doc__,
        **arguments_of(settings),
    ) as dag:
        look = Look(
            task_id="look",
            dags={dag_id_of(recipe): recipe.name for recipe in recipes},
            backlog={recipe.name: recipe.alerts.backlog for recipe in recipes},
            accept={recipe.name: recipe.accept_partial for recipe in recipes},
            rollouts={recipe.name: rollout_of(recipe) for recipe in recipes if recipe.rollout},
            inlets=[asset_of(recipe.name, "arrivals") for recipe in recipes],
        )
        TriggerDagRunOperator.partial(
            task_id="start",
            skip_when_already_exists=True,
            max_active_tis_per_dagrun=1,  # in order: a run waits for earlier ones only if it sees them
            map_index_template="{{ task.trigger_run_id }}",
        ).expand_kwargs(look.output)
    return dag


for _name, _entry, _settings in of_roots("arrivals", deployment().landed()):
    globals()[_name] = wire(_name, _settings, recipes_of(_entry))
