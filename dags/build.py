"""Build a training dataset from the published versions of refined snapshots.

A run composes the newest versions of the snapshots that the recipe selects; tokenizes their documents, but for those
whose tokens an earlier build made; leaves out documents that others supersede; mixes them to the shares and budgets of
the recipe; shuffles all documents once; packs them into sequences; and publishes the shards that training reads. If
the recipe has `exports`, the version is then written in formats of other trainers. Each stage is judged by its gate.
Committed work is reused and not done again, so clearing and rerunning is always safe; packed shards that an earlier
version has are not exported again.

**Runbook**

- *When it runs*: by hand, or whenever the recipe of its snapshots publishes a version (unpause the DAG for that).
- *Other snapshots, weights or budget than the recipe's*: the form has them, for this run alone. The page *Build*, below
  *Refinery*, shows the plan of each choice before anything runs, and the params to start it with.
- *What a run would take*: `refinery build ROOT --dry-run --recipe corpus` prints the plan of the mixture. It runs
  nothing behind `mix`.
- *Its tokenizer*: the log of `tokenize` and `refinery status --recipe corpus` name it. A dataset keeps the one of its
  first build.
- *A task failed.* Its log ends with one paragraph that names the manifest and the way out. Clear the failed task.
- *A gate awaits input.* It refuses the data, and waits `approval` hours for a person: open *Required Actions*, read the
  form and its *Data Docs*, and approve or reject with a reason. The reason, your name and the time are stored in the
  verdict. Later builds wait meanwhile.
- *A gate refused.* Nobody approved, or somebody rejected. If the data is right after all, clear the gate's task to be
  asked again, or trigger the DAG with the gate under *Gates to accept*, and a reason.
- *`verdict_gate` refuses or awaits input.* The recipe `requires` a verdict of trained models. Its log has what the log
  of ablations says, and the command that compares the recipe. It asks a person as other gates do.
- *Where it runs*: the connections `spark_default` and `ray_default` decide, or those that the deployment's file names.
"""

from airflow.sdk import DAG
from refinery_airflow.runs.form import labeled, params_of_builds, params_of_runs
from refinery_airflow.tasks.approval import approval_param
from refinery_airflow.tasks.operators import CALLBACKS
from refinery_airflow.tasks.wiring import asset_of, build_recipes, dag_arguments, render, task_arguments, wired

from pipeline_tasks.flow.plan import build_flow
from pipeline_tasks.recipe import Recipe, Versions


def wire(recipe: Recipe) -> DAG:
    """Wire one recipe: compose, (stage, gate)*, publish, and export if the recipe has `exports`."""
    flow, versions = build_flow(recipe), recipe.versions or Versions("")
    with DAG(
        flow.dag,
        description=recipe.title or "Refined snapshots in, a training dataset out",
        schedule=[asset_of(versions.recipe, "documents")],
        max_active_runs=1,
        default_args={**task_arguments(recipe.name), **CALLBACKS},
        params=labeled(
            {
                **params_of_builds(),
                **params_of_runs([*recipe.gates_before, *(step.stage for step in recipe.steps)], recipe.name),
                "approval": approval_param(),
            }
        ),
        doc_md=__doc__,
        **dag_arguments(recipe.name),
    ) as dag:
        render(flow)
    return dag


globals().update(wired(build_recipes(), wire))
