"""Pull what the recipe of a source asks for below the landing, whole or not at all.

`arrivals` starts what has landed: an event of the asset `landings` wakes it, and it looks by itself every ten minutes.
Each recipe has an asset `landing/<name>` besides, on which DAGs of your own can be scheduled: `extra` of its events has
`snapshot`, `input`, `files`, `bytes`, and `rows` where they are known. The command `refinery pull NAME` does the same.

**Runbook**

- *When it runs*: by the `schedule` of its recipe, once it is unpaused. Unpause `arrivals`, too, and a DAG `refine` of
  your recipe.
- *`pull` was skipped*: nothing is new. The snapshot that the recipe asks for had landed before; its log names it.
- *`pull` failed with "refuses more requests"*: the source answered 403. It is not tried again. Wait until the time
  that the error names, and clear the task, or trigger the DAG with a smaller *rate*: it goes on with what is missing.
  Who knows that the source allows requests again triggers it with *again*.
- *A listed file is not there, or damaged*: the error names it. Clear the task later, or leave the file out by a param
  of the query, such as *without*.
- *"is of another query"*: the params have changed since the snapshot was begun. Remove its folder, or set them back.
- *`takedown`* records what the source has deleted, if the recipe says `deletions: takedown`. Training datasets follow
  with their next build; `refinery takedown --landing URI` publishes them again at once (`--undo` takes it back).
- A task that was killed goes on where it was: on the same worker with the bytes that it had, on another one with the
  files that were complete.
"""

from typing import Any

from airflow.sdk import DAG, Asset, CronTriggerTimetable, get_current_context, task
from refinery_airflow.runs.form import labeled
from refinery_airflow.tasks.sources import LANDED, params_of_pull, pull_source, take_deletions_down
from refinery_airflow.tasks.wiring import LANDINGS, dag_arguments, landing_of, source_recipes, task_arguments, wired
from refinery_sources.recipe import TAKEDOWN, SourceRecipe

from pipeline_tasks.deployment import deployed


def wire(recipe: SourceRecipe) -> DAG:
    """Wire one recipe: pull, and take down what the source has deleted if the recipe says so."""
    landing = deployed(recipe.name).its_landing
    root = deployed(recipe.name).its_root
    outlets: tuple[Asset, ...] = (LANDINGS, landing_of(recipe.name))
    own = {"pool": recipe.pool} if recipe.pool else {}  # by which the source is not asked by too many at once

    @task(outlets=list(outlets))  # type: ignore[untyped-decorator]  # loaded lazily: Any
    def pull() -> dict[str, Any]:
        """Land what the recipe asks for now."""
        return pull_source(recipe, get_current_context(), outlets)

    @task(trigger_rule="none_failed")  # type: ignore[untyped-decorator]  # also behind a pull that found nothing new
    def takedown() -> dict[str, Any]:
        """Take down what the source has deleted."""
        context = get_current_context()
        return take_deletions_down(context, context["ti"].xcom_pull(task_ids="pull", key=LANDED))

    with DAG(
        f"pull_{recipe.name}",
        description=recipe.title or "What a source has in, a landing that is whole out",
        schedule=CronTriggerTimetable(recipe.schedule, timezone="UTC") if recipe.schedule else None,
        max_active_runs=1,
        default_args={**task_arguments(recipe.name), **own},
        params=labeled(params_of_pull(recipe, landing, root)),
        doc_md=__doc__,
        **dag_arguments(recipe.name),
    ) as dag:
        pulled = pull()
        if recipe.deletions == TAKEDOWN:
            pulled >> takedown()
    return dag


globals().update(wired(source_recipes(), wire))
